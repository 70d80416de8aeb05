//! Recordings of arm64 machines: whit unwinds their stacks on any host.

use super::{Made, at, sample};
use crate::golden::elf::{Elf, Function, Machine, TEXT};
use crate::golden::encode::{Attr, Bytes, Kernel, Recording, bytes, field, flag, marker, misc};

/// Where the program was loaded.
const BASE: u64 = 0xaaaa_c0de_0000;
/// The kernel's part of `pc` after a signed return address: bits of the pointer authentication code.
const SIGNATURE: u64 = 0x0029_0000_0000_0000;
const PATH: &str = "/opt/whit-golden/arm64-chain";

const LEAF: u64 = 0;
const MIDDLE: u64 = 0x40;
const MAIN: u64 = 0x80;
const START: u64 = 0xc0;

/// Address of an instruction of the program.
fn code(offset: u64) -> u64 {
    BASE + TEXT + offset
}

/// `leaf` keeps its return address in the link register, `middle` has the usual frame record, `main`
/// signs its return address, `_start` has no caller.
pub(super) fn program() -> Elf {
    let function = |name, start, unwind| Function { name, start, size: 0x40, unwind };
    Elf {
        machine: Machine::Aarch64,
        functions: vec![
            function("leaf", LEAF, &[]),
            // advance 1; def_cfa_offset 32; offset x29 -32; offset x30 -24
            function("middle", MIDDLE, &[0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3]),
            // advance 1; negate_ra_state; advance 1; def_cfa_offset 48; x29 -48; x30 -40
            function("main", MAIN, &[0x41, 0x2d, 0x41, 0x0e, 48, 0x9d, 6, 0x9e, 5]),
            // undefined x30
            function("_start", START, &[0x07, 30]),
        ],
    }
}

const SP: u64 = 0xffff_f000_1000;
/// Frame records: of `middle`, at the stack pointer of `leaf`, and of `main`.
const MIDDLE_FRAME: u64 = SP;
const MAIN_FRAME: u64 = SP + 32;

/// The stack from the stack pointer of `leaf` up.
fn stack() -> Vec<u8> {
    bytes(|b| {
        b.words(&[MAIN_FRAME, code(MAIN + 0x20), 0x11, 0x12]);
        b.words(&[0, code(START + 0x10) | SIGNATURE, 0x21, 0x22, 0x23, 0x24]);
        b.words(&[1, 0, 0, 0]);
    })
}

/// All 33 registers: x0 to x30, sp, pc.
fn registers(lr: u64, fp: u64, sp: u64, pc: u64) -> Vec<u64> {
    let mut values: Vec<u64> = (0..29).collect();
    values.extend([fp, lr, sp, pc]);
    values
}

fn user_stack(b: &mut Bytes, registers: &[u64], stack: &[u8]) {
    b.u64(2).words(registers);
    // The sample has room for a dump of 128 bytes; behind the stack's end stand old bytes.
    b.u64(128).raw(stack);
    b.0.resize(b.0.len() + 128 - stack.len(), 0xee);
    b.u64(stack.len() as u64);
}

fn side_band(kernel: &Kernel) -> Vec<u8> {
    let id = at(7100, 7100, 1_000_000);
    let mut data = kernel.kernel_map();
    data.extend(kernel.comm("arm64-chain", true, id));
    data.extend(kernel.mmap2(PATH, (BASE, 0x1000, 0), at(7100, 7100, 1_000_100)));
    data
}

/// `perf record --call-graph dwarf` on an arm64 machine.
pub(super) fn dwarf() -> Made {
    let mut attr = Attr::software(
        0,
        field::IP
            | field::TID
            | field::TIME
            | field::CPU
            | field::CALLCHAIN
            | field::REGS_USER
            | field::STACK_USER
            | field::IDENTIFIER,
    );
    (attr.regs_user, attr.stack_user) = ((1 << 33) - 1, 128);
    let kernel = Kernel::of(&attr);
    let mut data = side_band(&kernel);
    let stack = stack();
    let mut add = |time, mode, ip: u64, chain: &[u64], registers: Vec<u64>, stack: &[u8]| {
        data.extend(sample(mode, |b| {
            b.u64(11).u64(ip).i32(7100).i32(7100).u64(time).u32(1).u32(0);
            b.u64(chain.len() as u64).words(chain);
            user_stack(b, &registers, stack);
        }));
    };
    // In the leaf: the return address is in the link register.
    let pc = code(LEAF + 8);
    let leaf = registers(code(MIDDLE + 0x20), MIDDLE_FRAME, SP, pc);
    add(2_000_000, misc::USER, pc, &[], leaf, &stack);
    // On the first instruction of `middle`, before its frame is made.
    let pc = code(MIDDLE);
    let entry = registers(code(MAIN + 0x20), MAIN_FRAME, MAIN_FRAME, pc);
    add(2_000_100, misc::USER, pc, &[], entry, &stack[32..]);
    // In a system call of `main`.
    let ip = 0xffff_ffff_8100_2010;
    let chain = [marker::KERNEL, ip, 0xffff_ffff_8100_1020];
    let system = registers(0x77, MAIN_FRAME, MAIN_FRAME, code(MAIN + 0x20));
    add(2_000_200, misc::KERNEL, ip, &chain, system, &stack[32..]);
    // The same with a dump that was cut before the frame record of `main`.
    let pc = code(LEAF + 8);
    let cut = registers(code(MIDDLE + 0x20), MIDDLE_FRAME, SP, pc);
    add(2_000_300, misc::USER, pc, &[], cut, &stack[..32]);
    let events = vec![(attr, vec![11, 12], "cpu-clock")];
    let recording = Recording::new(events, data).of("aarch64", "6.1.0").described();
    Made::file("arm64-dwarf", recording).with_program(PATH, program())
}

/// `perf record -g` on an arm64 machine: frame pointers, and since Linux 5.18 the link register, for
/// the caller of a function that has no frame.
pub(super) fn frame_pointers() -> Made {
    let mut attr = Attr::software(
        0,
        field::IP | field::TID | field::TIME | field::PERIOD | field::CALLCHAIN | field::REGS_USER,
    );
    attr.flags |= flag::FREQ;
    attr.regs_user = 1 << 30;
    let kernel = Kernel::of(&attr);
    let mut data = side_band(&kernel);
    let mut add = |time, chain: &[u64], lr: u64| {
        data.extend(sample(misc::USER, |b| {
            b.u64(chain[1]).i32(7100).i32(7100).u64(time).u64(250_000);
            b.u64(chain.len() as u64).words(chain).u64(2).u64(lr);
        }));
    };
    let (main, start) = (code(MAIN + 0x20), code(START + 0x10));
    // In the leaf, whose caller has the only frame record but `main`'s: the chain passes it over.
    add(2_000_000, &[marker::USER, code(LEAF + 8), main, start], code(MIDDLE + 0x20));
    // In `middle`, behind the making of its frame: the link register says nothing new.
    add(2_000_100, &[marker::USER, code(MIDDLE + 0x10), main, start], code(MIDDLE + 0xc));
    let events = vec![(attr, vec![11], "cycles")];
    let recording = Recording::new(events, data).of("aarch64", "6.1.0").described();
    Made::file("arm64-frame-pointers", recording).with_program(PATH, program())
}
