//! The work of one reader for one output.

use whit_sys::usage::CpuUsage;

use crate::loss::RingCounts;
use crate::mapped_files::MappedFiles;
use crate::ring_clock::RecordClock;
use crate::ring_drainer::RingEnd;
use crate::stream::StreamSink;

/// A reader's stream and counts for one output.
#[derive(Debug)]
pub(super) struct ReaderShare {
    /// The stream.
    pub(super) sink: StreamSink,
    /// The counts of each ring.
    pub(super) rings: Vec<RingCounts>,
    /// Files that were mapped as code up to its end.
    pub(super) mapped: MappedFiles,
    pub(super) wakeups: u64,
    pub(super) usage: CpuUsage,
    /// Each ring as its records left it.
    pub(super) ends: Vec<RingEnd>,
    /// The clock of the records.
    pub(super) clock: RecordClock,
    /// Sideband that belongs into the next output as well was too much to be kept.
    pub(super) journal_cut: bool,
}

/// The rings of all readers, each with the index of its reader.
pub(super) fn each_end(
    shares: &[ReaderShare],
) -> impl Iterator<Item = (usize, &ReaderShare, &RingEnd)> {
    let shares = shares.iter().enumerate();
    shares.flat_map(|(reader, share)| share.ends.iter().map(move |end| (reader, share, end)))
}
