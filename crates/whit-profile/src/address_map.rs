//! One state of a process's address space: which binary is mapped where.

use crate::dso_table::DsoIndex;
use std::collections::BTreeMap;
use whit_types::Avma;

/// One mapping of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First address.
    pub start: Avma,
    /// First address behind it.
    pub end: Avma,
    /// Offset into the binary at `start`.
    pub file_offset: u64,
    /// Binary.
    pub dso: DsoIndex,
}

impl Mapping {
    fn same_code(&self, other: &Mapping) -> bool {
        self.dso == other.dso
            && self.start.0.wrapping_sub(self.file_offset)
                == other.start.0.wrapping_sub(other.file_offset)
    }
}

/// Mappings that do not overlap, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressMap {
    by_start: BTreeMap<u64, Mapping>,
}

impl AddressMap {
    /// The mapping at an address.
    #[inline]
    pub(crate) fn find(&self, address: Avma) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.range(..=address.0).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// All mappings, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.by_start.values()
    }

    /// True where the mapping would hide other code than its own.
    pub(crate) fn conflicts(&self, new: &Mapping) -> bool {
        self.overlapping(new).any(|old| !old.same_code(new))
    }

    fn overlapping(&self, new: &Mapping) -> impl Iterator<Item = &Mapping> {
        self.by_start
            .range(..new.end.0)
            .rev()
            .map(|(_, old)| old)
            .take_while(|old| old.end > new.start)
    }

    /// Maps, cutting what was there before as `mmap` does.
    pub(crate) fn insert(&mut self, new: Mapping) {
        if new.start >= new.end {
            return;
        }
        let hidden: Vec<_> = self.overlapping(&new).copied().collect();
        for old in hidden {
            self.by_start.remove(&old.start.0);
            if old.start < new.start {
                let head = Mapping { end: new.start, ..old };
                self.by_start.insert(head.start.0, head);
            }
            if old.end > new.end {
                let file_offset = old.file_offset.wrapping_add(new.end.0 - old.start.0);
                let tail = Mapping { start: new.end, file_offset, ..old };
                self.by_start.insert(tail.start.0, tail);
            }
        }
        self.by_start.insert(new.start.0, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping(start: u64, end: u64, file_offset: u64, dso: u32) -> Mapping {
        Mapping { start: Avma(start), end: Avma(end), file_offset, dso: DsoIndex(dso) }
    }

    #[test]
    fn a_mapping_in_the_middle_leaves_head_and_tail() {
        let mut map = AddressMap::default();
        map.insert(mapping(100, 200, 0, 1));
        map.insert(mapping(120, 130, 50, 2));
        let parts: Vec<_> = map.iter().copied().collect();
        assert_eq!(
            parts,
            [mapping(100, 120, 0, 1), mapping(120, 130, 50, 2), mapping(130, 200, 30, 1)]
        );
        assert!(map.find(Avma(200)).is_none() && map.find(Avma(99)).is_none());
    }

    #[test]
    fn growing_the_same_code_is_no_conflict() {
        let mut map = AddressMap::default();
        map.insert(mapping(100, 200, 0, 1));
        assert!(!map.conflicts(&mapping(150, 300, 50, 1)));
        assert!(map.conflicts(&mapping(150, 300, 0, 1)));
        assert!(!map.conflicts(&mapping(200, 300, 0, 2)));
    }

    proptest! {
        /// The map agrees with painting each mapping over a row of cells.
        #[test]
        fn equals_the_painted_model(
            maps in prop::collection::vec((0u64..60, 1u64..20, 1u32..5), 0..30)
        ) {
            let mut map = AddressMap::default();
            let mut cells = vec![None; 100];
            for (start, len, dso) in maps {
                let new = mapping(start, start + len, 1000 * u64::from(dso) + start, dso);
                let clash = (start..start + len)
                    .any(|at| cells[at as usize].is_some_and(|(old, _)| old != dso));
                prop_assert_eq!(map.conflicts(&new), clash);
                map.insert(new);
                for at in start..start + len {
                    cells[at as usize] = Some((dso, 1000 * u64::from(dso) + at));
                }
            }
            for (at, cell) in (0u64..).zip(&cells) {
                let found = map.find(Avma(at)).map(|m| (m.dso.0, m.file_offset + at - m.start.0));
                prop_assert_eq!(found, *cell);
            }
        }
    }
}
