//! Locks on files and directories, which the kernel takes back from a killed process.

use std::fs::{File, TryLockError};

/// An exclusive lock by `flock(2)`, held for as long as this lives.
///
/// A descriptor that is only closed keeps its lock while a child that another thread forks has a copy of it, until the
/// child runs its program. The lock ends with this in any case.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks an open file or directory.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] where another open file has the lock.
    pub fn try_take(file: File) -> Result<FileLock, TryLockError> {
        file.try_lock()?;
        Ok(FileLock(file))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file ends the lock where this fails.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_although_a_copy_of_its_descriptor_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let lock = FileLock::try_take(open()).unwrap();
        // As in a child between fork and exec.
        let _copy = lock.0.try_clone().unwrap();
        assert!(matches!(FileLock::try_take(open()), Err(TryLockError::WouldBlock)));
        drop(lock);
        FileLock::try_take(open()).unwrap();
    }
}
