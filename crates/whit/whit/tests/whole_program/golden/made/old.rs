//! As old versions of perf wrote recordings.

use super::{Made, at, sample};
use crate::golden::elf::{Elf, Function, Machine, TEXT};
use crate::golden::encode::{
    Attr, Id, Kernel, Recording, feature, field, flag, kind, marker, misc, record,
};

const BASE: u64 = 0x40_0000;
const PATH: &str = "/opt/whit-golden/old";
const NEXT: &str = "/opt/whit-golden/next";

fn program(name: &'static str) -> Elf {
    let function = Function { name, start: 0, size: 0x80, unwind: &[] };
    Elf { machine: Machine::X86_64, functions: vec![function] }
}

/// The first version with features: attributes of 64 bytes, names of events in a section of their
/// own, no trailer behind other records (so they have no times), no build id's size, and nothing
/// about the machine.
pub(super) fn perf_2_6_34() -> Made {
    let mut attr =
        Attr::software(0, field::IP | field::TID | field::TIME | field::ID | field::CALLCHAIN);
    attr.flags = flag::MMAP | flag::COMM | flag::TASK;
    let faults = Attr { config: 2, ..attr.clone() };
    let kernel = Kernel::of(&attr);
    let id = at(8000, 8000, 0);
    let taken = |mode, number: u64, time, chain: &[u64]| {
        sample(mode, |b| {
            b.u64(chain[1]).i32(8000).i32(8000).u64(time).u64(number);
            b.u64(chain.len() as u64).words(chain);
        })
    };
    let user = BASE + TEXT + 8;
    let in_kernel = 0xffff_ffff_8100_2010;
    let mmap = |path| kernel.mmap(path, (BASE, 0x1000, 0), misc::USER, id);
    let data = [
        kernel.kernel_map(),
        kernel.comm("old", false, id),
        mmap(PATH),
        taken(misc::USER, 11, 1_000_000, &[marker::USER, user, user + 0x20]),
        taken(misc::KERNEL, 12, 1_000_100, &[marker::KERNEL, in_kernel, marker::USER, user]),
        // An exec: these have no times, but stand between samples that have.
        kernel.comm("next", false, id),
        mmap(NEXT),
        taken(misc::USER, 11, 1_000_200, &[marker::USER, user]),
        record(kind::EXIT, 0, |b| {
            b.i32(8000).i32(1).i32(8000).i32(1).u64(1_000_300);
        }),
    ];
    let build_id = record(0, misc::USER, |b| {
        b.i32(-1).raw(&[0; 20]).raw(&[0; 4]).c_str("/lib/libm.so.6", 64);
    });
    let recording = Recording {
        events: vec![(attr, vec![11], ""), (faults, vec![12], "")],
        attr_size: 64,
        data: data.concat(),
        features: vec![(feature::BUILD_ID, build_id)],
        event_types: vec![(0, "cpu-clock"), (2, "page-faults")],
    };
    Made::file("old-2.6.34", recording)
        .with_program(PATH, program("old_code"))
        .with_program(NEXT, program("next_code"))
}

/// Attributes of 80 bytes; trailers; mappings still without inode; ids at a place that depends on
/// the fields before.
pub(super) fn perf_3_9() -> Made {
    let mut attr = Attr::software(
        0,
        field::IP | field::TID | field::TIME | field::ID | field::CPU | field::PERIOD,
    );
    attr.flags = flag::MMAP | flag::COMM | flag::TASK | flag::SAMPLE_ID_ALL | flag::FREQ;
    let second = Attr { config: 1, ..attr.clone() };
    let kernel = Kernel::of(&attr);
    let id = at(8100, 8100, 1_000_000);
    let mut data = kernel.kernel_map();
    data.extend(kernel.comm("old", false, id));
    data.extend(kernel.mmap(PATH, (BASE, 0x1000, 0), misc::USER, id));
    for (number, time) in [(11u64, 2_000_000u64), (12, 2_000_100), (11, 2_000_200)] {
        data.extend(sample(misc::USER, |b| {
            b.u64(BASE + TEXT + 8).i32(8100).i32(8100).u64(time).u64(number).u32(1).u32(0);
            b.u64(300_000);
        }));
    }
    let events = vec![(attr, vec![11], "cpu-clock"), (second, vec![12], "task-clock:u")];
    let mut recording = Recording::new(events, data).of("x86_64", "3.9.0");
    recording.attr_size = 80;
    Made::file("old-3.9", recording.described()).with_program(PATH, program("old_code"))
}

/// Attributes of 112 bytes; mappings with inode; command names that say whether an exec set them.
pub(super) fn perf_4_4() -> Made {
    let attr = Attr::software(
        0,
        field::IP | field::TID | field::TIME | field::CALLCHAIN | field::IDENTIFIER,
    );
    let kernel = Kernel::of(&attr);
    let id = at(8200, 8200, 1_000_000);
    let mut data = kernel.kernel_map();
    // Existing processes: since 4.20 a flag says that their maps follow.
    data.extend(kernel.comm("init", false, Id { pid: 1, tid: 1, time: 0, ..id }));
    data.extend(kernel.task(kind::FORK, (1, 1), Id { time: 0, ..id }));
    data.extend(kernel.comm("old", true, id));
    data.extend(kernel.mmap2(PATH, (BASE, 0x1000, 0), id));
    for time in [2_000_000, 2_000_100] {
        data.extend(sample(misc::USER, |b| {
            b.u64(11).u64(BASE + TEXT + 8).i32(8200).i32(8200).u64(time);
            b.u64(2).words(&[marker::USER, BASE + TEXT + 8]);
        }));
    }
    data.extend(record(kind::FINISHED_ROUND, 0, |_| {}));
    let events = vec![(attr, vec![11, 12], "cpu-clock")];
    let mut recording = Recording::new(events, data).of("x86_64", "4.4.0");
    recording.attr_size = 112;
    Made::file("old-4.4", recording.described()).with_program(PATH, program("old_code"))
}
