//! The directory of a process in procfs, and files as the process sees them.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat, readlinkat};
use whit_types::FileId;

use super::foreign_file::ForeignFile;
use super::walk::{LOOK, is_regular};
use super::{Miss, helper};
use crate::capability::Capability;
use crate::{Errno, privilege};

/// Link to the root directory of a thread.
const ROOT: &str = "root";
/// The directory of a process in procfs: of this process, though its number may be another's soon.
pub(super) struct Process {
    pub(super) directory: OwnedFd,
    pub(super) pid: i32,
}

impl Process {
    pub(super) fn find(proc: &Path, pid: i32) -> Result<Process, Errno> {
        let _in_force = look_into_others();
        let flags = LOOK | OFlags::DIRECTORY;
        Ok(Process { directory: openat(CWD, living(proc, pid), flags, Mode::empty())?, pid })
    }

    pub(super) fn root(&self) -> Result<OwnedFd, Errno> {
        let _in_force = look_into_others();
        openat(&self.directory, ROOT, LOOK | OFlags::DIRECTORY, Mode::empty())
    }

    /// Whether the process is known to live in another mount namespace than whit.
    pub(super) fn has_other_mounts(&self, proc: &Path) -> bool {
        let _in_force = look_into_others();
        let own = std::fs::read_link(proc.join("self/ns/mnt"));
        let theirs = readlinkat(&self.directory, "ns/mnt", []);
        matches!((own, theirs), (Ok(own), Ok(theirs)) if own.as_os_str().as_bytes() != theirs.as_bytes())
    }
}

/// The directory of a process that shows its memory and its files: that of another thread where the main one has ended,
/// since the kernel shows nothing of these there any more.
pub fn living(proc: &Path, pid: i32) -> PathBuf {
    let main = proc.join(pid.to_string());
    if !has_ended(&main) {
        return main;
    }
    let tasks = std::fs::read_dir(main.join("task")).into_iter().flatten();
    let mut threads = tasks.filter_map(Result::ok).map(|thread| thread.path());
    threads.find(|thread| std::fs::read_link(thread.join(ROOT)).is_ok()).unwrap_or(main)
}

/// A thread that has ended has no root. Kernel threads have one.
fn has_ended(thread: &Path) -> bool {
    let root = std::fs::read_link(thread.join(ROOT));
    root.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Opens a file for reading as a process sees it: below its root, links and all. `Errno::SRCH` where the
/// process is gone.
///
/// # Errors
///
/// Error of the kernel; `Errno::INVAL` where it is no regular file.
pub fn open_as_seen_by(proc: &Path, pid: i32, path: &Path) -> Result<ForeignFile, Errno> {
    let process = Process::find(proc, pid).map_err(|_| Errno::SRCH)?;
    let found = helper::look(Some(&process.root()?), path)?;
    ForeignFile::open(found).map_err(Miss::into_errno)
}

/// Opens a regular file for reading. A pipe, a device or a file of the kernel at the path is not opened.
///
/// # Errors
///
/// Error of the kernel; `Errno::INVAL` where it is no regular file, `Errno::TIMEDOUT` where its file system does not
/// answer.
pub fn open_foreign(path: &Path) -> Result<ForeignFile, Errno> {
    ForeignFile::open(helper::look(None, path)?).map_err(Miss::into_errno)
}

/// The same as a plain file: a copy where a program serves it.
///
/// # Errors
///
/// As those of [`open_foreign`], and there may be no room for a copy.
pub fn open_regular(path: &Path) -> Result<File, Errno> {
    let file = open_foreign(path)?.into_file();
    file.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The number of the file at a path, as `stat` names it; nothing where there is none, or no answer.
pub fn path_id(path: &Path) -> Option<FileId> {
    let place = helper::look(None, path).ok()?;
    helper::state(place.as_fd()).ok().map(|facts| facts.id)
}

/// The path of a file without links; nothing where there is none.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    let place = helper::look(None, path).ok()?;
    std::fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()
}

/// The same, also of the kernel's files: for paths that whit or its user chooses, such as `/proc/kallsyms`.
///
/// # Errors
///
/// As those of [`open_regular`].
pub fn open_regular_or_kernels(path: &Path) -> Result<File, Errno> {
    let found = openat(CWD, path, LOOK, Mode::empty())?;
    if !is_regular(&fstat(&found)?) {
        return Err(Errno::INVAL);
    }
    helper::reopen(found.as_fd()).map(File::from)
}

/// Rights over processes of others, where whit was lent them.
fn look_into_others() -> privilege::Raised {
    privilege::raise(&[Capability::SysPtrace])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_thread_that_runs_replaces_a_main_thread_that_has_ended() {
        let proc = tempfile::tempdir().unwrap();
        let main = proc.path().join("10");
        for thread in ["10", "11", "12"] {
            std::fs::create_dir_all(main.join("task").join(thread)).unwrap();
        }
        // All of them have ended.
        assert_eq!(living(proc.path(), 10), main);
        symlink("/", main.join("task/12/root")).unwrap();
        assert_eq!(living(proc.path(), 10), main.join("task/12"));
        symlink("/", main.join("root")).unwrap();
        assert_eq!(living(proc.path(), 10), main);
        assert_eq!(living(proc.path(), 99), proc.path().join("99"));
        let own = crate::system::pid();
        assert_eq!(living(Path::new("/proc"), own), Path::new("/proc").join(own.to_string()));
    }
}
