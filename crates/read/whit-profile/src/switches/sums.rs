//! Adding intervals up.

use super::contention::{Contention, ContentionKey, ContentionTotals};
use super::cpu_parts::{CpuParts, CpuSums};
use super::interval::{Life, Run, Sink, Switch, Task, TimedStack, Trust, WaitEnd, Woken};
use super::locks::{LockKey, LockTotals};
use super::losses::Losses;
use super::model::{Activity, SwitchSums};
use super::object_key::ObjectKey;
use super::options::SwitchOptions;
use super::phase_test::PhaseTest;
use super::run_queue::RunQueues;
use super::switch_event::{StackRef, WaitKind};
use super::switch_key::{NO_COMM, SwitchKey};
use super::timeline::{Piece, PieceWaker, TimelineSums};
use super::wait_filter::WaitFilter;
use crate::interner::Interner;
use crate::machine_model::process::ProcessModel;
use crate::selection::Selection;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use whit_perfdata::wait_object::Brings;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// Different wakers of rows that are told apart.
const MAX_WAKERS: usize = 1 << 18;

/// The wakers of a row's threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct WakerKey {
    pub(crate) row: SwitchKey,
    pub(crate) thread: u32,
    pub(crate) stack: StackRef,
    pub(crate) from_interrupt: bool,
}

/// CPU time of a row. Apart from the other sums, since there may be as many rows with nothing else as there are
/// distinct chains of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CpuTime {
    pub(crate) whole_ns: u64,
    pub(crate) lossy_ns: u64,
}

/// One wait, in the order of badness: the longest, and of equals the earliest, is the greatest. Those that last
/// throughout the recording are the least: of idle threads there are many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeptWait {
    pub(crate) duration_ns: u64,
    pub(crate) switch: Switch,
    pub(crate) thread: u32,
    pub(crate) comm: u32,
    /// From `switch.woken`.
    pub(crate) waker: u32,
}

impl KeptWait {
    fn order(&self) -> (bool, u64, Reverse<(TimestampNs, Tid)>) {
        let is_bounded = !self.switch.lasts_throughout();
        (is_bounded, self.duration_ns, Reverse((self.switch.out, self.switch.task.tid)))
    }
}

impl PartialOrd for KeptWait {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeptWait {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

/// CPU time of a thread that waits for a sample.
#[derive(Clone, Copy, Debug, Default)]
struct Unsampled {
    ns: u64,
    comm: u32,
    until: TimestampNs,
}

/// Sums over all intervals.
pub(crate) struct SwitchTotals<'a> {
    pub(super) selection: &'a Selection,
    model: &'a ProcessModel,
    pub(crate) threads: Interner<(Pid, Tid)>,
    pub(crate) rows: FxHashMap<SwitchKey, SwitchSums>,
    pub(crate) cpu_times: FxHashMap<SwitchKey, CpuTime>,
    pub(crate) wakers: FxHashMap<WakerKey, (u64, u64)>,
    pub(crate) wakers_left_off: u64,
    worst: BinaryHeap<Reverse<KeptWait>>,
    max_worst: usize,
    pub(crate) timeline: TimelineSums,
    pub(super) waits: WaitFilter,
    /// By thread; `None` where nobody asked.
    pub(super) run_queue: Option<RunQueues>,
    pub(super) locks: Option<LockTotals>,
    pub(super) contentions: Option<ContentionTotals>,
    /// When each thread existed, in order of time.
    pub(crate) lives: FxHashMap<u32, Vec<Life>>,
    /// Waits of each thread that the filter leaves out.
    pub(crate) left_out: FxHashMap<u32, u64>,
    /// The parts of each thread's time on CPUs that are not its own, where no loss touches it.
    pub(crate) parts: FxHashMap<u32, CpuParts>,
    /// The time of each CPU, of all threads.
    pub(crate) cpus: FxHashMap<CpuId, CpuSums>,
    /// When each process waited for an object first; `None` where rows are not told apart by objects.
    pub(super) objects: Option<FxHashMap<(Pid, ObjectKey), TimestampNs>>,
    /// Whether samples keep step with runs.
    pub(super) phase_test: PhaseTest,
    /// By the thread's number.
    unsampled: Vec<Unsampled>,
    /// The first moments of the blocks of time that rows are apart by.
    pub(super) block_begins: Vec<TimestampNs>,
}

impl<'a> SwitchTotals<'a> {
    pub(crate) fn new(
        selection: &'a Selection,
        model: &'a ProcessModel,
        wanted: SwitchOptions,
    ) -> SwitchTotals<'a> {
        SwitchTotals {
            selection,
            model,
            threads: Interner::default(),
            rows: FxHashMap::default(),
            cpu_times: FxHashMap::default(),
            wakers: FxHashMap::default(),
            wakers_left_off: 0,
            worst: BinaryHeap::new(),
            max_worst: wanted.max_worst,
            timeline: TimelineSums::new(wanted.max_spans),
            run_queue: wanted.run_queue.then(RunQueues::default),
            locks: wanted.locks.then(LockTotals::default),
            contentions: ContentionTotals::new(&wanted),
            objects: wanted.objects.then(FxHashMap::default),
            lives: FxHashMap::default(),
            left_out: FxHashMap::default(),
            parts: FxHashMap::default(),
            cpus: FxHashMap::default(),
            phase_test: PhaseTest::default(),
            unsampled: Vec::new(),
            block_begins: Vec::new(),
            waits: wanted.waits,
        }
    }

    /// The longest waits, the longest first.
    pub(crate) fn take_worst(&mut self) -> Vec<KeptWait> {
        let mut worst: Vec<_> =
            std::mem::take(&mut self.worst).into_iter().map(|Reverse(wait)| wait).collect();
        worst.sort_unstable_by(|a, b| b.cmp(a));
        worst
    }

    pub(super) fn wants(&self, task: Task) -> bool {
        self.selection.wants(task.pid, task.tid)
    }

    pub(super) fn thread(&mut self, task: Task) -> u32 {
        self.threads.intern((task.pid, task.tid))
    }

    pub(super) fn comm(&self, task: Task, time: TimestampNs) -> u32 {
        self.model.comm_at(task.pid, task.tid, time).map_or(NO_COMM, |comm| comm.0)
    }

    fn block(&self, time: TimestampNs) -> u16 {
        let begun = self.block_begins.partition_point(|begin| *begin <= time);
        begun.saturating_sub(1) as u16
    }

    /// The object by which the row of a switch differs from others.
    fn object(&mut self, switch: &Switch) -> ObjectKey {
        match &mut self.objects {
            Some(objects) if switch.kind == WaitKind::Sync => {
                objects.entry((switch.task.pid, switch.object)).or_insert(switch.out);
                switch.object
            }
            _ => ObjectKey::None,
        }
    }

    fn row(&mut self, key: SwitchKey) -> &mut SwitchSums {
        self.rows.entry(key).or_default()
    }

    fn add_waker(&mut self, row: SwitchKey, woken: &Woken, wakeups: u64, blocked_ns: u64) {
        let thread = self.thread(woken.waker);
        let (stack, from_interrupt) = (woken.stack, woken.from_interrupt);
        let key = WakerKey { row, thread, stack, from_interrupt };
        if self.wakers.len() >= MAX_WAKERS && !self.wakers.contains_key(&key) {
            self.wakers_left_off += 1;
            return;
        }
        let (count, sum) = self.wakers.entry(key).or_default();
        *count += wakeups;
        *sum = sum.saturating_add(blocked_ns);
    }

    fn keep_worst(&mut self, wait: KeptWait) {
        let is_full = self.worst.len() >= self.max_worst;
        if is_full && self.worst.peek().is_none_or(|Reverse(least)| wait <= *least) {
            return;
        }
        if is_full {
            self.worst.pop();
        }
        self.worst.push(Reverse(wait));
    }

    /// Adds a switch to the sums that only some views need.
    fn add_wanted(&mut self, key: SwitchKey, switch: &Switch, waker: u32, duration_ns: u64) {
        if let Some(run_queue) = &mut self.run_queue {
            run_queue.add(key.thread, switch, duration_ns);
        }
        if let Some(locks) = self.locks.as_mut().filter(|_| switch.kind == WaitKind::Sync) {
            let woken = switch.woken.map(|woken| (waker, woken.stack, woken.from_interrupt));
            let owner = switch.found_blocked.filter(|found| found.lasts_throughout);
            let owner = owner.map_or(0, |found| found.owner);
            let futex = switch.object.futex();
            let row =
                SwitchKey { object: ObjectKey::None, brings: Brings::Unknown, block: 0, ..key };
            let key = LockKey { row, futex, owner, waker: woken };
            locks.add(key, switch, duration_ns);
        }
    }

    /// Equal shares for all samples; the remainder goes to the first ones.
    fn distribute(
        &mut self,
        thread: u32,
        comm: u32,
        samples: &[TimedStack],
        ns: u64,
        trust: Trust,
    ) {
        let count = samples.len() as u64;
        for (index, TimedStack { stack, time }) in samples.iter().enumerate() {
            let share = ns / count + u64::from((index as u64) < ns % count);
            let (object, block) = (ObjectKey::None, self.block(*time));
            let key =
                SwitchKey { thread, comm, stack: *stack, object, brings: Brings::Unknown, block };
            let time = self.cpu_times.entry(key).or_default();
            let sum = if trust == Trust::Lossy { &mut time.lossy_ns } else { &mut time.whole_ns };
            *sum = sum.saturating_add(share);
        }
    }
}

/// Adds the time of a wait whose beginning or end is not in the recording, where no loss touches it.
fn add_certain_open(switch: &Switch, duration_ns: u64, sums: &mut SwitchSums) {
    let is_certain = match switch.end {
        WaitEnd::In { trust, .. } => switch.found_blocked.is_some() && trust == Trust::Whole,
        WaitEnd::Open { trust, .. } => trust == Trust::Whole,
        WaitEnd::Missing => false,
    };
    match switch.kind {
        WaitKind::Sync if is_certain => {
            let until_woken = |woken: Woken| woken.time.since(switch.out).min(duration_ns);
            sums.open_blocked_ns = switch.woken.map_or(duration_ns, until_woken);
            sums.open_runnable_ns = duration_ns - sums.open_blocked_ns;
        }
        WaitKind::Preempt if is_certain => sums.open_preempt_ns = duration_ns,
        _ => {}
    }
}

impl Sink for SwitchTotals<'_> {
    fn switch(&mut self, switch: &Switch) {
        if !self.wants(switch.task) {
            return;
        }
        let thread = self.thread(switch.task);
        let comm = self.comm(switch.task, switch.out);
        let object = self.object(switch);
        let brings = switch.brings();
        let block = self.block(switch.out);
        let key = SwitchKey { thread, comm, stack: switch.stack, object, brings, block };
        let (duration_ns, trust) = match switch.end {
            WaitEnd::In { time, trust, .. } => (time.since(switch.out), trust),
            WaitEnd::Open { until, .. } => (until.since(switch.out), Trust::Whole),
            WaitEnd::Missing => (0, Trust::Lossy),
        };
        let is_wanted = self.waits.is_chosen(switch.task.tid, switch.out);
        if !is_wanted || !self.waits.has_length(duration_ns) {
            let left_out = self.left_out.entry(thread).or_default();
            *left_out = left_out.saturating_add(duration_ns);
            return;
        }
        let is_whole = switch.found_blocked.is_none()
            && matches!(switch.end, WaitEnd::In { trust: Trust::Whole, .. });
        let mut sums = SwitchSums::default();
        match switch.kind {
            // Counts cover the recorded time.
            _ if switch.found_blocked.is_some() || switch.is_cut => {}
            WaitKind::Sync => sums.sync_count = 1,
            WaitKind::Preempt => {
                sums.preempt_count = 1;
                sums.throttled_count = u64::from(switch.is_throttled());
            }
            WaitKind::New => sums.new_count = 1,
        }
        let is_found_blocked = switch.found_blocked.is_some();
        match (switch.end, switch.kind) {
            (WaitEnd::Open { .. }, _) if switch.lasts_throughout() => {
                (sums.throughout_count, sums.throughout_wait_ns) = (1, duration_ns);
            }
            (WaitEnd::In { trust: Trust::Whole, .. }, _) if is_found_blocked => {
                (sums.open_count, sums.open_wait_ns) = (1, duration_ns);
            }
            (WaitEnd::Open { .. } | WaitEnd::Missing, _) => {
                (sums.open_count, sums.open_wait_ns) = (1, duration_ns);
            }
            (WaitEnd::In { trust: Trust::Lossy, .. }, _) => {
                (sums.lossy_count, sums.lossy_wait_ns) = (1, duration_ns);
            }
            (_, WaitKind::Sync) => sums.sync_wait_ns = duration_ns,
            (_, WaitKind::Preempt) => {
                sums.preempt_wait_ns = duration_ns;
                sums.throttled_wait_ns = if switch.is_throttled() { duration_ns } else { 0 };
            }
            (_, WaitKind::New) => sums.new_wait_ns = duration_ns,
        }
        let longest = match switch.kind {
            WaitKind::Sync => &mut sums.longest_sync_ns,
            WaitKind::Preempt if switch.is_throttled() => &mut sums.longest_throttled_ns,
            WaitKind::Preempt => &mut sums.longest_preempt_ns,
            WaitKind::New => &mut sums.longest_new_ns,
        };
        if is_whole {
            *longest = duration_ns;
        }
        add_certain_open(switch, duration_ns, &mut sums);
        // The maker of a thread did not end a wait.
        let is_woken = is_whole && switch.kind == WaitKind::Sync;
        if let Some(woken) = switch.woken.filter(|_| is_woken) {
            sums.woken_count = u64::from(!switch.is_cut);
            sums.blocked_ns = woken.time.since(switch.out).min(duration_ns);
            sums.runnable_ns = duration_ns - sums.blocked_ns;
            self.add_waker(key, &woken, sums.woken_count, sums.blocked_ns);
        }
        self.row(key).add(&sums);
        let waker = switch.woken.map_or(0, |woken| self.thread(woken.waker));
        self.add_wanted(key, switch, waker, duration_ns);
        if switch.end != WaitEnd::Missing {
            self.keep_worst(KeptWait { duration_ns, switch: *switch, thread, comm, waker });
            let activity = match switch.kind {
                WaitKind::Sync | WaitKind::New => Activity::Waiting,
                WaitKind::Preempt => Activity::Preempted,
            };
            let span = (switch.out, duration_ns);
            let piece = Piece::one(activity, span, switch.cpu, switch.stack, trust);
            let waker = switch.woken.map(|woken| PieceWaker {
                time: woken.time,
                thread: waker,
                stack: woken.stack,
                from_interrupt: woken.from_interrupt,
            });
            self.timeline.add(thread, Piece { waker, brings, ..piece });
        }
    }

    /// Runs without a sample hand their time on to the thread's next sample: it stands for all that the
    /// thread ran since the one before.
    fn run(&mut self, run: &Run<'_>) {
        // Threads that are not asked for have the CPU of those that are.
        if self.run_queue.is_some() {
            let thread = self.thread(run.task);
            self.run_queue.iter_mut().for_each(|queues| queues.run(thread, run));
        }
        let ns = run.to.since(run.from);
        self.add_to_cpu(run, ns);
        if !self.wants(run.task) {
            return;
        }
        self.phase_test.add(run);
        let thread = self.thread(run.task);
        let piece =
            Piece::one(Activity::Running, (run.from, ns), run.cpu, StackRef::NONE, run.trust);
        self.timeline.add(thread, piece);
        let comm = self.comm(run.task, run.from);
        if run.trust == Trust::Lossy {
            let nowhere = [TimedStack { time: run.to, stack: StackRef::NONE }];
            let samples = if run.samples.is_empty() { &nowhere } else { run.samples };
            self.distribute(thread, comm, samples, ns, Trust::Lossy);
            return;
        }
        if run.parts != CpuParts::default() {
            self.parts.entry(thread).or_default().add(&run.parts);
        }
        if self.unsampled.len() <= thread as usize {
            self.unsampled.resize(thread as usize + 1, Unsampled::default());
        }
        let waiting = &mut self.unsampled[thread as usize];
        let total = waiting.ns.saturating_add(ns);
        if run.samples.is_empty() {
            *waiting = Unsampled { ns: total, comm, until: run.to };
            return;
        }
        waiting.ns = 0;
        self.distribute(thread, comm, run.samples, total, Trust::Whole);
    }

    fn idle(&mut self, cpu: CpuId, parts: &CpuParts) {
        let sums = self.cpus.entry(cpu).or_default();
        sums.parts.add(parts);
        sums.idle_parts_ns = sums.idle_parts_ns.saturating_add(parts.total_ns());
    }

    fn life(&mut self, task: Task, life: Life) {
        if !self.wants(task) {
            return;
        }
        let thread = self.thread(task);
        let lives = self.lives.entry(thread).or_default();
        match lives.last_mut() {
            // It was there between two spans of recorded time, too.
            Some(last) if last.died.is_none() && life.born.is_none() => last.died = life.died,
            _ => lives.push(life),
        }
    }

    fn died(&mut self, task: Task, time: TimestampNs) {
        let thread = self.threads.get(&(task.pid, task.tid));
        let lives = thread.and_then(|thread| self.lives.get_mut(&thread));
        if let Some(last) = lives.and_then(|lives| lives.last_mut()) {
            last.died.get_or_insert(time);
        }
    }

    /// Time without a sample is the thread's, at no place.
    fn end(&mut self, task: Task) {
        let Some(thread) = self.threads.get(&(task.pid, task.tid)) else { return };
        let waiting = self.unsampled.get_mut(thread as usize).map(std::mem::take);
        if let Some(Unsampled { ns: ns @ 1.., comm, until }) = waiting {
            let nowhere = TimedStack { time: until, stack: StackRef::NONE };
            self.distribute(thread, comm, &[nowhere], ns, Trust::Whole);
        }
    }
}

impl SwitchTotals<'_> {
    fn add_to_cpu(&mut self, run: &Run<'_>, ns: u64) {
        let Some(cpu) = run.cpu else { return };
        let sums = self.cpus.entry(cpu).or_default();
        if run.trust == Trust::Lossy {
            sums.lossy_runs_ns = sums.lossy_runs_ns.saturating_add(ns);
            return;
        }
        sums.runs_ns = sums.runs_ns.saturating_add(ns);
        sums.parts.add(&run.parts);
    }

    /// Takes the next beginning or end; they come in order of time.
    pub(super) fn contention(&mut self, of: &Contention, losses: &Losses) {
        if self.contentions.is_none() || !self.wants(of.task) {
            return;
        }
        let row = of.flags.map(|flags| {
            let thread = self.thread(of.task);
            let comm = self.comm(of.task, of.time);
            let (object, brings) = (ObjectKey::None, Brings::Unknown);
            ContentionKey {
                row: SwitchKey { thread, comm, stack: of.stack, object, brings, block: 0 },
                address: of.address,
                flags,
            }
        });
        let SwitchTotals { contentions: Some(contentions), waits, .. } = self else { return };
        match row {
            Some(key) => contentions.begin(of, key),
            None => contentions.end(of, losses, |ns| waits.has_length(ns)),
        }
    }
}
