//! One state of a process's address space: which binary is mapped where.

use crate::machine_model::dso_index::DsoIndex;
use std::ops::Range;
use std::sync::Arc;
use whit_types::Avma;

/// Mappings that are copied together.
const MAX_CHUNK: usize = 32;

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
    fn overlaps(&self, other: &Mapping) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The remaining parts, below and above, if `new` takes its place.
    fn without(&self, new: &Mapping) -> impl Iterator<Item = Mapping> + use<> {
        if !self.overlaps(new) {
            return [Some(*self), None].into_iter().flatten();
        }
        let head = (self.start < new.start).then_some(Mapping { end: new.start, ..*self });
        let tail = (self.end > new.end).then(|| Mapping {
            start: new.end,
            file_offset: self.file_offset.wrapping_add(new.end.0 - self.start.0),
            ..*self
        });
        [head, tail].into_iter().flatten()
    }

    fn same_code(&self, other: &Mapping) -> bool {
        self.dso == other.dso
            && self.start.0.wrapping_sub(self.file_offset)
                == other.start.0.wrapping_sub(other.file_offset)
    }
}

/// Mappings that do not overlap, by address.
///
/// A process that replaces code again and again has a map for each moment, and a process that forks
/// has a copy of its parent's. So maps share their common parts: a clone costs eight bytes for each
/// [`MAX_CHUNK`] mappings, and a change copies one or two chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressMap {
    /// None of them empty.
    chunks: Vec<Arc<Vec<Mapping>>>,
}

fn first_start(chunk: &[Mapping]) -> Avma {
    chunk.first().map_or(Avma(u64::MAX), |mapping| mapping.start)
}

fn last_end(chunk: &[Mapping]) -> Avma {
    chunk.last().map_or(Avma(0), |mapping| mapping.end)
}

impl AddressMap {
    /// The mapping at an address.
    #[inline]
    pub(crate) fn find(&self, address: Avma) -> Option<&Mapping> {
        let chunk = self.chunks.partition_point(|chunk| first_start(chunk) <= address);
        let chunk = self.chunks.get(chunk.checked_sub(1)?)?;
        let after = chunk.partition_point(|mapping| mapping.start <= address);
        chunk.get(after.checked_sub(1)?).filter(|mapping| address < mapping.end)
    }

    /// All mappings, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// True where the mapping would hide other code than its own.
    pub(crate) fn conflicts(&self, new: &Mapping) -> bool {
        let touched = self.chunks[self.touched(new)].iter().flat_map(|chunk| chunk.iter());
        touched.filter(|old| old.overlaps(new)).any(|old| !old.same_code(new))
    }

    /// The chunks that may hold mappings that overlap.
    fn touched(&self, new: &Mapping) -> Range<usize> {
        let first = self.chunks.partition_point(|chunk| last_end(chunk) <= new.start);
        let after = self.chunks.partition_point(|chunk| first_start(chunk) < new.end);
        first..after.max(first)
    }

    /// Maps, and cuts earlier mappings as `mmap` does.
    pub(crate) fn insert(&mut self, new: Mapping) {
        if new.start >= new.end {
            return;
        }
        let touched = self.touched(&new);
        for chunk in &mut self.chunks[touched] {
            if chunk.iter().any(|old| old.overlaps(&new)) {
                *chunk = Arc::new(chunk.iter().flat_map(|old| old.without(&new)).collect());
            }
        }
        self.chunks.retain(|chunk| !chunk.is_empty());
        let after = self.chunks.partition_point(|chunk| first_start(chunk) <= new.start);
        let index = after.saturating_sub(1);
        let Some(chunk) = self.chunks.get_mut(index) else {
            self.chunks.push(Arc::new(vec![new]));
            return;
        };
        let chunk = Arc::make_mut(chunk);
        chunk.insert(chunk.partition_point(|mapping| mapping.start < new.start), new);
        if chunk.len() > MAX_CHUNK {
            let upper = chunk.split_off(chunk.len() / 2);
            self.chunks.insert(index + 1, Arc::new(upper));
        }
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

    #[test]
    fn copies_share_unchanged_parts() {
        let mut map = AddressMap::default();
        (0..1000).for_each(|at| map.insert(mapping(10 * at, 10 * at + 10, 0, 1)));
        let mut copy = map.clone();
        copy.insert(mapping(5000, 5010, 0, 2));
        let shared = |chunk: &&Arc<Vec<Mapping>>| copy.chunks.iter().any(|c| Arc::ptr_eq(c, chunk));
        assert!(map.chunks.iter().filter(shared).count() >= map.chunks.len() - 2);
        assert_eq!(map.find(Avma(5005)).unwrap().dso, DsoIndex(1));
        assert_eq!(copy.find(Avma(5005)).unwrap().dso, DsoIndex(2));
    }

    proptest! {
        /// The map agrees with painting each mapping over a row of cells.
        #[test]
        fn equals_the_painted_model(
            maps in prop::collection::vec((0u64..380, 1u64..20, 1u32..5), 0..200)
        ) {
            let mut map = AddressMap::default();
            let mut cells = vec![None; 400];
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
                prop_assert!(map.chunks.iter().all(|chunk| (1..=MAX_CHUNK + 1).contains(&chunk.len())));
                let found = map.find(Avma(at)).map(|m| (m.dso.0, m.file_offset + at - m.start.0));
                prop_assert_eq!(found, *cell);
            }
        }
    }
}
