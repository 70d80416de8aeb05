//! Names of cgroups over time, from CGROUP records.
//!
//! The kernel gives each cgroup a number that it does not use again, and writes a record for each that
//! appears. It writes none where one is renamed or removed, so that a cgroup goes by the name under which
//! it was recorded. Cgroups of one path, made one after the other, are one row.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_types::TimestampNs;

/// Index into the names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct CgroupIndex(pub u32);

/// The cgroups of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cgroups {
    /// Paths by number, in order of time.
    by_number: FxHashMap<u64, Vec<(TimestampNs, CgroupIndex)>>,
    paths: Vec<Arc<str>>,
    by_path: FxHashMap<Arc<str>, CgroupIndex>,
}

impl Cgroups {
    /// A CGROUP record. Records have to come in order of time.
    pub(crate) fn add(&mut self, number: u64, path: &[u8], time: TimestampNs) {
        let index = self.intern(&String::from_utf8_lossy(path));
        let known = self.by_number.entry(number).or_default();
        if known.last().is_none_or(|(_, last)| *last != index) {
            known.push((time, index));
        }
    }

    fn intern(&mut self, path: &str) -> CgroupIndex {
        if let Some(index) = self.by_path.get(path) {
            return *index;
        }
        let (path, index) = (Arc::<str>::from(path), CgroupIndex(self.paths.len() as u32));
        self.paths.push(path.clone());
        self.by_path.insert(path, index);
        index
    }

    /// The path of a number at a time; before its first record, that record's.
    pub(crate) fn at(&self, number: u64, time: TimestampNs) -> Option<CgroupIndex> {
        let known = self.by_number.get(&number)?;
        let after = known.partition_point(|(from, _)| *from <= time);
        known.get(after.saturating_sub(1)).map(|(_, index)| *index)
    }

    /// All paths, by index.
    pub(crate) fn paths(&self) -> &[Arc<str>] {
        &self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_named_by_its_last_record_before() {
        let mut cgroups = Cgroups::default();
        cgroups.add(7, b"/a", TimestampNs(10));
        cgroups.add(7, b"/a", TimestampNs(15));
        cgroups.add(7, b"/b", TimestampNs(20));
        cgroups.add(8, b"/a", TimestampNs(30));
        let path = |number, time| {
            cgroups.at(number, TimestampNs(time)).map(|index| &*cgroups.paths()[index.0 as usize])
        };
        assert_eq!(path(7, 5), Some("/a"));
        assert_eq!(path(7, 19), Some("/a"));
        assert_eq!(path(7, 20), Some("/b"));
        assert_eq!(path(9, 20), None);
        assert_eq!(cgroups.at(8, TimestampNs(30)), cgroups.at(7, TimestampNs(10)));
        assert_eq!(cgroups.paths().len(), 2);
    }
}
