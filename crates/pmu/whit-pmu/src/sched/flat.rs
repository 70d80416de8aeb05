//! The reference for the trees: one list of all groups.

use alloc::vec::Vec;

use super::{CgroupId, GroupId};

/// All groups of a CPU in the order of their place in line, as Linux kept them before it ordered them by
/// cgroup: every switch visits all and leaves out those whose cgroup does not run.
#[derive(Clone, Debug, Default)]
pub struct FlatList {
    groups: Vec<(Option<CgroupId>, GroupId)>,
}

impl FlatList {
    /// No group.
    #[must_use]
    pub const fn new() -> FlatList {
        FlatList { groups: Vec::new() }
    }

    /// Adds a group at the end.
    pub fn push(&mut self, cgroup: Option<CgroupId>, group: GroupId) {
        self.groups.push((cgroup, group));
    }

    /// The groups that may run in a lineage, and how many were visited to find them.
    #[must_use]
    pub fn matching(&self, lineage: &[CgroupId]) -> (Vec<GroupId>, u64) {
        let mut visits = 0;
        let matching = self.groups.iter().filter_map(|(cgroup, group)| {
            visits += 1;
            cgroup.is_none_or(|cgroup| lineage.contains(&cgroup)).then_some(*group)
        });
        let matching = matching.collect();
        (matching, visits)
    }
}
