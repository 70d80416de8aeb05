//! Events that BPF programs do not count.

use std::fmt;

use whit_bpf::cgroup::EVENTS_MAX;

/// Events of our own that may lead others.
pub(crate) const DUMMIES: usize = 1;

/// Why an event cannot be counted for cgroups by BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unserved {
    /// Counts for a whole package or a larger part, independent of the running task.
    Uncore,
    /// It must be on the PMU whenever it is read; between runs it is not.
    Pinned,
    /// There are too many.
    TooMany,
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unserved::Uncore => write!(f, "it counts for more than one CPU"),
            Unserved::Pinned => write!(f, "pinned events are read while they run only"),
            Unserved::TooMany => {
                write!(f, "BPF counts up to {} different events", EVENTS_MAX - DUMMIES)
            }
        }
    }
}
