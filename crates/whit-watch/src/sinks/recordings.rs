//! Recordings on disk, one file for each window.

use super::Sink;
use crate::folder::{Folder, Line, seconds};
use crate::log::Log;
use crate::retention::Limits;
use crate::window::Window;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// An open folder, and the lock on it.
pub(crate) type SharedFolder = Arc<Mutex<Folder>>;

/// Writes each window into a file, and removes old ones.
#[derive(Debug)]
pub struct Recordings {
    root: PathBuf,
    limits: Limits,
    log: Log,
    folder: SharedFolder,
    state: Mutex<State>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct State {
    folder: String,
    files: usize,
    bytes: u64,
    keep_bytes: u64,
    keep_age_s: u64,
    oldest_s: Option<u64>,
    removed_by_age_or_bytes: u64,
    windows_lost_by_disk: u64,
}

impl Recordings {
    /// Writes into a folder, which several share where settings change.
    pub(crate) fn new(root: &Path, limits: Limits, folder: SharedFolder, log: &Log) -> Recordings {
        let (root, log) = (root.to_owned(), log.clone());
        let recordings = Recordings { root, limits, log, folder, state: Mutex::default() };
        recordings.publish(&recordings.folder(), 0, 0);
        recordings
    }

    fn folder(&self) -> MutexGuard<'_, Folder> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state is apart from the folder: nobody waits for the disk to see it.
    fn publish(&self, folder: &Folder, removed: u64, lost: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
        *state = State {
            folder: self.root.display().to_string(),
            files: folder.kept().len(),
            bytes: folder.kept().bytes(),
            keep_bytes: self.limits.bytes,
            keep_age_s: self.limits.age.as_secs(),
            oldest_s: folder.kept().oldest().and_then(since).map(|it| it.as_secs()),
            removed_by_age_or_bytes: state.removed_by_age_or_bytes + removed,
            windows_lost_by_disk: state.windows_lost_by_disk + lost,
        };
    }

    fn retain(&self, folder: &mut Folder) -> u64 {
        folder.retain(self.limits, SystemTime::now()).unwrap_or_else(|error| {
            self.log.say(format_args!("cannot remove old files: {error}"));
            0
        })
    }
}

impl Sink for Recordings {
    fn name(&self) -> String {
        "recordings".to_owned()
    }

    fn accept(&self, window: &Window) -> Result<(), String> {
        let mut folder = self.folder();
        // Room is made first: the disk may be full of old files.
        let mut removed = self.retain(&mut folder);
        let line = Line {
            start_s: seconds(window.start),
            end_s: seconds(window.end),
            gap_s: window.gap.as_secs_f64(),
            records_lost: window.lost.records,
            ..Line::default()
        };
        let added = folder.add(line, |out| std::io::copy(&mut window.reader(), out).map(drop));
        removed += self.retain(&mut folder);
        self.publish(&folder, removed, u64::from(added.is_err()));
        added.map(drop).map_err(|error| error.to_string())
    }

    fn status(&self) -> serde_json::Value {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        serde_json::to_value(state).unwrap_or_default()
    }
}
