//! The results from a recording's context switches: sums per thread and call stack, the longest
//! waits, and a time line.
//!
//! All ids are those of the [`Profile`](crate::model::Profile) that was loaded with them.

use super::cpu_parts::{CpuParts, CpuWall};
use super::durations::Durations;
use super::interval::{Inconsistencies, Trust};
use super::run_queue::RunQueueDelays;
use super::switch_event::{TaskState, WaitKind};
use crate::loss_window::LossWindow;
use crate::model::{CgroupInfo, CommId, EventId, NodeId, ThreadId};
use std::fmt;
use std::sync::Arc;
use whit_perfdata::wait_object::{Brings, WaitObject};
use whit_types::{CpuId, Tid, TimestampNs};

/// The context switches of a recording.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    /// The kinds of records that the switches come from.
    pub sources: Sources,
    /// Sums, unique in (thread, comm, node, object, block), ordered by these.
    pub rows: Vec<SwitchRow>,
    /// The objects that rows and waits name by their index, in order.
    pub objects: Vec<NamedObject>,
    /// The wake-ups that ended the waits of each row, by waker.
    pub wakers: Vec<WakerRow>,
    /// Wake-ups whose waker is in no row: there are too many different ones.
    pub wakers_left_off: u64,
    /// The longest waits, the longest first.
    pub worst: Vec<Wait>,
    /// The activities of each thread over time.
    pub timeline: Timeline,
    /// How long each thread existed, by its id.
    pub lives: Vec<ThreadLife>,
    /// The time of each CPU, by its number; only where the switches of all threads are recorded, and no range of time is
    /// asked for.
    pub cpus: Vec<CpuWall>,
    /// The cgroup of each thread of the profile, by its samples; `None` where nothing tells it.
    pub cgroups: Vec<Option<CgroupInfo>>,
    /// The run-queue delays of each thread that has any, by its id; only where they were asked for.
    pub run_queue: Vec<RunQueueDelays>,
    /// Voluntary waits as the report of locks needs them; only where it was asked for.
    pub locks: LockWaits,
    /// Contradictions between records.
    pub inconsistencies: Inconsistencies,
    /// When records were lost, on any CPU.
    pub loss_windows: Vec<LossWindow>,
    /// The first and the last moment at which switches were recorded; absent where they never were.
    pub span: Option<(TimestampNs, TimestampNs)>,
    /// How long switches were recorded between these moments, in nanoseconds: pauses (`--delay`, commands
    /// of the control channel) are left out.
    pub recorded_ns: u64,
    /// The same by block of time; empty where rows are not apart by blocks.
    pub block_ns: Vec<u64>,
}

/// The kinds of records about switches in a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sources {
    /// SWITCH or SWITCH_CPU_WIDE records (`--switch-events`).
    pub records: bool,
    /// `sched:sched_switch`.
    pub tracepoint: bool,
    /// The time that CPUs spent in interrupts.
    pub interrupts: bool,
    /// The time that the hypervisor stole from CPUs, as far as it states any.
    pub stolen: bool,
    /// Samples of every context switch, or call chains of `sched:sched_switch`.
    pub stacks: bool,
    /// `sched:sched_waking`, `sched:sched_wakeup`, `sched:sched_wakeup_new`.
    pub wakeups: bool,
    /// The event over whose samples CPU time is distributed.
    pub samples: Option<EventId>,
}

impl Sources {
    /// True where switches can be typed at all.
    pub fn has_switches(self) -> bool {
        self.records || self.tracepoint
    }
}

/// How long a thread existed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadLife {
    /// Id in the profile.
    pub thread: ThreadId,
    /// The recorded time in which it existed, in nanoseconds.
    pub elapsed_ns: u64,
    /// Waits of the thread that are in no row, because the user left them out.
    pub left_out_ns: u64,
    /// The part of its CPU time in which its CPUs did not execute it; in runs that no loss touches.
    pub parts: CpuParts,
}

/// Sums of switches and runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchSums {
    /// Time on a CPU, in nanoseconds.
    pub cpu_ns: u64,
    /// The same in stretches of time that a loss touches.
    pub lossy_cpu_ns: u64,
    /// Switches because the thread was not runnable any more, whether or not it is known how long
    /// it waited.
    pub sync_count: u64,
    /// Switches while it was runnable, likewise.
    pub preempt_count: u64,
    /// Waits after such switches, in nanoseconds; only those that nothing makes uncertain.
    pub sync_wait_ns: u64,
    /// The same for the other kind.
    pub preempt_wait_ns: u64,
    /// The part of `preempt_count` in which the cgroup had used its quota of CPU time up.
    pub throttled_count: u64,
    /// The part of `preempt_wait_ns` in such waits.
    pub throttled_wait_ns: u64,
    /// Threads that were made (`sched:sched_wakeup_new`), whether or not it is known when they
    /// first ran.
    pub new_count: u64,
    /// From then until they first ran, in nanoseconds; only where nothing makes that uncertain.
    pub new_wait_ns: u64,
    /// The part of `sync_count` that has a wake-up, and a wait that nothing makes uncertain.
    pub woken_count: u64,
    /// In those, from the switch until the wake-up.
    pub blocked_ns: u64,
    /// In those, from the wake-up until the thread came onto a CPU.
    pub runnable_ns: u64,
    /// Waits, of any kind, that a loss touches.
    pub lossy_count: u64,
    /// How long they seem to be.
    pub lossy_wait_ns: u64,
    /// Waits, of any kind, whose beginning or end is not in the recording. Those that last throughout are not
    /// among them.
    pub open_count: u64,
    /// How long they took while it was recorded, where the recording's beginning or end is why.
    pub open_wait_ns: u64,
    /// Waits that began before the recording and ended after it.
    pub throughout_count: u64,
    /// How long they took while it was recorded.
    pub throughout_wait_ns: u64,
    /// In open waits and those that last throughout, the time that no loss touches: blocked until the wake-up, or
    /// until the end of the recording where it has none.
    pub open_blocked_ns: u64,
    /// The same from the wake-up on.
    pub open_runnable_ns: u64,
    /// The same of threads that were taken off.
    pub open_preempt_ns: u64,
    /// The longest wait after a voluntary switch that nothing makes uncertain.
    pub longest_sync_ns: u64,
    /// The same after a preemption without such a cause.
    pub longest_preempt_ns: u64,
    /// The same of a thread whose cgroup had used its quota up.
    pub longest_throttled_ns: u64,
    /// The same of a new thread.
    pub longest_new_ns: u64,
}

impl SwitchSums {
    /// The CPU time alone.
    pub(crate) fn cpu_only(&self) -> SwitchSums {
        let SwitchSums { cpu_ns, lossy_cpu_ns, .. } = *self;
        SwitchSums { cpu_ns, lossy_cpu_ns, ..SwitchSums::default() }
    }

    /// Waits of all kinds.
    pub fn wait_ns(&self) -> u64 {
        self.sync_wait_ns.saturating_add(self.preempt_wait_ns).saturating_add(self.new_wait_ns)
    }

    /// The longest wait of any kind.
    pub fn longest_wait_ns(&self) -> u64 {
        [self.longest_preempt_ns, self.longest_throttled_ns, self.longest_new_ns]
            .into_iter()
            .fold(self.longest_sync_ns, u64::max)
    }

    /// Switches of both kinds.
    pub fn count(&self) -> u64 {
        self.sync_count.saturating_add(self.preempt_count)
    }

    /// True without anything.
    pub fn is_empty(&self) -> bool {
        *self == SwitchSums::default()
    }

    /// Takes over others.
    pub fn add(&mut self, other: &SwitchSums) {
        let sums = [
            (&mut self.cpu_ns, other.cpu_ns),
            (&mut self.lossy_cpu_ns, other.lossy_cpu_ns),
            (&mut self.sync_count, other.sync_count),
            (&mut self.preempt_count, other.preempt_count),
            (&mut self.sync_wait_ns, other.sync_wait_ns),
            (&mut self.preempt_wait_ns, other.preempt_wait_ns),
            (&mut self.throttled_count, other.throttled_count),
            (&mut self.throttled_wait_ns, other.throttled_wait_ns),
            (&mut self.new_count, other.new_count),
            (&mut self.new_wait_ns, other.new_wait_ns),
            (&mut self.woken_count, other.woken_count),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.runnable_ns, other.runnable_ns),
            (&mut self.lossy_count, other.lossy_count),
            (&mut self.lossy_wait_ns, other.lossy_wait_ns),
            (&mut self.open_count, other.open_count),
            (&mut self.open_wait_ns, other.open_wait_ns),
            (&mut self.throughout_count, other.throughout_count),
            (&mut self.throughout_wait_ns, other.throughout_wait_ns),
            (&mut self.open_blocked_ns, other.open_blocked_ns),
            (&mut self.open_runnable_ns, other.open_runnable_ns),
            (&mut self.open_preempt_ns, other.open_preempt_ns),
        ];
        // Times may be anything in a corrupt recording.
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.longest_sync_ns = self.longest_sync_ns.max(other.longest_sync_ns);
        self.longest_preempt_ns = self.longest_preempt_ns.max(other.longest_preempt_ns);
        self.longest_throttled_ns = self.longest_throttled_ns.max(other.longest_throttled_ns);
        self.longest_new_ns = self.longest_new_ns.max(other.longest_new_ns);
    }
}

/// Sums of one thread at one call stack: CPU time at that of samples, waits at that of the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchRow {
    /// Index into [`Profile::threads`](crate::model::Profile::threads).
    pub thread: ThreadId,
    /// Its command name at the time.
    pub comm: CommId,
    /// Leaf of the call stack; [`NodeId::NONE`] where none was recorded.
    pub node: NodeId,
    /// Index into [`Switches::objects`]; absent of rows without voluntary waits, and where rows are not told apart by it.
    pub object: Option<u32>,
    /// The kind of news by the objects of its voluntary waits: their class depends on that.
    pub brings: Brings,
    /// Index into [`Switches::block_ns`]; zero where rows are not apart by blocks.
    pub block: u16,
    /// Times and counts of the row.
    pub sums: SwitchSums,
}

/// Wake-ups that ended waits of one row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakerRow {
    /// Index of the row.
    pub row: u32,
    /// The thread or interrupt that made the wake-ups.
    pub waker: Waker,
    /// Number of wake-ups.
    pub count: u64,
    /// From the switches until the wake-ups, in nanoseconds.
    pub blocked_ns: u64,
}

/// The origin of a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Waker {
    /// The thread that ran on the CPU from which the wake-up came.
    pub thread: ThreadId,
    /// Its call stack; [`NodeId::NONE`] where none was recorded.
    pub node: NodeId,
    /// True where an interrupt woke, and the thread only happened to run.
    pub from_interrupt: bool,
}

/// One wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Index into [`Profile::threads`](crate::model::Profile::threads).
    pub thread: ThreadId,
    /// Its command name at the switch.
    pub comm: CommId,
    /// The switch, or that it was made; the beginning of the recording if the switch was before.
    pub start: TimestampNs,
    /// Until the thread came onto a CPU, or the recording ended.
    pub duration_ns: u64,
    /// The CPU that it left; a new thread left none.
    pub cpu: Option<CpuId>,
    /// Why it waits.
    pub kind: WaitKind,
    /// Its state, where a tracepoint or the BPF engine recorded it.
    pub state: Option<TaskState>,
    /// Its call stack at the switch; [`NodeId::NONE`] where none was recorded.
    pub node: NodeId,
    /// The object of a voluntary wait: an index into [`Switches::objects`].
    pub object: Option<u32>,
    /// The kind of news by the object.
    pub brings: Brings,
    /// The time of the wake-up, and the waker.
    pub woken: Option<(TimestampNs, Waker)>,
    /// Whether a loss may hide more switches in the wait.
    pub trust: Trust,
    /// True where the recording ended first.
    pub is_open: bool,
    /// True where the thread was found on no CPU, and its switch is not in the recording.
    pub begun_before: bool,
}

/// The state of a thread in a time-line span.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Activity {
    /// On a CPU.
    Running,
    /// Taken off.
    Preempted,
    /// Given up, or not there yet: it is new.
    Waiting,
    /// Several, each shorter than the time line's grain.
    Mixed,
}

/// A stretch of a thread's time line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimelineSpan {
    /// Index into [`Profile::threads`](crate::model::Profile::threads).
    pub thread: ThreadId,
    /// Beginning.
    pub start: TimestampNs,
    /// Length.
    pub duration_ns: u64,
    /// The state of the thread.
    pub activity: Activity,
    /// The CPU on which it ran, or that it left.
    pub cpu: Option<CpuId>,
    /// Call stack of the switch that begins a wait; otherwise [`NodeId::NONE`].
    pub node: NodeId,
    /// For a single wait, the time of the wake-up, and the waker.
    pub woken: Option<(TimestampNs, Waker)>,
    /// For mixed spans, the time of each activity: running, preempted, waiting.
    pub parts_ns: [u64; 3],
    /// Intervals in it.
    pub count: u64,
    /// Whether a loss may hide more switches in the span.
    pub trust: Trust,
    /// For a single wait, the kind of news by its object.
    pub brings: Brings,
}

/// The activities of each thread over time, joined where there are more spans than a bound.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// By thread, in order of time.
    pub spans: Vec<TimelineSpan>,
    /// Intervals shorter than this were joined with their neighbours; zero where all are there.
    pub grain_ns: u64,
    /// The number of stretches up to which none are joined.
    pub max_spans: usize,
}

/// The place of a futex.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Futex {
    /// Its address in the process that waits.
    pub address: u64,
    /// The binary whose data has the address, and the symbol with the distance to its start.
    pub symbol: Option<FutexSymbol>,
}

impl fmt::Display for Futex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(symbol) = &self.symbol else { return write!(f, "futex {:#x}", self.address) };
        let binary = symbol.binary.rsplit('/').next().unwrap_or_default();
        match (&symbol.name, symbol.offset) {
            (Some(name), 0) => write!(f, "futex {name} in {binary}"),
            (Some(name), offset) => write!(f, "futex {name}+{offset:#x} in {binary}"),
            (None, offset) => write!(f, "futex {offset:#x} in {binary}"),
        }
    }
}

impl Futex {
    /// Reads what [`Futex`] displays; `None` where it is something else. The path of a binary has its last component alone.
    pub fn parse(address: u64, text: &str) -> Option<Futex> {
        let place = text.strip_prefix("futex ")?;
        let Some((place, binary)) = place.rsplit_once(" in ") else {
            return Some(Futex { address, symbol: None });
        };
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let (name, offset) = match place.rsplit_once('+') {
            _ if number(place).is_some() => (None, number(place)?),
            Some((name, offset)) if number(offset).is_some() => (Some(name), number(offset)?),
            _ => (Some(place), 0),
        };
        let symbol = FutexSymbol { name: name.map(Arc::from), offset, binary: binary.into() };
        Some(Futex { address, symbol: Some(symbol) })
    }
}

/// The object of a wait, with its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NamedObject {
    /// A futex: the word of a lock or a queue.
    Futex(Futex),
    /// A file, time, process or the like that a system call names.
    Described(WaitObject),
    /// The same as a table of a dataset has it: by its kind, and as text.
    Text(&'static str, Arc<str>),
}

impl NamedObject {
    /// False for an unknown object.
    pub fn is_known(&self) -> bool {
        match self {
            NamedObject::Futex(_) => true,
            NamedObject::Described(object) => !matches!(object, WaitObject::Unknown(_)),
            NamedObject::Text(kind, _) => *kind != "unknown",
        }
    }

    /// Its kind, as outputs name it.
    pub fn kind(&self) -> &'static str {
        match self {
            NamedObject::Futex(_) => "futex",
            NamedObject::Described(object) => object.kind(),
            NamedObject::Text(kind, _) => kind,
        }
    }
}

impl fmt::Display for NamedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamedObject::Futex(futex) => futex.fmt(f),
            NamedObject::Described(object) => object.fmt(f),
            NamedObject::Text(_, text) => f.write_str(text),
        }
    }
}

/// A symbol of a binary's data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FutexSymbol {
    /// Its name, demangled; `None` where the binary has no symbol there.
    pub name: Option<Arc<str>>,
    /// Bytes from the start of the symbol, or without one the stated address.
    pub offset: u64,
    /// Path of the binary.
    pub binary: Arc<str>,
}

/// Waits of one thread at one stack and futex that one waker ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWait {
    /// Index into [`Profile::threads`](crate::model::Profile::threads).
    pub thread: ThreadId,
    /// Its command name at the time.
    pub comm: CommId,
    /// Leaf of the call stack at the switch.
    pub node: NodeId,
    /// Absent for other waits, and where the recording has no address.
    pub futex: Option<Futex>,
    /// Absent where no wake-up was recorded.
    pub waker: Option<Waker>,
    /// From the switch until the thread was on a CPU again.
    pub waits: Durations,
    /// The part until the wake-up, in nanoseconds; zero where none was recorded.
    pub blocked_ns: u64,
    /// Waits whose length is uncertain, in no other number here.
    pub uncertain: u64,
    /// The thread that holds glibc's mutex at the futex, as the mutex itself said when the waiting thread was found
    /// blocked; only of a wait that lasted all the time. Other locks have anything in that place ([`LockSite::names_owner`]).
    ///
    /// [`LockSite::names_owner`]: crate::switches::LockSite::names_owner
    pub owner: Option<Tid>,
}

/// Voluntary waits with the wakers that ended them, for reports of locks.
#[derive(Clone, Debug, Default)]
pub struct LockWaits {
    /// Ordered by thread, command, stack, futex and waker.
    pub waits: Vec<LockWait>,
    /// Waits that are in none of them: there are too many different ones.
    pub left_off: u64,
    /// Waits for locks of the kernel, ordered by thread, command, stack, address and flags. Those at which threads
    /// slept are among [`LockWaits::waits`] as well.
    pub kernel: Vec<KernelLockWait>,
    /// The recording has both tracepoints of them.
    pub kernel_recorded: bool,
}

/// Waits of one thread at one stack for one lock of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelLockWait {
    /// Index into [`Profile::threads`](crate::model::Profile::threads): the thread that ran on the CPU.
    pub thread: ThreadId,
    /// Its command name at the time.
    pub comm: CommId,
    /// Leaf of the call stack at the beginning.
    pub node: NodeId,
    /// The address of the lock.
    pub address: u64,
    /// `LCB_F_*` of `include/trace/events/lock.h`.
    pub flags: u32,
    /// From the beginning to the end.
    pub waits: Durations,
    /// Waits whose length is uncertain, in no other number here.
    pub uncertain: u64,
}

impl KernelLockWait {
    /// True where both belong into one.
    pub(super) fn is_like(&self, other: &KernelLockWait) -> bool {
        let key = |of: &KernelLockWait| (of.thread, of.comm, of.node, of.address, of.flags);
        key(self) == key(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futexes_are_read_as_they_are_displayed() {
        let symbol = |name: Option<&str>, offset| {
            Some(FutexSymbol { name: name.map(Arc::from), offset, binary: "app 2".into() })
        };
        for symbol in [
            None,
            symbol(Some("table"), 0),
            symbol(Some("table"), 0x10),
            symbol(Some("operator+"), 0),
            symbol(Some("locks in use"), 0x8),
            symbol(None, 0x4010),
        ] {
            let futex = Futex { address: 0x7f00_0040, symbol };
            assert_eq!(Futex::parse(0x7f00_0040, &futex.to_string()), Some(futex));
        }
        assert_eq!(Futex::parse(1, "pipe:[4711]"), None);
    }
}
