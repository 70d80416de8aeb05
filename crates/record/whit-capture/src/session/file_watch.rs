//! Opens files soon after they were mapped: when a recording ends, the processes that could lead to them may have
//! ended, and with them a container and its files.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use whit_host::roots::Roots;

use crate::error::CaptureError;
use crate::file_cache::FileCache;
use crate::mapped_files::FreshFile;

/// Files that may wait. Where there are more, they are looked at when the recording ends.
const WAITING_MAX: usize = 4096;

/// The way to the thread that opens files. It ends with the last of the readers.
#[derive(Clone, Debug, Default)]
pub(super) struct FileWatch {
    files: Option<SyncSender<FreshFile>>,
    perf_maps: Option<Arc<(Arc<FileCache>, Roots)>>,
}

impl FileWatch {
    /// Starts the thread.
    pub(super) fn start(cache: Arc<FileCache>, roots: Roots) -> Result<FileWatch, CaptureError> {
        let (sender, inbox) = sync_channel(WAITING_MAX);
        let perf_maps = Some(Arc::new((cache.clone(), roots.clone())));
        let work = move || look(&inbox, &cache, &roots);
        let thread = std::thread::Builder::new().name("whit-files".to_owned()).spawn(work);
        thread.map_err(|source| CaptureError::Thread { source })?;
        Ok(FileWatch { files: Some(sender), perf_maps })
    }

    /// A process has code that no file describes.
    pub(super) fn note_compiler(&self, pid: i32) {
        self.perf_maps.iter().for_each(|of| of.0.note_compiler(pid));
    }

    /// Looks for perf-maps. Whether some are missing.
    pub(super) fn look_for_perf_maps(&self) -> bool {
        self.perf_maps.as_ref().is_some_and(|of| of.0.look_for_perf_maps(&of.1))
    }

    /// Has files opened. Never waits.
    pub(super) fn announce(&self, fresh: impl Iterator<Item = FreshFile>) {
        if let Some(files) = &self.files {
            fresh.for_each(|file| drop(files.try_send(file)));
        }
    }
}

fn look(inbox: &Receiver<FreshFile>, cache: &FileCache, roots: &Roots) {
    while let Ok(FreshFile { id, path, mapper }) = inbox.recv() {
        cache.look_at(roots, id, &path, &mapper);
    }
}
