//! Files of procfs that wait for a process: for a page of its memory, or for a lock on its list of mappings.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, openat};

use super::helper;
use super::walk::READ;

/// An open file of a process in procfs: `mem`, `maps`, `cmdline`.
///
/// A page of its memory may be one of a file that a program serves, or one that another program fills. Where that does not
/// answer, a read ends with [`io::ErrorKind::TimedOut`], and reads from this process do so at once for a while.
#[derive(Debug)]
pub struct ProcessFile {
    file: File,
    pid: i32,
    at: u64,
}

impl ProcessFile {
    /// Opens a file of a process. The kernel checks the right to read it now, and not at a read.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn open(path: &Path, pid: i32) -> io::Result<ProcessFile> {
        Ok(ProcessFile::of(openat(CWD, path, READ, Mode::empty())?, pid))
    }

    pub(super) fn of(file: OwnedFd, pid: i32) -> ProcessFile {
        ProcessFile { file: File::from(file), pid, at: 0 }
    }

    /// Reads from an offset: as much as is there, and no more than one answer holds.
    ///
    /// # Errors
    ///
    /// Those of the kernel, and that no answer came in time.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(helper::read_of_process(self.file.as_fd(), self.pid, bytes, offset)?)
    }

    /// Reads all bytes from an offset.
    ///
    /// # Errors
    ///
    /// Those of [`read_at`](Self::read_at), and that fewer bytes are there.
    pub fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.read_at(bytes, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                size => {
                    bytes = &mut bytes[size..];
                    offset += size as u64;
                }
            }
        }
        Ok(())
    }
}

impl Read for ProcessFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let size = self.read_at(bytes, self.at)?;
        self.at += size as u64;
        Ok(size)
    }
}
