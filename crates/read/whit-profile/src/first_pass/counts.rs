//! Counting records: by type, and those that could not be used.

use crate::warning::LeftOut;
use std::path::PathBuf;
use whit_perfdata::stream::Stream;

/// Record types that have a counter of their own; all others are counted together.
const COUNTED_TYPES: usize = 128;

/// Records that had to be left out, and where the first of them stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skipped {
    pub(crate) count: u64,
    /// File, and position in its stream (which of uncompressed streams is the offset).
    first: Option<(PathBuf, u64)>,
}

impl Skipped {
    pub(crate) fn skip(&mut self, stream: &Stream, position: u64) {
        self.count += 1;
        self.first.get_or_insert_with(|| (stream.path().to_owned(), position));
    }

    pub(crate) fn add(&mut self, other: Skipped) {
        self.count += other.count;
        self.first = self.first.take().or(other.first);
    }

    /// `None` where there was none.
    pub(crate) fn left_out(&self) -> Option<LeftOut> {
        let (path, offset) = self.first.clone()?;
        Some(LeftOut { records: self.count, path, offset })
    }
}

/// Records by type.
#[derive(Clone, Debug)]
pub(crate) struct TypeCounts {
    by_type: Vec<u64>,
    unknown: u64,
}

impl Default for TypeCounts {
    fn default() -> Self {
        TypeCounts { by_type: vec![0; COUNTED_TYPES], unknown: 0 }
    }
}

impl TypeCounts {
    #[inline]
    pub(crate) fn count(&mut self, kind: u32) {
        match self.by_type.get_mut(kind as usize) {
            Some(count) => *count += 1,
            None => self.unknown += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &TypeCounts) {
        self.by_type.iter_mut().zip(&other.by_type).for_each(|(a, b)| *a += b);
        self.unknown += other.unknown;
    }

    /// Type number (or `None` for those beyond every table) and count, without zeros.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<u32>, u64)> + '_ {
        let known = (0u32..).zip(&self.by_type).map(|(kind, count)| (Some(kind), *count));
        known.chain([(None, self.unknown)]).filter(|(_, count)| *count > 0)
    }

    /// The count of a type.
    pub(crate) fn of(&self, kind: u32) -> u64 {
        self.by_type.get(kind as usize).copied().unwrap_or(0)
    }

    /// For a type whose records do not come by.
    pub(crate) fn set(&mut self, kind: u32, count: u64) {
        self.by_type[kind as usize] = count;
    }
}
