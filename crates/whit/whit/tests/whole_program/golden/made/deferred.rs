//! `perf record --call-graph fp,defer` of Linux 6.19: user call chains that the kernel takes when the
//! thread returns to user mode, in records of their own.
//!
//! Sources: `perf_callchain`, `perf_callchain_deferred_output` in `kernel/events/core.c` (no marker
//! stands in the record), `get_perf_callchain` in `kernel/events/callchain.c`.

use super::{Made, at, sample};
use crate::golden::elf::{Elf, Function, Machine, TEXT};
use crate::golden::encode::{Attr, Kernel, Recording, field, flag, kind, marker, misc};

const BASE: u64 = 0x40_0000;
const LEAF: u64 = BASE + TEXT + 8;
const MAIN: u64 = BASE + TEXT + 0x48;
/// In the kernel: where execution stood, and its caller.
const IN_KERNEL: [u64; 2] = [0xffff_ffff_8100_2010, 0xffff_ffff_8100_1020];

const DEFERS: &str = "/opt/whit-golden/defers";
const REPLACES: &str = "/opt/whit-golden/replaces";

fn program(leaf: &'static str, main: &'static str) -> Elf {
    let function = |name, start| Function { name, start, size: 0x40, unwind: &[] };
    Elf { machine: Machine::X86_64, functions: vec![function(leaf, 0), function(main, 0x40)] }
}

pub(crate) fn attr() -> Attr {
    let mut attr = Attr::software(0, field::IP | field::TID | field::TIME | field::CALLCHAIN);
    attr.flags |= flag::DEFER_CALLCHAIN | flag::DEFER_OUTPUT;
    attr
}

/// A sample in the kernel whose user call chain comes later.
pub(crate) fn awaiting(tid: i32, time: u64, cookie: u64) -> Vec<u8> {
    let [ip, caller] = IN_KERNEL;
    let chain = [marker::KERNEL, ip, caller, marker::USER_DEFERRED, cookie];
    sample(misc::KERNEL, |b| {
        b.u64(ip).i32(8400).i32(tid).u64(time).u64(chain.len() as u64).words(&chain);
    })
}

/// That chain.
pub(crate) fn deferred(
    kernel: &Kernel,
    (tid, time): (i32, u64),
    cookie: u64,
    chain: &[u64],
) -> Vec<u8> {
    kernel.record(kind::CALLCHAIN_DEFERRED, misc::USER, at(8400, tid, time), |b| {
        b.u64(cookie).u64(chain.len() as u64).words(chain);
    })
}

pub(super) fn chains() -> Made {
    let attr = attr();
    let kernel = Kernel::of(&attr);
    let user = [LEAF, MAIN];
    let map = |path, time| kernel.mmap2(path, (BASE, 0x1000, 0), at(8400, 8400, time));
    // Cookies are of CPU 0: its number plus one, and a count in the upper half.
    let data = [
        kernel.kernel_map(),
        kernel.comm("defers", true, at(8400, 8400, 1_000_000)),
        map(DEFERS, 1_000_100),
        kernel.task(kind::FORK, (8400, 8400), at(8400, 8401, 1_000_200)),
        // Two samples of one stay in the kernel share a chain.
        awaiting(8400, 2_000_000, 0x1_0000_0001),
        awaiting(8400, 2_000_100, 0x1_0000_0001),
        deferred(&kernel, (8400, 2_000_200), 0x1_0000_0001, &user),
        // Another thread returned first, and its CPU's ring was drained first.
        deferred(&kernel, (8401, 2_001_300), 0x3_0000_0001, &user[1..]),
        awaiting(8401, 2_001_000, 0x3_0000_0001),
        // A cookie of another thread does not count.
        awaiting(8401, 2_002_000, 0x1_0000_0001),
        // In user mode, chains come later too.
        sample(misc::USER, |b| {
            b.u64(LEAF).i32(8400).i32(8400).u64(2_003_000);
            b.u64(2).words(&[marker::USER_DEFERRED, 0x5_0000_0001]);
        }),
        deferred(&kernel, (8400, 2_003_100), 0x5_0000_0001, &user),
        // Its sample was lost.
        deferred(&kernel, (8400, 2_004_000), 0x7_0000_0001, &user),
        // The chain of an execve is that of the new program.
        awaiting(8400, 3_000_000, 0x9_0000_0001),
        kernel.comm("replaces", true, at(8400, 8400, 3_000_100)),
        map(REPLACES, 3_000_200),
        deferred(&kernel, (8400, 3_000_300), 0x9_0000_0001, &user),
        // The recording ends before the thread returns.
        awaiting(8400, 4_000_000, 0xb_0000_0001),
    ];
    let events = vec![(attr, vec![11], "cpu-clock")];
    let recording = Recording::new(events, data.concat()).of("x86_64", "6.19.0").described();
    Made::file("deferred-chains", recording)
        .with_program(DEFERS, program("defers_leaf", "defers_main"))
        .with_program(REPLACES, program("new_leaf", "new_main"))
}
