//! Ways to a file, and the kinds of files that are read.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{
    FileType, FsWord, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, openat, openat2, readlinkat,
};

use crate::Errno;

/// A file is looked at before it is opened for reading.
pub(super) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const PROCFS: FsWord = 0x9fa0;
/// File systems of the kernel, by their numbers in `include/uapi/linux/magic.h` and in their sources. Their files state
/// that they are regular ones, and are calls of the kernel: a read can take messages away from others, wait, or never end.
const OF_KERNEL: [FsWord; 11] = [
    PROCFS,
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

/// Follows links as if `root` were the root: a process must not lead whit out of its own view of
/// files.
pub(super) fn open_below(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    match openat2(root, path, LOOK, Mode::empty(), ResolveFlags::IN_ROOT) {
        // Linux before 5.6, or a filter of system calls.
        Err(Errno::NOSYS | Errno::PERM) => walk_below(root, path, |_| Ok(())),
        found => found,
    }
}

/// The same in single steps, where the kernel follows no link by itself but those of procfs. `enter` sees each
/// file and directory before anything is asked about it, and may refuse to go on.
pub(super) fn walk_below(
    root: &OwnedFd,
    path: &Path,
    mut enter: impl FnMut(&OwnedFd) -> Result<(), Errno>,
) -> Result<OwnedFd, Errno> {
    /// As many as the kernel follows.
    const LINKS_MAX: usize = 40;
    let mut ahead = vec![path.to_owned()];
    let mut behind: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    enter(root)?;
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
                let mut found = openat(here, name, LOOK | OFlags::NOFOLLOW, Mode::empty())?;
                enter(&found)?;
                let is_link = FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::Symlink;
                // Such a link need not say by its text to which file it leads.
                let is_way = is_link && fstatfs(&found)?.f_type == PROCFS;
                if is_way {
                    found = openat(here, name, LOOK, Mode::empty())?;
                    enter(&found)?;
                }
                if !is_link || is_way {
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

pub(super) fn is_kernels(file_system: FsWord) -> bool {
    OF_KERNEL.contains(&file_system)
}

pub(super) fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
