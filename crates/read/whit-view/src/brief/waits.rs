//! The longest waits, the classes of waits, and waits for locks.

use super::parts::{Function, List};
use super::{MAX_LIST, MAX_NAME, MAX_SENTENCE, name_of, shortened};
use crate::held_up::HeldUp;
use crate::locks::{TopLock, TopLocks, top_locks};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use whit_profile::handle::{self, WaitId};
use whit_profile::model::{NodeId, Profile, ThreadId};
use whit_profile::switches::{
    NodeClasses, SwitchSums, Switches, Trust, Wait, WaitClass, Waker, wait_path,
};

/// Functions of a call stack.
const MAX_FRAMES: usize = 3;

/// Waits of the recorded threads.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct WaitFacts {
    /// How long switches were recorded.
    pub(super) recorded_ns: u64,
    pub(super) cpu_ns: u64,
    /// Sum of the waits that held work up: without those for work or for a time, and without the recorder's.
    pub(super) held_up_ns: u64,
    /// Sums over waits with a certain end.
    pub(super) classes: List<ClassSum>,
    /// The longest waits: those that began and ended in the recording come first, and of equally long ones those that
    /// held work up.
    pub(super) longest: List<LongWait>,
    /// Locks with the longest sums of waits.
    pub(super) locks: List<LockSum>,
    /// Deadlocks, and threads that waited all the time for a mutex with a known holder, as sentences.
    pub(super) held: List<String>,
    pub(super) has_stacks: bool,
    pub(super) has_wakeups: bool,
}

/// Waits of one class.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ClassSum {
    pub(super) class: &'static str,
    pub(super) count: u64,
    pub(super) wait_ns: u64,
}

/// The side of a wait that waited, or that woke.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Thread {
    pub(super) handle: String,
    pub(super) tid: i32,
    pub(super) comm: String,
}

/// One wait.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LongWait {
    pub(super) handle: String,
    pub(super) thread: Thread,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) class: &'static str,
    /// The object of the wait; `null` where that is not known.
    pub(super) object: Option<String>,
    /// The innermost functions of the program, or else of the kernel; from callee to caller.
    pub(super) stack: Vec<Function>,
    /// The recording ended before the wait.
    pub(super) open: bool,
    /// The thread was blocked when recording began.
    pub(super) begun_before: bool,
    /// Records were lost meanwhile.
    pub(super) lossy: bool,
    pub(super) woken_by: Option<WokenBy>,
}

/// The origin of a wake-up.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct WokenBy {
    pub(super) thread: Thread,
    pub(super) from_interrupt: bool,
    /// As that of the wait.
    pub(super) stack: Vec<Function>,
}

/// Waits for one lock.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LockSum {
    pub(super) lock: String,
    pub(super) count: u64,
    pub(super) wait_ns: u64,
    pub(super) longest_ns: u64,
    /// Share of the wall time of all threads.
    pub(super) wall_percent: Option<f64>,
    /// The function that wants it most.
    pub(super) call_site: Option<Function>,
    /// The thread that ended most of the waits.
    pub(super) holder: Option<String>,
}

impl WaitFacts {
    /// True where threads mostly wait, so that waits tell more than samples of CPU time.
    pub(super) fn come_first(&self) -> bool {
        !self.held.first.is_empty() || self.held_up_ns > self.cpu_ns
    }

    /// Shortens all lists; gives the number of entries that it takes away.
    pub(super) fn shorten(&mut self, level: usize) -> u64 {
        self.classes.shorten(level)
            + self.longest.shorten(level.div_ceil(2))
            + self.locks.shorten(level.div_ceil(2))
            // They say most where threads hang.
            + self.held.shorten(level.max(2))
    }
}

pub(super) fn facts(profile: &Profile, switches: &Switches) -> WaitFacts {
    let nodes = switches.rows.iter().map(|row| row.node);
    let nodes = nodes.chain(switches.worst.iter().map(|wait| wait.node));
    let classes = NodeClasses::of(profile, nodes);
    let mut total = SwitchSums::default();
    switches.rows.iter().for_each(|row| total.add(&row.sums));
    let held_up = HeldUp::new(profile, switches);
    let held_up_ns = switches.rows.iter().filter_map(|row| held_up.waits(row));
    let held_up_ns = held_up_ns.fold(0u64, |sum, waits| sum.saturating_add(waits.ns));
    let mut worst: Vec<&Wait> = switches.worst.iter().collect();
    worst.sort_by_key(|wait| {
        let has_ends = !wait.is_open && !wait.begun_before && wait.trust != Trust::Lossy;
        let is_held_up = held_up.has(classes.of_wait(wait), wait.thread, wait.node);
        (Reverse(has_ends), Reverse(wait.duration_ns), Reverse(is_held_up))
    });
    let longest = worst.iter().take(MAX_LIST).map(|wait| LongWait {
        object: object(switches, wait),
        ..long_wait(profile, &classes, wait)
    });
    let TopLocks { locks, held } = top_locks(profile, switches);
    WaitFacts {
        recorded_ns: switches.recorded_ns,
        cpu_ns: total.cpu_ns,
        held_up_ns,
        classes: List::of(class_sums(switches, &classes)),
        longest: List::of(longest.collect()),
        locks: List::of(locks.into_iter().map(|lock| lock_sum(profile, lock)).collect()),
        held: List::of(held.iter().map(|line| shortened(line, MAX_SENTENCE)).collect()),
        has_stacks: switches.sources.stacks,
        has_wakeups: switches.sources.wakeups,
    }
}

fn class_sums(switches: &Switches, classes: &NodeClasses) -> Vec<ClassSum> {
    let mut sums: FxHashMap<WaitClass, SwitchSums> = FxHashMap::default();
    for row in &switches.rows {
        for (class, part) in classes.split(row) {
            if let Some(class) = class {
                sums.entry(class).or_default().add(&part);
            }
        }
    }
    let sum = |(class, sums): (WaitClass, SwitchSums)| ClassSum {
        class: class.name(),
        count: sums.count().saturating_add(sums.new_count),
        wait_ns: sums.wait_ns(),
    };
    let mut sums: Vec<_> = sums.into_iter().map(sum).filter(|sum| sum.wait_ns > 0).collect();
    sums.sort_by_key(|sum| (Reverse(sum.wait_ns), sum.class));
    sums
}

fn thread(profile: &Profile, id: ThreadId) -> Thread {
    let info = &profile.threads[id.index()];
    let comm = name_of(&profile.comms[info.comm.index()]);
    Thread { handle: handle::of_thread(info.tid), tid: info.tid.0, comm }
}

fn long_wait(profile: &Profile, classes: &NodeClasses, wait: &Wait) -> LongWait {
    let tid = profile.threads[wait.thread.index()].tid;
    LongWait {
        handle: handle::of_wait(WaitId { tid, start: wait.start }),
        thread: thread(profile, wait.thread),
        start_ns: wait.start.0,
        duration_ns: wait.duration_ns,
        class: classes.of_wait(wait).name(),
        object: None,
        stack: stack(profile, wait.node),
        open: wait.is_open,
        begun_before: wait.begun_before,
        lossy: wait.trust == Trust::Lossy,
        woken_by: wait.woken.map(|(_, waker)| woken_by(profile, waker)),
    }
}

fn object(switches: &Switches, wait: &Wait) -> Option<String> {
    let object = switches.objects.get(wait.object? as usize)?;
    object.is_known().then(|| shortened(&object.to_string(), MAX_NAME))
}

fn woken_by(profile: &Profile, waker: Waker) -> WokenBy {
    WokenBy {
        thread: thread(profile, waker.thread),
        from_interrupt: waker.from_interrupt,
        stack: stack(profile, waker.node),
    }
}

/// The functions that tell most of a stack.
pub(super) fn stack(profile: &Profile, node: NodeId) -> Vec<Function> {
    let path = wait_path(profile, node);
    path.into_iter().take(MAX_FRAMES).map(|function| Function::of(profile, function)).collect()
}

fn lock_sum(profile: &Profile, lock: TopLock) -> LockSum {
    LockSum {
        lock: shortened(&lock.name, MAX_NAME),
        count: lock.count,
        wait_ns: lock.total_ns,
        longest_ns: lock.longest_ns,
        wall_percent: lock.wall_percent,
        call_site: lock.call_site.map(|function| Function::of(profile, function)),
        holder: lock.holder.map(|holder| shortened(&holder, MAX_NAME)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};

    const WHO: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: None };

    /// Names of the chosen functions. A function of the C library begins with `c_`, one of Python's runtime with `r_`.
    fn chosen(chain: &[&str]) -> Vec<String> {
        let mut builder = Builder::default();
        let event = builder.event("cpu-clock");
        let frames = chain.iter().enumerate().map(|(address, name)| {
            let binary = match &name[..2] {
                "py" => "[python]",
                "c_" => "/lib/libc.so.6",
                "r_" => "/lib/libpython3.11.so.1.0",
                _ => "/bin/app",
            };
            at(name, binary, address as u64)
        });
        builder.sample(event, WHO, &frames.collect::<Vec<_>>(), 1);
        let leaf = builder.profile.rows[0].node;
        stack(&builder.profile, leaf).into_iter().map(|function| function.name).collect()
    }

    #[test]
    fn stacks_begin_with_the_function_that_the_program_called() {
        assert_eq!(
            chosen(&["c_start", "main", "serve", "take_both", "c_lock", "c_lock_slow", "c_wait"]),
            ["c_lock", "take_both", "serve"]
        );
        assert_eq!(chosen(&["main", "serve", "spin"]), ["spin", "serve", "main"]);
        assert_eq!(
            chosen(&["main", "r_eval", "py::serve", "r_call", "r_get", "r_acquire", "c_wait"]),
            ["py::serve", "main"]
        );
        assert_eq!(chosen(&["main", "r_take_gil", "c_wait"]), ["c_wait", "r_take_gil", "main"]);
        assert_eq!(chosen(&["c_start", "c_exit"]), ["c_exit", "c_start"]);
    }
}
