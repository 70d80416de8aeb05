//! A dataset of windows: the tables of each one in Parquet files.

use crate::folder::{FolderError, lock};
use crate::retention::{Entry, Kept, Limits};
use crate::store::Store;
use crate::window::Window;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use whit_dataset::{Facts, Outcome, Stored};
use whit_sys::FileLock;
use whit_tables::{Cancel, Database};

/// A dataset that cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatasetFolderError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Dataset(#[from] whit_dataset::DatasetError),
}

/// An open dataset. One service at a time has it.
#[derive(Debug)]
pub(crate) struct DatasetFolder {
    root: PathBuf,
    kept: Kept,
    _lock: FileLock,
}

impl DatasetFolder {
    /// Makes the folder where it is missing.
    pub(crate) fn open(root: &Path) -> Result<DatasetFolder, DatasetFolderError> {
        let failed = |source| FolderError { path: root.to_owned(), source };
        fs::create_dir_all(root).map_err(failed)?;
        let lock = lock(root)?;
        let entry = |Stored { name, added, bytes }: Stored| {
            // Names of hosts are encoded.
            Some(Entry { name: name.into_os_string().into_string().ok()?, end: added, bytes })
        };
        let entries = whit_dataset::stored(root)?.into_iter().filter_map(entry).collect();
        Ok(DatasetFolder { root: root.to_owned(), kept: Kept::new(entries), _lock: lock })
    }
}

impl Store for DatasetFolder {
    fn add(&mut self, window: &Window) -> Result<(), String> {
        let recording = window.recording().map_err(|error| error.to_string())?;
        let options = window.read_options(&recording);
        let database = Database::new(vec![(recording, options)], Cancel::default());
        let facts = Facts {
            version: env!("CARGO_PKG_VERSION"),
            now: SystemTime::now(),
            modified: window.end,
            force: false,
        };
        let outcome = whit_dataset::export(&self.root, &database, facts);
        match outcome.map_err(|error| error.to_string())? {
            Outcome::Written(exported) => {
                let name = exported.name.to_string_lossy().into_owned();
                self.kept.add(Entry { name, end: window.end, bytes: exported.bytes });
                Ok(())
            }
            // Windows without records are all the same one.
            Outcome::Present { .. } => Ok(()),
        }
    }

    fn retain(&mut self, limits: Limits, now: SystemTime) -> Result<u64, String> {
        let mut removed = 0;
        while let Some(entry) = self.kept.next_due(limits, now) {
            if let Err(error) = whit_dataset::remove(&self.root, Path::new(&entry.name)) {
                self.kept.put_back(entry);
                return Err(error.to_string());
            }
            removed += 1;
        }
        Ok(removed)
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::HeldBytes;
    use std::time::Duration;
    use whit_live::Lost;
    use whit_profile::KeptSymbols;

    fn window(golden: &str) -> Window {
        let golden = format!("../../../tests/recordings/golden/{golden}/recording.data");
        let stream = fs::read(golden).unwrap();
        let (held, symbols) = (HeldBytes::default(), KeptSymbols::default());
        let now = SystemTime::now();
        let write = |out: &mut dyn std::io::Write| out.write_all(&stream).map(|()| Lost::default());
        Window::make(1, (now, now), (&held, &symbols), write).unwrap()
    }

    #[test]
    fn windows_come_and_the_oldest_ones_go_with_all_their_tables() {
        let place = tempfile::tempdir().unwrap();
        let mut dataset = DatasetFolder::open(place.path()).unwrap();
        dataset.add(&window("perf-pipe")).unwrap();
        let first = dataset.kept().bytes();
        dataset.add(&window("perf-pipe")).unwrap();
        assert_eq!((dataset.kept().len(), dataset.kept().bytes()), (1, first));
        dataset.add(&window("perf-fp")).unwrap();
        let bytes = dataset.kept().bytes();
        assert_eq!(dataset.kept().len(), 2);
        assert!(
            DatasetFolder::open(place.path()).unwrap_err().to_string().contains("its own folder")
        );
        drop(dataset);
        // It is found again, and the sizes are those of the files.
        let mut dataset = DatasetFolder::open(place.path()).unwrap();
        assert_eq!((dataset.kept().len(), dataset.kept().bytes()), (2, bytes));
        let limits = Limits { age: Duration::MAX, bytes: bytes - 1 };
        assert_eq!(dataset.retain(limits, SystemTime::now()), Ok(1));
        let left = dataset.kept().bytes();
        let stored = whit_dataset::stored(place.path()).unwrap();
        assert_eq!(stored.iter().map(|it| it.bytes).collect::<Vec<_>>(), [left]);
        let all = whit_dataset::Dataset::open(place.path(), Cancel::default()).unwrap();
        assert_eq!(all.len(), 1);
    }
}
