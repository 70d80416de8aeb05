//! Tells a file without a build id from others.

use whit_sys::process_files::ForeignFile;
use whit_types::{FileId, FileStamp};

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
    pub(crate) fn is_of(&self, file: &ForeignFile) -> bool {
        let facts = file.facts();
        match (self.stamp, self.id) {
            (Some(stamp), _) => {
                (stamp.id.inode, stamp.size_bytes, stamp.modified_ns)
                    == (facts.id.inode, facts.size_bytes, facts.modified_ns)
            }
            (None, Some(id)) => facts.id == id || file.id_when_mapped() == Some(id),
            (None, None) => true,
        }
    }

    /// Whether the file was written after the recording, so that its number proves nothing: compilers and
    /// copies write into files that are there. The time of a file can be set back, that of its inode cannot.
    /// A recorder's own look at the file says more than this.
    pub(crate) fn is_changed_since(&self, file: &ForeignFile) -> bool {
        let (None, Some(until_ns)) = (self.stamp, self.recorded_until_ns) else { return false };
        let facts = file.facts();
        facts.modified_ns.max(facts.changed_ns) > until_ns
    }
}
