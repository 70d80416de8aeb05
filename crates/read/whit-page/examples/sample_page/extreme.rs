//! Recordings that are unusually large, or poor, or hostile in their waits.

use whit_profile::Facets;
use whit_profile::model::*;
use whit_profile::switches::{
    Activity, Sources, SwitchRow, SwitchSums, Switches, Timeline, TimelineSpan, Trust,
};
use whit_types::{CpuId, OutsideText, TimestampNs};

use crate::builder::{Builder, Random};
use crate::small::{HOSTILE, long_hostile_name};
use crate::waits;

const MS: u64 = 1_000_000;
const BEGIN: u64 = 5_000_000_000;

const MANY_THREADS: i32 = 5_000;
const THREADS_EACH: i32 = 10;
const SPANS_EACH: u64 = 16;
const SLOT_MS: u64 = 100;

/// 5,000 threads in 500 processes, each with samples and waits.
pub(crate) fn threads() -> (Profile, Switches) {
    let mut builder = Builder::default();
    let mut random = Random(3);
    let event = builder.event("cpu-clock");
    let threads: Vec<ThreadId> = (0..MANY_THREADS)
        .map(|i| {
            let pid = 1_000 + i / THREADS_EACH * THREADS_EACH;
            builder.thread(pid, 1_000 + i, &format!("pool-{}", i / THREADS_EACH))
        })
        .collect();
    let computing: Vec<NodeId> = (0..50)
        .map(|i| builder.stack(["c|start_thread", "u|work", &format!("u|job_{i}(Task const&)")]))
        .collect();
    let waiting = builder.stack(["c|start_thread", "u|next_job", "k|futex_wait", "k|schedule"]);
    let (mut rows, mut spans) = (Vec::new(), Vec::new());
    for thread in &threads {
        let node = computing[random.below(50) as usize];
        let samples = 1 + random.below(6);
        builder.add(event, *thread, node, samples, samples * 10 * MS);
        let comm = builder.profile.threads[thread.index()].comm;
        let turns = SPANS_EACH / 2;
        let sums = SwitchSums {
            sync_count: turns,
            sync_wait_ns: turns * SLOT_MS * MS / 2,
            ..SwitchSums::default()
        };
        rows.push(SwitchRow {
            thread: *thread,
            comm,
            node: waiting,
            object: None,
            brings: Default::default(),
            block: 0,
            sums,
        });
        for turn in 0..SPANS_EACH {
            let (activity, node) = match turn % 2 {
                0 => (Activity::Running, NodeId::NONE),
                _ => (Activity::Waiting, waiting),
            };
            spans.push(TimelineSpan {
                thread: *thread,
                start: TimestampNs(BEGIN + turn * SLOT_MS / 2 * MS),
                duration_ns: SLOT_MS / 2 * MS,
                activity,
                cpu: Some(CpuId(thread.0 % 64)),
                node,
                woken: None,
                parts_ns: [0; 3],
                count: 1,
                trust: Trust::Whole,
                brings: Default::default(),
            });
        }
    }
    let length_ns = SPANS_EACH * SLOT_MS / 2 * MS;
    builder.spread(length_ns, 64, |_| (0, 1_000));
    builder.profile.recording.path = "threads.data".into();
    let switches = Switches {
        sources: Sources {
            records: true,
            stacks: true,
            samples: Some(event),
            ..Sources::default()
        },
        rows,
        timeline: Timeline { spans, grain_ns: 0, max_spans: 100_000 },
        span: Some((TimestampNs(BEGIN), TimestampNs(BEGIN + length_ns))),
        recorded_ns: length_ns,
        ..Switches::default()
    };
    (builder.profile, switches)
}

/// Stretches of time whose samples a reader joins, as it does beyond 10^6 samples.
const SLICES: u64 = 200;
const SLICE_NS: u64 = 5_000 * MS;
const STACKS_EACH_SLICE: u64 = 2_000;
const SAMPLES_EACH: u64 = 25;

/// 10^7 samples.
pub(crate) fn samples() -> Profile {
    let mut builder = Builder::default();
    let mut random = Random(7);
    let event = builder.event("cycles");
    let threads: Vec<ThreadId> = (0..32)
        .map(|i| builder.thread(100 + i / 8 * 8, 100 + i, &format!("db-{}", i / 8)))
        .collect();
    let stacks: Vec<NodeId> = (0..STACKS_EACH_SLICE)
        .map(|i| {
            let names: Vec<String> = (0..12)
                .map(|depth| format!("u|level{depth}::step_{}", i >> (11 - depth)))
                .collect();
            builder.stack(names.iter().map(String::as_str))
        })
        .collect();
    for slice in 0..SLICES {
        let time = Some(TimestampNs(BEGIN + slice * SLICE_NS));
        builder.profile.facets.push(Facets { time, ..Facets::default() });
        for (index, node) in stacks.iter().enumerate() {
            let thread = threads[random.below(32) as usize];
            let row = SampleRow {
                event,
                thread,
                comm: builder.profile.threads[thread.index()].comm,
                facets: FacetsId(slice as u32),
                node: *node,
                samples: SAMPLES_EACH,
                period: SAMPLES_EACH * MS * (1 + index as u64 % 3),
            };
            builder.profile.events[event.index()].samples += row.samples;
            builder.profile.events[event.index()].period += row.period;
            builder.profile.rows.push(row);
        }
    }
    builder.profile.singles = Some(Singles { slice_ns: Some(SLICE_NS), ..Singles::default() });
    builder.profile.recording.path = "samples.data".into();
    builder.profile
}

/// No function has a name.
pub(crate) fn nameless() -> Profile {
    let mut builder = Builder::default();
    let mut random = Random(9);
    let event = builder.event("cycles");
    let thread = builder.thread(5, 5, "stripped");
    for _ in 0..300 {
        let names: Vec<String> = (0..2 + random.below(6))
            .map(|depth| format!("?|0x7f{:010x}", depth * 4096 + random.below(4) * 16))
            .collect();
        let node = builder.stack(names.iter().map(String::as_str));
        builder.add(event, thread, node, 3, 3 * MS);
    }
    builder.spread(1_000 * MS, 2, |_| (0, 1_000));
    builder.profile.recording.path = "nameless.data".into();
    builder.profile
}

/// Two threads that wait, with names that try to leave their place.
pub(crate) fn hostile_waits() -> (Profile, Switches) {
    let (mut profile, switches) = waits::profile();
    let names = || HOSTILE.iter().map(|&name| OutsideText::from(name)).cycle();
    for (comm, name) in profile.comms.iter_mut().zip(names()) {
        *comm = name;
    }
    for (function, name) in profile.functions.iter_mut().zip(names()) {
        function.name = name;
    }
    if let Some(function) = profile.functions.last_mut() {
        function.name = long_hostile_name().into();
    }
    profile.recording.path = HOSTILE[0].into();
    (profile, switches)
}
