//! Directories for the output of runs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{self, Error};

/// A directory of this process, removed with its contents when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one below `root`, and `root` too where it is missing.
    pub(crate) fn new(root: &Path) -> Result<Scratch, Error> {
        let path = root.join(format!("scratch-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(error::file("create", &path))?;
        Ok(Scratch(path))
    }

    /// Path of the folder for temporary files.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes its contents.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        fs::remove_dir_all(&self.0).map_err(error::file("remove", &self.0))?;
        fs::create_dir(&self.0).map_err(error::file("create", &self.0))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that cannot be removed only takes space, and the results are worth more than an
        // error.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_files_are_removed_with_it() {
        let root = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(&root.path().join("deep/er")).unwrap();
        let path = scratch.path().to_owned();
        fs::create_dir(path.join("recording")).unwrap();
        fs::write(path.join("recording/data"), "x").unwrap();
        scratch.clear().unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::write(path.join("file"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn where_none_can_be_made_is_named() {
        let error = Scratch::new(Path::new("/proc/nowhere")).unwrap_err().to_string();
        assert!(error.contains("/proc/nowhere"), "{error}");
    }
}
