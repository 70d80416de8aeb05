//! Unwind tables of binaries, made once: from the file, or from the cache on disk.
//!
//! A [`TableStore`] answers with the [`UnwindTable`] of an ELF file. Tables that took work are kept
//! below the cache directory, so that the next recording reads them back. Their key is the build id
//! or, for a file without one, its place and the time of its last change. The store is shared by
//! threads; each file is worked on by the one that asks. Large ones wait for each other ([`WORK_MEMORY_MAX_BYTES`]).
//!
//! ```
//! use std::path::Path;
//! use whit_elf::ElfImage;
//! use whit_bpf_engine::unwind_tables::{Origin, TableStore};
//!
//! let directory = tempfile::tempdir()?;
//! let store = TableStore::new(Some(directory.path().join("tables")));
//! let image = ElfImage::open(Path::new("/proc/self/exe"))?;
//! let (table, origin) = store.table(&image, None).expect("a program has unwind sections");
//! assert_eq!(origin, Origin::Built);
//! assert!(!table.rules().is_empty());
//!
//! // Without a build id and without a `FileVersion`, the table is built each time.
//! let again = if image.build_id().is_some() { Origin::Cached } else { Origin::Built };
//! assert_eq!(store.table(&image, None).map(|(_, origin)| origin), Ok(again));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller looks at the [`FileVersion`] before it reads the image, and says nothing of files that may still be written.
//!
//! Invariants:
//! - A file without a build id that was changed is another one, even if its size and its time of
//!   modification were restored; what may still be written has no place in the cache.
//! - A cached file that is damaged, foreign or of another version is as good as none: it is replaced.
//! - The cache is private to the user, never followed through a link, and bounded
//!   ([`CACHE_MAX_BYTES`]); failing to write it fails nothing else.
//! - Nothing here knows processes, or BPF.
mod cache;
mod work_memory;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

pub use cache::CACHE_MAX_BYTES;
use cache::Cache;
use whit_elf::ElfImage;
use whit_types::{FileStamp, Svma};
use whit_unwind::ModuleUnwindInfo;
use whit_unwind::table::{NoTable, UnwindTable};
pub use work_memory::WORK_MEMORY_MAX_BYTES;
use work_memory::WorkMemory;

/// Where a table came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The cache had it.
    Cached,
    /// It was made from the file.
    Built,
}

/// A file may be written again without a new time of change for so long: file systems have coarse clocks.
const SETTLED: Duration = Duration::from_secs(2);

/// The identity of a file without a build id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileVersion {
    /// Device, inode, size and time of modification.
    pub stamp: FileStamp,
    /// Time of the last change of any kind, which no program can set.
    pub changed_ns: u64,
}

impl FileVersion {
    /// Whether nobody has changed the file for a while, so that another change will have another time.
    fn is_settled(&self, now: SystemTime) -> bool {
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.changed_ns);
        now.duration_since(changed).is_ok_and(|age| age > SETTLED)
    }
}

/// Finds or makes tables.
#[derive(Debug, Default)]
pub struct TableStore {
    cache: Option<Cache>,
    memory: WorkMemory,
}

impl TableStore {
    /// Keeps tables in `directory`, which is made when the first one is written; `None` keeps none.
    pub fn new(directory: Option<PathBuf>) -> TableStore {
        TableStore { cache: directory.map(Cache::new), memory: WorkMemory::default() }
    }

    /// Tables that are made at a time take no more memory than this, unless one alone does.
    pub fn with_work_memory(self, bytes: usize) -> TableStore {
        TableStore { memory: WorkMemory::new(bytes.min(WORK_MEMORY_MAX_BYTES)), ..self }
    }

    /// The table of a binary. A file without a build id is cached if `version` says which it is, looked at before
    /// the image was read.
    ///
    /// # Errors
    ///
    /// Why there can be none.
    pub fn table(
        &self,
        image: &ElfImage,
        version: Option<FileVersion>,
    ) -> Result<(UnwindTable, Origin), NoTable> {
        let sections = image.unwind_sections().ok_or(NoTable::Arch)?;
        let arch = sections.arch;
        // Two binaries under one build id should not exist; where they do, their sections differ.
        let lengths = [
            sections.eh_frame.as_ref().map_or(0, |section| section.bytes.len()),
            sections.debug_frame.as_ref().map_or(0, |section| section.len()),
        ];
        let settled = version.filter(|version| version.is_settled(SystemTime::now()));
        let key = match image.build_id() {
            Some(id) => Some(cache::key(&id, lengths)),
            None => settled.map(|version| cache::key_of_version(&version, lengths)),
        };
        let place = self.cache.as_ref().zip(key);
        let _memory = self.memory.take(lengths.iter().sum());
        if let Some(table) = place.as_ref().and_then(|(cache, key)| cache.read(key)) {
            return Ok((table, Origin::Cached));
        }
        let segments = image.segments().iter().filter(|segment| segment.executable);
        let code: Vec<_> =
            segments.map(|s| s.svma..Svma(s.svma.0.saturating_add(s.memory_size_bytes))).collect();
        let table = UnwindTable::build(arch, &ModuleUnwindInfo::new(sections), &code)?;
        // That of a file that was cut meanwhile would be taken for the binary's by others.
        if let Some((cache, key)) = place.filter(|_| !image.is_cut()) {
            cache.write(&key, &table);
        }
        Ok((table, Origin::Built))
    }
}
