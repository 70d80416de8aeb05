//! Files that get a name when they are whole: a process that is killed before leaves nothing.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::Errno;

/// Where the kernel shows the open files of a process.
const OPEN_FILES: &str = "/proc/self/fd";

/// A file without a name.
#[derive(Debug)]
pub struct UnnamedFile(File);

impl UnnamedFile {
    /// Makes one on the file system of `directory`, readable like any new file.
    ///
    /// # Errors
    /// Some file systems have none (`OPNOTSUPP`); without `/proc` it could get no name later.
    pub fn create_in(directory: &Path) -> Result<UnnamedFile, Errno> {
        if !Path::new(OPEN_FILES).exists() {
            return Err(Errno::OPNOTSUPP);
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666))?;
        Ok(UnnamedFile(file.into()))
    }

    /// To write into, and to read again.
    pub fn file(&mut self) -> &mut File {
        &mut self.0
    }

    /// Gives the file a name, which nothing else may have.
    pub fn link(&self, path: &Path) -> Result<(), Errno> {
        let own = format!("{OPEN_FILES}/{}", self.0.as_raw_fd());
        rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_has_its_content_under_its_later_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut new = UnnamedFile::create_in(folder.path()).unwrap();
        new.file().write_all(b"whole").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let path = folder.path().join("name");
        new.link(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(new.link(&path), Err(Errno::EXIST));
    }
}
