//! Removes the copies that no recording has used for the longest time.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FlockOperation, readlinkat, statat, unlinkat};

use super::is_plain;
use super::store::{BY_BUILD_ID, KERNEL_LIST, PART, Store, lock};

/// Most copies that are looked at.
const COPIES_MAX: usize = 1 << 17;
/// The files of a copy: of a binary, of the vdso, and of the list of the kernel's symbols.
const FILES: [&str; 3] = [whit_elf::KEPT_NAME, "vdso", KERNEL_LIST];

/// A copy of whit's.
struct Copy {
    /// When it was used last: seconds and nanoseconds.
    used: (i64, i64),
    name: OsString,
    /// Its directory below the cache.
    directory: PathBuf,
    size_bytes: u64,
}

impl Store {
    /// Removes copies until the rest take `max_bytes` at most. Gives the number of those that went, and their bytes.
    pub(super) fn evict(&self, max_bytes: u64) -> io::Result<(u64, u64)> {
        // Nobody makes copies or looks for some meanwhile.
        match lock(&self.kept, FlockOperation::NonBlockingLockExclusive) {
            // The last one of several recorders removes some.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((0, 0)),
            locked => locked?,
        }
        let mut copies = self.copies()?;
        copies.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
        let mut bytes: u64 = copies.iter().map(|copy| copy.size_bytes).sum();
        let mut evicted = (0, 0);
        for copy in &copies {
            if bytes <= max_bytes {
                break;
            }
            self.remove(copy)?;
            bytes -= copy.size_bytes;
            evicted = (evicted.0 + 1, evicted.1 + copy.size_bytes);
        }
        Ok(evicted)
    }

    /// All copies of whit's. Removes what killed recorders have left.
    fn copies(&self) -> io::Result<Vec<Copy>> {
        let mut copies = Vec::new();
        for entry in Dir::read_from(&self.kept)?.take(COPIES_MAX) {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            match self.copy_of(name) {
                Some(copy) if !name.as_bytes().ends_with(PART.as_bytes()) => copies.push(copy),
                // Nothing else belongs there.
                _ => drop(unlinkat(&self.kept, name, AtFlags::empty())),
            }
        }
        Ok(copies)
    }

    fn copy_of(&self, name: &OsStr) -> Option<Copy> {
        let target = readlinkat(&self.kept, name, []).ok()?;
        let directory = Path::new(OsStr::from_bytes(target.as_bytes())).strip_prefix("..").ok()?;
        if !is_plain(directory) {
            return None;
        }
        let link = statat(&self.kept, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let size = |file| statat(&self.base, directory.join(file), AtFlags::SYMLINK_NOFOLLOW).ok();
        let copy = FILES.iter().find_map(size)?;
        Some(Copy {
            used: (link.st_mtime, link.st_mtime_nsec as i64),
            name: name.to_owned(),
            directory: directory.to_owned(),
            size_bytes: copy.st_size as u64,
        })
    }

    fn remove(&self, copy: &Copy) -> io::Result<()> {
        for file in FILES {
            match unlinkat(&self.base, copy.directory.join(file), AtFlags::empty()) {
                Ok(()) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some((first, rest)) = copy.name.to_str().and_then(|name| name.split_at_checked(2)) {
            let link = Path::new(BY_BUILD_ID).join(first).join(rest);
            let target = readlinkat(&self.base, &link, []);
            let own = Path::new("../..").join(&copy.directory);
            if target.is_ok_and(|target| target.as_bytes() == own.as_os_str().as_bytes()) {
                unlinkat(&self.base, &link, AtFlags::empty())?;
            }
        }
        // Directories go as far as nothing else is in them; perf may have put something there.
        let mut directory = Some(copy.directory.as_path());
        while let Some(empty) = directory.filter(|path| !path.as_os_str().is_empty())
            && unlinkat(&self.base, empty, AtFlags::REMOVEDIR).is_ok()
        {
            directory = empty.parent();
        }
        Ok(unlinkat(&self.kept, &copy.name, AtFlags::empty())?)
    }
}
