//! Copies of binaries that nobody will be able to open by their paths: deleted ones, and those of other mount
//! namespaces. Without, a report has neither their names nor, for dumped stacks, how to unwind through them.
//!
//! They go where perf keeps binaries and where perf and whit look for them: `~/.debug/.build-id/ab/cdef…/elf`,
//! which is a link into `~/.debug/PATH/BUILD-ID`. Those without a build id have a place of whit's own there.
//!
//! Paths come from processes, which are hostile, and root's recorder may find the user's directory in place of
//! its own: nothing is written but below directories that belong to the recorder's user, and no link is followed
//! there.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, fstat, mkdirat, openat, readlinkat, renameat, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use whit_elf::{KEPT_NAME, kept_directory};
use whit_perfdata::mapped_file::MappedFile;
use whit_sys::process_files::DELETED;
use whit_types::BuildId;

/// Most that the copies of one recording take.
pub(crate) const KEPT_MAX_BYTES: u64 = 256 << 20;
/// Only the owner may see which binaries ran.
const DIRECTORY_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Where copies are looked for by build id.
const BY_BUILD_ID: &str = ".build-id";

/// Takes copies.
#[derive(Debug)]
pub(crate) struct KeptFiles {
    cache: PathBuf,
    left_bytes: u64,
    pub(crate) counts: KeptCounts,
}

/// Counts of binaries that need a copy.
#[derive(Debug, Default)]
pub(crate) struct KeptCounts {
    /// Copies that were made, and their bytes.
    pub(crate) copied: u64,
    pub(crate) copied_bytes: u64,
    /// Binaries beyond [`KEPT_MAX_BYTES`].
    pub(crate) without_room: u64,
    /// Why the first was not copied that might have been.
    pub(crate) failed: Option<io::Error>,
}

impl KeptFiles {
    /// Copies go below `cache`, which is made if need be.
    pub(crate) fn new(cache: PathBuf) -> KeptFiles {
        KeptFiles { cache, left_bytes: KEPT_MAX_BYTES, counts: KeptCounts::default() }
    }

    /// Has a copy of `file`, which is the one that `description` says. Whether there is one.
    pub(crate) fn keep(&mut self, file: &File, description: &MappedFile) -> bool {
        let Ok(found) = &description.found else { return false };
        if found.size_bytes > self.left_bytes {
            self.counts.without_room += 1;
            return false;
        }
        match self.copy(file, description) {
            Ok(copied_bytes) => {
                self.left_bytes -= copied_bytes;
                self.counts.copied += u64::from(copied_bytes > 0);
                self.counts.copied_bytes += copied_bytes;
                true
            }
            Err(error) => {
                self.counts.failed.get_or_insert(error);
                false
            }
        }
    }

    /// Gives the bytes that were copied: none where there is a copy already.
    fn copy(&self, file: &File, description: &MappedFile) -> io::Result<u64> {
        let found = description.found.map_err(|_| io::ErrorKind::NotFound)?;
        let stamp = description.stamp().ok_or(io::ErrorKind::NotFound)?;
        let path = match found.build_id {
            Some(id) => below(&description.path)?.join(id.to_string()),
            None => kept_directory(&stamp),
        };
        let base = self.base()?;
        let directory = enter(&base, &path)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let is_whole = statat(&directory, KEPT_NAME, flags)
            .is_ok_and(|copy| copy.st_size as u64 == found.size_bytes);
        if !is_whole {
            write(&directory, file, found.size_bytes)?;
        }
        if let Some(id) = found.build_id {
            link(&base, id, &path)?;
        }
        Ok(if is_whole { 0 } else { found.size_bytes })
    }

    /// The cache, if it belongs to this user, or may be made in a directory that does.
    fn base(&self) -> io::Result<OwnedFd> {
        if let Some(home) = self.cache.parent() {
            let name = self.cache.file_name().unwrap_or_default();
            match own_directory(CWD, home, OFlags::empty()) {
                Ok(home) => make(&home, name)?,
                Err(_) if self.cache.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        own_directory(CWD, &self.cache, OFlags::empty())
    }
}

/// Opens a directory, if it belongs to this user.
fn own_directory(
    parent: impl std::os::fd::AsFd,
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
    let mut directory = base.try_clone()?;
    for component in path.components() {
        let Component::Normal(name) = component else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path that leads back"));
        };
        make(&directory, name)?;
        directory = own_directory(&directory, name, OFlags::NOFOLLOW)?;
    }
    Ok(directory)
}

/// The path of a mapped file, below the cache.
fn below(path: &[u8]) -> io::Result<PathBuf> {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    let names = path.strip_prefix(b"/").ok_or(io::ErrorKind::InvalidInput)?;
    Ok(PathBuf::from(OsStr::from_bytes(names)))
}

/// Readers see a whole copy or none.
fn write(directory: &OwnedFd, file: &File, size_bytes: u64) -> io::Result<()> {
    // Another recorder may copy the same.
    let part = format!("{KEPT_NAME}.{}.part", whit_sys::system::pid());
    let _ = unlinkat(directory, &part, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(openat(directory, &part, flags, FILE_MODE)?);
    let mut source = file;
    source.seek(SeekFrom::Start(0))?;
    let copied = io::copy(&mut source.take(size_bytes), &mut copy).and_then(|copied| {
        // It may have been cut meanwhile.
        if copied == size_bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    });
    let moved = copied.and_then(|()| Ok(renameat(directory, &part, directory, KEPT_NAME)?));
    moved.inspect_err(|_| {
        let _ = unlinkat(directory, &part, AtFlags::empty());
    })
}

/// `.build-id/ab/cdef…`, which leads to the directory of the copy.
fn link(base: &OwnedFd, id: BuildId, path: &Path) -> io::Result<()> {
    let hex = id.to_string();
    let (first, rest) = hex.split_at(2.min(hex.len()));
    let directory = enter(base, &Path::new(BY_BUILD_ID).join(first))?;
    let target = Path::new("../..").join(path);
    match symlinkat(&target, &directory, rest) {
        Err(Errno::EXIST) => {}
        done => return Ok(done?),
    }
    // One that leads nowhere is left of a copy that was removed.
    let is_there = statat(&directory, Path::new(rest).join(KEPT_NAME), AtFlags::empty()).is_ok();
    if !is_there && readlinkat(&directory, rest, []).is_ok() {
        unlinkat(&directory, rest, AtFlags::empty())?;
        symlinkat(&target, &directory, rest)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use whit_perfdata::mapped_file::FoundFile;
    use whit_types::{FileId, OpenFailure};

    fn described(path: &str, contents: &[u8], id: Option<&[u8]>) -> (File, MappedFile) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(contents).unwrap();
        let found = FoundFile {
            size_bytes: contents.len() as u64,
            modified_ns: 5,
            build_id: id.and_then(BuildId::new),
            is_elf: true,
            is_kept: false,
        };
        let id = FileId { device: (8, 1), inode: 7 };
        (file, MappedFile { id, path: path.into(), found: Ok(found) })
    }

    #[test]
    fn copies_are_where_perf_looks_for_them() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join(".debug");
        let mut kept = KeptFiles::new(cache.clone());
        let (file, named) = described("/opt/a b (deleted)", b"contents", Some(&[0xab, 0xcd, 0xef]));
        assert!(kept.keep(&file, &named));
        let copy = cache.join("opt/a b/abcdef/elf");
        assert_eq!(std::fs::read(&copy).unwrap(), b"contents");
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let by_id = cache.join(".build-id/ab/cdef");
        assert_eq!(std::fs::read_link(&by_id).unwrap(), Path::new("../../opt/a b/abcdef"));
        assert_eq!(std::fs::read(by_id.join("elf")).unwrap(), b"contents");
        let (other, unnamed) = described("/x", b"more", None);
        assert!(kept.keep(&other, &unnamed));
        assert_eq!(std::fs::read(cache.join(".whit-files/8-1-7-4-5/elf")).unwrap(), b"more");
        // A whole copy is not made again; a cut one is, and a dangling link is mended.
        assert!(kept.keep(&file, &named));
        assert_eq!((kept.counts.copied, kept.counts.copied_bytes), (2, 12));
        std::fs::write(&copy, b"cont").unwrap();
        std::fs::remove_file(&by_id).unwrap();
        symlink("../../gone", &by_id).unwrap();
        assert!(kept.keep(&file, &named));
        assert_eq!(std::fs::read(by_id.join("elf")).unwrap(), b"contents");
        assert_eq!((kept.counts.copied, kept.left_bytes), (3, KEPT_MAX_BYTES - 20));
        assert!(kept.counts.failed.is_none());
    }

    #[test]
    fn kept_files_stay_below_the_limit() {
        let home = tempfile::tempdir().unwrap();
        let mut kept = KeptFiles::new(home.path().join(".debug"));
        kept.left_bytes = 7;
        let (file, named) = described("/x", b"contents", None);
        assert!(!kept.keep(&file, &named) && kept.counts.without_room == 1);
        let missing = MappedFile { found: Err(OpenFailure::Deleted), ..named };
        assert!(!kept.keep(&file, &missing) && kept.counts.without_room == 1);
        assert!(!home.path().join(".debug").exists());
    }

    #[test]
    fn nothing_is_written_where_a_link_leads() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cache = home.path().join(".debug");
        std::fs::create_dir(&cache).unwrap();
        symlink(other.path(), cache.join("opt")).unwrap();
        symlink(other.path(), cache.join(".whit-files")).unwrap();
        for (path, id) in [
            ("/opt/x", Some(&[1, 2][..])),
            ("/x", None),
            ("/../x", Some(&[1, 2])),
            ("/usr/../../x", Some(&[1, 2])),
            ("x", Some(&[1, 2])),
        ] {
            let (file, description) = described(path, b"contents", id);
            let mut kept = KeptFiles::new(cache.clone());
            assert!(!kept.keep(&file, &description), "{path}");
            assert!(kept.counts.failed.is_some(), "{path}");
        }
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
        // As root in a user's home.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(home.path(), Some(1), None).unwrap();
            let (file, description) = described("/y", b"contents", Some(&[1, 2]));
            let mut kept = KeptFiles::new(home.path().join("new"));
            assert!(!kept.keep(&file, &description) && kept.counts.failed.is_some());
            std::os::unix::fs::chown(&cache, Some(1), None).unwrap();
            let mut kept = KeptFiles::new(cache);
            assert!(!kept.keep(&file, &description) && kept.counts.failed.is_some());
        }
    }
}
