//! The bytes of a file in this process's memory: records are read without a system call for each.
//!
//! A part of the file is mapped only while it is in the page cache, and its pages are asked for before anybody looks at
//! them. So a disk that fails, and a file that is shorter now, are met by the reads that stand in the place of the
//! mapping then, as errors. Where a file is cut within the microseconds in which a block is copied, the rest of the block
//! is zeros, which no record is.

use rustix::io::{ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::sync::atomic::{AtomicUsize, Ordering};
use whit_sys::MappedFile;

/// Pages of so many bytes behind the reader stay: giving them back costs a system call.
const KEPT_BYTES: usize = 4 << 20;

/// A mapped file that is read from front to back.
#[derive(Debug)]
pub(super) struct Mapping {
    map: MappedFile,
    /// Pages in front of this were given back.
    forgotten: AtomicUsize,
}

impl Mapping {
    /// `None` where the file cannot be mapped.
    pub(super) fn new(file: &File) -> Option<Mapping> {
        let map = MappedFile::map(file).ok()?;
        Some(Mapping { map, forgotten: AtomicUsize::new(0) })
    }

    /// A part of the file. `None` where it would have to be waited for, or is not there.
    pub(super) fn part(&self, file: &File, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let range = start..start.checked_add(len)?;
        let part = self.map.get(range.clone()).filter(|part| !part.is_empty())?;
        if !is_in_memory(file, offset + len as u64 - 1) {
            return None;
        }
        self.forget_before(start);
        self.map.populate(range).ok()?;
        Some(part)
    }

    fn forget_before(&self, start: usize) {
        let forgotten = self.forgotten.load(Ordering::Relaxed);
        if start >= forgotten.saturating_add(KEPT_BYTES) {
            // Pages that stay cost memory and nothing else.
            let _ = self.map.forget(forgotten..start);
            self.forgotten.store(start, Ordering::Relaxed);
        }
    }
}

/// Whether a byte of a file can be read without waiting.
fn is_in_memory(file: &File, offset: u64) -> bool {
    let mut byte = [0];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT);
    read == Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const SIZE_BYTES: usize = 3 * KEPT_BYTES;

    fn file() -> (File, Vec<u8>) {
        let bytes: Vec<u8> = (0..SIZE_BYTES).map(|at| (at / 4093) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        (file, bytes)
    }

    #[test]
    fn parts_are_those_of_the_file_and_memory_behind_is_given_back() {
        let (file, bytes) = file();
        let mapping = Mapping::new(&file).unwrap();
        let step = 100_000;
        for start in (0..SIZE_BYTES - step).step_by(step) {
            let part = mapping.part(&file, start as u64, step).expect("in the page cache");
            assert_eq!(part, &bytes[start..start + step]);
            assert!(start - mapping.forgotten.load(Ordering::Relaxed) < KEPT_BYTES);
        }
        assert!(mapping.part(&file, SIZE_BYTES as u64 - 8, 9).is_none());
        assert!(mapping.part(&file, 0, 0).is_none());
    }

    #[test]
    fn a_file_that_was_cut_has_no_parts_behind_its_end() {
        let (file, bytes) = file();
        let mapping = Mapping::new(&file).unwrap();
        file.set_len(100_000).unwrap();
        assert_eq!(mapping.part(&file, 0, 100_000), Some(&bytes[..100_000]));
        assert!(mapping.part(&file, 0, 100_001).is_none());
        assert!(mapping.part(&file, 1 << 20, 1000).is_none());
    }
}
