//! A recording with samples in a binary that is written later.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::elf::{CODE_BYTES, CODE_START};

/// Address, thread, time, call chain, period, registers and stack.
const SAMPLE_TYPE: u64 = 0x1 | 0x2 | 0x4 | 0x20 | 0x100 | 0x1000 | 0x2000;
/// General registers of x86-64.
const REGISTERS: u64 = 0xff_0fff;
const STACK_POINTER_BIT: u32 = 7;
const INSTRUCTION_POINTER_BIT: u32 = 8;
const STACK_BYTES: u64 = 512;
const STACK_START: u64 = 0x7fff_0000_0000;
const ATTRIBUTES_BYTES: u64 = 112;
const HEADER_BYTES: u64 = 104;
pub(crate) const PROCESS: u32 = 1_000_000;
/// Where further files are mapped, so far apart.
const FURTHER_START: u64 = 0x6000_0000_0000;
const SAMPLES: u64 = 64;

/// The recording, as bytes.
pub(crate) fn of(binary: &Path) -> Vec<u8> {
    with_further(binary, &[])
}

/// The same of a process that maps further files too.
pub(crate) fn with_further(binary: &Path, further: &[&Path]) -> Vec<u8> {
    let attributes = attributes();
    let ids = [0u64.to_le_bytes(); 2].concat();
    let mut records = mapping(binary, CODE_START);
    for (file, number) in further.iter().zip(0..) {
        records.extend(mapping(file, FURTHER_START + number * 0x10_0000));
    }
    records.extend(record(3, 0, &[thread(), padded(b"hostile")].concat()));
    for number in 0..SAMPLES {
        records.extend(sample(number));
    }
    let attributes_offset = HEADER_BYTES;
    let attribute_bytes = ATTRIBUTES_BYTES + 16;
    let data_offset = attributes_offset + attribute_bytes;
    let mut file = b"PERFILE2".to_vec();
    for number in [
        HEADER_BYTES,
        attribute_bytes,
        attributes_offset,
        attribute_bytes,
        data_offset,
        records.len() as u64,
        0,
        0,
        0,
        0,
        0,
        0,
    ] {
        file.extend(number.to_le_bytes());
    }
    [file, attributes, ids, records].concat()
}

fn attributes() -> Vec<u8> {
    // A software clock, with a frequency.
    const SOFTWARE: u32 = 1;
    const FREQUENCY: u64 = 1 << 10;
    const SAMPLE_BRANCHES: u64 = 0;
    let mut bytes = [SOFTWARE.to_le_bytes(), (ATTRIBUTES_BYTES as u32).to_le_bytes()].concat();
    for number in [0, 4000, SAMPLE_TYPE, 0, FREQUENCY, 0, 0, 0, SAMPLE_BRANCHES, REGISTERS] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend((STACK_BYTES as u32).to_le_bytes());
    bytes.resize(ATTRIBUTES_BYTES as usize, 0);
    bytes
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = 8 + body.len() as u16;
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

fn thread() -> Vec<u8> {
    [PROCESS.to_le_bytes(); 2].concat()
}

fn padded(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    bytes.resize((text.len() + 1).next_multiple_of(8), 0);
    bytes
}

fn mapping(file: &Path, start: u64) -> Vec<u8> {
    let mut body = thread();
    for number in [start, CODE_BYTES, CODE_BYTES] {
        body.extend(number.to_le_bytes());
    }
    body.extend(padded(file.as_os_str().as_bytes()));
    record(1, 2, &body)
}

fn sample(number: u64) -> Vec<u8> {
    const IN_USER: u64 = -512i64 as u64;
    let address = CODE_START + number * (CODE_BYTES / SAMPLES);
    let mut body = address.to_le_bytes().to_vec();
    body.extend(thread());
    for part in [1_000_000 * (number + 1), 1, 2, IN_USER, address, 2] {
        body.extend(part.to_le_bytes());
    }
    for bit in (0..64).filter(|bit| REGISTERS >> bit & 1 == 1) {
        let value = match bit {
            STACK_POINTER_BIT => STACK_START,
            INSTRUCTION_POINTER_BIT => address,
            _ => STACK_START + 64,
        };
        body.extend(value.to_le_bytes());
    }
    body.extend(STACK_BYTES.to_le_bytes());
    for word in 0..STACK_BYTES / 8 {
        body.extend((CODE_START + word * 16).to_le_bytes());
    }
    body.extend(STACK_BYTES.to_le_bytes());
    record(9, 2, &body)
}
