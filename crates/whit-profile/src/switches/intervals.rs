//! From statements in order of time to intervals: who each is about, by thread and by CPU.

use super::fact::{Fact, Source, Statement, Wake};
use super::interval::{Misfits, Sink, Task};
use super::losses::Losses;
use super::ring_losses::RecordedCpus;
use super::thread::{Step, Thread};
use rustc_hash::FxHashMap;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// The interval logic.
#[derive(Debug)]
pub(crate) struct Intervals<'l> {
    losses: &'l Losses,
    cpus: RecordedCpus,
    ins_are_told: bool,
    first_time: Option<TimestampNs>,
    threads: FxHashMap<Tid, Thread>,
    /// Who runs where, as each source has told: a thread that is no more switches out without its
    /// number, and one source may be through with a switch of which the other has yet to tell.
    current: FxHashMap<(CpuId, Source), Tid>,
    misfits: Misfits,
    last_time: TimestampNs,
}

impl<'l> Intervals<'l> {
    /// Of other CPUs than `cpus`, who runs there is not told. `ins_are_told` where no thread of the recording comes onto a CPU without a statement.
    pub(crate) fn new(losses: &'l Losses, cpus: RecordedCpus, ins_are_told: bool) -> Intervals<'l> {
        Intervals {
            losses,
            cpus,
            ins_are_told,
            first_time: None,
            threads: FxHashMap::default(),
            current: FxHashMap::default(),
            misfits: Misfits::default(),
            last_time: TimestampNs(0),
        }
    }

    /// Takes the next statement; of one thread, they come in order of time.
    pub(crate) fn take(&mut self, statement: &Statement, sink: &mut impl Sink) {
        self.last_time = self.last_time.max(statement.time);
        let first_time = *self.first_time.get_or_insert(statement.time);
        match statement.fact {
            Fact::Wake(wake) if wake.is_new => self.first_wake(statement, wake, sink),
            Fact::Wake(wake) => {
                if let Some(thread) = self.threads.get_mut(&wake.wakee) {
                    thread.wake(statement, wake);
                }
            }
            _ => {}
        }
        if let Fact::Fork { pid, tid } = statement.fact {
            self.forget(Task { pid, tid }, sink);
        }
        let tid = match statement.fact {
            // Who it is, only the CPU tells.
            Fact::Out { source, .. } if statement.tid.0 < 0 => {
                let current = statement.cpu.and_then(|cpu| self.current.get(&(cpu, source)));
                let Some(tid) = current else { return };
                *tid
            }
            _ => statement.tid,
        };
        if !self.cpus.has(statement.cpu) {
            self.elsewhere(tid, statement);
            return;
        }
        // The idle task, of which there is one on every CPU, never waits. Who wakes may be no part of
        // what was recorded.
        if tid.0 > 0 && !matches!(statement.fact, Fact::Wake(_)) {
            self.step(tid, statement, first_time, sink);
        }
        self.follow_cpu(tid, statement);
    }

    /// What happens on a CPU that is not recorded is no run of anybody; but who ends there never comes back.
    fn elsewhere(&mut self, tid: Tid, statement: &Statement) {
        if statement.fact == Fact::Exit
            && let Some(thread) = self.threads.get_mut(&tid)
        {
            thread.exit_unseen(statement.time);
        }
    }

    fn follow_cpu(&mut self, tid: Tid, statement: &Statement) {
        let Some(cpu) = statement.cpu else { return };
        match statement.fact {
            Fact::In { source } => _ = self.current.insert((cpu, source), tid),
            Fact::Out { source, .. } => _ = self.current.remove(&(cpu, source)),
            _ => {}
        }
    }

    fn step(
        &mut self,
        tid: Tid,
        statement: &Statement,
        first_time: TimestampNs,
        sink: &mut impl Sink,
    ) {
        let task = Task { pid: statement.pid, tid };
        let since = self.ins_are_told.then_some(first_time);
        let thread = self.threads.entry(tid).or_insert_with(|| Thread::new(task, since));
        if statement.pid.0 >= 0 {
            thread.task.pid = statement.pid;
        }
        let mut step = Step { losses: self.losses, misfits: &mut self.misfits, thread, sink };
        step.take(statement);
    }

    /// A thread is new, whether or not it is told who made it.
    fn first_wake(&mut self, statement: &Statement, wake: Wake, sink: &mut impl Sink) {
        if self.threads.get(&wake.wakee).is_none_or(|thread| !thread.is_untold()) {
            self.forget(Task { pid: Pid(-1), tid: wake.wakee }, sink);
        }
        if let Some(thread) = self.threads.get_mut(&wake.wakee) {
            thread.begin(statement, wake);
        }
    }

    /// The number belongs to a new thread.
    fn forget(&mut self, task: Task, sink: &mut impl Sink) {
        if let Some(mut old) = self.threads.remove(&task.tid) {
            let until = self.last_time;
            let misfits = &mut self.misfits;
            Step { losses: self.losses, misfits, thread: &mut old, sink }.finish(until);
        }
        if task.tid.0 > 0 {
            // It was not there from the beginning.
            self.threads.insert(task.tid, Thread::new(task, None));
        }
    }

    /// The recording ends.
    pub(crate) fn finish(mut self, sink: &mut impl Sink) -> Misfits {
        let mut threads: Vec<_> = self.threads.drain().map(|(_, thread)| thread).collect();
        threads.sort_unstable_by_key(|thread| thread.task.tid);
        for mut thread in threads {
            let misfits = &mut self.misfits;
            let mut step = Step { losses: self.losses, misfits, thread: &mut thread, sink };
            step.finish(self.last_time);
        }
        self.misfits
    }
}

#[cfg(test)]
#[path = "intervals_tests.rs"]
mod tests;
