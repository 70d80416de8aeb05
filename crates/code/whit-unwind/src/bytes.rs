//! Shared, read-only bytes with a cheap clone: a section of a mapped file, or owned memory.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A range of bytes that somebody else may own too: a clone copies a pointer, not the bytes.
///
/// The owner is anything that dereferences to bytes, for example a mapped file, which stays mapped
/// for as long as a part of it is in use.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<dyn Deref<Target = [u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Bytes {
    /// All bytes of `owner`.
    pub fn new<T>(owner: T) -> Bytes
    where
        T: Deref<Target = [u8]> + Send + Sync + 'static,
    {
        let range = 0..owner.len();
        Bytes { owner: Arc::new(owner), range }
    }

    /// The part at `range`, counted from the start of `self`; `None` where it does not lie inside.
    pub fn slice(&self, range: Range<u64>) -> Option<Bytes> {
        let start = usize::try_from(range.start).ok()?.checked_add(self.range.start)?;
        let end = usize::try_from(range.end).ok()?.checked_add(self.range.start)?;
        if start > end || end > self.range.end {
            return None;
        }
        Some(Bytes { owner: self.owner.clone(), range: start..end })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // An owner whose length changes would be a bug of that owner; it then reads as empty.
        self.owner.get(self.range.clone()).unwrap_or_default()
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::new(Vec::new())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes::new(bytes)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_stays_inside_its_parent() {
        let bytes = Bytes::from((0u8..10).collect::<Vec<_>>());
        let middle = bytes.slice(2..8).unwrap();
        assert_eq!(&*middle, &[2, 3, 4, 5, 6, 7]);
        assert_eq!(&*middle.slice(1..3).unwrap(), &[3, 4]);
        assert!(middle.slice(0..7).is_none());
        let (from, to) = (5, 4);
        assert!(middle.slice(from..to).is_none());
        assert!(bytes.slice(0..u64::MAX).is_none());
        assert!(middle.slice(6..6).unwrap().is_empty());
    }
}
