//! Read-only mappings of whole files.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use memmap2::{Advice, Mmap, UncheckedAdvice};

use crate::cut_mapping::KnownMapping;

/// A file's bytes, mapped read-only and private. Derefs to `[u8]`.
///
/// Where the file is cut while it is mapped, or the disk fails, the lost pages read as zeros from the first read that
/// meets one ([`MappedFile::is_cut`]).
///
/// Cheap to clone: all clones have one mapping.
#[derive(Clone, Debug)]
pub struct MappedFile {
    /// `None` for an empty file, which the kernel refuses to map.
    mapping: Option<Arc<Mapping>>,
}

#[derive(Debug)]
struct Mapping {
    /// In front: it is dropped before the mapping is.
    known: KnownMapping,
    map: Mmap,
}

impl MappedFile {
    /// Maps `path`.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        MappedFile::map(&File::open(path)?)
    }

    /// Maps `file` from start to end.
    pub fn map(file: &File) -> io::Result<MappedFile> {
        if file.metadata()?.len() == 0 {
            return Ok(MappedFile { mapping: None });
        }
        // SAFETY: the mapping is private and never written through. Another process may change
        // the file under us: bytes are then garbage that every parser must bear anyway
        // (outside input), and lost pages read as zeros.
        let map = unsafe { Mmap::map(file)? };
        let known = KnownMapping::new(&map)?;
        Ok(MappedFile { mapping: Some(Arc::new(Mapping { known, map })) })
    }

    /// Whether a read met a page that the file no longer had: it and those behind it read as zeros since.
    pub fn is_cut(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.known.is_cut())
    }

    fn pages(&self) -> Option<&Mmap> {
        self.mapping.as_ref().map(|mapping| &mapping.map)
    }

    /// Tells the kernel that the file will be read from front to back.
    pub fn advise_sequential(&self) -> io::Result<()> {
        self.pages().map_or(Ok(()), |map| map.advise(Advice::Sequential))
    }

    /// Takes the pages that were read out of this process's memory. They are read again where they are looked at.
    pub fn forget_pages(&self) -> io::Result<()> {
        let Some(map) = self.pages() else { return Ok(()) };
        // SAFETY: nothing is ever written through the mapping, so that its bytes are those of the file before and after.
        unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) }
    }

    /// Has a part of the file in memory, so that looking at it waits for nothing. Where the file does not give it (a disk
    /// fails, or the file was cut), and on kernels before 5.14, this is an error and no signal.
    pub fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let Some(map) = self.pages() else { return Ok(()) };
        map.advise_range(Advice::PopulateRead, range.start, range.len())
    }

    /// Takes the pages of a part out of this process's memory, as [`forget_pages`](Self::forget_pages) does.
    pub fn forget(&self, range: Range<usize>) -> io::Result<()> {
        let Some(map) = self.pages() else { return Ok(()) };
        // SAFETY: nothing is ever written through the mapping, so that its bytes are those of the file before and after.
        unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len()) }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pages().map(Deref::deref).unwrap_or_default()
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn maps_the_files_bytes_and_accepts_empty_files() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(MappedFile::map(&file).unwrap().is_empty());
        file.write_all(b"PERFILE2").unwrap();
        let map = MappedFile::map(&file).unwrap();
        map.advise_sequential().unwrap();
        assert_eq!(&map[..], b"PERFILE2");
    }

    #[test]
    fn lost_pages_of_a_cut_file_read_as_zeros_in_all_threads() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 1 << 20]).unwrap();
        let other = MappedFile::map(&file).unwrap();
        let map = MappedFile::map(&file).unwrap();
        assert_eq!((map[0], map[(1 << 20) - 1]), (7, 7));
        file.set_len(5000).unwrap();
        let page = rustix::param::page_size();
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(sum(&map[page * 2..]), 0));
            }
        });
        assert_eq!(sum(&map), 7 * 5000);
        assert!(map.is_cut() && !other.is_cut());
        assert_eq!(other[0], 7);
        drop(map);
        // A place in the list is used again, and says nothing of the mapping before.
        let next = MappedFile::map(&file).unwrap();
        assert_eq!((sum(&next), next.is_cut()), (7 * 5000, false));
    }

    #[test]
    fn files_that_are_cut_again_and_again_are_read_to_their_mapped_ends() {
        let mut file = tempfile::tempfile().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        file.write_all(&[7; 1 << 18]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    file.set_len(4096).unwrap();
                    file.set_len(1 << 18).unwrap();
                }
            });
            let mut cut = 0;
            for _ in 0..2000 {
                // Empty it is never.
                let map = MappedFile::map(&file).unwrap();
                assert!(map.iter().all(|byte| matches!(byte, 0 | 7)));
                cut += u32::from(map.is_cut());
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(cut > 0, "no read met a cut file");
        });
    }

    #[test]
    fn parts_come_and_go_and_those_of_a_cut_file_are_errors() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 1 << 20]).unwrap();
        let map = MappedFile::map(&file).unwrap();
        map.populate(5000..1 << 20).unwrap();
        map.forget(0..1 << 19).unwrap();
        assert_eq!(map.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 7 << 20);
        file.set_len(1 << 19).unwrap();
        map.populate(0..1 << 19).unwrap();
        assert!(map.populate(1 << 19..1 << 20).is_err());
    }
}
