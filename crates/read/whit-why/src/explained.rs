//! An interval with its path.

use crate::path::Path;
use whit_profile::tables::RequestKey;
use whit_types::TimestampNs;

/// An interval with its path.
pub struct Explained {
    /// Number of the thread.
    pub thread: u32,
    /// Beginning.
    pub from: TimestampNs,
    /// End.
    pub to: TimestampNs,
    /// The key, where it is that of a request.
    pub key: Option<RequestKey>,
    /// Pieces and hand-overs of the interval.
    pub path: Path,
}

impl Explained {
    /// The length of the interval in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.to.since(self.from)
    }
}
