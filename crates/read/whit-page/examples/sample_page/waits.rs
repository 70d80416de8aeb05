//! Two threads that hand a token to and fro, and one that computes: a page of waits.

use whit_profile::model::{NodeId, Profile, SingleSample, ThreadId};
use whit_profile::switches::{
    Activity, Sources, SwitchRow, SwitchSums, Switches, Timeline, TimelineSpan, Trust, Waker,
};
use whit_types::{CpuId, TimestampNs};

use crate::builder::Builder;

const MS: u64 = 1_000_000;
const BEGIN: u64 = 7_000_000_000;

/// The profile and its switches.
pub(crate) fn profile() -> (Profile, Switches) {
    let mut builder = Builder::default();
    let event = builder.event("cpu-clock");
    let [ping, pong, busy] = [11, 12, 13].map(|tid| builder.thread(11, tid, "pingpong"));
    let futex = builder.stack([
        "c|start_thread",
        "u|await_turn",
        "c|syscall",
        "k|do_syscall_64",
        "k|futex_wait",
        "k|schedule",
    ]);
    let waking = builder.stack([
        "c|start_thread",
        "u|pass_token",
        "c|syscall",
        "k|do_syscall_64",
        "k|futex_wake",
        "k|try_to_wake_up",
    ]);
    let preempted = builder.stack(["c|start_thread", "u|compute", "k|irqentry_exit", "k|schedule"]);
    let computing = builder.stack(["c|start_thread", "u|compute"]);
    builder.add(event, busy, computing, 90, 90 * MS);
    builder.spread(100 * MS, 3, |_| (0, 1_000));
    // Samples and waits have one clock.
    let shift = |sample: &mut SingleSample| sample.time.0 += BEGIN - 5_000_000_000;
    builder.profile.singles.iter_mut().for_each(|all| all.samples.iter_mut().for_each(shift));
    let comm = builder.profile.threads[busy.index()].comm;
    let row = |thread, node, sums| SwitchRow {
        thread,
        comm,
        node,
        object: None,
        brings: Default::default(),
        block: 0,
        sums,
    };
    let waits = |count, ns| SwitchSums {
        sync_count: count,
        sync_wait_ns: ns,
        longest_sync_ns: 10 * MS,
        ..SwitchSums::default()
    };
    let preemptions = SwitchSums {
        preempt_count: 9,
        preempt_wait_ns: 9 * MS,
        lossy_count: 1,
        lossy_wait_ns: MS,
        ..SwitchSums::default()
    };
    let rows = vec![
        row(ping, futex, waits(5, 50 * MS)),
        row(pong, futex, waits(4, 41 * MS)),
        row(busy, preempted, preemptions),
        row(busy, computing, SwitchSums { cpu_ns: 90 * MS, ..SwitchSums::default() }),
    ];
    let mut spans = Vec::new();
    // A timer wakes who waits for the second time; what ended the last waits is not recorded.
    for (thread, offset, partner) in [(ping, 0, pong), (pong, 10, ping)] {
        for turn in 0..5 {
            let at = offset + turn * 20;
            spans.push(span(thread, at, 10, Activity::Running, NodeId::NONE));
            let waker = match turn {
                1 => Some(Waker { thread: busy, node: NodeId::NONE, from_interrupt: true }),
                4 => None,
                _ => Some(Waker { thread: partner, node: waking, from_interrupt: false }),
            };
            let woken = waker.map(|waker| (TimestampNs(BEGIN + (at + 19) * MS), waker));
            let waiting = span(thread, at + 10, 10, Activity::Waiting, futex);
            spans.push(TimelineSpan { woken, ..waiting });
        }
    }
    spans.push(span(busy, 0, 50, Activity::Running, NodeId::NONE));
    let lossy =
        TimelineSpan { trust: Trust::Lossy, ..span(busy, 50, 20, Activity::Preempted, preempted) };
    spans.push(lossy);
    spans.push(TimelineSpan {
        count: 1234,
        parts_ns: [25 * MS, 4 * MS, MS],
        ..span(busy, 70, 30, Activity::Mixed, NodeId::NONE)
    });
    let switches = Switches {
        sources: Sources {
            records: true,
            stacks: true,
            wakeups: true,
            samples: Some(event),
            ..Sources::default()
        },
        rows,
        timeline: Timeline { spans, grain_ns: 64_000, max_spans: 23 },
        span: Some((TimestampNs(BEGIN), TimestampNs(BEGIN + 110 * MS))),
        recorded_ns: 110 * MS,
        ..Switches::default()
    };
    (builder.profile, switches)
}

/// Times in milliseconds.
fn span(thread: ThreadId, at: u64, length: u64, activity: Activity, node: NodeId) -> TimelineSpan {
    let mut parts_ns = [0; 3];
    if let Some(part) = parts_ns.get_mut(activity as usize) {
        *part = length * MS;
    }
    TimelineSpan {
        thread,
        start: TimestampNs(BEGIN + at * MS),
        duration_ns: length * MS,
        activity,
        cpu: Some(CpuId(thread.0)),
        node,
        woken: None,
        parts_ns,
        count: 1,
        trust: Trust::Whole,
        brings: Default::default(),
    }
}
