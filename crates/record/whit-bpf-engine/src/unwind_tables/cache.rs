//! Tables on disk, one file each, named by build id or by the version of a file that has none.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use rustix::fs::OFlags;
use whit_types::{BuildId, FileId, FileStamp};
use whit_unwind::table::{UnwindTable, wire};

use super::FileVersion;

/// Most that the cache takes. The file with the oldest write goes first.
pub const CACHE_MAX_BYTES: u64 = 1 << 30;
/// Largest file that is read: a table with as many rows as there may be.
const FILE_MAX_BYTES: u64 = 256 << 20;
/// Tables name what a user runs.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// End of the names of tables; others in the directory are not ours.
const SUFFIX: &str = ".unwind";

/// A directory of tables.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    max_bytes: u64,
}

/// Files that are being written, to tell their names apart.
static WRITING: AtomicU32 = AtomicU32::new(0);

/// The name of a binary's table.
pub(crate) fn key(id: &BuildId, section_bytes: [usize; 2]) -> String {
    let id: String = id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{id}-{:x}-{:x}{SUFFIX}", section_bytes[0], section_bytes[1])
}

/// The name of the table of a file without a build id; none of a build id is like it.
pub(crate) fn key_of_version(version: &FileVersion, section_bytes: [usize; 2]) -> String {
    let FileVersion { stamp, changed_ns } = version;
    let FileStamp { id: FileId { device: (major, minor), inode }, size_bytes, modified_ns } = stamp;
    format!(
        "file-{major:x}-{minor:x}-{inode:x}-{size_bytes:x}-{modified_ns:x}-{changed_ns:x}-{:x}-{:x}{SUFFIX}",
        section_bytes[0], section_bytes[1]
    )
}

impl Cache {
    pub(crate) fn new(directory: PathBuf) -> Cache {
        Cache { directory, max_bytes: CACHE_MAX_BYTES }
    }

    /// The table, if it is there, whole, and the user's own.
    pub(crate) fn read(&self, key: &str) -> Option<UnwindTable> {
        let path = self.directory.join(key);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut file = File::options().read(true).custom_flags(flags).open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_file() || !is_own || metadata.len() > FILE_MAX_BYTES {
            return None;
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        Read::by_ref(&mut file).take(FILE_MAX_BYTES).read_to_end(&mut bytes).ok()?;
        wire::decode(&bytes).ok()
    }

    /// Keeps a table, unless it cannot be written: it will be made again then.
    pub(crate) fn write(&self, key: &str, table: &UnwindTable) {
        let bytes = wire::encode(table);
        if bytes.len() as u64 <= FILE_MAX_BYTES && self.try_write(key, &bytes).is_ok() {
            self.prune();
        }
    }

    /// Readers see the old file or the new one, never a part.
    fn try_write(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&self.directory)?;
        let number = WRITING.fetch_add(1, Ordering::Relaxed);
        let part = self.directory.join(format!(".{}-{number}.part", std::process::id()));
        let _ = fs::remove_file(&part);
        let mut file = File::options().write(true).create_new(true).mode(FILE_MODE).open(&part)?;
        let written = file.write_all(bytes);
        let moved = written.and_then(|()| fs::rename(&part, self.directory.join(key)));
        moved.inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
    }

    /// Removes the files with the oldest writes until the rest fits.
    fn prune(&self) {
        let Ok(mut files) = tables_in(&self.directory) else { return };
        let mut total: u64 = files.iter().map(|file| file.1).sum();
        files.sort_by_key(|file| file.0);
        for (_, size, path) in files {
            if total <= self.max_bytes {
                return;
            }
            if fs::remove_file(path).is_ok() {
                total -= size;
            }
        }
    }
}

/// When each was written, its size, and its path.
fn tables_in(directory: &Path) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let is_table = entry.file_name().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
        if is_table && metadata.is_file() {
            files.push((metadata.modified()?, metadata.len(), entry.path()));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use whit_elf::ElfImage;
    use whit_unwind::table::NoTable;

    use crate::unwind_tables::{FileVersion, Origin, TableStore};

    fn own_image() -> ElfImage {
        ElfImage::open(&std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_table_is_built_once_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("whit/unwind");
        let store = TableStore::new(Some(cache.clone()));
        let image = own_image();
        let (built, origin) = store.table(&image, None).unwrap();
        assert_eq!(origin, Origin::Built);
        let files = tables_in(&cache).unwrap();
        let [(_, size, path)] = &files[..] else { panic!("{files:?}") };
        assert_eq!(*size as usize, wire::HEADER_BYTES + built.size_bytes());
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(store.table(&image, None).unwrap(), (built.clone(), Origin::Cached));

        // Damaged, and not a file at all: made again.
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, &bytes).unwrap();
        assert_eq!(store.table(&image, None).unwrap(), (built.clone(), Origin::Built));
        assert_eq!(store.table(&image, None).unwrap().1, Origin::Cached);
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        assert_eq!(store.table(&image, None).unwrap(), (built, Origin::Built));
        assert!(!fs::symlink_metadata(path).unwrap().is_symlink());
    }

    /// An image like our own, without a build id.
    fn anonymous_image() -> ElfImage {
        let mut bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
        let id = own_image().build_id().unwrap();
        let note =
            bytes.windows(id.as_bytes().len()).position(|part| part == id.as_bytes()).unwrap();
        // The name `GNU` of the note stands in front.
        bytes[note - 4..note].copy_from_slice(b"XYZ\0");
        let image = ElfImage::from_bytes(Path::new("x"), bytes.into()).unwrap();
        assert_eq!(image.build_id(), None);
        image
    }

    #[test]
    fn a_file_without_a_build_id_is_known_by_its_version() {
        let dir = tempfile::tempdir().unwrap();
        let store = TableStore::new(Some(dir.path().to_owned()));
        let image = anonymous_image();
        let old = FileVersion {
            stamp: FileStamp {
                id: FileId { device: (8, 1), inode: 3 },
                size_bytes: 4,
                modified_ns: 5,
            },
            changed_ns: 6,
        };
        let origin = |version| store.table(&image, version).unwrap().1;
        assert_eq!((origin(None), origin(None)), (Origin::Built, Origin::Built));
        assert_eq!((origin(Some(old)), origin(Some(old))), (Origin::Built, Origin::Cached));
        // A difference in any part makes it another file.
        let FileStamp { id, size_bytes, modified_ns } = old.stamp;
        for stamp in [
            FileStamp { id: FileId { device: (8, 2), ..id }, ..old.stamp },
            FileStamp { id: FileId { inode: 4, ..id }, ..old.stamp },
            FileStamp { size_bytes: size_bytes + 1, ..old.stamp },
            FileStamp { modified_ns: modified_ns + 1, ..old.stamp },
        ] {
            assert_eq!(origin(Some(FileVersion { stamp, ..old })), Origin::Built, "{stamp:?}");
        }
        assert_eq!(origin(Some(FileVersion { changed_ns: 7, ..old })), Origin::Built);
        // It may be written again within the same tick of the clock.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let fresh = Some(FileVersion { changed_ns: now.as_nanos() as u64, ..old });
        assert_eq!((origin(fresh), origin(fresh)), (Origin::Built, Origin::Built));
    }

    #[test]
    fn without_a_place_to_write_there_are_tables_all_the_same() {
        for store in [TableStore::default(), TableStore::new(Some("/proc/none".into()))] {
            assert_eq!(store.table(&own_image(), None).unwrap().1, Origin::Built);
        }
        let none = ElfImage::from_bytes(Path::new("x"), Vec::new().into());
        assert!(none.is_err());
        assert!(!NoTable::NoUnwindInfo.to_string().is_empty());
    }

    #[test]
    fn the_oldest_is_removed_when_there_is_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache { directory: dir.path().to_owned(), max_bytes: 250 };
        for (age, name) in [(3, "a"), (1, "b"), (2, "c")] {
            let path = dir.path().join(format!("{name}{SUFFIX}"));
            fs::write(&path, [0; 100]).unwrap();
            let time = SystemTime::now() - Duration::from_secs(100 * age);
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        fs::write(dir.path().join("other"), [0; 1000]).unwrap();
        cache.prune();
        let mut left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["b.unwind", "c.unwind", "other"]);
    }
}
