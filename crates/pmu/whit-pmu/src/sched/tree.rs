//! Groups in the order of their cgroup and their place in line.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{CgroupId, GroupId};

/// The order of groups: those without a cgroup first, then by cgroup; within one by place in line.
///
/// Derived, so that it is the lexicographic order of its fields and nothing can be wrong with it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct GroupKey {
    /// `None` for tasks outside of all cgroups.
    pub cgroup: Option<CgroupId>,
    /// The place in line, which no other group has.
    pub index: u64,
}

/// Groups by key.
#[derive(Clone, Debug, Default)]
pub struct GroupTree {
    groups: BTreeMap<GroupKey, GroupId>,
}

impl GroupTree {
    /// No group.
    #[must_use]
    pub const fn new() -> GroupTree {
        GroupTree { groups: BTreeMap::new() }
    }

    /// Adds a group.
    pub fn insert(&mut self, key: GroupKey, group: GroupId) {
        self.groups.insert(key, group);
    }

    /// Removes a group.
    pub fn remove(&mut self, key: &GroupKey) {
        self.groups.remove(key);
    }

    /// Number of groups in the tree.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// True where there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Groups of all of `cgroups` in the order of their place in line. Groups of other cgroups are not
    /// looked at. For *m* groups in *k* cgroups this takes O(*k* log *n* + *m* log *k*).
    #[must_use]
    pub fn merge(&self, cgroups: &[Option<CgroupId>]) -> Vec<GroupId> {
        let mut ranges: Vec<_> = cgroups.iter().map(|cgroup| self.range(*cgroup)).collect();
        let mut heads = BinaryHeap::new();
        for (number, range) in ranges.iter_mut().enumerate() {
            heads.extend(range.next().map(|(key, group)| Reverse((key.index, number, *group))));
        }
        let mut merged = Vec::new();
        while let Some(Reverse((_, number, group))) = heads.pop() {
            merged.push(group);
            let next = ranges[number].next();
            heads.extend(next.map(|(key, group)| Reverse((key.index, number, *group))));
        }
        merged
    }

    fn range(&self, cgroup: Option<CgroupId>) -> impl Iterator<Item = (&GroupKey, &GroupId)> {
        let key = |index| GroupKey { cgroup, index };
        self.groups.range(key(0)..=key(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn key() -> impl Strategy<Value = GroupKey> {
        let cgroup = prop::option::of((0..4_u64).prop_map(CgroupId));
        let index = prop_oneof![0..4_u64, Just(u64::MAX), any::<u64>()];
        (cgroup, index).prop_map(|(cgroup, index)| GroupKey { cgroup, index })
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]

        /// A strict weak order, with those of no cgroup first.
        #[test]
        fn the_order_is_one(a in key(), b in key(), c in key()) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&b) == Ordering::Equal, a == b);
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
            if a.cgroup.is_none() && b.cgroup.is_some() {
                prop_assert!(a < b);
            }
        }

        #[test]
        fn merging_is_filtering_in_the_order_of_the_line(
            cgroups in prop::collection::vec(prop::option::of((0..6_u64).prop_map(CgroupId)), 0..40),
            wanted in prop::collection::btree_set(prop::option::of((0..6_u64).prop_map(CgroupId)), 0..6),
        ) {
            let mut tree = GroupTree::new();
            for (index, cgroup) in (0..).zip(&cgroups) {
                tree.insert(GroupKey { cgroup: *cgroup, index }, GroupId(index));
            }
            let wanted: Vec<_> = wanted.into_iter().collect();
            let filtered: Vec<_> = (0..).map(GroupId).zip(&cgroups)
                .filter_map(|(group, cgroup)| wanted.contains(cgroup).then_some(group))
                .collect();
            prop_assert_eq!(tree.merge(&wanted), filtered);
            prop_assert_eq!(tree.len(), cgroups.len());
        }
    }
}
