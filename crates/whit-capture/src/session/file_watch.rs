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
}

impl FileWatch {
    /// Starts the thread.
    pub(super) fn start(cache: Arc<FileCache>, roots: Roots) -> Result<FileWatch, CaptureError> {
        let (sender, inbox) = sync_channel(WAITING_MAX);
        let work = move || look(&inbox, &cache, &roots);
        let thread = std::thread::Builder::new().name("whit-files".to_owned()).spawn(work);
        thread.map_err(|source| CaptureError::Thread { source })?;
        Ok(FileWatch { files: Some(sender) })
    }

    /// Has files opened. Never waits.
    pub(super) fn tell(&self, fresh: impl Iterator<Item = FreshFile>) {
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
