//! Stack dumps that were read in part.

use std::fmt;

/// A file that has the bytes of dumps.
pub(crate) trait DumpSource: Sync {
    /// Makes `len` bytes of the file the content of `out`. On an error, which it keeps, `false`.
    fn read_dump(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> bool;
}

/// The place of a dump in the file, where only its beginning is in memory.
#[derive(Clone, Copy)]
pub struct DumpRest<'a> {
    source: &'a dyn DumpSource,
    /// The place of the whole dump in the file.
    offset: u64,
    size_bytes: usize,
}

impl<'a> DumpRest<'a> {
    pub(crate) fn new(source: &'a dyn DumpSource, offset: u64, size_bytes: usize) -> Self {
        DumpRest { source, offset, size_bytes }
    }

    /// Size of the whole dump.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Makes the first `len` bytes of the dump, or all, the content of `out`. Where they cannot be
    /// read, the stream [keeps the error](crate::stream::Stream::take_failure), and `false` comes
    /// back.
    pub fn read(&self, len: usize, out: &mut Vec<u8>) -> bool {
        self.source.read_dump(self.offset, len.min(self.size_bytes), out)
    }
}

impl fmt::Debug for DumpRest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DumpRest { offset, size_bytes, .. } = self;
        f.debug_struct("DumpRest").field("offset", offset).field("size_bytes", size_bytes).finish()
    }
}

impl PartialEq for DumpRest<'_> {
    /// The same dump, for those of one recording.
    fn eq(&self, other: &Self) -> bool {
        (self.offset, self.size_bytes) == (other.offset, other.size_bytes)
    }
}

impl Eq for DumpRest<'_> {}
