//! Cgroups and their parents.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

/// A cgroup, by a number that no other one has at the same time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CgroupId(pub u64);

/// Cgroups within one another.
pub const NESTING_MAX: usize = 64;

/// Why a cgroup cannot be added.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CgroupError {
    /// It is there already.
    Exists(CgroupId),
    /// Its parent is not.
    NoParent(CgroupId),
    /// It would be more than [`NESTING_MAX`] deep.
    TooDeep(CgroupId),
    /// A cgroup can be removed only without children.
    HasChildren(CgroupId),
}

impl fmt::Display for CgroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CgroupError::Exists(CgroupId(id)) => write!(f, "there is a cgroup {id} already"),
            CgroupError::NoParent(CgroupId(id)) => {
                write!(f, "there is no parent {id}: add it first")
            }
            CgroupError::TooDeep(CgroupId(id)) => {
                write!(f, "cgroup {id} would be more than {NESTING_MAX} levels deep")
            }
            CgroupError::HasChildren(CgroupId(id)) => {
                write!(f, "cgroup {id} has children: remove them first")
            }
        }
    }
}

impl core::error::Error for CgroupError {}

/// The tree of cgroups. A cgroup that was never added counts as one without a parent.
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    parents: BTreeMap<CgroupId, Option<CgroupId>>,
}

impl Hierarchy {
    /// No cgroup.
    #[must_use]
    pub const fn new() -> Hierarchy {
        Hierarchy { parents: BTreeMap::new() }
    }

    /// Adds a cgroup below `parent`.
    ///
    /// # Errors
    /// See [`CgroupError`].
    pub fn add(&mut self, cgroup: CgroupId, parent: Option<CgroupId>) -> Result<(), CgroupError> {
        if self.parents.contains_key(&cgroup) {
            return Err(CgroupError::Exists(cgroup));
        }
        if let Some(parent) = parent {
            if !self.parents.contains_key(&parent) {
                return Err(CgroupError::NoParent(parent));
            }
            if self.lineage(Some(parent)).len() >= NESTING_MAX {
                return Err(CgroupError::TooDeep(cgroup));
            }
        }
        self.parents.insert(cgroup, parent);
        Ok(())
    }

    /// Removes a cgroup.
    ///
    /// # Errors
    /// Where it has children.
    pub fn remove(&mut self, cgroup: CgroupId) -> Result<(), CgroupError> {
        if self.parents.values().any(|parent| *parent == Some(cgroup)) {
            return Err(CgroupError::HasChildren(cgroup));
        }
        self.parents.remove(&cgroup);
        Ok(())
    }

    /// A cgroup and its ancestors, the nearest first; nothing for none.
    #[must_use]
    pub fn lineage(&self, cgroup: Option<CgroupId>) -> Vec<CgroupId> {
        let parent = |cgroup: &CgroupId| self.parents.get(cgroup).copied().flatten();
        core::iter::successors(cgroup, parent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn lineages_are_bounded_and_have_no_gaps() {
        let id = CgroupId;
        let mut tree = Hierarchy::new();
        tree.add(id(1), None).unwrap();
        tree.add(id(2), Some(id(1))).unwrap();
        assert_eq!(tree.lineage(Some(id(2))), [id(2), id(1)]);
        assert_eq!(tree.lineage(Some(id(9))), [id(9)], "unknown: by itself");
        assert_eq!(tree.lineage(None), vec![]);
        assert_eq!(tree.add(id(2), None), Err(CgroupError::Exists(id(2))));
        assert_eq!(tree.add(id(3), Some(id(9))), Err(CgroupError::NoParent(id(9))));
        assert_eq!(tree.remove(id(1)), Err(CgroupError::HasChildren(id(1))));
        for depth in 3..=NESTING_MAX as u64 {
            tree.add(id(depth), Some(id(depth - 1))).unwrap();
        }
        assert_eq!(tree.add(id(99), Some(id(64))), Err(CgroupError::TooDeep(id(99))));
        assert_eq!(tree.remove(id(64)), Ok(()));
    }
}
