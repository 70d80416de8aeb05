//! Windows on disk: as recordings, one file each, or as a dataset.

use super::Sink;
use crate::log::Log;
use crate::retention::Limits;
use crate::store::Store;
use crate::window::Window;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// An open folder, and the lock on it.
pub(crate) type SharedStore = Arc<Mutex<dyn Store>>;

/// Writes each window into a store, and removes old ones.
#[derive(Debug)]
pub struct Recordings {
    name: &'static str,
    root: PathBuf,
    limits: Limits,
    log: Log,
    store: SharedStore,
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
    pub(crate) fn new(
        name: &'static str,
        root: &Path,
        limits: Limits,
        store: SharedStore,
        log: &Log,
    ) -> Recordings {
        let (root, log) = (root.to_owned(), log.clone());
        let recordings = Recordings { name, root, limits, log, store, state: Mutex::default() };
        recordings.publish(&*recordings.store(), 0, 0);
        recordings
    }

    fn store(&self) -> MutexGuard<'_, dyn Store + 'static> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state is apart from the folder: nobody waits for the disk to see it.
    fn publish(&self, store: &dyn Store, removed: u64, lost: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
        *state = State {
            folder: self.root.display().to_string(),
            files: store.kept().len(),
            bytes: store.kept().bytes(),
            keep_bytes: self.limits.bytes,
            keep_age_s: self.limits.age.as_secs(),
            oldest_s: store.kept().oldest().and_then(since).map(|it| it.as_secs()),
            removed_by_age_or_bytes: state.removed_by_age_or_bytes + removed,
            windows_lost_by_disk: state.windows_lost_by_disk + lost,
        };
    }

    fn retain(&self, store: &mut dyn Store) -> u64 {
        store.retain(self.limits, SystemTime::now()).unwrap_or_else(|error| {
            self.log.say(format_args!("cannot remove old files: {error}"));
            0
        })
    }
}

impl Sink for Recordings {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn accept(&self, window: &Window) -> Result<(), String> {
        let mut store = self.store();
        // Room is made first: the disk may be full of old files.
        let mut removed = self.retain(&mut *store);
        let added = store.add(window);
        removed += self.retain(&mut *store);
        self.publish(&*store, removed, u64::from(added.is_err()));
        added
    }

    fn status(&self) -> serde_json::Value {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        serde_json::to_value(state).unwrap_or_default()
    }
}
