//! The directory of a process in procfs, and files as the process sees them.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};

use super::Miss;
use crate::capability::Capability;
use crate::{Errno, privilege};

/// A file is looked at before it is opened for reading.
pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// A file system could give out a device in the meantime.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The directory of a process in procfs: of this process, though its number may be another's soon.
pub(super) struct Process {
    pub(super) directory: OwnedFd,
}

impl Process {
    pub(super) fn find(proc: &Path, pid: i32) -> Result<Process, Errno> {
        let _in_force = look_into_others();
        let flags = LOOK | OFlags::DIRECTORY;
        Ok(Process { directory: openat(CWD, proc.join(pid.to_string()), flags, Mode::empty())? })
    }

    pub(super) fn root(&self) -> Result<OwnedFd, Errno> {
        let _in_force = look_into_others();
        openat(&self.directory, "root", LOOK | OFlags::DIRECTORY, Mode::empty())
    }

    /// Whether the process is known to live in another mount namespace than whit.
    pub(super) fn has_other_mounts(&self, proc: &Path) -> bool {
        let _in_force = look_into_others();
        let own = std::fs::read_link(proc.join("self/ns/mnt"));
        let theirs = readlinkat(&self.directory, "ns/mnt", []);
        matches!((own, theirs), (Ok(own), Ok(theirs)) if own.as_os_str().as_bytes() != theirs.as_bytes())
    }
}

/// Opens a file for reading as a process sees it: below its root, links and all. `Errno::SRCH` where the
/// process is gone.
///
/// # Errors
///
/// Error of the kernel; `Errno::INVAL` where it is no regular file.
pub fn open_as_seen_by(proc: &Path, pid: i32, path: &Path) -> Result<File, Errno> {
    let process = Process::find(proc, pid).map_err(|_| Errno::SRCH)?;
    let found = open_below(&process.root()?, path)?;
    for_reading(&found).map_err(Miss::into_errno)
}

/// Opens a regular file for reading. A pipe or a device at the path is not opened.
///
/// # Errors
///
/// Error of the kernel; `Errno::INVAL` where it is no regular file.
pub fn open_regular(path: &Path) -> Result<File, Errno> {
    for_reading(&openat(CWD, path, LOOK, Mode::empty())?).map_err(Miss::into_errno)
}

/// Rights over processes of others, where whit was lent them.
fn look_into_others() -> privilege::Raised {
    privilege::raise(&[Capability::SysPtrace])
}

/// Follows links as if `root` were the root: a process must not lead whit out of its own view of
/// files.
pub(super) fn open_below(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    match openat2(root, path, LOOK, Mode::empty(), ResolveFlags::IN_ROOT) {
        // Linux before 5.6, or a filter of system calls.
        Err(Errno::NOSYS | Errno::PERM) => {
            openat(root, path.strip_prefix("/").unwrap_or(path), LOOK, Mode::empty())
        }
        found => found,
    }
}

/// The same file, for reading, if it is one that can be read without harm.
pub(super) fn for_reading(found: &OwnedFd) -> Result<File, Miss> {
    if FileType::from_raw_mode(fstat(found)?.st_mode) != FileType::RegularFile {
        return Err(Miss::NotRegular);
    }
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    Ok(File::from(openat(CWD, link, READ, Mode::empty())?))
}
