//! Records that came together, and go together.

use crate::sampled::Sampled;
use whit_perfdata::record::RawRecord;

#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) begun_ns: u64,
    pub(crate) bytes: Vec<u8>,
    /// The records among them that later samples are looked up in, once more: they are few, and wanted alone.
    pub(crate) sideband: Vec<u8>,
    /// Processes of the samples among them.
    pub(crate) sampled: Sampled,
    /// Processes that forked.
    pub(crate) parents: Sampled,
    /// The size of the records before they were compressed; `None` where they are as they came.
    pub(crate) compressed_from: Option<usize>,
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
