//! Records that came together, and go together.

use crate::sampled::Sampled;
use std::sync::Arc;
use whit_perfdata::record::{RawRecord, record_type};

#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) begun_ns: u64,
    pub(crate) bytes: Vec<u8>,
    /// The records among them that later samples are looked up in, once more, where `bytes` are compressed.
    pub(crate) sideband: Vec<u8>,
    /// Processes of the samples among them.
    pub(crate) sampled: Sampled,
    /// Processes that forked.
    pub(crate) parents: Sampled,
    /// The size of the records before they were compressed; `None` where they are as they came.
    pub(crate) compressed_from: Option<usize>,
}

/// A whole record.
pub(crate) type Record = Arc<[u8]>;

impl Piece {
    /// Memory that it takes.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len() + self.sideband.len()
    }

    /// The records that later samples are looked up in.
    pub(crate) fn sideband(&self) -> impl Iterator<Item = (RawRecord<'_>, &[u8])> {
        let apart = self.compressed_from.is_some();
        let from = if apart { &self.sideband } else { &self.bytes };
        records(from).filter(|(record, _)| is_needed_later(*record))
    }

    /// Nothing is added any more: memory that is not used goes back.
    pub(crate) fn close(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Has compressed records in place of the records themselves.
    pub(crate) fn compress(&mut self, small: Vec<u8>) {
        self.sideband = self.sideband().flat_map(|(_, whole)| whole).copied().collect();
        self.compressed_from = Some(self.bytes.len());
        self.bytes = small.into_boxed_slice().into_vec();
    }
}

/// Whether later samples are looked up in the record, or taken by its settings.
pub(crate) fn is_needed_later(record: RawRecord<'_>) -> bool {
    use record_type as r;
    let by_kind =
        [r::MMAP, r::MMAP2, r::COMM, r::FORK, r::EXIT, r::KSYMBOL, r::BPF_EVENT, r::CGROUP];
    let is_kept = by_kind.contains(&record.header.kind) && !record.is_about_switch();
    is_kept || record.states_no_loss()
}

/// Whole records, each with its bytes.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = (RawRecord<'_>, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (record, behind) = RawRecord::split(rest)?;
        let whole = &rest[..rest.len() - behind.len()];
        rest = behind;
        Some((record, whole))
    })
}
