//! An interval with its path.

use crate::group::Group;
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
    /// Its pieces added up, the longest first; where the question asks for each interval
    /// ([`Interval::each`](crate::Interval)).
    pub groups: Vec<Group>,
}

impl Explained {
    /// The length of the interval in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.to.since(self.from)
    }
}
