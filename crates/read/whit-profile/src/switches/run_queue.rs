//! How long threads were runnable before they came onto a CPU, and behind which threads.

use super::durations::Durations;
use super::interval::{Run, Switch, Trust, WaitEnd};
use super::switch_event::WaitKind;
use crate::model::ThreadId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use whit_types::{CpuId, TimestampNs};

/// The run-queue delays of one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunQueueDelays {
    /// Index into [`Profile::threads`](crate::model::Profile::threads).
    pub thread: ThreadId,
    /// One for each time that it came onto a CPU, where the delay is certain.
    pub delays: Durations,
    /// When the longest began.
    pub longest_from: TimestampNs,
    /// The threads that ran meanwhile on the CPU on which it ran next, with that time in nanoseconds, the longest first.
    /// The rest of the delays has no recorded thread.
    pub behind: Vec<(ThreadId, u64)>,
}

impl RunQueueDelays {
    /// The part of the delays in which no recorded thread ran on the CPU, in nanoseconds.
    pub fn unattributed_ns(&self) -> u64 {
        let known = self.behind.iter().fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
        self.delays.total_ns.saturating_sub(known)
    }
}

/// Runs of a CPU that are remembered. A delay behind more of them has the latest ones.
const MAX_RUNS: usize = 1 << 12;
/// Pairs of a thread that waited and a thread that ran meanwhile.
const MAX_PAIRS: usize = 1 << 18;

#[derive(Clone, Copy, Debug)]
struct PastRun {
    thread: u32,
    from: TimestampNs,
    to: TimestampNs,
}

/// The delays of all threads, while a recording is read.
#[derive(Debug, Default)]
pub(super) struct RunQueues {
    threads: FxHashMap<u32, DelaySums>,
    /// The latest runs by CPU, in order of time.
    past: FxHashMap<CpuId, VecDeque<PastRun>>,
    pairs: usize,
}

impl RunQueues {
    /// Remembers a run. Those of a CPU come in order of time.
    pub(super) fn run(&mut self, thread: u32, run: &Run<'_>) {
        let Some(cpu) = run.cpu.filter(|_| run.trust == Trust::Whole) else { return };
        let past = self.past.entry(cpu).or_default();
        match past.back_mut() {
            // A long run is given out in parts.
            Some(last) if last.thread == thread && last.to == run.from => last.to = run.to,
            _ => past.push_back(PastRun { thread, from: run.from, to: run.to }),
        }
        if past.len() > MAX_RUNS {
            past.pop_front();
        }
    }

    /// Adds the delay of a switch, where it is known.
    pub(super) fn add(&mut self, thread: u32, switch: &Switch, duration_ns: u64) {
        let Some(ns) = delay_ns(switch, duration_ns) else { return };
        let sums = self.threads.entry(thread).or_default();
        let end = TimestampNs(switch.out.0.saturating_add(duration_ns));
        let begin = TimestampNs(end.0.saturating_sub(ns));
        sums.add(begin, ns);
        let WaitEnd::In { cpu: Some(cpu), .. } = switch.end else { return };
        let mut until = end;
        for run in self.past.get(&cpu).into_iter().flatten().rev() {
            let (from, to) = (run.from.max(begin), run.to.min(until));
            if run.to <= begin {
                break;
            }
            let is_new = !sums.behind.contains_key(&run.thread);
            if from < to && (!is_new || self.pairs < MAX_PAIRS) {
                self.pairs += usize::from(is_new);
                let sum = sums.behind.entry(run.thread).or_default();
                *sum = sum.saturating_add(to.since(from));
            }
            until = until.min(from);
        }
    }

    /// The sums of each thread.
    pub(super) fn into_threads(self) -> Vec<(u32, DelaySums)> {
        self.threads.into_iter().collect()
    }
}

/// The delays of one thread, while a recording is read.
#[derive(Clone, Debug, Default)]
pub(super) struct DelaySums {
    pub(super) delays: Durations,
    pub(super) longest_from: TimestampNs,
    /// By thread.
    pub(super) behind: FxHashMap<u32, u64>,
}

impl DelaySums {
    fn add(&mut self, begin: TimestampNs, ns: u64) {
        if self.delays.count == 0 || ns > self.delays.max_ns {
            self.longest_from = begin;
        }
        self.delays.add(ns);
    }
}

/// From the wake-up of a voluntary wait; of other waits all.
fn delay_ns(switch: &Switch, duration_ns: u64) -> Option<u64> {
    let is_whole = switch.found_blocked.is_none()
        && matches!(switch.end, WaitEnd::In { trust: Trust::Whole, .. });
    match switch.kind {
        _ if !is_whole => None,
        WaitKind::Preempt | WaitKind::New => Some(duration_ns),
        WaitKind::Sync => {
            let woken = switch.woken?;
            Some(duration_ns - woken.time.since(switch.out).min(duration_ns))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpu_parts::CpuParts;
    use super::super::interval::{Task, Woken};
    use super::super::object_key::ObjectKey;
    use super::super::switch_event::StackRef;
    use super::*;
    use whit_types::{Pid, Tid};

    const TASK: Task = Task { pid: Pid(7), tid: Tid(8) };

    fn run(cpu: u32, from: u64, to: u64, trust: Trust) -> Run<'static> {
        let (from, to) = (TimestampNs(from), TimestampNs(to));
        let parts = CpuParts::default();
        Run {
            task: TASK,
            cpu: Some(CpuId(cpu)),
            from,
            to,
            samples: &[],
            trust,
            is_open: false,
            parts,
        }
    }

    /// A wait from 100 until 200, which ends on the first CPU.
    fn wait(kind: WaitKind, woken_at: u64) -> Switch {
        let woken = Woken {
            time: TimestampNs(woken_at),
            waker: TASK,
            stack: StackRef::NONE,
            from_interrupt: false,
            sends_to: ObjectKey::None,
        };
        let end = WaitEnd::In { time: TimestampNs(200), cpu: Some(CpuId(0)), trust: Trust::Whole };
        Switch {
            task: TASK,
            cpu: None,
            out: TimestampNs(100),
            kind,
            state: None,
            stack: StackRef::NONE,
            object: ObjectKey::None,
            woken: Some(woken),
            end,
            found_blocked: None,
            is_cut: false,
        }
    }

    #[test]
    fn a_delay_is_behind_the_threads_that_ran_on_its_cpu() {
        let mut queues = RunQueues::default();
        for (thread, run) in [
            (1, run(0, 50, 120, Trust::Whole)),
            (2, run(1, 100, 200, Trust::Whole)),
            (3, run(0, 120, 150, Trust::Whole)),
            // Two parts of one run, and a run that records may be missing of.
            (1, run(0, 150, 160, Trust::Whole)),
            (1, run(0, 160, 180, Trust::Whole)),
            (4, run(0, 180, 190, Trust::Lossy)),
        ] {
            queues.run(thread, &run);
        }
        queues.add(9, &wait(WaitKind::Sync, 140), 100);
        queues.add(8, &wait(WaitKind::Preempt, 140), 100);
        let mut threads = queues.into_threads();
        threads.sort_by_key(|(thread, _)| *thread);
        let shown = |sums: &DelaySums| {
            let mut behind: Vec<_> = sums.behind.clone().into_iter().collect();
            behind.sort_unstable();
            (sums.delays.total_ns, sums.longest_from.0, behind)
        };
        assert_eq!(shown(&threads[0].1), (100, 100, vec![(1, 20 + 30), (3, 30)]));
        assert_eq!(shown(&threads[1].1), (60, 140, vec![(1, 30), (3, 10)]));
    }

    #[test]
    fn runs_that_contradict_each_other_count_once() {
        let mut queues = RunQueues::default();
        queues.run(1, &run(0, 100, 200, Trust::Whole));
        queues.run(2, &run(0, 150, 200, Trust::Whole));
        queues.add(9, &wait(WaitKind::Preempt, 0), 100);
        let (_, sums) = queues.into_threads().remove(0);
        assert_eq!(sums.behind.values().sum::<u64>(), 100);
    }
}
