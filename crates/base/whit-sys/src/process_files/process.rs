//! The directory of a process in procfs, and files as the process sees them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    CWD, FileType, FsWord, Mode, OFlags, ResolveFlags, fstat, fstatfs, openat, openat2, readlinkat,
};

use super::Miss;
use crate::capability::Capability;
use crate::{Errno, privilege};

/// A file is looked at before it is opened for reading.
pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Link to the root directory of a thread.
const ROOT: &str = "root";
/// File systems of the kernel, by their numbers in `include/uapi/linux/magic.h` and in their sources. Their files state
/// that they are regular ones, and are calls of the kernel: a read can take messages away from others, wait, or never end.
const OF_KERNEL: [FsWord; 11] = [
    0x9fa0,      // procfs
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0x0027_e0eb, // cgroups, version 1
    0x6367_7270, // cgroups, version 2
    0xcafe_4a11, // bpffs
    0xde5e_81e4, // efivarfs
];
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
        Ok(Process { directory: openat(CWD, living(proc, pid), flags, Mode::empty())? })
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
pub fn open_as_seen_by(proc: &Path, pid: i32, path: &Path) -> Result<File, Errno> {
    let process = Process::find(proc, pid).map_err(|_| Errno::SRCH)?;
    let found = open_below(&process.root()?, path)?;
    for_reading(&found).map_err(Miss::into_errno)
}

/// Opens a regular file for reading. A pipe, a device or a file of the kernel at the path is not opened.
///
/// # Errors
///
/// Error of the kernel; `Errno::INVAL` where it is no regular file.
pub fn open_regular(path: &Path) -> Result<File, Errno> {
    for_reading(&openat(CWD, path, LOOK, Mode::empty())?).map_err(Miss::into_errno)
}

/// The same, also of the kernel's files: for paths that whit or its user chooses, such as `/proc/kallsyms`.
///
/// # Errors
///
/// As those of [`open_regular`].
pub fn open_regular_or_kernels(path: &Path) -> Result<File, Errno> {
    reopen(&openat(CWD, path, LOOK, Mode::empty())?).map_err(Miss::into_errno)
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
        Err(Errno::NOSYS | Errno::PERM) => walk_below(root, path),
        found => found,
    }
}

/// The same in single steps, where the kernel follows no link by itself.
pub(super) fn walk_below(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    /// As many as the kernel follows.
    const LINKS_MAX: usize = 40;
    let mut ahead = vec![path.to_owned()];
    let mut behind: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(path) = ahead.pop() {
        let mut parts = path.components();
        let Some(part) = parts.next() else { continue };
        ahead.push(parts.as_path().to_owned());
        match part {
            Component::RootDir | Component::Prefix(_) => behind.clear(),
            Component::CurDir => {}
            // Nothing is above the root.
            Component::ParentDir => drop(behind.pop()),
            Component::Normal(name) => {
                let here = behind.last().unwrap_or(root);
                let found = openat(here, name, LOOK | OFlags::NOFOLLOW, Mode::empty())?;
                if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::Symlink {
                    behind.push(found);
                    continue;
                }
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP);
                }
                let target = readlinkat(&found, "", Vec::new())?;
                ahead.push(OsStr::from_bytes(target.as_bytes()).into());
            }
        }
    }
    behind.pop().map_or_else(|| openat(root, ".", LOOK, Mode::empty()), Ok)
}

/// The same file, for reading, if it is one that can be read without harm.
pub(super) fn for_reading(found: &OwnedFd) -> Result<File, Miss> {
    if OF_KERNEL.contains(&fstatfs(found)?.f_type) {
        return Err(Miss::NotRegular);
    }
    reopen(found)
}

fn reopen(found: &OwnedFd) -> Result<File, Miss> {
    if FileType::from_raw_mode(fstat(found)?.st_mode) != FileType::RegularFile {
        return Err(Miss::NotRegular);
    }
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    Ok(File::from(openat(CWD, link, READ, Mode::empty())?))
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
