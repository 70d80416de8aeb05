//! Copies of binaries, so that a recording has its names and chains as long as the copies are there: programs are
//! built anew, packages are upgraded, containers end.
//!
//! They go where perf keeps binaries and where perf and whit look for them: `~/.debug/.build-id/ab/cdef…/elf`,
//! which is a link into `~/.debug/PATH/BUILD-ID`. Those without a build id have a place of whit's own there.
//!
//! A copy shares its blocks with the file where the file system can do that (`FICLONE`: btrfs, XFS). It is never a
//! hard link, as perf makes them: a program that is written into the same inode would change the copy with it.
//!
//! perf's copies are used, and never removed. Those of whit have a bound, and the ones that no recording used for
//! the longest time go first.

mod evict;
mod holes;
mod store;

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use whit_elf::kept_directory;
use whit_perfdata::mapped_file::{FoundFile, MappedFile};
use whit_types::BuildId;

use crate::build_id;
pub(crate) use store::Kind;
use store::{Place, Store, below};

/// Most bytes that one recording copies. A second or so of copying, once for each build.
pub(crate) const KEPT_MAX_BYTES: u64 = 1 << 30;
/// Most bytes that all copies of whit's in a cache take, unless the user says otherwise.
pub const KEPT_FILES_MAX_BYTES: u64 = 4 << 30;
/// So much of a file system stays free: one part of so many, and no more than this.
const FREE_SHARE: u64 = 20;
const FREE_MAX_BYTES: u64 = 1 << 30;
/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Where copies go, and how many bytes they may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFilesPlan {
    /// perf's cache of binaries.
    pub directory: PathBuf,
    /// Most bytes that all copies of whit's take there.
    pub max_bytes: u64,
}

impl KeptFilesPlan {
    /// In a directory, with the default bound.
    pub fn new(directory: PathBuf) -> KeptFilesPlan {
        KeptFilesPlan { directory, max_bytes: KEPT_FILES_MAX_BYTES }
    }
}

/// Takes copies.
#[derive(Debug)]
pub(crate) struct KeptFiles {
    plan: KeptFilesPlan,
    store: Option<io::Result<Store>>,
    left_bytes: u64,
    begin: Instant,
    pub(crate) counts: KeptCounts,
}

/// Counts of binaries that need a copy.
#[derive(Debug, Default)]
pub(crate) struct KeptCounts {
    /// Binaries that have a copy.
    pub(crate) kept: u64,
    /// Copies that were made, and their bytes.
    pub(crate) copied: u64,
    pub(crate) copied_bytes: u64,
    /// Binaries beyond [`KEPT_MAX_BYTES`], or beyond the space of the file system.
    pub(crate) without_room: u64,
    /// Binaries that could not be opened any more.
    pub(crate) gone: u64,
    /// Copies that went for the new ones, and their bytes.
    pub(crate) evicted: u64,
    pub(crate) evicted_bytes: u64,
    /// Why the first was not copied that might have been.
    pub(crate) failed: Option<io::Error>,
    /// Time that all of it took.
    pub(crate) time_ns: u64,
}

impl KeptFiles {
    /// Nothing is made before the first copy.
    pub(crate) fn new(plan: KeptFilesPlan) -> KeptFiles {
        let left_bytes = KEPT_MAX_BYTES.min(plan.max_bytes);
        let (counts, begin) = (KeptCounts::default(), Instant::now());
        KeptFiles { plan, store: None, left_bytes, begin, counts }
    }

    /// Has a copy of the file that `description` says; `source` opens it. Whether there is one.
    pub(crate) fn keep(
        &mut self,
        description: &MappedFile,
        source: impl FnOnce() -> Option<File>,
    ) -> bool {
        self.keep_if(description, source, is_as_found)
    }

    /// Has a copy of the bytes that a file had when it was described. Its process may still append to it.
    pub(crate) fn keep_growing(
        &mut self,
        description: &MappedFile,
        source: impl FnOnce() -> Option<File>,
    ) -> bool {
        self.keep_if(description, source, has_as_much)
    }

    fn keep_if(
        &mut self,
        description: &MappedFile,
        source: impl FnOnce() -> Option<File>,
        is_right: fn(&File, &FoundFile) -> bool,
    ) -> bool {
        let result = self.try_keep(description, source, is_right);
        match result {
            Ok(is_kept) => {
                self.counts.kept += u64::from(is_kept);
                is_kept
            }
            Err(error) => {
                self.counts.failed.get_or_insert(error);
                false
            }
        }
    }

    fn try_keep(
        &mut self,
        description: &MappedFile,
        source: impl FnOnce() -> Option<File>,
        is_it: fn(&File, &FoundFile) -> bool,
    ) -> io::Result<bool> {
        let found = description.found.map_err(|_| io::ErrorKind::NotFound)?;
        let place = place(description, &found)?;
        if self.store()?.has(&place, found.size_bytes) {
            self.store()?.touch(&place);
            return Ok(true);
        }
        if found.size_bytes > self.left_bytes || !self.store()?.has_room(found.size_bytes) {
            self.counts.without_room += 1;
            return Ok(false);
        }
        let Some(file) = source().filter(|file| is_it(file, &found)) else {
            self.counts.gone += 1;
            return Ok(false);
        };
        // It may be written while it is copied.
        let is_right = |copy: &File| {
            let id = build_id::of(copy).flatten();
            is_it(&file, &found) && id == found.build_id
        };
        if !self.store()?.copy(&place, &file, found.size_bytes, is_right)? {
            self.counts.gone += 1;
            return Ok(false);
        }
        self.count_copy(found.size_bytes);
        Ok(true)
    }

    /// Has a copy of an image that the kernel made, under the name that perf gives it.
    pub(crate) fn keep_image(&mut self, kind: Kind, id: BuildId, image: &[u8]) {
        let place = Place::of_image(kind, id);
        let kept = self.store().and_then(|store| {
            let is_there = store.has(&place, image.len() as u64);
            if !is_there {
                store.write(&place, image)?;
            }
            Ok(is_there)
        });
        match kept {
            Ok(true) => {}
            Ok(false) => self.count_copy(image.len() as u64),
            Err(error) => {
                self.counts.failed.get_or_insert(error);
            }
        }
    }

    /// Has a copy of the list of the running kernel's symbols. A copy of an earlier start of the machine, where the
    /// kernel lay elsewhere, is made anew: `is_of_this_start` tells.
    pub(crate) fn keep_kernel_list(
        &mut self,
        id: BuildId,
        is_of_this_start: impl FnOnce(&File) -> bool,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
    ) {
        match self.try_keep_list(&Place::of_image(Kind::Kernel, id), is_of_this_start, read) {
            Ok(Some(size_bytes)) => self.count_copy(size_bytes),
            Ok(None) => {}
            Err(error) => {
                self.counts.failed.get_or_insert(error);
            }
        }
    }

    /// The size of the copy, if one was made.
    fn try_keep_list(
        &mut self,
        place: &Place,
        is_of_this_start: impl FnOnce(&File) -> bool,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<Option<u64>> {
        let left_bytes = self.left_bytes;
        let store = self.store()?;
        if store.open_copy(place).is_some_and(|copy| is_of_this_start(&copy)) {
            store.touch(place);
            return Ok(None);
        }
        let list = read()?;
        let size_bytes = list.len() as u64;
        if size_bytes > left_bytes || !store.has_room(size_bytes) {
            self.counts.without_room += 1;
            return Ok(None);
        }
        store.write(place, &list)?;
        Ok(Some(size_bytes))
    }

    /// Makes room for the new copies, and gives the counts.
    pub(crate) fn finish(mut self) -> KeptCounts {
        if self.counts.copied > 0
            && let Some(Ok(store)) = &self.store
        {
            match store.evict(self.plan.max_bytes) {
                Ok((evicted, bytes)) => {
                    self.counts.evicted = evicted;
                    self.counts.evicted_bytes = bytes;
                }
                Err(error) => {
                    self.counts.failed.get_or_insert(error);
                }
            }
        }
        self.counts.time_ns = self.begin.elapsed().as_nanos() as u64;
        self.counts
    }

    fn count_copy(&mut self, size_bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(size_bytes);
        self.counts.copied += 1;
        self.counts.copied_bytes += size_bytes;
    }

    fn store(&mut self) -> io::Result<&Store> {
        let store = self.store.get_or_insert_with(|| Store::open(&self.plan.directory));
        store.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }
}

fn place(description: &MappedFile, found: &FoundFile) -> io::Result<Place> {
    match found.build_id {
        Some(id) => Ok(Place::of_binary(below(&description.path)?, id)),
        None => {
            let stamp = description.stamp().ok_or(io::ErrorKind::NotFound)?;
            Ok(Place::without_id(kept_directory(&stamp)))
        }
    }
}

/// Whether nobody has written the file since the recorder looked at it.
fn is_as_found(file: &File, found: &FoundFile) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    (metadata.len(), modified_ns(&metadata)) == (found.size_bytes, found.modified_ns)
}

/// Whether no bytes were cut off since the recorder looked at the file.
fn has_as_much(file: &File, found: &FoundFile) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() >= found.size_bytes)
}

/// When a file was written last, in nanoseconds since the epoch.
pub(crate) fn modified_ns(metadata: &Metadata) -> u64 {
    let seconds = metadata.mtime().saturating_mul(SECOND_NS);
    seconds.saturating_add(metadata.mtime_nsec()).max(0) as u64
}

/// Whether a path is one of plain names.
fn is_plain(path: &Path) -> bool {
    path.components().all(|component| matches!(component, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests;
