//! Groups of events.

use alloc::vec::Vec;

use super::CgroupId;
use crate::counter::{CounterIndex, CounterMask};

/// A group, by the number that the scheduler gave it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct GroupId(pub(super) u64);

/// An event: its group, and its place in it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct EventId {
    /// The group, which is on the PMU as a whole.
    pub group: GroupId,
    /// Its place.
    pub event: usize,
}

/// Events that are counted together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSpec {
    /// Count while a task of this cgroup or of one below it runs; `None`: always.
    pub cgroup: Option<CgroupId>,
    /// Before all that are not; in error where it does not fit.
    pub pinned: bool,
    /// For each event the counters that can count it.
    pub events: Vec<CounterMask>,
}

/// Where a group is between its creation and its counters.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum GroupState {
    /// Its cgroup does not run.
    Off,
    /// It waits for counters.
    Waiting,
    /// It counts.
    Active,
    /// Pinned, and it did not fit. It counts no more until it is enabled again.
    Error,
}

/// How long a group counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct GroupTimes {
    /// Its cgroup ran.
    pub enabled_ns: u64,
    /// It was on counters.
    pub running_ns: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) spec: GroupSpec,
    /// Its place in line.
    pub(super) index: u64,
    pub(super) state: GroupState,
    /// Where its events are or were last.
    pub(super) counters: Vec<Option<CounterIndex>>,
    times: GroupTimes,
    since_ns: u64,
}

impl Group {
    pub(super) fn new(spec: GroupSpec, index: u64, now_ns: u64) -> Group {
        let counters = spec.events.iter().map(|_| None).collect();
        let times = GroupTimes::default();
        Group { spec, index, state: GroupState::Off, counters, times, since_ns: now_ns }
    }

    /// Its times up to now.
    pub(super) fn times(&self, now_ns: u64) -> GroupTimes {
        let passed = now_ns.saturating_sub(self.since_ns);
        let (enabled, running) = match self.state {
            GroupState::Off => (0, 0),
            GroupState::Waiting | GroupState::Error => (passed, 0),
            GroupState::Active => (passed, passed),
        };
        GroupTimes {
            enabled_ns: self.times.enabled_ns + enabled,
            running_ns: self.times.running_ns + running,
        }
    }

    pub(super) fn set_state(&mut self, state: GroupState, now_ns: u64) {
        self.times = self.times(now_ns);
        self.since_ns = now_ns;
        self.state = state;
    }
}
