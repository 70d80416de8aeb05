//! The memory of a process: the files that it mapped, by address.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A part of a process's memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MappedRange {
    /// First address.
    pub start: u64,
    /// Address behind the last one.
    pub end: u64,
    /// `PROT_*`.
    pub protection: u32,
    /// `MAP_*`.
    pub flags: u32,
    /// Where `start` stands in the file.
    pub file_offset: u64,
    /// The file's; 0 where it was not recorded.
    pub inode: u64,
    /// Path, or a name in brackets.
    pub path: Arc<str>,
}

/// By first address; nothing overlaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(BTreeMap<u64, MappedRange>);

impl Memory {
    /// Maps a range over those that are there.
    pub(super) fn map(&mut self, new: MappedRange) {
        if new.start >= new.end {
            return;
        }
        let begin_below = self.0.range(..new.end).rev();
        let hidden: Vec<u64> = begin_below
            .take_while(|(_, old)| old.end > new.start)
            .map(|(start, _)| *start)
            .collect();
        for start in hidden {
            let Some(old) = self.0.remove(&start) else { continue };
            if old.end > new.end {
                let file_offset = old.file_offset.wrapping_add(new.end - old.start);
                self.0.insert(new.end, MappedRange { start: new.end, file_offset, ..old.clone() });
            }
            if old.start < new.start {
                self.0.insert(old.start, MappedRange { end: new.start, ..old });
            }
        }
        self.0.insert(new.start, new);
    }

    pub(super) fn list(&self) -> Vec<MappedRange> {
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(mapped: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
        let mut memory = Memory::default();
        for (start, end) in mapped {
            memory.map(MappedRange { start: *start, end: *end, ..MappedRange::default() });
        }
        memory.list().iter().map(|range| (range.start, range.end, range.file_offset)).collect()
    }

    #[test]
    fn a_later_range_cuts_those_that_it_hides() {
        assert_eq!(ranges(&[(10, 20), (14, 16)]), [(10, 14, 0), (14, 16, 0), (16, 20, 6)]);
        assert_eq!(
            ranges(&[(10, 20), (20, 30), (15, 25)]),
            [(10, 15, 0), (15, 25, 0), (25, 30, 5)]
        );
        assert_eq!(ranges(&[(10, 12), (14, 16), (0, 40)]), [(0, 40, 0)]);
        assert_eq!(ranges(&[(10, 20), (20, 30), (30, 30), (9, 3)]), [(10, 20, 0), (20, 30, 0)]);
    }
}
