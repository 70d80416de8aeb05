//! From sums over workers' call trees to the finished model.

use super::fact::StackRef;
use super::intervals::{Trust, WaitEnd};
use super::model::{Stretch, SwitchRow, SwitchSums, Switches, Timeline, Wait, Waker, WakerRow};
use super::sums::{KeptWait, SwitchKey, SwitchTotals, WakerKey};
use super::timeline::Piece;
use crate::aggregate::Aggregate;
use crate::finish::Builder;
use crate::model::NodeId;
use crate::stops::StopCounts;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use whit_types::Tid;

/// One call tree of all workers' trees.
pub(super) struct Trees {
    pub(super) sums: Aggregate,
    pub(super) stops: StopCounts,
    /// Where the nodes of each worker's tree went.
    pub(super) nodes: Vec<Vec<u32>>,
}

impl Trees {
    pub(super) fn merge(parts: Vec<(Aggregate, StopCounts)>) -> Trees {
        let (mut sums, mut stops) = (Aggregate::default(), StopCounts::default());
        let mut nodes = Vec::new();
        for (part, part_stops) in parts {
            nodes.push(sums.merge(part));
            stops.add(&part_stops);
        }
        Trees { sums, stops, nodes }
    }
}

/// Sums with threads numbered as those of the profile will be.
pub(super) struct Raw {
    rows: FxHashMap<SwitchKey, SwitchSums>,
    wakers: FxHashMap<WakerKey, (u64, u64)>,
    wakers_left_off: u64,
    worst: Vec<KeptWait>,
    timeline: (Vec<(u32, Vec<Piece>)>, u64),
    /// By the sums' own numbers.
    threads: Vec<(u32, Tid)>,
}

/// Takes what is wanted of the totals, and adds their threads to those of the samples.
pub(super) fn take_apart(mut totals: SwitchTotals<'_>, trees: &mut Trees) -> Raw {
    let threads = totals.threads.values.iter();
    let threads = threads.map(|thread| (trees.sums.threads.intern(*thread), thread.1)).collect();
    Raw {
        worst: totals.take_worst(),
        rows: totals.rows,
        wakers: totals.wakers,
        wakers_left_off: totals.wakers_left_off,
        timeline: totals.timeline.finish(),
        threads,
    }
}

/// Gives everything the ids of the profile.
pub(super) fn name<'n>(
    raw: Raw,
    node: &impl Fn(StackRef) -> Option<&'n u32>,
    max_stretches: usize,
    builder: &mut Builder,
    out: &mut Switches,
) {
    let node = |builder: &Builder, stack| node(stack).map_or(NodeId::NONE, |n| builder.node(*n));
    let thread = |builder: &Builder, number: u32| builder.thread(raw.threads[number as usize].0);
    let mut rows = BTreeMap::new();
    let mut row_keys = FxHashMap::default();
    // Comms get their numbers as they are met, which must not depend on the order of a hash map.
    let mut sums: Vec<_> = raw.rows.iter().collect();
    sums.sort_unstable_by_key(|(key, _)| {
        (thread(builder, key.thread), key.comm, node(builder, key.stack), key.stack)
    });
    for (key, more) in sums {
        let comm = builder.comm(key.comm, raw.threads[key.thread as usize].1);
        let named = (thread(builder, key.thread), comm, node(builder, key.stack));
        rows.entry(named).or_insert_with(SwitchSums::default).add(more);
        row_keys.insert(*key, named);
    }
    out.rows = rows
        .iter()
        .map(|((thread, comm, node), sums)| SwitchRow {
            thread: *thread,
            comm: *comm,
            node: *node,
            sums: *sums,
        })
        .collect();
    let numbers: FxHashMap<_, _> = rows.keys().zip(0u32..).map(|(key, n)| (*key, n)).collect();
    let mut wakers: BTreeMap<(u32, Waker), (u64, u64)> = BTreeMap::new();
    for (key, (count, blocked_ns)) in &raw.wakers {
        let Some(row) = row_keys.get(&key.row).and_then(|named| numbers.get(named)) else {
            continue;
        };
        let waker = Waker {
            thread: thread(builder, key.thread),
            node: node(builder, key.stack),
            from_interrupt: key.from_interrupt,
        };
        let sum = wakers.entry((*row, waker)).or_default();
        sum.0 += count;
        sum.1 = sum.1.saturating_add(*blocked_ns);
    }
    let waker_row =
        |((row, waker), (count, blocked_ns))| WakerRow { row, waker, count, blocked_ns };
    out.wakers = wakers.into_iter().map(waker_row).collect();
    out.wakers_left_off = raw.wakers_left_off;
    for kept in &raw.worst {
        let comm = builder.comm(kept.comm, kept.switch.task.tid);
        let woken = kept.switch.woken.map(|woken| {
            let waker = Waker {
                thread: thread(builder, kept.waker),
                node: node(builder, woken.stack),
                from_interrupt: woken.from_interrupt,
            };
            (woken.time, waker)
        });
        out.worst.push(Wait {
            thread: thread(builder, kept.thread),
            comm,
            start: kept.switch.out,
            duration_ns: kept.duration_ns,
            cpu: kept.switch.cpu,
            kind: kept.switch.kind,
            state: kept.switch.state,
            node: node(builder, kept.switch.stack),
            woken,
            trust: match kept.switch.end {
                WaitEnd::In { trust, .. } => trust,
                _ => Trust::Whole,
            },
            is_open: !matches!(kept.switch.end, WaitEnd::In { .. }),
        });
    }
    let (threads, grain_ns) = raw.timeline;
    let mut stretches = Vec::new();
    for (number, pieces) in threads {
        let of_thread = thread(builder, number);
        stretches.extend(pieces.iter().map(|piece| Stretch {
            thread: of_thread,
            start: piece.start,
            duration_ns: piece.duration_ns,
            activity: piece.activity,
            cpu: piece.cpu,
            node: node(builder, piece.stack),
            parts_ns: piece.parts_ns,
            count: piece.count,
            trust: piece.trust,
        }));
    }
    stretches.sort_by_key(|stretch| (stretch.thread, stretch.start));
    out.timeline = Timeline { stretches, grain_ns, max_stretches };
}
