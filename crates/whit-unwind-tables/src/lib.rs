//! Unwind tables of binaries, made once: from the file, or from the cache on disk.
//!
//! A [`TableStore`] answers with the [`UnwindTable`] of an ELF file. What took work is kept below the
//! cache directory by build id, so that the next recording reads it back. The store is shared by
//! threads; each file is worked on by the one that asks, without a lock.
//!
//! Invariants:
//! - A cached file that is damaged, foreign or of another version is as good as none: it is replaced.
//! - The cache is private to the user, never followed through a link, and bounded
//!   ([`CACHE_MAX_BYTES`]); failing to write it fails nothing else.
//! - Nothing here knows processes, or BPF.
#![forbid(unsafe_code)]

mod cache;

use std::path::PathBuf;

pub use cache::CACHE_MAX_BYTES;
use cache::Cache;
use whit_elf::ElfImage;
use whit_types::Svma;
use whit_unwind::ModuleUnwindInfo;
use whit_unwind::table::{NoTable, UnwindTable};

/// Where a table came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The cache had it.
    Cached,
    /// It was made from the file.
    Built,
}

/// Finds or makes tables.
#[derive(Debug, Default)]
pub struct TableStore {
    cache: Option<Cache>,
}

impl TableStore {
    /// Keeps tables in `directory`, which is made when the first one is written; `None` keeps none.
    pub fn new(directory: Option<PathBuf>) -> TableStore {
        TableStore { cache: directory.map(Cache::new) }
    }

    /// The table of a binary. Files without a build id are never cached.
    ///
    /// # Errors
    ///
    /// Why there can be none.
    pub fn table(&self, image: &ElfImage) -> Result<(UnwindTable, Origin), NoTable> {
        let sections = image.unwind_sections().ok_or(NoTable::Arch)?;
        let arch = sections.arch;
        // Two binaries under one build id should not exist; where they do, their sections differ.
        let lengths = [
            sections.eh_frame.as_ref().map_or(0, |section| section.bytes.len()),
            sections.debug_frame.as_ref().map_or(0, |section| section.len()),
        ];
        let key = image.build_id().map(|id| cache::key(&id, lengths));
        let place = self.cache.as_ref().zip(key);
        if let Some(table) = place.as_ref().and_then(|(cache, key)| cache.read(key)) {
            return Ok((table, Origin::Cached));
        }
        let segments = image.segments().iter().filter(|segment| segment.executable);
        let code: Vec<_> =
            segments.map(|s| s.svma..Svma(s.svma.0.saturating_add(s.memory_size_bytes))).collect();
        let table = UnwindTable::build(arch, &ModuleUnwindInfo::new(sections), &code)?;
        if let Some((cache, key)) = place {
            cache.write(&key, &table);
        }
        Ok((table, Origin::Built))
    }
}
