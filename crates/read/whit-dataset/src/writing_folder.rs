//! The folder of an export that runs.

use crate::error::{DatasetError, entries};
use crate::layout::WRITING;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that others leave alone for as long as this lives.
pub(crate) struct WritingFolder {
    folder: TempDir,
    /// A lock that the kernel takes back from a killed program.
    _lock: File,
}

impl WritingFolder {
    /// Makes one, and takes away those of killed exports.
    pub(crate) fn make(root: &Path) -> Result<WritingFolder, DatasetError> {
        let all = root.join(WRITING);
        std::fs::create_dir_all(&all).map_err(DatasetError::io(&all))?;
        let guard = File::open(&all).map_err(DatasetError::io(&all))?;
        // From the making of a folder to its lock, nobody else takes folders away.
        guard.lock().map_err(DatasetError::io(&all))?;
        for old in entries(&all)? {
            let is_idle = File::open(&old).is_ok_and(|old| old.try_lock().is_ok());
            if is_idle {
                std::fs::remove_dir_all(&old).map_err(DatasetError::io(&old))?;
            }
        }
        let folder = TempDir::new_in(&all).map_err(DatasetError::io(&all))?;
        let lock = File::open(folder.path()).map_err(DatasetError::io(folder.path()))?;
        lock.lock().map_err(DatasetError::io(folder.path()))?;
        Ok(WritingFolder { folder, _lock: lock })
    }

    /// Makes an empty folder for the files of a recording; what a failed one left there is gone.
    pub(crate) fn folder(&self, number: usize) -> Result<PathBuf, DatasetError> {
        let folder = self.folder.path().join(number.to_string());
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(DatasetError::io(&folder)(error));
            }
            _ => {}
        }
        std::fs::create_dir(&folder).map_err(DatasetError::io(&folder))?;
        Ok(folder)
    }
}
