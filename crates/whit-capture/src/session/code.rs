//! What an output says of the files that were mapped as code, and copies of those that nobody will find.

use std::path::PathBuf;

use whit_perfdata::feature::{BuildIdEntry, Features};
use whit_perfdata::record::misc;
use whit_types::Pid;

use crate::file_cache::FileCache;
use crate::kept_files::{KeptCounts, KeptFiles};
use crate::mapped_files::MappedFiles;
use crate::notice::{Listener, Notice};
use crate::roots::Roots;

/// perf's mark for build ids that are not of a guest.
const HOST_PID: Pid = Pid(-1);

/// What is known when an output ends.
pub(super) struct MappedCode<'a> {
    pub(super) files: &'a FileCache,
    pub(super) roots: &'a Roots,
}

impl MappedCode<'_> {
    /// Puts into the header what is known of the files, those among them that `mapped` tells of. Copies go
    /// below `kept`.
    pub(super) fn describe<'m>(
        &self,
        features: &mut Features,
        mapped: impl Iterator<Item = &'m MappedFiles>,
        kept: Option<PathBuf>,
        listener: &mut dyn Listener,
    ) {
        let mut all = MappedFiles::default();
        mapped.for_each(|mapped| all.merge(mapped));
        let mut entries = features.build_ids();
        entries.extend(self.files.complete(self.roots, &all).into_iter().map(|(path, id)| {
            let path = String::from_utf8_lossy(&path).into_owned();
            BuildIdEntry { misc: misc::USER, pid: HOST_PID, id, path }
        }));
        features.set_build_ids(&entries);
        let mut kept = kept.map(KeptFiles::new);
        features.set_mapped_files(&self.files.describe(self.roots, kept.as_mut()));
        if let Some(kept) = kept {
            say(kept.counts, listener);
        }
    }
}

/// How many copies there are, and which are missing.
fn say(counts: KeptCounts, listener: &mut dyn Listener) {
    let KeptCounts { copied, copied_bytes, without_room, failed } = counts;
    if copied > 0 {
        listener.notice(Notice::BinariesKept { count: copied, bytes: copied_bytes });
    }
    if without_room > 0 {
        listener.notice(Notice::BinariesNotKept { count: without_room });
    }
    if let Some(error) = failed {
        let what = "copies of binaries that cannot be opened by their paths".to_owned();
        listener.notice(Notice::Skipped { what, why: error.to_string() });
    }
}
