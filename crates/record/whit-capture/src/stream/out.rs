//! The place that a stream goes to, and the cost of that.

use std::io;
use std::time::Instant;

use super::file::StreamFile;
use crate::loss::{ScannedRecords, Tally};

/// The recording cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(#[from] pub io::Error);

/// The cost of writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// System calls that wrote.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Time that the reader spent in writes and in starting them.
    pub write_ns: u64,
    /// Times that the reader had to wait for a block.
    pub stalls: u64,
    /// Time that it waited.
    pub stall_ns: u64,
    /// Bytes that went into compression.
    pub compressed_from_bytes: u64,
    /// Bytes that came out of it.
    pub compressed_to_bytes: u64,
    /// Records that were taken and could not be written.
    pub unwritten: Tally,
}

/// The file of a stream, and the cost of writing it so far.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) file: StreamFile,
    pub(super) counts: WriteCounts,
}

impl Out {
    /// Writes straight from where the records are.
    pub(super) fn write_through(&mut self, records: ScannedRecords<'_>) -> Result<(), SinkError> {
        let size = records.size_bytes();
        if size == 0 {
            return Ok(());
        }
        let offset = self.file.reserve(size);
        let begin = Instant::now();
        let result = self.file.write(offset, records.slices());
        self.counts.write_ns += begin.elapsed().as_nanos() as u64;
        self.counts.writes += 1;
        let Err((written, error)) = result else {
            self.counts.bytes += size as u64;
            return Ok(());
        };
        let ring_slices = records.ring_slices();
        let kept = ring_slices.whole_records(self.file.kept_room(written));
        self.counts.unwritten += records.tally();
        self.counts.unwritten -= ScannedRecords::of(ring_slices.first(kept)).tally();
        self.counts.bytes += kept as u64;
        self.file.cut(offset + kept as u64);
        Err(error.into())
    }
}
