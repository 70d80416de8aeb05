//! Read-only mappings of whole files.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;

use memmap2::{Advice, Mmap, UncheckedAdvice};

/// A file's bytes, mapped read-only and private. Derefs to `[u8]`.
///
/// A file that is truncated while it is mapped makes later reads of the lost pages raise
/// `SIGBUS`, which ends the process. That is accepted: files mapped here are recordings and
/// ELF files that are replaced by rename, not cut, and reading a 200 GiB recording by `read`
/// into memory is no alternative.
#[derive(Debug)]
pub struct MappedFile {
    /// `None` for an empty file, which the kernel refuses to map.
    map: Option<Mmap>,
}

impl MappedFile {
    /// Maps `path`.
    pub fn open(path: &Path) -> io::Result<MappedFile> {
        MappedFile::map(&File::open(path)?)
    }

    /// Maps `file` from start to end.
    pub fn map(file: &File) -> io::Result<MappedFile> {
        if file.metadata()?.len() == 0 {
            return Ok(MappedFile { map: None });
        }
        // SAFETY: the mapping is private and never written through. Another process may change
        // the file under us: bytes are then garbage that every parser must bear anyway
        // (outside input), and a truncation raises SIGBUS, accepted as the type's doc says.
        let map = unsafe { Mmap::map(file)? };
        Ok(MappedFile { map: Some(map) })
    }

    /// Tells the kernel that the file will be read from front to back.
    pub fn advise_sequential(&self) -> io::Result<()> {
        self.map.as_ref().map_or(Ok(()), |map| map.advise(Advice::Sequential))
    }

    /// Takes the pages that were read out of this process's memory. They are read again where they are looked at.
    pub fn forget_pages(&self) -> io::Result<()> {
        let Some(map) = &self.map else { return Ok(()) };
        // SAFETY: nothing is ever written through the mapping, so that its bytes are those of the file before and after.
        unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) }
    }

    /// Has a part of the file in memory, so that looking at it waits for nothing. Where the file does not give it (a disk
    /// fails, or the file was cut), and on kernels before 5.14, this is an error and no signal.
    pub fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let Some(map) = &self.map else { return Ok(()) };
        map.advise_range(Advice::PopulateRead, range.start, range.len())
    }

    /// Takes the pages of a part out of this process's memory, as [`forget_pages`](Self::forget_pages) does.
    pub fn forget(&self, range: Range<usize>) -> io::Result<()> {
        let Some(map) = &self.map else { return Ok(()) };
        // SAFETY: nothing is ever written through the mapping, so that its bytes are those of the file before and after.
        unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len()) }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
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
