//! Branch stacks of x86-64, which no machine without LBR can record.

use super::{Made, at, sample};
use crate::golden::elf::{Elf, Function, Machine, TEXT};
use crate::golden::encode::{Attr, Kernel, Recording, field, marker, misc};

const BASE: u64 = 0x5555_5555_4000;
const PATH: &str = "/opt/whit-golden/calls";

/// `PERF_SAMPLE_BRANCH_*`.
const USER: u64 = 1 << 0;
const ANY: u64 = 1 << 3;
const CALL_STACK: u64 = 1 << 11;
const HW_INDEX: u64 = 1 << 17;
const COUNTERS: u64 = 1 << 19;

fn code(offset: u64) -> u64 {
    BASE + TEXT + offset
}

pub(super) fn program() -> Elf {
    let names = ["inner", "outer", "main", "_start"];
    let function =
        |(index, name): (u64, _)| Function { name, start: 0x40 * index, size: 0x40, unwind: &[] };
    Elf { machine: Machine::X86_64, functions: (0..).zip(names).map(function).collect() }
}

fn attr(branches: u64) -> Attr {
    let mut attr = Attr::software(
        0,
        field::IP
            | field::TID
            | field::TIME
            | field::CALLCHAIN
            | field::PERIOD
            | field::BRANCH_STACK,
    );
    (attr.kind, attr.branch_sample_type) = (0, branches);
    attr
}

fn side_band(kernel: &Kernel) -> Vec<u8> {
    let id = at(7200, 7200, 1_000_000);
    let mut data = kernel.kernel_map();
    data.extend(kernel.comm("calls", true, id));
    data.extend(kernel.mmap2(PATH, (BASE, 0x1000, 0), id));
    data
}

/// `perf record --call-graph lbr`: the kernel's chain, and the calls that the CPU has kept.
pub(super) fn call_stack() -> Made {
    let attr = attr(USER | CALL_STACK | HW_INDEX);
    let kernel = Kernel::of(&attr);
    let mut data = side_band(&kernel);
    let mut add = |time, mode, chain: &[u64], index: u64, calls: &[(u64, u64)]| {
        let ip = chain[1];
        data.extend(sample(mode, |b| {
            b.u64(ip).i32(7200).i32(7200).u64(time).u64(1000);
            b.u64(chain.len() as u64).words(chain);
            b.u64(calls.len() as u64).u64(index);
            calls.iter().for_each(|(from, to)| {
                b.words(&[*from, *to, 0]);
            });
        }));
    };
    let calls = [
        (code(0x40 + 0x14), code(0)),
        (code(0x80 + 0x18), code(0x40)),
        (code(0xc0 + 0x1c), code(0x80)),
    ];
    // The frame pointers lead nowhere: the program was built without them.
    add(2_000_000, misc::USER, &[marker::USER, code(0x10), 0x1234], 7, &calls);
    let ip = 0xffff_ffff_8100_2010;
    let chain = [marker::KERNEL, ip, 0xffff_ffff_8100_1020, marker::USER, code(0x44), 0x1234];
    add(2_000_100, misc::KERNEL, &chain, 8, &calls[1..]);
    // The dump is empty (the thread was just switched in): the kernel's own chain counts.
    let chain = [marker::USER, code(0x84), code(0xd0)];
    add(2_000_200, misc::USER, &chain, u64::MAX, &[]);
    let events = vec![(attr, vec![21], "cycles")];
    Made::file("lbr-call-stack", Recording::new(events, data).described())
        .with_program(PATH, program())
}

/// `perf record -b`: the branches just taken, which are no call chain.
pub(super) fn any() -> Made {
    branches("branches", 0)
}

/// The same with counters of each branch (Linux 6.8).
pub(super) fn counted() -> Made {
    branches("branch-counters", COUNTERS)
}

fn branches(name: &'static str, counters: u64) -> Made {
    let mut attr = attr(USER | ANY | counters);
    attr.sample_type &= !field::CALLCHAIN;
    let kernel = Kernel::of(&attr);
    let mut data = side_band(&kernel);
    for (time, ip) in [(2_000_000, 0x10), (2_000_100, 0x50), (2_000_200, 0x58)] {
        data.extend(sample(misc::USER, |b| {
            b.u64(code(ip)).i32(7200).i32(7200).u64(time).u64(1000).u64(2);
            // Predicted, and mispredicted after 17 cycles.
            b.words(&[code(0x20), code(0x28), 2, code(0x54), code(0), 1 | 17 << 4]);
            if counters != 0 {
                b.words(&[0x0101, 0x0203]);
            }
        }));
    }
    let events = vec![(attr, vec![21], "cycles")];
    Made::file(name, Recording::new(events, data).described()).with_program(PATH, program())
}
