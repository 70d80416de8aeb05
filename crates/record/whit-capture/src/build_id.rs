//! Build ids of files.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

use object::Object;
use object::read::{FileKind, ReadCache, ReadRef};
use whit_types::BuildId;

/// Limit of the bytes that are read to find a build id: tables of sections and notes.
const READ_MAX_BYTES: u64 = 64 << 20;

/// The GNU build id of an ELF file, if it has one; `None` for any other file. Reads only the parts that are
/// needed.
pub fn of(file: &File) -> Option<Option<BuildId>> {
    let (cache, left_bytes) = (ReadCache::new(file), Cell::new(READ_MAX_BYTES));
    let data = Bounded { data: &cache, left_bytes: &left_bytes };
    if !matches!(FileKind::parse(data).ok()?, FileKind::Elf32 | FileKind::Elf64) {
        return None;
    }
    let elf = object::File::parse(data);
    Some(elf.and_then(|elf| elf.build_id().map(|id| id.and_then(BuildId::new))).ok().flatten())
}

/// A file may say that its tables are as large as a sparse file can be.
#[derive(Clone, Copy)]
struct Bounded<'a> {
    data: &'a ReadCache<&'a File>,
    left_bytes: &'a Cell<u64>,
}

impl<'a> ReadRef<'a> for Bounded<'a> {
    fn len(self) -> Result<u64, ()> {
        self.data.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.left_bytes.set(self.left_bytes.get().checked_sub(size).ok_or(())?);
        self.data.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.data.read_bytes_at_until(range, delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_elf_files_have_one() {
        let own = of(&File::open(std::env::current_exe().unwrap()).unwrap());
        assert!(own.is_some());
        assert_eq!(of(&File::open("/proc/self/status").unwrap()), None);
    }

    #[test]
    fn no_more_is_read_than_a_build_id_takes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100]).unwrap();
        let (cache, left_bytes) = (ReadCache::new(&file), Cell::new(10));
        let data = Bounded { data: &cache, left_bytes: &left_bytes };
        assert_eq!(data.read_bytes_at(0, 11), Err(()));
        assert_eq!(data.read_bytes_at(50, 8), Ok(&[7; 8][..]));
        assert_eq!(data.read_bytes_at(0, 3), Err(()));
        assert_eq!(data.read_bytes_at(0, 2), Ok(&[7; 2][..]));
    }
}
