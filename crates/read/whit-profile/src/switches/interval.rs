//! The output of the interval logic: switches with the waits that they begin, and runs.

use super::cpu_parts::CpuParts;
use super::object_key::ObjectKey;
use super::switch_event::{StackRef, TaskState, TimedSwitchEvent, WaitKind, Wake};
use whit_perfdata::wait_object::Brings;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// A thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Task {
    /// -1 where no statement told.
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
}

/// Whether an interval is certain, and if not, the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Nothing is missing.
    Whole,
    /// Something was lost at the time: there may have been more switches than one.
    Lossy,
}

/// A wake-up, as the one who is woken sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Woken {
    pub(crate) time: TimestampNs,
    pub(crate) waker: Task,
    pub(crate) stack: StackRef,
    pub(crate) from_interrupt: bool,
    /// The socket of the call in which the interrupt came.
    pub(crate) sends_to: ObjectKey,
}

impl Woken {
    pub(crate) fn of(by: &TimedSwitchEvent, wake: Wake) -> Woken {
        Woken {
            time: by.time,
            waker: Task { pid: by.pid, tid: by.tid },
            stack: wake.stack,
            from_interrupt: wake.from_interrupt,
            sends_to: wake.sends_to,
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitEnd {
    /// The thread came onto a CPU.
    In { time: TimestampNs, cpu: Option<CpuId>, trust: Trust },
    /// The recording ended first.
    Open { until: TimestampNs, trust: Trust },
    /// It must have come onto a CPU, but that is not in the recording.
    Missing,
}

/// A thread that was found on no CPU; its switch-out is not in the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FoundBlocked {
    /// How often the thread had left a CPU in its life.
    pub(crate) switches: u64,
    /// It waited when recording began and when it ended, with the same number of switches: it has not run
    /// between, even with losses.
    pub(crate) lasts_throughout: bool,
    /// The thread that a mutex at its futex names as its holder; 0 for none.
    pub(crate) owner: u32,
}

/// A context switch: a thread left its CPU; with the wait that follows. The switches of all engines
/// take this form. The creation of a thread counts as one, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Switch {
    pub(crate) task: Task,
    /// The CPU that it left; a new thread left none.
    pub(crate) cpu: Option<CpuId>,
    pub(crate) out: TimestampNs,
    pub(crate) kind: WaitKind,
    pub(crate) state: Option<TaskState>,
    pub(crate) stack: StackRef,
    /// The object of the wait.
    pub(crate) object: ObjectKey,
    pub(crate) woken: Option<Woken>,
    pub(crate) end: WaitEnd,
    /// Absent where the switch-out is in the recording.
    pub(crate) found_blocked: Option<FoundBlocked>,
    /// The switch-out lies before the range of time that is wanted: only the rest of the wait counts.
    pub(crate) is_cut: bool,
}

impl Switch {
    /// The thread was taken off since its cgroup has used its quota of CPU time up.
    pub(crate) fn is_throttled(&self) -> bool {
        self.kind == WaitKind::Preempt && self.state.is_some_and(TaskState::is_throttled)
    }

    /// The kind of news by the object of a voluntary wait.
    pub(crate) fn brings(&self) -> Brings {
        match self.kind {
            WaitKind::Sync => self.object.brings(),
            WaitKind::Preempt | WaitKind::New => Brings::Unknown,
        }
    }

    /// The wait began before the recording and ended after it.
    pub(crate) fn lasts_throughout(&self) -> bool {
        self.found_blocked.is_some_and(|found_blocked| found_blocked.lasts_throughout)
    }
}

/// A sample in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimedStack {
    pub(crate) time: TimestampNs,
    pub(crate) stack: StackRef,
}

/// A stretch of time on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) task: Task,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) from: TimestampNs,
    pub(crate) to: TimestampNs,
    /// Samples in it, in order of time.
    pub(crate) samples: &'a [TimedStack],
    pub(crate) trust: Trust,
    /// True where it began before the recording or ended after it: it was at least that long.
    pub(crate) is_open: bool,
    /// The parts of it that are not the thread's; with the last part of a run that is given out in parts.
    pub(crate) parts: CpuParts,
}

/// When a thread existed, as far as its records tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life {
    /// Absent where it was there before its first record.
    pub(crate) born: Option<TimestampNs>,
    /// Absent where it was there after its last record.
    pub(crate) died: Option<TimestampNs>,
}

/// Takes intervals. Those of one thread come in order of time.
pub(crate) trait Sink {
    fn switch(&mut self, switch: &Switch);
    fn run(&mut self, run: &Run<'_>);
    /// A CPU spent this while no recorded thread was there.
    fn idle(&mut self, cpu: CpuId, parts: &CpuParts);
    /// A thread has ended: later events of its number belong to another one.
    fn end(&mut self, task: Task);
    /// A thread that belongs to the recording existed; once for each span of recorded time, in order.
    fn life(&mut self, task: Task, life: Life);
    /// A thread ended between spans of recorded time.
    fn died(&mut self, task: Task, time: TimestampNs);
}

/// Counts of contradictions between records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inconsistencies {
    /// Switches-in without the switch-out before.
    pub missing_outs: u64,
    /// Switches-out without the switch-in before.
    pub missing_ins: u64,
    /// Samples of threads that had switched out.
    pub stray_samples: u64,
    /// Threads whose last switch-out was that of their exit.
    pub exits: u64,
}
