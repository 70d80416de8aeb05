//! From sums over workers' call trees to the finished model.

use super::contention::{ContentionKey, ContentionTotals};
use super::cpu_parts::CpuParts;
use super::interval::{Life, Trust, WaitEnd};
use super::locks::{NamedWaits, joined};
use super::model::{
    KernelLockWait, LockWait, LockWaits, SwitchRow, SwitchSums, Switches, ThreadLife, Timeline,
    TimelineSpan, Wait, Waker, WakerRow,
};
use super::object::ObjectNames;
use super::object_key::ObjectKey;
use super::run_queue::{DelaySums, RunQueueDelays};
use super::sums::{CpuTime, KeptWait, SwitchTotals, WakerKey};
use super::switch_event::{StackRef, WaitKind};
use super::switch_key::SwitchKey;
use super::thread_cgroups::ThreadFacts;
use super::timeline::{Line, Piece};
use crate::call_chain::stops::StopCounts;
use crate::first_pass::prepare::Prepared;
use crate::model::{NodeId, ThreadId};
use crate::result::finish::Builder;
use crate::second_pass::aggregate::Aggregate;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use whit_types::{Pid, Tid, TimestampNs};

/// One call tree of all workers' trees.
pub(super) struct Trees {
    pub(super) sums: Aggregate,
    pub(super) stops: StopCounts,
    pub(super) facts: ThreadFacts,
    /// Where the nodes of each worker's tree went.
    pub(super) nodes: Vec<Vec<u32>>,
}

impl Trees {
    pub(super) fn merge(parts: Vec<(Aggregate, StopCounts, ThreadFacts)>) -> Trees {
        let (mut sums, mut stops) = (Aggregate::default(), StopCounts::default());
        let (mut nodes, mut facts) = (Vec::new(), ThreadFacts::default());
        for (part, part_stops, part_facts) in parts {
            nodes.push(sums.merge(part));
            facts.merge(part_facts);
            stops.add(&part_stops);
        }
        Trees { sums, stops, facts, nodes }
    }
}

/// Sums with threads numbered as those of the profile will be.
pub(super) struct Raw {
    rows: FxHashMap<SwitchKey, SwitchSums>,
    cpu_times: FxHashMap<SwitchKey, CpuTime>,
    wakers: FxHashMap<WakerKey, (u64, u64)>,
    wakers_left_off: u64,
    worst: Vec<KeptWait>,
    timeline: (Vec<(u32, Line)>, u64),
    /// By thread.
    lives: Vec<(u32, RawLife)>,
    run_queue: Vec<(u32, DelaySums)>,
    locks: Option<NamedWaits>,
    contentions: ContentionTotals,
    objects: ObjectNames,
    /// By the sums' own numbers: the number of the samples' thread, and its process and own number.
    threads: Vec<(u32, Pid, Tid)>,
}

/// The recorded time in which a thread existed, its waits that are left out, and the parts of its CPU time that are not its own.
struct RawLife {
    elapsed_ns: u64,
    left_out_ns: u64,
    parts: CpuParts,
}

impl Raw {
    /// Nodes with the number of their waits. `node` says where the nodes of workers' trees went.
    pub(super) fn waits<'n>(&self, node: &dyn Fn(StackRef) -> Option<&'n u32>) -> Vec<(u32, u64)> {
        let waits =
            self.rows.iter().map(|(key, sums)| (key.stack, sums.sync_count + sums.preempt_count));
        waits.filter_map(|(stack, count)| Some((*node(stack)?, count))).collect()
    }
}

/// Takes the sums out of the totals, and adds their threads to those of the samples.
pub(super) fn take_apart(
    mut totals: SwitchTotals<'_>,
    trees: &mut Trees,
    recorded: &[(TimestampNs, TimestampNs)],
    prepared: &Prepared,
) -> Raw {
    let pids: Vec<_> = totals.threads.values.iter().map(|thread| thread.0).collect();
    let locks = totals.locks.take();
    let mut contentions = totals.contentions.take().unwrap_or_default();
    contentions.finish();
    let pid = |thread: u32| pids.get(thread as usize).copied().unwrap_or(Pid(-1));
    let threads = totals.threads.values.iter();
    let threads =
        threads.map(|thread| (trees.sums.threads.intern(*thread), thread.0, thread.1)).collect();
    let lives = totals.lives.iter().map(|(thread, lives)| {
        let left_out_ns = totals.left_out.get(thread).copied().unwrap_or_default();
        let parts = totals.parts.get(thread).copied().unwrap_or_default();
        let of_thread = totals.threads.values.get(*thread as usize);
        let wanted = totals.selection.calls.as_ref().zip(of_thread);
        let of_calls = wanted.map(|(calls, thread)| calls.within(thread.1, recorded));
        let elapsed_ns = elapsed_ns(lives, of_calls.as_deref().unwrap_or(recorded));
        (*thread, RawLife { elapsed_ns, left_out_ns, parts })
    });
    let lives = lives.collect();
    let worst = totals.take_worst();
    let mut objects = totals.objects.take().unwrap_or_default();
    for KeptWait { switch, .. } in &worst {
        if switch.kind == WaitKind::Sync {
            let key = (switch.task.pid, switch.object);
            objects.entry(key).or_insert(switch.out);
        }
    }
    Raw {
        lives,
        worst,
        objects: ObjectNames::of(prepared, &objects),
        rows: totals.rows,
        cpu_times: totals.cpu_times,
        wakers: totals.wakers,
        wakers_left_off: totals.wakers_left_off,
        timeline: totals.timeline.finish(),
        run_queue: totals.run_queue.unwrap_or_default().into_threads(),
        locks: locks.map(|locks| locks.name(prepared, &pid)),
        contentions,
        threads,
    }
}

/// Gives everything the ids of the profile. `node` says where the nodes of workers' trees went.
pub(super) fn name<'n>(
    raw: Raw,
    node: &dyn Fn(StackRef) -> Option<&'n u32>,
    max_spans: usize,
    builder: &mut Builder,
    out: &mut Switches,
) {
    let Raw { rows, cpu_times, wakers, wakers_left_off, worst, timeline, lives, .. } = raw;
    let (run_queue, locks, threads) = (raw.run_queue, raw.locks, raw.threads);
    let contentions = raw.contentions;
    let objects = raw.objects;
    let mut namer = Namer { builder, node, threads: &threads, objects: &objects };
    let woken: FxHashSet<_> = wakers.keys().map(|key| key.row).collect();
    let numbers = namer.rows(rows, cpu_times, &woken, out);
    out.wakers = namer.wakers(&wakers, &numbers);
    out.wakers_left_off = wakers_left_off;
    out.run_queue = namer.run_queue(run_queue);
    let kernel_recorded = out.locks.kernel_recorded;
    let mut of_users = locks.map(|locks| namer.locks(locks)).unwrap_or_default();
    of_users.left_off += contentions.left_off;
    out.locks = LockWaits { kernel: namer.contentions(contentions), kernel_recorded, ..of_users };
    out.worst = worst.iter().map(|kept| namer.wait(kept)).collect();
    out.timeline = namer.timeline(timeline, max_spans);
    let life = |(thread, RawLife { elapsed_ns, left_out_ns, parts })| ThreadLife {
        thread: namer.thread(thread),
        elapsed_ns,
        left_out_ns,
        parts,
    };
    out.lives = lives.into_iter().map(life).collect();
    out.lives.sort_unstable_by_key(|life| life.thread);
    out.objects = objects.into_names();
}

/// The recorded time in which a thread existed.
fn elapsed_ns(lives: &[Life], recorded: &[(TimestampNs, TimestampNs)]) -> u64 {
    let both = |life: &Life, span: &(TimestampNs, TimestampNs)| {
        let from = life.born.map_or(span.0, |born| born.max(span.0));
        life.died.map_or(span.1, |died| died.min(span.1)).since(from)
    };
    let all = lives.iter().flat_map(|life| recorded.iter().map(move |span| both(life, span)));
    all.fold(0, u64::saturating_add)
}

/// Ids of the profile.
struct Namer<'a, 'n> {
    builder: &'a mut Builder,
    node: &'a dyn Fn(StackRef) -> Option<&'n u32>,
    threads: &'a [(u32, Pid, Tid)],
    objects: &'a ObjectNames,
}

impl Namer<'_, '_> {
    fn node(&self, stack: StackRef) -> NodeId {
        (self.node)(stack).map_or(NodeId::NONE, |node| self.builder.node(*node))
    }

    fn thread(&self, number: u32) -> ThreadId {
        self.builder.thread(self.threads[number as usize].0)
    }

    fn object(&self, thread: u32, key: ObjectKey) -> Option<u32> {
        self.objects.number(self.threads[thread as usize].1, key)
    }

    fn waker(&self, thread: u32, stack: StackRef, from_interrupt: bool) -> Waker {
        Waker { thread: self.thread(thread), node: self.node(stack), from_interrupt }
    }

    /// Fills the rows, and says in which of them each of the sums went whose row is `wanted`. There may be
    /// millions: nothing is held twice.
    fn rows(
        &mut self,
        sums: FxHashMap<SwitchKey, SwitchSums>,
        cpu_times: FxHashMap<SwitchKey, CpuTime>,
        wanted: &FxHashSet<SwitchKey>,
        out: &mut Switches,
    ) -> FxHashMap<SwitchKey, u32> {
        let of_time_alone = cpu_times.keys().filter(|key| !sums.contains_key(key));
        let mut keys: Vec<SwitchKey> = sums.keys().chain(of_time_alone).copied().collect();
        // Comms get their numbers as they are met, which must not depend on the order of a hash map.
        keys.sort_unstable_by_key(|key| {
            let object = self.object(key.thread, key.object);
            let stack = (self.node(key.stack), key.stack);
            (self.thread(key.thread), key.comm, stack, object, key.brings, key.block)
        });
        let mut named = Vec::with_capacity(keys.len());
        for key in keys {
            let comm = self.builder.comm(key.comm, self.threads[key.thread as usize].2);
            let object = self.object(key.thread, key.object);
            let place = (self.thread(key.thread), comm, self.node(key.stack));
            named.push(((place, object, key.brings, key.block), key));
        }
        named.sort_unstable();
        out.rows = Vec::with_capacity(named.chunk_by(|a, b| a.0 == b.0).count());
        let mut numbers = FxHashMap::default();
        for group in named.chunk_by(|a, b| a.0 == b.0) {
            let mut of_row = SwitchSums::default();
            for (_, key) in group {
                let time = cpu_times.get(key).copied().unwrap_or_default();
                let (cpu_ns, lossy_cpu_ns) = (time.whole_ns, time.lossy_ns);
                of_row.add(&SwitchSums { cpu_ns, lossy_cpu_ns, ..SwitchSums::default() });
                if let Some(more) = sums.get(key) {
                    of_row.add(more);
                }
                if wanted.contains(key) {
                    numbers.insert(*key, out.rows.len() as u32);
                }
            }
            let ((thread, comm, node), object, brings, block) = group[0].0;
            out.rows.push(SwitchRow { thread, comm, node, object, brings, block, sums: of_row });
        }
        numbers
    }

    fn wakers(
        &self,
        sums: &FxHashMap<WakerKey, (u64, u64)>,
        rows: &FxHashMap<SwitchKey, u32>,
    ) -> Vec<WakerRow> {
        let mut wakers: BTreeMap<(u32, Waker), (u64, u64)> = BTreeMap::new();
        for (key, (count, blocked_ns)) in sums {
            let Some(row) = rows.get(&key.row) else { continue };
            let waker = self.waker(key.thread, key.stack, key.from_interrupt);
            let sum = wakers.entry((*row, waker)).or_default();
            sum.0 += count;
            sum.1 = sum.1.saturating_add(*blocked_ns);
        }
        let named =
            |((row, waker), (count, blocked_ns))| WakerRow { row, waker, count, blocked_ns };
        wakers.into_iter().map(named).collect()
    }

    fn run_queue(&self, sums: Vec<(u32, DelaySums)>) -> Vec<RunQueueDelays> {
        let known = sums.into_iter().filter(|(_, sums)| sums.delays.count > 0);
        let named = known.map(|(thread, DelaySums { delays, longest_from, behind })| {
            let behind = behind.into_iter().map(|(thread, ns)| (self.thread(thread), ns));
            let mut behind: Vec<_> = behind.collect();
            behind.sort_unstable_by_key(|(thread, ns)| (Reverse(*ns), *thread));
            RunQueueDelays { thread: self.thread(thread), delays, longest_from, behind }
        });
        let mut all: Vec<_> = named.collect();
        all.sort_unstable_by_key(|delays| delays.thread);
        all
    }

    fn locks(&mut self, locks: NamedWaits) -> LockWaits {
        let mut waits: Vec<LockWait> = Vec::with_capacity(locks.waits.len());
        let mut keys = locks.waits;
        keys.sort_unstable_by_key(|(key, ..)| {
            (self.thread(key.row.thread), key.row.comm, self.node(key.row.stack), key.futex, *key)
        });
        for (key, sums, futex) in keys {
            let comm = self.builder.comm(key.row.comm, self.threads[key.row.thread as usize].2);
            let waker = key.waker.map(|(thread, stack, from)| self.waker(thread, stack, from));
            waits.push(LockWait {
                thread: self.thread(key.row.thread),
                comm,
                node: self.node(key.row.stack),
                futex,
                waker,
                waits: sums.waits,
                blocked_ns: sums.blocked_ns,
                uncertain: sums.uncertain,
                owner: (key.owner != 0).then_some(Tid(key.owner as i32)),
            });
        }
        LockWaits { waits: joined(waits), left_off: locks.left_off, ..LockWaits::default() }
    }

    fn contentions(&mut self, totals: ContentionTotals) -> Vec<KernelLockWait> {
        let mut sums: Vec<_> = totals.sums.into_iter().collect();
        let place = |namer: &Self, key: &ContentionKey| {
            (namer.thread(key.row.thread), key.row.comm, namer.node(key.row.stack))
        };
        sums.sort_unstable_by_key(|(key, _)| (place(self, key), key.address, key.flags, *key));
        let mut named: Vec<KernelLockWait> = Vec::with_capacity(sums.len());
        for (key, (waits, uncertain)) in sums {
            let comm = self.builder.comm(key.row.comm, self.threads[key.row.thread as usize].2);
            let (thread, _, node) = place(self, &key);
            let ContentionKey { address, flags, .. } = key;
            let next = KernelLockWait { thread, comm, node, address, flags, waits, uncertain };
            // Several workers may have made the call chain.
            match named.last_mut() {
                Some(last) if last.is_like(&next) => {
                    last.waits.merge(&next.waits);
                    last.uncertain += next.uncertain;
                }
                _ => named.push(next),
            }
        }
        named
    }

    fn wait(&mut self, kept: &KeptWait) -> Wait {
        let KeptWait { duration_ns, ref switch, thread, comm, waker } = *kept;
        let woken = switch
            .woken
            .map(|woken| (woken.time, self.waker(waker, woken.stack, woken.from_interrupt)));
        Wait {
            thread: self.thread(thread),
            comm: self.builder.comm(comm, switch.task.tid),
            start: switch.out,
            duration_ns,
            cpu: switch.cpu,
            kind: switch.kind,
            state: switch.state,
            node: self.node(switch.stack),
            object: (switch.kind == WaitKind::Sync)
                .then(|| self.objects.number(switch.task.pid, switch.object))
                .flatten(),
            brings: switch.brings(),
            woken,
            trust: match switch.end {
                WaitEnd::In { trust, .. } => trust,
                _ => Trust::Whole,
            },
            is_open: !matches!(switch.end, WaitEnd::In { .. }),
            begun_before: switch.found_blocked.is_some(),
        }
    }

    fn timeline(&self, (threads, grain_ns): (Vec<(u32, Line)>, u64), max_spans: usize) -> Timeline {
        let span = |thread: ThreadId, piece: &Piece| TimelineSpan {
            thread,
            start: piece.start,
            duration_ns: piece.duration_ns,
            activity: piece.activity,
            cpu: piece.cpu,
            node: self.node(piece.stack),
            woken: piece
                .waker
                .map(|by| (by.time, self.waker(by.thread, by.stack, by.from_interrupt))),
            parts_ns: piece.parts_ns,
            count: piece.count,
            trust: piece.trust,
            brings: piece.brings,
        };
        let named = threads.into_iter().map(|(thread, line)| (self.thread(thread), line));
        let mut threads: Vec<(ThreadId, Line)> = named.collect();
        // With the few threads in order, the spans mostly are in order, and there may be a million of these.
        threads.sort_by_key(|(thread, _)| *thread);
        let mut spans = Vec::with_capacity(threads.iter().map(|(_, line)| line.len()).sum());
        for (thread, line) in threads {
            spans.extend(line.pieces().map(|piece| span(thread, &piece)));
        }
        spans.sort_by_key(|span: &TimelineSpan| (span.thread, span.start));
        Timeline { spans, grain_ns, max_spans }
    }
}
