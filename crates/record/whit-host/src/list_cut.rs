//! Limits of a list of cgroups.

use std::io;

/// Deepest cgroup that is looked at.
pub(crate) const DEPTH_MAX: usize = 64;
/// Most cgroups that are listed.
pub(crate) const CGROUPS_MAX: usize = 100_000;

/// Why a list of cgroups is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListCut {
    /// More than are listed.
    Number,
    /// Deeper than the search goes.
    Depth,
    /// One could not be read, with this error of the system.
    Unreadable(i32),
}

impl std::fmt::Display for ListCut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            ListCut::Number => write!(f, "there are more than {CGROUPS_MAX}"),
            ListCut::Depth => write!(f, "some are deeper than {DEPTH_MAX} levels"),
            ListCut::Unreadable(errno) => {
                write!(f, "some cannot be read: {}", io::Error::from_raw_os_error(errno))
            }
        }
    }
}
