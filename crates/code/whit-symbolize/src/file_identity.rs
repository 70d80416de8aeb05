//! Tells a file without a build id from others.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use whit_sys::process_files::{id_when_mapped, stated_id};
use whit_types::{FileId, FileStamp};

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// This machine's facts about a file without a build id, where it is the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FileIdentity {
    /// Which file, as the mapping's record names it.
    pub id: Option<FileId>,
    /// Its size and time, where the recorder looked.
    pub stamp: Option<FileStamp>,
    /// When the recording was complete, in nanoseconds since the epoch.
    pub recorded_until_ns: Option<u64>,
}

impl FileIdentity {
    /// Whether a file may be told from others.
    pub(crate) fn is_known(&self) -> bool {
        self.id.is_some() || self.stamp.is_some()
    }

    /// Whether it is the one.
    pub(crate) fn is_of(&self, file: &File) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        let modified_ns = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
        match (self.stamp, self.id) {
            (Some(stamp), _) => {
                (stamp.id.inode, stamp.size_bytes, stamp.modified_ns)
                    == (metadata.ino(), metadata.len(), modified_ns)
            }
            (None, Some(id)) => is_on_device(file, &metadata, id),
            (None, None) => true,
        }
    }

    /// Whether the file was written after the recording, so that its number proves nothing: compilers and
    /// copies write into files that are there. The time of a file can be set back, that of its inode cannot.
    /// A recorder's own look at the file says more than this.
    pub(crate) fn is_changed_since(&self, file: &File) -> bool {
        let (None, Some(until_ns)) = (self.stamp, self.recorded_until_ns) else { return false };
        let Ok(metadata) = file.metadata() else { return true };
        let modified_ns = nanoseconds(metadata.mtime(), metadata.mtime_nsec());
        let changed_ns = nanoseconds(metadata.ctime(), metadata.ctime_nsec());
        modified_ns.max(changed_ns) > until_ns
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> u64 {
    seconds.saturating_mul(SECOND_NS).saturating_add(rest).max(0) as u64
}

fn is_on_device(file: &File, metadata: &std::fs::Metadata, id: FileId) -> bool {
    stated_id(metadata) == id || id_when_mapped(file) == Some(id)
}
