//! The thread on each CPU now, and the number of running threads.

use crate::first_pass::first_seen::{Slot, Task};
use crate::parallelism::{Parallelism, ParallelismOf};
use rustc_hash::FxHashMap;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// A thread on a CPU, and its process or cgroup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Occupant {
    tid: Tid,
    group: Option<u64>,
}

/// The knowledge of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not before the next record, which has to be at least this late to count.
    Unsure(TimestampNs),
    NoThread,
    Taken(Occupant),
}

/// Cgroups of threads, as far as samples told.
#[derive(Debug, Default)]
struct Membership {
    by_thread: FxHashMap<Tid, u64>,
    by_process: FxHashMap<Pid, u64>,
    pids: FxHashMap<Tid, Pid>,
}

/// The state of all CPUs.
#[derive(Debug)]
pub(super) struct Occupancy {
    of: ParallelismOf,
    slots: FxHashMap<Slot, State>,
    slot_of: FxHashMap<Tid, Slot>,
    running: u32,
    unsure: u32,
    /// Running threads of each process or cgroup.
    by_group: FxHashMap<u64, u32>,
    /// Running threads whose group is not known.
    groupless: u32,
    membership: Membership,
}

impl Occupancy {
    pub(super) fn new(of: ParallelismOf, cgroups: impl Iterator<Item = (Pid, u64)>) -> Occupancy {
        let membership = Membership { by_process: cgroups.collect(), ..Membership::default() };
        Occupancy {
            of,
            slots: FxHashMap::default(),
            slot_of: FxHashMap::default(),
            running: 0,
            unsure: 0,
            by_group: FxHashMap::default(),
            groupless: 0,
            membership,
        }
    }

    /// Forgets who runs where, and begins with these.
    pub(super) fn begin(&mut self, slots: &[(Slot, Option<Task>)]) {
        self.slots.clear();
        self.slot_of.clear();
        self.by_group.clear();
        (self.running, self.unsure, self.groupless) = (0, 0, 0);
        for (slot, occupant) in slots {
            match occupant.filter(|task| !task.is_idle()) {
                Some(task) => self.occupy(*slot, task),
                None => self.set(*slot, State::NoThread),
            }
        }
    }

    /// Records of a CPU, or of any where it is not told, are missing until `until`. A thread that waited may have
    /// come onto a CPU, so that threads which have places of their own are uncertain, too.
    pub(super) fn lose(&mut self, cpu: Option<CpuId>, until: TimestampNs) {
        let touched = |slot: &Slot| cpu.is_none_or(|cpu| *slot == Slot::Cpu(cpu));
        let slots: Vec<Slot> = match cpu {
            Some(cpu) => vec![Slot::Cpu(cpu)],
            None => self.slots.keys().copied().filter(touched).collect(),
        };
        slots.into_iter().for_each(|slot| self.doubt(slot, until));
    }

    /// Records of one place alone are uncertain until then.
    pub(super) fn doubt(&mut self, slot: Slot, until: TimestampNs) {
        let before = match self.slots.get(&slot) {
            Some(State::Unsure(before)) => *before,
            _ => until,
        };
        self.set(slot, State::Unsure(until.max(before)));
    }

    /// A thread comes onto a CPU.
    pub(super) fn comes(&mut self, slot: Slot, task: Task, time: TimestampNs) {
        if self.may_show(slot, time) {
            match task.is_idle() {
                true => self.set(slot, State::NoThread),
                false => self.occupy(slot, task),
            }
        }
    }

    /// The thread on a CPU leaves it.
    pub(super) fn leaves(&mut self, slot: Slot, time: TimestampNs) {
        if self.may_show(slot, time) {
            self.set(slot, State::NoThread);
        }
    }

    /// A thread was sampled. That tells who runs where nothing else does.
    pub(super) fn sampled(
        &mut self,
        slot: Slot,
        task: Task,
        cgroup: Option<u64>,
        time: TimestampNs,
    ) {
        if task.is_idle() {
            return self.leaves(slot, time);
        }
        if self.of != ParallelismOf::All {
            self.join(task, cgroup);
        }
        let group = self.group(task);
        match self.slots.get(&slot) {
            Some(State::Taken(known)) if known.tid == task.tid && known.group == group => {}
            // The thread has left already, so that the sample is only late.
            Some(State::NoThread) => {}
            _ if self.may_show(slot, time) => self.occupy(slot, task),
            _ => {}
        }
    }

    /// A thread was made, in the process and cgroup of the one that made it unless its samples say otherwise.
    pub(super) fn fork(&mut self, parent: Task, child: Task) {
        let cgroup = self.membership.by_thread.get(&parent.tid).copied();
        let cgroup = cgroup.or_else(|| self.membership.by_process.get(&parent.pid).copied());
        self.membership.by_thread.remove(&child.tid);
        if self.of != ParallelismOf::All {
            self.membership.pids.insert(child.tid, child.pid);
        }
        if let Some(cgroup) = cgroup
            && self.of == ParallelismOf::Cgroup
            && child.pid != parent.pid
        {
            self.membership.by_process.entry(child.pid).or_insert(cgroup);
        }
    }

    /// A thread ends. Events of threads tell no switch-out of it, so that it counts as gone.
    pub(super) fn exit(&mut self, slot: Slot, task: Task, time: TimestampNs) {
        self.membership.by_thread.remove(&task.tid);
        self.membership.pids.remove(&task.tid);
        let is_there = |state: &State| matches!(state, State::Taken(it) if it.tid == task.tid);
        if matches!(slot, Slot::Thread(_)) || self.slots.get(&slot).is_some_and(is_there) {
            self.leaves(slot, time);
        }
        if let (Slot::Thread(_), Some(State::NoThread)) = (slot, self.slots.get(&slot)) {
            self.slots.remove(&slot);
        }
    }

    /// How many threads of the set of `task` run.
    pub(super) fn level(&self, task: Task) -> Parallelism {
        if task.is_idle() {
            return Parallelism::Threads(0);
        }
        if self.unsure > 0 {
            return Parallelism::Unknown;
        }
        let count = match self.of {
            ParallelismOf::All => self.running,
            _ if self.groupless > 0 => return Parallelism::Unknown,
            _ => match self.group(task) {
                Some(group) => self.by_group.get(&group).copied().unwrap_or(0),
                None => return Parallelism::Unknown,
            },
        };
        // The sampled thread itself runs, whatever the switches say.
        Parallelism::Threads(count.max(1))
    }

    /// Whether anybody runs; `None` where that is not known.
    pub(super) fn anybody(&self) -> Option<bool> {
        (self.unsure == 0).then_some(self.running > 0)
    }

    /// Whether a record of a time tells the thread on a CPU from then on.
    fn may_show(&self, slot: Slot, time: TimestampNs) -> bool {
        !matches!(self.slots.get(&slot), Some(State::Unsure(until)) if time < *until)
    }

    fn occupy(&mut self, slot: Slot, task: Task) {
        if task.tid.0 > 0
            && let Some(before) = self.slot_of.get(&task.tid).copied()
            && before != slot
        {
            // Its switch-out is missing: no record tells the next thread there.
            self.set(before, State::Unsure(TimestampNs(0)));
        }
        let group = self.group(task);
        self.set(slot, State::Taken(Occupant { tid: task.tid, group }));
    }

    fn set(&mut self, slot: Slot, state: State) {
        match self.slots.insert(slot, state) {
            Some(State::Taken(before)) => self.uncount(slot, before),
            Some(State::Unsure(_)) => self.unsure -= 1,
            Some(State::NoThread) | None => {}
        }
        match state {
            State::Taken(occupant) => self.count(slot, occupant),
            State::Unsure(_) => self.unsure += 1,
            State::NoThread => {}
        }
    }

    fn count(&mut self, slot: Slot, occupant: Occupant) {
        self.running += 1;
        self.slot_of.insert(occupant.tid, slot);
        match occupant.group {
            Some(group) => *self.by_group.entry(group).or_default() += 1,
            None => self.groupless += 1,
        }
    }

    fn uncount(&mut self, slot: Slot, occupant: Occupant) {
        self.running -= 1;
        if self.slot_of.get(&occupant.tid) == Some(&slot) {
            self.slot_of.remove(&occupant.tid);
        }
        let Some(group) = occupant.group else {
            self.groupless -= 1;
            return;
        };
        if let Some(count) = self.by_group.get_mut(&group) {
            *count -= 1;
            if *count == 0 {
                self.by_group.remove(&group);
            }
        }
    }

    fn join(&mut self, task: Task, cgroup: Option<u64>) {
        if task.pid.0 >= 0 {
            self.membership.pids.insert(task.tid, task.pid);
        }
        if let Some(cgroup) = cgroup.filter(|_| self.of == ParallelismOf::Cgroup) {
            self.membership.by_thread.insert(task.tid, cgroup);
            if task.pid.0 >= 0 {
                self.membership.by_process.insert(task.pid, cgroup);
            }
        }
    }

    /// The process or cgroup that a thread counts for.
    fn group(&self, task: Task) -> Option<u64> {
        let known = || self.membership.pids.get(&task.tid).copied();
        let pid = || if task.pid.0 >= 0 { Some(task.pid) } else { known() };
        match self.of {
            ParallelismOf::All => Some(0),
            ParallelismOf::Process => pid().map(|pid| pid.0 as u64),
            ParallelismOf::Cgroup => {
                let own = self.membership.by_thread.get(&task.tid).copied();
                own.or_else(|| self.membership.by_process.get(&pid()?).copied())
            }
        }
    }
}

#[cfg(test)]
#[path = "occupancy_tests.rs"]
mod tests;
