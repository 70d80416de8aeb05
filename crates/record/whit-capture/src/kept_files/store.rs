//! The directory of copies.
//!
//! Paths come from processes, which are hostile, and root's recorder may find the user's directory in place of
//! its own: nothing is written but below directories that belong to the recorder's user, and no link is followed
//! there.
//!
//! `.whit-kept` has a link for each copy of whit's, whose time is that of its last use. Recorders hold a shared lock
//! on it while they look for copies and make some, so that none is removed meanwhile.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, flock,
    fstat, fstatvfs, ioctl_ficlone, mkdirat, openat, readlinkat, renameat, statat, symlinkat,
    unlinkat, utimensat,
};
use rustix::io::Errno;
use whit_elf::KEPT_NAME;
use whit_sys::process_files::DELETED;
use whit_types::BuildId;

use super::{FREE_MAX_BYTES, FREE_SHARE, holes, is_plain};
use crate::build_id;

/// Only the owner may see which binaries ran.
const DIRECTORY_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Where copies are looked for by build id.
pub(super) const BY_BUILD_ID: &str = ".build-id";
/// Links to the copies of whit's, and copies that are not complete.
pub(super) const KEPT: &str = ".whit-kept";
/// A copy of the list of the kernel's symbols, as perf names it.
pub(super) const KERNEL_LIST: &str = "kallsyms";
/// How names of copies end that are not complete.
pub(super) const PART: &str = ".part";
/// Another recorder may remove copies just now. Longer than this nobody waits.
const LOCK_TIME_MAX: Duration = Duration::from_secs(2);
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

/// Images and lists that the kernel makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Vdso,
    /// The list of the kernel's symbols.
    Kernel,
}

impl Kind {
    /// perf's names of the directory and of the file.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Kind::Vdso => ("[vdso]", "vdso"),
            Kind::Kernel => ("[kernel.kallsyms]", KERNEL_LIST),
        }
    }
}

/// Where a copy is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The directory, below the cache.
    pub(super) directory: PathBuf,
    pub(super) file: &'static str,
    pub(super) id: Option<BuildId>,
}

impl Place {
    pub(super) fn of_binary(path: PathBuf, id: BuildId) -> Place {
        Place { directory: path.join(id.to_string()), file: KEPT_NAME, id: Some(id) }
    }

    pub(super) fn without_id(directory: PathBuf) -> Place {
        Place { directory, file: KEPT_NAME, id: None }
    }

    pub(super) fn of_image(kind: Kind, id: BuildId) -> Place {
        let (directory, file) = kind.names();
        Place { directory: Path::new(directory).join(id.to_string()), file, id: Some(id) }
    }

    /// The name of its link in [`KEPT`].
    fn name(&self) -> &OsStr {
        self.directory.file_name().unwrap_or_default()
    }
}

/// The cache, locked.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) base: OwnedFd,
    pub(super) kept: OwnedFd,
}

impl Store {
    /// The cache, if it belongs to this user, or may be made in a directory that does.
    pub(super) fn open(cache: &Path) -> io::Result<Store> {
        if let Some(home) = cache.parent().filter(|home| !home.as_os_str().is_empty()) {
            let name = cache.file_name().unwrap_or_default();
            match own_directory(CWD, home, OFlags::empty()) {
                Ok(home) => make(&home, name)?,
                Err(_) if cache.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        let base = own_directory(CWD, cache, OFlags::empty())?;
        let kept = enter(&base, Path::new(KEPT))?;
        lock(&kept, FlockOperation::NonBlockingLockShared)?;
        Ok(Store { base, kept })
    }

    /// Whether there is a whole copy. Those with a build id may be of any path, and of perf's.
    pub(super) fn has(&self, place: &Place, size_bytes: u64) -> bool {
        match place.id {
            Some(id) => {
                let (first, rest) = halves(id);
                let path = Path::new(BY_BUILD_ID).join(first).join(rest).join(place.file);
                let copy = open_regular(&self.base, &path);
                copy.is_some_and(|copy| build_id::of(&copy).flatten() == Some(id))
            }
            None => {
                let path = place.directory.join(place.file);
                statat(&self.base, path, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|copy| copy.st_size as u64 == size_bytes)
            }
        }
    }

    /// The copy that is not of a binary.
    pub(super) fn open_copy(&self, place: &Place) -> Option<File> {
        let (first, rest) = halves(place.id?);
        open_regular(&self.base, &Path::new(BY_BUILD_ID).join(first).join(rest).join(place.file))
    }

    /// Whether enough of the file system stays free.
    pub(super) fn has_room(&self, size_bytes: u64) -> bool {
        fstatvfs(&self.base).is_ok_and(|fs| {
            let free = fs.f_bavail.saturating_mul(fs.f_frsize);
            let share = fs.f_blocks.saturating_mul(fs.f_frsize) / FREE_SHARE;
            free.saturating_sub(size_bytes) >= share.min(FREE_MAX_BYTES)
        })
    }

    /// Notes the use of a copy; one of perf's has no link.
    pub(super) fn touch(&self, place: &Place) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _ = utimensat(&self.kept, place.name(), &times, AtFlags::SYMLINK_NOFOLLOW);
    }

    /// Copies a file. `is_right` looks at the copy before anybody else sees it; where it says no, there is none.
    pub(super) fn copy(
        &self,
        place: &Place,
        file: &File,
        size_bytes: u64,
        is_right: impl FnOnce(&File) -> bool,
    ) -> io::Result<bool> {
        self.fill(place, |copy| {
            if ioctl_ficlone(&*copy, file).is_err() {
                holes::copy(file, size_bytes, copy)?;
            }
            Ok(copy.metadata()?.len() == size_bytes && is_right(copy))
        })
    }

    /// Writes a copy out of memory.
    pub(super) fn write(&self, place: &Place, image: &[u8]) -> io::Result<bool> {
        self.fill(place, |copy| copy.write_all(image).map(|()| true))
    }

    /// Readers see a whole copy or none.
    fn fill(
        &self,
        place: &Place,
        fill: impl FnOnce(&mut File) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let directory = enter(&self.base, &place.directory)?;
        // In front of the copy: a recorder that is killed leaves no copy that nobody counts.
        self.mark(place)?;
        // Another recorder may copy the same.
        let mut part = place.name().to_owned();
        part.push(format!(".{}{PART}", whit_sys::system::pid()));
        let _ = unlinkat(&self.kept, &part, AtFlags::empty());
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut copy = File::from(openat(&self.kept, &part, flags, FILE_MODE)?);
        let filled = fill(&mut copy);
        let done = match filled {
            Ok(true) => {
                let moved = renameat(&self.kept, &part, &directory, place.file);
                moved.map(|()| true).map_err(io::Error::from)
            }
            no_copy => no_copy,
        };
        if !matches!(done, Ok(true)) {
            let _ = unlinkat(&self.kept, &part, AtFlags::empty());
        }
        if let (Ok(true), Some(id)) = (&done, place.id) {
            self.link(id, &place.directory)?;
        }
        done
    }

    /// The link by which copies of whit's are counted.
    fn mark(&self, place: &Place) -> io::Result<()> {
        let target = Path::new("..").join(&place.directory);
        self.set_link(&self.kept, place.name(), &target)
    }

    /// `.build-id/ab/cdef…`, which leads to the directory of the copy.
    fn link(&self, id: BuildId, path: &Path) -> io::Result<()> {
        let (first, rest) = halves(id);
        let directory = enter(&self.base, &Path::new(BY_BUILD_ID).join(first))?;
        self.set_link(&directory, OsStr::new(&rest), &Path::new("../..").join(path))
    }

    /// Makes a link, or has one lead elsewhere. Readers see the old one or the new one.
    fn set_link(&self, directory: &OwnedFd, name: &OsStr, target: &Path) -> io::Result<()> {
        match symlinkat(target, directory, name) {
            Err(Errno::EXIST) => {}
            done => return Ok(done?),
        }
        let old = readlinkat(directory, name, [])?;
        if old.as_bytes() == target.as_os_str().as_bytes() {
            return Ok(());
        }
        let part = format!("link.{}{PART}", whit_sys::system::pid());
        let _ = unlinkat(&self.kept, &part, AtFlags::empty());
        symlinkat(target, &self.kept, &part)?;
        Ok(renameat(&self.kept, &part, directory, name)?)
    }
}

/// Takes a lock on the cache, unless another recorder keeps it for long.
pub(super) fn lock(directory: &OwnedFd, operation: FlockOperation) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match flock(directory, operation) {
            Err(Errno::WOULDBLOCK | Errno::INTR) if begin.elapsed() < LOCK_TIME_MAX => {
                std::thread::sleep(LOCK_INTERVAL);
            }
            Err(Errno::WOULDBLOCK) => {
                let reason = "another recorder holds the lock on the cache for binaries";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, reason));
            }
            done => return Ok(done?),
        }
    }
}

/// A build id as its directory and its name there.
pub(super) fn halves(id: BuildId) -> (String, String) {
    let mut first = id.to_string();
    let rest = first.split_off(2.min(first.len()));
    (first, rest)
}

/// A regular file below the cache, for reading.
fn open_regular(base: &OwnedFd, path: &Path) -> Option<File> {
    // To open a pipe would block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(base, path, flags, Mode::empty()).ok()?;
    let kind = FileType::from_raw_mode(fstat(&file).ok()?.st_mode);
    (kind == FileType::RegularFile).then(|| File::from(file))
}

/// Opens a directory, if it belongs to this user.
pub(super) fn own_directory(
    parent: impl AsFd,
    path: impl rustix::path::Arg,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | flags;
    let directory = openat(parent, path, flags, Mode::empty())?;
    let owner = fstat(&directory)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        let reason = "a directory of the cache for binaries belongs to another user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(directory)
}

fn make(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match mkdirat(parent, name, DIRECTORY_MODE) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Goes down a path of plain names, and makes missing folders.
fn enter(base: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    if !is_plain(path) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path that leads back"));
    }
    let mut directory = base.try_clone()?;
    for name in path {
        make(&directory, name)?;
        directory = own_directory(&directory, name, OFlags::NOFOLLOW)?;
    }
    Ok(directory)
}

/// Longest path below the cache: a link to it must fit into the 4095 bytes of a link, with a build id behind it.
const PATH_MAX_BYTES: usize = 4000;
/// Directory of copies of files with longer paths; the build id behind it tells them apart.
const LONG_PATHS: &str = ".whit-long";

/// The path of a mapped file, below the cache.
pub(super) fn below(path: &[u8]) -> io::Result<PathBuf> {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    let names = path.strip_prefix(b"/").ok_or(io::ErrorKind::InvalidInput)?;
    if names.len() > PATH_MAX_BYTES {
        return Ok(LONG_PATHS.into());
    }
    Ok(PathBuf::from(OsStr::from_bytes(names)))
}
