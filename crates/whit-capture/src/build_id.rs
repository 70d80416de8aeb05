//! Build ids of mapped files, each file looked at once.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use object::Object;
use object::read::{FileKind, ReadCache};
use rustix::fs::{Mode, OFlags, major, minor, open, openat};
use whit_sys::maps::MapsLine;
use whit_types::BuildId;

use crate::processes;
use crate::roots::Roots;

/// Most files remembered; beyond it files are read again.
const CACHE_MAX: usize = 65_536;

/// Reads build ids of mapped files; shared by the threads that synthesize.
#[derive(Debug, Default)]
pub struct BuildIdCache {
    by_inode: Mutex<HashMap<(u32, u32, u64), Option<BuildId>>>,
}

impl BuildIdCache {
    /// The build id of the file behind a mapping of process `pid`; `None` where it has none,
    /// cannot be read, or is no longer the file that was mapped.
    pub fn of_mapping(&self, roots: &Roots, pid: i32, map: &MapsLine<'_>) -> Option<BuildId> {
        use std::os::unix::ffi::OsStrExt;
        if !map.is_file() {
            return None;
        }
        let key = (map.major, map.minor, map.inode);
        if let Some(known) = self.lock().get(&key) {
            return *known;
        }
        // Through the process's own root: it may live in another mount namespace.
        let inside = Path::new(std::ffi::OsStr::from_bytes(map.path.get(1..)?));
        let id = of_mapped_file(&roots.process(pid, "root"), inside, key);
        let mut cache = self.lock();
        if cache.len() < CACHE_MAX {
            cache.insert(key, id);
        }
        id
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(u32, u32, u64), Option<BuildId>>> {
        // A map of finished entries is never half-changed: a panic elsewhere does not matter.
        self.by_inode.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The build id of the file at `inside` below `root`, if that is the one of this device and inode.
pub(crate) fn of_mapped_file(
    root: &Path,
    inside: &Path,
    wanted: (u32, u32, u64),
) -> Option<BuildId> {
    of_elf(open_mapped_file(root, inside, wanted)?)
}

/// The file at `inside` below `root`, if that is the one of this device and inode.
pub(crate) fn open_mapped_file(
    root: &Path,
    inside: &Path,
    (want_major, want_minor, want_inode): (u32, u32, u64),
) -> Option<File> {
    let root = {
        let _in_force = processes::see_others();
        open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?
    };
    // The file itself is opened with the user's own rights. Not blocking: what lies at the path
    // by now may be a pipe.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(root, inside, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let device = metadata.dev();
    let same = metadata.is_file()
        && metadata.ino() == want_inode
        && (major(device), minor(device)) == (want_major, want_minor);
    same.then_some(file)
}

/// The GNU build id of an ELF file; reads only the parts that are needed.
pub fn of_elf(file: File) -> Option<BuildId> {
    let cache = ReadCache::new(file);
    if !matches!(FileKind::parse(&cache).ok()?, FileKind::Elf32 | FileKind::Elf64) {
        return None;
    }
    let elf = object::File::parse(&cache).ok()?;
    BuildId::new(elf.build_id().ok()??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_program_has_the_id_of_its_file() {
        let text = std::fs::read("/proc/self/maps").unwrap();
        let exe = std::env::current_exe().unwrap();
        let wanted = of_elf(File::open(&exe).unwrap());
        let cache = BuildIdCache::default();
        let pid = whit_sys::system::pid();
        let map = text
            .split(|b| *b == b'\n')
            .filter_map(MapsLine::parse)
            .find(|m| m.path.ends_with(exe.file_name().unwrap().as_encoded_bytes()))
            .unwrap();
        assert_eq!(cache.of_mapping(&Roots::default(), pid, &map), wanted);
        assert_eq!(cache.lock().len(), 1);
    }

    #[test]
    fn another_file_at_the_path_is_not_taken_for_the_mapped_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let inside = file.path().strip_prefix("/").unwrap();
        assert_eq!(of_mapped_file(Path::new("/"), inside, (0, 0, 1)), None);
        assert_eq!(of_elf(File::open("/proc/self/status").unwrap()), None);
    }
}
