//! Statements on context switches, one for each half that a source reports.
//!
//! SWITCH records, `sched` tracepoints and BPF programs tell different halves of a switch, some of
//! them twice. All of them are brought to [`TimedSwitchEvent`]s, which the interval logic alone interprets.

use super::object_key::ObjectKey;
use whit_perfdata::blocked::Edge;
use whit_perfdata::cpu_account::CpuAccount;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// The origin of a statement. A source reports each half of a switch once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Source {
    /// SWITCH and SWITCH_CPU_WIDE records.
    Record,
    /// The tracepoint `sched:sched_switch`.
    Tracepoint,
}

impl Source {
    pub(crate) const COUNT: usize = 2;
}

/// Sources that have reported one half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SourceSet(u8);

impl SourceSet {
    pub(crate) fn of(source: Source) -> SourceSet {
        let mut sources = SourceSet::default();
        sources.add(source);
        sources
    }

    pub(crate) fn has(self, source: Source) -> bool {
        self.0 & 1 << source as u8 != 0
    }

    pub(crate) fn add(&mut self, source: Source) {
        self.0 |= 1 << source as u8;
    }
}

/// A call chain: the node of a worker's call tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct StackRef {
    pub(crate) worker: u32,
    pub(crate) node: u32,
}

impl StackRef {
    /// No call chain was recorded.
    pub(crate) const NONE: StackRef = StackRef { worker: u32::MAX, node: u32::MAX };
}

/// Why a thread is on no CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitKind {
    /// It gave the CPU up: it was not runnable any more.
    Sync,
    /// It was taken off while it could have gone on.
    Preempt,
    /// It is new, and has not run yet.
    New,
}

/// The state of a thread that left its CPU, as `sched:sched_switch` records it: the bits of
/// `TASK_REPORT` in `include/linux/sched.h` since Linux 4.14.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskState(pub u16);

impl TaskState {
    /// All states but running.
    const NOT_RUNNABLE: u16 = 0xff;
    /// `TASK_REPORT_MAX`: preempted, whatever the state.
    const PREEMPTED: u16 = 0x100;
    /// Beyond the tracepoint: the thread's cgroup has used its quota of CPU time up.
    const THROTTLED: u16 = 1 << 14;

    /// From the tracepoint's field.
    pub fn from_prev_state(prev_state: u64) -> TaskState {
        TaskState((prev_state & u64::from(TaskState::NOT_RUNNABLE | TaskState::PREEMPTED)) as u16)
    }

    /// From the raw data of a sample of `context-switches`, where whit's BPF engine says it: a word with
    /// bit 31 set, and `prev_state` as the tracepoint has it.
    pub(crate) fn from_raw(raw: &[u8]) -> Option<TaskState> {
        const IS_KNOWN: u32 = 1 << 31;
        let word = u32::from_le_bytes(*raw.first_chunk()?);
        let throttled = word as u16 & TaskState::THROTTLED;
        (word & IS_KNOWN != 0)
            .then(|| TaskState(TaskState::from_prev_state(u64::from(word)).0 | throttled))
    }

    /// The address of the futex that the thread waits at, behind the state in the same raw data; 0 for none.
    pub(crate) fn futex_from_raw(raw: &[u8]) -> u64 {
        if TaskState::from_raw(raw).is_none() {
            return 0;
        }
        raw.get(4..12).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    }

    /// True where the thread was taken off since its cgroup has used its quota of CPU time up.
    pub fn is_throttled(self) -> bool {
        self.0 & TaskState::THROTTLED != 0
    }

    /// The kind of a switch in this state.
    pub fn kind(self) -> WaitKind {
        let is_runnable = self.0 & TaskState::NOT_RUNNABLE == 0;
        if is_runnable || self.0 & TaskState::PREEMPTED != 0 {
            WaitKind::Preempt
        } else {
            WaitKind::Sync
        }
    }

    /// The letters that the kernel prints: `S`, `D`, `R+`.
    pub fn letters(self) -> String {
        let letters = "SDTtXZPI".chars().enumerate();
        let mut text: String =
            letters.filter(|(bit, _)| self.0 & 1 << bit != 0).map(|(_, letter)| letter).collect();
        if text.is_empty() {
            text.push('R');
        }
        if self.0 & TaskState::PREEMPTED != 0 {
            text.push('+');
        }
        text
    }
}

/// A wake-up of another thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wake {
    /// The thread that is woken.
    pub(crate) wakee: Tid,
    /// The waker's call chain.
    pub(crate) stack: StackRef,
    /// True where an interrupt woke it: the waker is only the thread that was interrupted.
    pub(crate) from_interrupt: bool,
    /// The socket of the call in which the interrupt came.
    pub(crate) sends_to: ObjectKey,
    /// True where it is woken for the first time: the waker has made it.
    pub(crate) is_new: bool,
}

/// A statement on a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SwitchEvent {
    /// It left its CPU.
    Out { source: Source, kind: WaitKind, state: Option<TaskState>, stack: StackRef },
    /// It came onto a CPU.
    In { source: Source },
    /// Its call chain, and its state where that is recorded, as it is about to leave: a sample of an
    /// event that counts context switches. The object that it goes to wait for.
    SwitchStack { stack: StackRef, state: Option<TaskState>, object: ObjectKey },
    /// It was running: a sample of any other event.
    Sample(StackRef),
    /// It was running, at a place that does not matter.
    Running,
    /// It is on no CPU, and has left one so often in its life; which switch that was is not told.
    /// The futex that it waits at and the thread that a mutex there names as its holder, 0 for none.
    Blocked { edge: Edge, switches: u64, state: TaskState, stack: StackRef, futex: u64, owner: u32 },
    /// It comes from a wait for several files, and this one was ready first.
    Ready(ObjectKey),
    /// It was running, and its CPU has spent that on other things since it came or since the account before.
    Account(CpuAccount),
    /// It woke another thread.
    Wake(Wake),
    /// It made a thread.
    Fork { pid: Pid, tid: Tid },
    /// It ended.
    Exit,
}

impl SwitchEvent {
    /// True where this was recorded only because samples or switches were: sideband may be older.
    pub(super) fn proves_recording(&self) -> bool {
        match self {
            SwitchEvent::Out { .. }
            | SwitchEvent::In { .. }
            | SwitchEvent::SwitchStack { .. }
            | SwitchEvent::Sample(_)
            | SwitchEvent::Blocked { .. }
            | SwitchEvent::Account(_)
            | SwitchEvent::Ready(_)
            | SwitchEvent::Wake(_) => true,
            SwitchEvent::Running | SwitchEvent::Fork { .. } | SwitchEvent::Exit => false,
        }
    }
}

/// A fact, and where and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimedSwitchEvent {
    pub(crate) time: TimestampNs,
    pub(crate) cpu: Option<CpuId>,
    /// -1 where the source does not know it.
    pub(crate) pid: Pid,
    /// -1 for a thread that is no more.
    pub(crate) tid: Tid,
    pub(crate) event: SwitchEvent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_typed_and_lettered() {
        let of = |bits| {
            let state = TaskState::from_prev_state(bits);
            (state.kind(), state.letters())
        };
        assert_eq!(of(0), (WaitKind::Preempt, "R".into()));
        assert_eq!(of(0x100), (WaitKind::Preempt, "R+".into()));
        assert_eq!(of(1), (WaitKind::Sync, "S".into()));
        assert_eq!(of(2), (WaitKind::Sync, "D".into()));
        assert_eq!(of(0x80), (WaitKind::Sync, "I".into()));
        // Preempted on its way to sleep: it could have gone on.
        assert_eq!(of(0x101), (WaitKind::Preempt, "S+".into()));
        assert_eq!(of(u64::MAX).0, WaitKind::Preempt);
        assert_eq!(TaskState::from_raw(&[2, 0, 0, 0x80]), Some(TaskState(2)));
        assert_eq!(TaskState::from_raw(&[0, 1, 0, 0x80, 9]), Some(TaskState(0x100)));
        let throttled = TaskState::from_raw(&[0, 0x40, 0, 0x80]).unwrap();
        assert!(throttled.is_throttled() && !TaskState(0x100).is_throttled());
        assert_eq!((throttled.kind(), throttled.letters()), (WaitKind::Preempt, "R".into()));
        // An event without raw data.
        assert_eq!(TaskState::from_raw(&[0, 0, 0, 0]), None);
        assert_eq!(TaskState::from_raw(&[1, 0, 0]), None);
        assert_eq!(TaskState::futex_from_raw(&[1, 0, 0, 0x80, 2, 1, 0, 0, 0, 0, 0, 0]), 0x102);
        // Padding behind the state, and raw data of another event.
        assert_eq!(TaskState::futex_from_raw(&[1, 0, 0, 0x80]), 0);
        assert_eq!(TaskState::futex_from_raw(&[1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]), 0);
    }

    #[test]
    fn witnesses_are_distinguished() {
        let mut sources = SourceSet::of(Source::Record);
        assert!(sources.has(Source::Record) && !sources.has(Source::Tracepoint));
        sources.add(Source::Tracepoint);
        assert!(sources.has(Source::Record) && sources.has(Source::Tracepoint));
    }
}
