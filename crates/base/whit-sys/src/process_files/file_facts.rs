//! Facts of a file.

use std::time::{Duration, SystemTime};

use rustix::fs::Stat;
use whit_types::FileId;

use super::stated;

/// Facts that `fstat` gives of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileFacts {
    /// As `stat` names it.
    pub id: FileId,
    /// Its length, holes included.
    pub size_bytes: u64,
    /// When it was written last, in nanoseconds since the epoch.
    pub modified_ns: u64,
    /// When its inode was changed last, in nanoseconds since the epoch.
    pub changed_ns: u64,
    /// Its owner.
    pub user: u32,
    /// Its mode, with the kind of file.
    pub mode: u32,
}

impl FileFacts {
    /// From a stat.
    pub(super) fn of(stat: &Stat) -> FileFacts {
        let ns = |seconds: i64, ns: u64| {
            let seconds = seconds.max(0) as u64;
            seconds.saturating_mul(1_000_000_000).saturating_add(ns)
        };
        FileFacts {
            id: stated(stat),
            size_bytes: stat.st_size.max(0) as u64,
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
            user: stat.st_uid,
            mode: stat.st_mode,
        }
    }

    /// When it was written last.
    pub fn modified(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.modified_ns)
    }
}
