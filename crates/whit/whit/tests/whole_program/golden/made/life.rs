//! Processes over time, recordings without times, pipes.

use super::{Made, at, sample};
use crate::golden::elf::{Elf, Function, Machine, TEXT};
use crate::golden::encode::{
    Attr, Kernel, Recording, bytes, feature, field, flag, kind, misc, record,
};

const BASE: u64 = 0x40_0000;

fn program(name: &'static str) -> Elf {
    let function = Function { name, start: 0, size: 0x40, unwind: &[] };
    Elf { machine: Machine::X86_64, functions: vec![function] }
}

const FIRST: &str = "/opt/whit-golden/first";
const SECOND: &str = "/opt/whit-golden/second";

fn attr() -> Attr {
    Attr::software(0, field::IP | field::TID | field::TIME | field::CPU)
}

/// The same address means other code from one moment to the next: by exec, by a mapping over
/// another, in a child that goes its own way, under an id that was given again.
pub(super) fn processes() -> Made {
    let attr = attr();
    let kernel = Kernel::of(&attr);
    let map = |path, pid, time| kernel.mmap2(path, (BASE, 0x1000, 0), at(pid, pid, time));
    let taken = |pid, tid, time| {
        sample(misc::USER, |b| {
            b.u64(BASE + TEXT + 8).i32(pid).i32(tid).u64(time).u32(1).u32(0);
        })
    };
    // Rings are drained one after the other: the file is not in order of time.
    let late = [
        // A child of `first` stays `first`, even if its parent gets another name.
        kernel.task(kind::FORK, (7900, 7900), at(7910, 7910, 1_500)),
        taken(7910, 7910, 1_600),
        taken(7910, 7910, 2_600),
        kernel.task(kind::EXIT, (7900, 7900), at(7910, 7910, 2_700)),
        // Its id is given to a thread's process that is `second` from the beginning.
        kernel.task(kind::FORK, (1, 1), at(7910, 7910, 3_000)),
        kernel.comm("again", true, at(7910, 7910, 3_100)),
        map(SECOND, 7910, 3_200),
        taken(7910, 7910, 3_300),
    ];
    let early = [
        kernel.comm("first", true, at(7900, 7900, 1_000)),
        map(FIRST, 7900, 1_100),
        taken(7900, 7900, 1_200),
        // A thread with a name of its own.
        kernel.task(kind::FORK, (7900, 7900), at(7900, 7901, 1_250)),
        taken(7900, 7901, 1_260),
        kernel.comm("worker", false, at(7900, 7901, 1_270)),
        taken(7900, 7901, 1_280),
        kernel.comm("second", true, at(7900, 7900, 2_000)),
        map(SECOND, 7900, 2_100),
        taken(7900, 7900, 2_200),
        // dlopen over what dlclose left.
        map(FIRST, 7900, 2_400),
        taken(7900, 7900, 2_500),
        // Nobody said anything of this process.
        taken(7999, 7999, 2_550),
    ];
    let mut data = late.concat();
    data.extend(early.concat());
    let events = vec![(attr, vec![11], "cpu-clock")];
    Made::file("processes", Recording::new(events, data).described())
        .with_program(FIRST, program("first_code"))
        .with_program(SECOND, program("second_code"))
}

/// `perf record --no-timestamp`: the order of the file is the order of events.
pub(super) fn no_times() -> Made {
    let mut attr = attr();
    attr.sample_type = field::IP | field::TID;
    let kernel = Kernel::of(&attr);
    let id = at(7950, 7950, 0);
    let taken = sample(misc::USER, |b| {
        b.u64(BASE + TEXT + 8).i32(7950).i32(7950);
    });
    let map = |path| kernel.mmap2(path, (BASE, 0x1000, 0), id);
    let data = [
        kernel.comm("first", true, id),
        map(FIRST),
        taken.clone(),
        kernel.comm("second", true, id),
        map(SECOND),
        taken.clone(),
        taken,
    ];
    let events = vec![(attr, vec![11], "cpu-clock")];
    Made::file("no-times", Recording::new(events, data.concat()).described())
        .with_program(FIRST, program("first_code"))
        .with_program(SECOND, program("second_code"))
}

/// `perf record -o -`: events, features, build ids and formats of tracepoints come as records, and
/// names of events behind the events.
pub(super) fn pipe() -> Made {
    let mut attr = attr();
    attr.sample_type |= field::IDENTIFIER;
    attr.flags |= flag::FREQ;
    let second = Attr { config: 1, ..attr.clone() };
    let kernel = Kernel::of(&attr);
    let id = at(7960, 7960, 1_000_000);
    let mut data = Vec::new();
    for (number, name) in [(11, "ticks"), (12, "tasks")] {
        data.extend(record(kind::EVENT_UPDATE, 0, |b| {
            b.u64(2).u64(number).c_str(name, 8);
        }));
    }
    let formats = bytes(|b| {
        // Looks like a record of an event.
        b.raw(&record(kind::HEADER_ATTR, 0, |b| {
            b.raw(&[0xff; 72]);
        }));
    });
    let mut tracing = record(kind::TRACING_DATA, 0, |b| {
        b.u32(formats.len() as u32);
    });
    tracing.extend(&formats);
    data.extend(tracing);
    data.extend(record(kind::BUILD_ID, misc::USER | misc::BUILD_ID_SIZE, |b| {
        b.i32(-1).raw(&[0xab; 20]).u8(20).raw(&[0; 3]).c_str(FIRST, 64);
    }));
    data.extend(record(kind::EVENT_TYPE, 0, |b| {
        b.u64(0).c_str("of old", 64);
    }));
    data.extend(kernel.comm("piped", true, id));
    data.extend(kernel.mmap2(SECOND, (BASE, 0x1000, 0), id));
    for (number, time) in [(11, 2_000_000), (12, 2_000_100), (12, 2_000_050)] {
        data.extend(sample(misc::USER, |b| {
            b.u64(number).u64(BASE + TEXT + 8).i32(7960).i32(7960).u64(time).u32(1).u32(0);
        }));
    }
    let events = vec![(attr, vec![11], ""), (second, vec![12], "")];
    let mut recording = Recording::new(events, data);
    recording.features.retain(|(number, _)| *number != feature::CMDLINE);
    Made::pipe("pipe", recording)
}
