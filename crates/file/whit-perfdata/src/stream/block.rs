//! Whole records in memory, some of whose stack dumps are still in the file.

use super::{Stream, StreamError};
use crate::dump_rest::{DumpRest, DumpSource};
use crate::sample::Sample;
use std::ops::{Deref, Range};

/// Whole records. The bytes of a large dump may be missing behind its beginning, where the stream
/// [leaves them out](Stream::leaving_out_dumps): [`complete`](Block::complete) says so of a sample.
#[derive(Debug, Default)]
pub struct Block {
    pub(super) bytes: Vec<u8>,
    /// Bytes that were not read, in ascending order; nobody may look at them.
    pub(super) gaps: Vec<Range<usize>>,
    /// Where there are gaps: the stream, and the offset of the first byte in its file.
    pub(super) source: Option<(Stream, u64)>,
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for Block {
    /// Whole records without a gap.
    fn from(bytes: Vec<u8>) -> Block {
        Block { bytes, ..Block::default() }
    }
}

impl Block {
    /// The memory that it takes.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Makes all bytes that it will get whole ones.
    pub(super) fn forget_gaps(&mut self) {
        self.gaps.clear();
        self.source = None;
    }

    /// Shortens the dump of a sample of this block to the bytes that are there, and says where the
    /// others are.
    #[inline]
    pub fn complete<'b>(&'b self, sample: &mut Sample<'b>) {
        if let Some((stream, offset)) = &self.source {
            self.shorten(stream, *offset, sample);
        }
    }

    fn shorten<'b>(&'b self, stream: &'b Stream, offset: u64, sample: &mut Sample<'b>) {
        let dump = sample.user_stack;
        let at = dump.as_ptr().addr().wrapping_sub(self.bytes.as_ptr().addr());
        let gap = self.gaps.partition_point(|gap| gap.end <= at);
        let Some(gap) = self.gaps.get(gap) else { return };
        if let Some(present) = gap.start.checked_sub(at).and_then(|len| dump.get(..len))
            && present.len() < dump.len()
        {
            sample.user_stack = present;
            let (offset, size_bytes) = (offset + at as u64, dump.len());
            sample.user_stack_rest = Some(DumpRest::new(stream, offset, size_bytes));
        }
    }
}

impl DumpSource for Stream {
    fn read_dump(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> bool {
        let read = self.read_exact(offset, len, out);
        read.map_err(|error| self.keep_failure(error)).is_ok()
    }
}

impl Stream {
    fn keep_failure(&self, error: StreamError) {
        if let Some(dumps) = &self.dumps {
            dumps.keep_failure(error);
        }
    }

    /// The first error of reading a dump that [`Block`]s left out.
    pub fn take_failure(&self) -> Option<StreamError> {
        self.dumps.as_ref().and_then(|dumps| dumps.take_failure())
    }
}
