//! The scheduler of one CPU.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::group::Group;
use super::{
    CgroupId, EventId, GroupId, GroupKey, GroupSpec, GroupState, GroupTimes, GroupTree, Hierarchy,
};
use crate::assign::{Request, assign};
use crate::counter::{COUNTERS_MAX, CounterIndex, CounterMask};

/// An event and a counter.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Move {
    /// The event that moves.
    pub event: EventId,
    /// The counter that it goes on or is taken off.
    pub counter: CounterIndex,
}

/// The changes to the hardware: first take events off, then put events on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Events to take off.
    pub stop: Vec<Move>,
    /// Events to put on. One that is in both goes to another counter.
    pub start: Vec<Move>,
}

/// Costs of scheduling.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct SchedulerStatistics {
    /// Switches between cgroups.
    pub switches: u64,
    /// Groups that switches looked at.
    pub visits: u64,
    /// Switches that placed all flexible groups anew, because there are more than fit.
    pub full_merges: u64,
    /// Turns in which the list of flexible groups advanced.
    pub rotations: u64,
}

/// Keeps the events of one CPU on the counters of one PMU.
#[derive(Clone, Debug)]
pub struct CpuScheduler {
    counters: CounterMask,
    hierarchy: Hierarchy,
    groups: BTreeMap<GroupId, Group>,
    pinned: GroupTree,
    flexible: GroupTree,
    current: Option<CgroupId>,
    /// The event on each counter.
    on: [Option<EventId>; COUNTERS_MAX],
    active: Vec<GroupId>,
    next: u64,
    /// A flexible group waits.
    rotation_needed: bool,
    now_ns: u64,
    statistics: SchedulerStatistics,
}

impl CpuScheduler {
    /// A CPU with these counters on which no cgroup runs.
    #[must_use]
    pub const fn new(counters: CounterMask, hierarchy: Hierarchy) -> CpuScheduler {
        CpuScheduler {
            counters,
            hierarchy,
            groups: BTreeMap::new(),
            pinned: GroupTree::new(),
            flexible: GroupTree::new(),
            current: None,
            on: [None; COUNTERS_MAX],
            active: Vec::new(),
            next: 0,
            rotation_needed: false,
            now_ns: 0,
            statistics: SchedulerStatistics {
                switches: 0,
                visits: 0,
                full_merges: 0,
                rotations: 0,
            },
        }
    }

    /// The tree of cgroups. A cgroup that runs or has groups keeps its parents.
    pub const fn hierarchy_mut(&mut self) -> &mut Hierarchy {
        &mut self.hierarchy
    }

    /// Costs of scheduling.
    #[must_use]
    pub const fn statistics(&self) -> &SchedulerStatistics {
        &self.statistics
    }

    /// Whether a flexible group waits, so that [`CpuScheduler::rotate`] has something to do.
    #[must_use]
    pub const fn rotation_needed(&self) -> bool {
        self.rotation_needed
    }

    /// State of a group; `None` where there is no such group.
    #[must_use]
    pub fn state(&self, group: GroupId) -> Option<GroupState> {
        self.groups.get(&group).map(|group| group.state)
    }

    /// How long a group counted, up to the last call that named a time.
    #[must_use]
    pub fn times(&self, group: GroupId) -> Option<GroupTimes> {
        self.groups.get(&group).map(|group| group.times(self.now_ns))
    }

    /// The event on a counter.
    #[must_use]
    pub const fn on(&self, counter: CounterIndex) -> Option<EventId> {
        self.on[counter.index()]
    }

    /// Adds a group at the end of the line.
    pub fn add(&mut self, spec: GroupSpec, now_ns: u64) -> (GroupId, Changes) {
        let before = self.begin(now_ns);
        let id = GroupId(self.next);
        let group = Group::new(spec, self.next, self.now_ns);
        self.next += 1;
        self.tree(&group).insert(key(&group), id);
        self.groups.insert(id, group);
        self.become_runnable(id);
        (id, self.changes(&before))
    }

    /// Removes a group.
    pub fn remove(&mut self, id: GroupId, now_ns: u64) -> Changes {
        let before = self.begin(now_ns);
        if self.groups.contains_key(&id) {
            self.set_off(id);
        }
        if let Some(group) = self.groups.remove(&id) {
            self.tree(&group).remove(&key(&group));
        }
        self.use_room();
        self.changes(&before)
    }

    /// Enables a pinned group that is in error.
    pub fn enable(&mut self, id: GroupId, now_ns: u64) -> Changes {
        let before = self.begin(now_ns);
        if self.state(id) == Some(GroupState::Error) {
            self.set_state(id, GroupState::Off);
            self.become_runnable(id);
        }
        self.changes(&before)
    }

    /// A task of another cgroup runs now.
    pub fn switch(&mut self, next: Option<CgroupId>, now_ns: u64) -> Changes {
        let before = self.begin(now_ns);
        let old = self.hierarchy.lineage(self.current);
        let new = self.hierarchy.lineage(next);
        self.current = next;
        self.statistics.switches += 1;
        let difference = |these: &[CgroupId], those: &[CgroupId]| -> Vec<Option<CgroupId>> {
            these.iter().filter(|cgroup| !those.contains(cgroup)).copied().map(Some).collect()
        };
        let (leaving, entering) = (difference(&old, &new), difference(&new, &old));
        if leaving.is_empty() && entering.is_empty() {
            return Changes::default();
        }
        for id in self.visit(&leaving, true).into_iter().chain(self.visit(&leaving, false)) {
            self.set_off(id);
        }
        let (pinned, flexible) = (self.visit(&entering, true), self.visit(&entering, false));
        for id in pinned.iter().chain(&flexible) {
            self.wake(*id);
        }
        // With more than fits, who was there first must not stay for ever.
        let mut all_anew = self.rotation_needed;
        if all_anew {
            self.evict_flexible();
        }
        for id in pinned {
            all_anew |= self.place_pinned(id);
        }
        if !all_anew {
            all_anew = flexible.iter().any(|id| !self.place(*id));
        }
        if all_anew {
            self.statistics.full_merges += 1;
            self.merge_flexible();
        }
        self.changes(&before)
    }

    /// Time for others: the first flexible group that counts goes to the end of the line.
    pub fn rotate(&mut self, now_ns: u64) -> Changes {
        let before = self.begin(now_ns);
        if !self.rotation_needed {
            return Changes::default();
        }
        self.statistics.rotations += 1;
        let flexible = |id: &&GroupId| !self.groups[*id].spec.pinned;
        let first = self.active.iter().filter(flexible).min_by_key(|id| self.groups[*id].index);
        let first = first.copied().or_else(|| self.runnable(false).first().copied());
        if let Some(id) = first {
            self.send_to_the_end(id);
        }
        self.merge_flexible();
        self.changes(&before)
    }

    fn begin(&mut self, now_ns: u64) -> [Option<EventId>; COUNTERS_MAX] {
        self.now_ns = self.now_ns.max(now_ns);
        self.on
    }

    fn changes(&self, before: &[Option<EventId>; COUNTERS_MAX]) -> Changes {
        let mut changes = Changes::default();
        for counter in self.counters.iter() {
            let (old, new) = (before[counter.index()], self.on[counter.index()]);
            if old != new {
                changes.stop.extend(old.map(|event| Move { event, counter }));
                changes.start.extend(new.map(|event| Move { event, counter }));
            }
        }
        changes
    }

    fn tree(&mut self, group: &Group) -> &mut GroupTree {
        if group.spec.pinned { &mut self.pinned } else { &mut self.flexible }
    }

    fn visit(&mut self, cgroups: &[Option<CgroupId>], pinned: bool) -> Vec<GroupId> {
        let groups = if pinned { &self.pinned } else { &self.flexible }.merge(cgroups);
        self.statistics.visits += groups.len() as u64;
        groups
    }

    /// All groups that may run, in line.
    fn runnable(&self, pinned: bool) -> Vec<GroupId> {
        let lineage = self.hierarchy.lineage(self.current);
        let cgroups: Vec<_> = [None].into_iter().chain(lineage.into_iter().map(Some)).collect();
        if pinned { &self.pinned } else { &self.flexible }.merge(&cgroups)
    }

    fn set_state(&mut self, id: GroupId, state: GroupState) {
        let now_ns = self.now_ns;
        if let Some(group) = self.groups.get_mut(&id) {
            group.set_state(state, now_ns);
        }
    }

    /// A group's cgroup runs again; errors stay.
    fn wake(&mut self, id: GroupId) {
        if self.state(id) == Some(GroupState::Off) {
            self.set_state(id, GroupState::Waiting);
        }
    }

    /// A new group, or one that was in error.
    fn become_runnable(&mut self, id: GroupId) {
        let Some(group) = self.groups.get(&id) else { return };
        let cgroup = group.spec.cgroup;
        let runs = |cgroup| self.hierarchy.lineage(self.current).contains(&cgroup);
        if !cgroup.is_none_or(runs) {
            return;
        }
        let pinned = group.spec.pinned;
        self.wake(id);
        let all_anew = if pinned { self.place_pinned(id) } else { !self.place(id) };
        if all_anew {
            self.merge_flexible();
        }
    }

    /// Counters became free.
    fn use_room(&mut self) {
        if self.rotation_needed {
            self.merge_flexible();
        }
    }

    fn set_off(&mut self, id: GroupId) {
        self.take_off(id);
        if self.state(id) != Some(GroupState::Error) {
            self.set_state(id, GroupState::Off);
        }
    }

    fn take_off(&mut self, id: GroupId) {
        if self.state(id) != Some(GroupState::Active) {
            return;
        }
        for slot in &mut self.on {
            if slot.is_some_and(|event| event.group == id) {
                *slot = None;
            }
        }
        self.active.retain(|active| *active != id);
        self.set_state(id, GroupState::Waiting);
    }

    fn evict_flexible(&mut self) {
        let flexible = |id: &GroupId| !self.groups[id].spec.pinned;
        let active: Vec<_> = self.active.iter().copied().filter(flexible).collect();
        active.into_iter().for_each(|id| self.take_off(id));
    }

    /// Places all flexible groups that may run, in line; groups that do not fit wait.
    fn merge_flexible(&mut self) {
        self.evict_flexible();
        let groups = self.runnable(false);
        self.statistics.visits += groups.len() as u64;
        self.rotation_needed = false;
        for id in groups {
            self.rotation_needed |= !self.place(id);
        }
    }

    /// Places a pinned group, if need be instead of flexible ones; true where those went.
    fn place_pinned(&mut self, id: GroupId) -> bool {
        if self.state(id) != Some(GroupState::Waiting) || self.place(id) {
            return false;
        }
        self.evict_flexible();
        if !self.place(id) {
            self.set_state(id, GroupState::Error);
        }
        true
    }

    /// Places a group with all of its events, or changes nothing.
    fn place(&mut self, id: GroupId) -> bool {
        let Some(group) = self.groups.get(&id) else { return false };
        let mut events = Vec::new();
        let mut requests = Vec::new();
        for counter in self.counters.iter() {
            if let Some(event) = self.on[counter.index()] {
                let allowed = self.groups[&event.group].spec.events[event.event];
                events.push(event);
                requests.push(Request { allowed, previous: Some(counter) });
            }
        }
        for (event, (allowed, last)) in group.spec.events.iter().zip(&group.counters).enumerate() {
            events.push(EventId { group: id, event });
            requests.push(Request { allowed: *allowed, previous: *last });
        }
        let mut assigned = vec![CounterIndex::general(0); requests.len()];
        if assign(&requests, self.counters, &mut assigned).is_err() {
            return false;
        }
        self.on = [None; COUNTERS_MAX];
        for (event, counter) in events.into_iter().zip(assigned) {
            self.on[counter.index()] = Some(event);
            if let Some(group) = self.groups.get_mut(&event.group) {
                group.counters[event.event] = Some(counter);
            }
        }
        self.active.push(id);
        self.set_state(id, GroupState::Active);
        true
    }

    fn send_to_the_end(&mut self, id: GroupId) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let old = key(group);
        group.index = self.next;
        self.next += 1;
        let new = key(group);
        self.flexible.remove(&old);
        self.flexible.insert(new, id);
    }
}

fn key(group: &Group) -> GroupKey {
    GroupKey { cgroup: group.spec.cgroup, index: group.index }
}

#[cfg(test)]
mod tests;
