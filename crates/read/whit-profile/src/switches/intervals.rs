//! From statements in order of time to intervals: who each is about, by thread and by CPU.

use super::cpu_parts::CpuParts;
use super::interval::{Inconsistencies, Sink, Task};
use super::losses::Losses;
use super::recorded_spans::{LeftSpan, Moment, RecordedSpans};
use super::senders::Senders;
use super::switch_event::{Source, SwitchEvent, TimedSwitchEvent, Wake};
use super::thread::{Step, Thread};
use crate::first_pass::ring_losses::RecordedCpus;
use crate::object_table::ObjectTable;
use rustc_hash::FxHashMap;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// The thread on a CPU, as far as records say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Occupant {
    /// Nothing has happened there since recording began.
    #[default]
    Unseen,
    /// This one, or the idle task.
    Thread(Tid),
    /// The last thread there has left.
    NoThread,
}

/// The state of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// The running thread by each source: a thread that is no more switches out without its number, and
    /// one source may be through with a switch that the other has yet to report.
    current: [Option<Tid>; Source::COUNT],
    occupant: Occupant,
}

/// The interval logic.
#[derive(Debug)]
pub(crate) struct Intervals<'l> {
    losses: &'l Losses,
    recorded_cpus: RecordedCpus,
    has_switch_ins: bool,
    spans: RecordedSpans,
    threads: FxHashMap<Tid, Thread>,
    /// When threads were made that have no record of recorded time yet.
    born_outside: FxHashMap<Tid, TimestampNs>,
    cpus: FxHashMap<CpuId, Cpu>,
    inconsistencies: Inconsistencies,
    last_time: TimestampNs,
    totals: RecordedTotals,
    senders: Senders<'l>,
}

/// How much could be recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RecordedTotals {
    /// When switches were recorded, in order of time.
    pub(crate) spans: Vec<(TimestampNs, TimestampNs)>,
    /// CPUs that records name.
    pub(crate) nr_cpus: usize,
}

impl RecordedTotals {
    /// Time in which switches were recorded, gaps left out.
    pub(crate) fn recorded_ns(&self) -> u64 {
        self.spans.iter().fold(0, |sum, (from, to)| sum.saturating_add(to.since(*from)))
    }

    /// The first and the last moment of that time.
    pub(crate) fn span(&self) -> Option<(TimestampNs, TimestampNs)> {
        Some((self.spans.first()?.0, self.spans.last()?.1))
    }
}

impl<'l> Intervals<'l> {
    /// Runs on other CPUs than `cpus` are not recorded. `ins_are_told` where each switch-in of a recorded
    /// thread has a statement.
    pub(crate) fn new(
        losses: &'l Losses,
        cpus: RecordedCpus,
        has_switch_ins: bool,
        spans: RecordedSpans,
    ) -> Intervals<'l> {
        Intervals {
            losses,
            recorded_cpus: cpus,
            has_switch_ins,
            spans,
            threads: FxHashMap::default(),
            born_outside: FxHashMap::default(),
            cpus: FxHashMap::default(),
            inconsistencies: Inconsistencies::default(),
            last_time: TimestampNs(0),
            totals: RecordedTotals::default(),
            senders: Senders::default(),
        }
    }

    /// With the objects of waits, by which senders are known.
    pub(crate) fn with_objects(self, objects: &'l ObjectTable) -> Intervals<'l> {
        Intervals { senders: Senders::new(objects), ..self }
    }

    /// Takes the next statement; of one thread, they come in order of time.
    pub(crate) fn take(&mut self, timed_event: &TimedSwitchEvent, sink: &mut impl Sink) {
        while let Some(left) = self.spans.leave_before(timed_event.time) {
            self.end_span(left, sink);
        }
        let is_proof = timed_event.event.proves_recording();
        if self.spans.moment(timed_event.time, is_proof) == Moment::Unrecorded {
            self.outside(timed_event, sink);
            return;
        }
        self.last_time = self.last_time.max(timed_event.time);
        match timed_event.event {
            SwitchEvent::Wake(wake) if wake.is_new => self.first_wake(timed_event, wake, sink),
            SwitchEvent::Wake(wake) => {
                if let Some(thread) = self.threads.get_mut(&wake.wakee) {
                    thread.wake(timed_event, wake, &mut self.senders);
                }
            }
            _ => {}
        }
        if let SwitchEvent::Ready(object) = timed_event.event {
            // The thread that it follows has not left yet.
            if let Some(thread) = self.threads.get_mut(&timed_event.tid) {
                thread.ready(object, &mut self.senders);
            }
            return;
        }
        if let SwitchEvent::Blocked { .. } = timed_event.event {
            self.blocked(timed_event, sink);
            return;
        }
        if let SwitchEvent::Fork { pid, tid } = timed_event.event {
            self.forget(Task { pid, tid }, timed_event.time, sink);
        }
        let tid = match timed_event.event {
            // Only the CPU gives its thread.
            SwitchEvent::Out { source, .. } if timed_event.tid.0 < 0 => {
                let cpu = timed_event.cpu.and_then(|cpu| self.cpus.get(&cpu));
                let Some(tid) = cpu.and_then(|cpu| cpu.current[source as usize]) else { return };
                tid
            }
            _ => timed_event.tid,
        };
        if !self.recorded_cpus.has(timed_event.cpu) {
            self.elsewhere(tid, timed_event);
            return;
        }
        if !matches!(timed_event.event, SwitchEvent::Wake(_)) {
            let was_unseen = self.occupy(tid, timed_event, sink);
            // The idle task, one on every CPU, never waits. The waker may be a thread that is not
            // recorded.
            if tid.0 > 0 {
                self.step(tid, timed_event, was_unseen, sink);
            } else if let (SwitchEvent::Account(account), Some(cpu)) =
                (timed_event.event, timed_event.cpu)
                && !self.has_thread(cpu)
            {
                sink.idle(cpu, &CpuParts::of(&account));
            }
        }
        self.follow_cpu(tid, timed_event);
    }

    /// Sideband of a time in which switches were not recorded. Numbers of threads may pass to others.
    fn outside(&mut self, timed_event: &TimedSwitchEvent, sink: &mut impl Sink) {
        match timed_event.event {
            SwitchEvent::Fork { tid, .. } => {
                self.threads.remove(&tid);
                self.born_outside.insert(tid, timed_event.time);
            }
            SwitchEvent::Exit => {
                let task = Task { pid: timed_event.pid, tid: timed_event.tid };
                self.threads.remove(&task.tid);
                self.born_outside.remove(&task.tid);
                sink.died(task, timed_event.time);
            }
            _ => {}
        }
    }

    /// Switches are not recorded any more: which threads run and wait is not known from here on.
    fn end_span(&mut self, left: LeftSpan, sink: &mut impl Sink) {
        let Some(begin) = left.begin else { return };
        let mut threads: Vec<_> = self.threads.drain().map(|(_, thread)| thread).collect();
        threads.sort_unstable_by_key(|thread| thread.task.tid);
        for mut thread in threads {
            let inconsistencies = &mut self.inconsistencies;
            let mut step = Step { losses: self.losses, inconsistencies, thread: &mut thread, sink };
            step.finish(left.end, false);
        }
        let totals = &mut self.totals;
        totals.spans.push((begin, left.end));
        totals.nr_cpus = totals.nr_cpus.max(self.cpus.len());
        self.cpus.clear();
    }

    /// Puts a thread on the CPU that the statement names. The thread that was there before has left, and
    /// where no switch-out says so, its run is certain only until it was last seen. Gives whether the CPU
    /// had not been seen before.
    fn occupy(&mut self, tid: Tid, timed_event: &TimedSwitchEvent, sink: &mut impl Sink) -> bool {
        let Some(id) = timed_event.cpu else { return true };
        let cpu = self.cpus.entry(id).or_default();
        // The second source of a switch-out speaks of a thread that has left already.
        let may_have_left = !matches!(timed_event.event, SwitchEvent::In { .. });
        let is_out = matches!(timed_event.event, SwitchEvent::Out { .. });
        let has_left = |thread: &Thread| thread.has_left() || (is_out && thread.has_ended());
        if may_have_left
            && (self.threads.get(&tid).is_some_and(has_left)
                || (tid.0 <= 0 && cpu.occupant != Occupant::Unseen))
        {
            return false;
        }
        let before = std::mem::replace(&mut cpu.occupant, Occupant::Thread(tid));
        if let Occupant::Thread(other) = before
            && other != tid
            && let Some(thread) = self.threads.get_mut(&other)
        {
            let inconsistencies = &mut self.inconsistencies;
            Step { losses: self.losses, inconsistencies, thread, sink }.miss_out(id);
        }
        before == Occupant::Unseen
    }

    /// A thread is on the CPU as far as is known. Where switches were lost, the idle thread may have been there as well:
    /// that time is in the thread's lossy run.
    fn has_thread(&self, cpu: CpuId) -> bool {
        let occupant = self.cpus.get(&cpu).map(|cpu| cpu.occupant);
        matches!(occupant, Some(Occupant::Thread(tid)) if tid.0 > 0)
    }

    /// An event on a CPU that is not recorded is no run of a thread; but a thread that ends there never
    /// comes back.
    fn elsewhere(&mut self, tid: Tid, timed_event: &TimedSwitchEvent) {
        if timed_event.event == SwitchEvent::Exit
            && let Some(thread) = self.threads.get_mut(&tid)
        {
            thread.exit_unseen(timed_event.time);
        }
    }

    fn follow_cpu(&mut self, tid: Tid, timed_event: &TimedSwitchEvent) {
        let Some(cpu) = timed_event.cpu else { return };
        match timed_event.event {
            SwitchEvent::In { source } => {
                self.cpus.entry(cpu).or_default().current[source as usize] = Some(tid);
            }
            SwitchEvent::Out { source, .. } => {
                let cpu = self.cpus.entry(cpu).or_default();
                cpu.current[source as usize] = None;
                if cpu.occupant == Occupant::Thread(tid) {
                    cpu.occupant = Occupant::NoThread;
                }
            }
            _ => {}
        }
    }

    fn step(
        &mut self,
        tid: Tid,
        timed_event: &TimedSwitchEvent,
        cpu_was_unseen: bool,
        sink: &mut impl Sink,
    ) {
        let task = Task { pid: timed_event.pid, tid };
        // One thread at most has been on a CPU since recording began.
        let since = self.spans.begin().filter(|_| self.has_switch_ins && cpu_was_unseen);
        let born = &mut self.born_outside;
        let thread = self.threads.entry(tid);
        let thread = thread.or_insert_with(|| Thread::new(task, born.remove(&tid), since));
        if timed_event.pid.0 >= 0 {
            thread.task.pid = timed_event.pid;
        }
        let mut step =
            Step { losses: self.losses, inconsistencies: &mut self.inconsistencies, thread, sink };
        step.take(timed_event);
    }

    /// A thread was found on no CPU.
    fn blocked(&mut self, timed_event: &TimedSwitchEvent, sink: &mut impl Sink) {
        let task = Task { pid: timed_event.pid, tid: timed_event.tid };
        let begin = self.spans.begin().unwrap_or(timed_event.time);
        let born = &mut self.born_outside;
        let thread = self.threads.entry(task.tid);
        let thread = thread.or_insert_with(|| Thread::new(task, born.remove(&task.tid), None));
        thread.task.pid = task.pid;
        let mut step =
            Step { losses: self.losses, inconsistencies: &mut self.inconsistencies, thread, sink };
        step.blocked(timed_event, begin);
    }

    /// A thread is new, with or without a record of its maker.
    fn first_wake(&mut self, timed_event: &TimedSwitchEvent, wake: Wake, sink: &mut impl Sink) {
        if self.threads.get(&wake.wakee).is_none_or(|thread| !thread.is_untold()) {
            self.forget(Task { pid: Pid(-1), tid: wake.wakee }, timed_event.time, sink);
        }
        if let Some(thread) = self.threads.get_mut(&wake.wakee) {
            thread.begin(timed_event, wake);
        }
    }

    /// The number belongs to a new thread.
    fn forget(&mut self, task: Task, time: TimestampNs, sink: &mut impl Sink) {
        if let Some(mut old) = self.threads.remove(&task.tid) {
            let until = self.last_time;
            let inconsistencies = &mut self.inconsistencies;
            Step { losses: self.losses, inconsistencies, thread: &mut old, sink }
                .finish(until, true);
        }
        if task.tid.0 > 0 {
            // It was not there from the beginning.
            self.threads.insert(task.tid, Thread::new(task, Some(time), None));
        }
    }

    /// The recording ends.
    pub(crate) fn finish(mut self, sink: &mut impl Sink) -> (Inconsistencies, RecordedTotals) {
        let end = self.spans.end().unwrap_or(self.last_time);
        let left = LeftSpan { begin: self.spans.begin(), end };
        self.end_span(left, sink);
        (self.inconsistencies, self.totals)
    }
}

#[cfg(test)]
#[path = "intervals_tests.rs"]
mod tests;
