//! Descriptions of compiled code, of the right form and with wrong numbers.

use super::super::hostile::elf::CODE_START;

const HEADER_BYTES: u32 = 40;
const PREFIX_BYTES: usize = 16;
const RECORDS_MAX: usize = 2_000;
/// One file in so many has records without number.
const LARGE_OF: u32 = 12;
const LARGE_RECORDS: usize = 1_500_000;

pub(super) fn damaged(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut file = b"DTiJ".to_vec();
    for word in [1, HEADER_BYTES, 62, 0, 1] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend([0; 16]);
    if random.u32(0..LARGE_OF) == 0 {
        let one = load(CODE_START, 1, 0, random);
        (0..LARGE_RECORDS).for_each(|_| file.extend(&one));
        return file;
    }
    for number in 0..random.usize(1..RECORDS_MAX) as u64 {
        let record = match random.u8(0..5) {
            0 | 1 => load(address(random), edge(random), number / 2, random),
            2 => moved(number, random),
            3 => lines(random),
            _ => unwinding(random),
        };
        file.extend(record);
    }
    if random.bool() {
        file.truncate(random.usize(0..file.len()));
    }
    file
}

fn edge(random: &mut fastrand::Rng) -> u64 {
    let all = [0, 1, 16, 0x1000, 1 << 32, 1 << 40, (1 << 63) - 1, u64::MAX - 7, u64::MAX];
    all[random.usize(0..all.len())]
}

fn address(random: &mut fastrand::Rng) -> u64 {
    if random.u8(0..4) == 0 { edge(random) } else { CODE_START + random.u64(0..0x1000) }
}

/// A record at a random time: times go back as often as on. One in some states a wrong size.
fn record(kind: u32, body: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let stated = match random.u32(0..2_000) {
        0 => 0,
        1 => u32::MAX,
        2 => 15,
        _ => (PREFIX_BYTES + body.len()) as u32,
    };
    let time = random.u64(0..1 << 40);
    [&kind.to_le_bytes()[..], &stated.to_le_bytes(), &time.to_le_bytes(), body].concat()
}

fn words(list: &[u64]) -> Vec<u8> {
    list.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn load(at: u64, size: u64, index: u64, random: &mut fastrand::Rng) -> Vec<u8> {
    let code = vec![0x90; random.usize(1..64)];
    let body = [&[0; 8][..], &words(&[at, at, size, index]), b"f\0", &code].concat();
    record(0, &body, random)
}

/// Code that moves, also code that no record has, and onto itself.
fn moved(index: u64, random: &mut fastrand::Rng) -> Vec<u8> {
    let (from, to) = (address(random), address(random));
    let body = [&[0; 8][..], &words(&[from, from, to, edge(random), index / 3])].concat();
    record(1, &body, random)
}

fn lines(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut body = words(&[address(random), edge(random)]);
    for _ in 0..random.u32(0..20) {
        body.extend(words(&[address(random), random.u64(..)]));
        body.extend(if random.bool() { &b"a.js\0"[..] } else { b"\xff\0" });
    }
    record(2, &body, random)
}

fn unwinding(random: &mut fastrand::Rng) -> Vec<u8> {
    let bytes: Vec<u8> = (0..random.usize(0..200)).map(|_| random.u8(..)).collect();
    let sizes = words(&[edge(random), edge(random) & 0xff, edge(random)]);
    record(4, &[sizes, bytes].concat(), random)
}
