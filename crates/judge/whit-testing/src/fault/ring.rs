//! A ring that a test writes as the kernel would.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Offset of `data_head` in `struct perf_event_mmap_page`.
const DATA_HEAD: u64 = 1024;
/// Offset of `data_tail`.
const DATA_TAIL: u64 = 1032;

/// A file of the form of a ring: a control page, and pages of data. A program maps it as it maps an event's ring.
///
/// Writes of a file and its shared mappings show the same bytes, so that no memory of this side is mapped.
#[derive(Debug)]
pub struct FakeRing {
    file: File,
    page: u64,
    data_size: u64,
    head: u64,
}

impl FakeRing {
    /// An empty ring with this many pages of data, on a machine with pages of `page_bytes`.
    ///
    /// # Panics
    /// Where a number is no power of two.
    pub fn new(page_bytes: usize, data_pages: usize) -> io::Result<FakeRing> {
        assert!(page_bytes.is_power_of_two() && data_pages.is_power_of_two(), "no such ring");
        let page = page_bytes as u64;
        let data_size = page * data_pages as u64;
        let file = tempfile::tempfile()?;
        file.set_len(page + data_size)?;
        Ok(FakeRing { file, page, data_size, head: 0 })
    }

    /// Descriptor to map.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// Bytes that the reader has not given back.
    pub fn unread_bytes(&self) -> io::Result<u64> {
        let mut tail = [0; 8];
        self.file.read_exact_at(&mut tail, DATA_TAIL)?;
        Ok(self.head.wrapping_sub(u64::from_ne_bytes(tail)))
    }

    /// Space of the ring that holds no unread bytes.
    pub fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.data_size - self.unread_bytes()?)
    }

    /// Writes bytes behind those before, if they fit. Says whether they did.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<bool> {
        if bytes.len() as u64 > self.free_bytes()? {
            return Ok(false);
        }
        self.put(self.head, bytes)?;
        self.set_head(self.head.wrapping_add(bytes.len() as u64))?;
        Ok(true)
    }

    /// Writes bytes in front of those before, and over the oldest ones, as for events with `write_backward`.
    pub fn push_backward(&mut self, bytes: &[u8]) -> io::Result<()> {
        let head = self.head.wrapping_sub(bytes.len() as u64);
        self.put(head, bytes)?;
        self.set_head(head)
    }

    fn put(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let start = position & (self.data_size - 1);
        let first =
            usize::try_from(self.data_size - start).map_or(bytes.len(), |r| r.min(bytes.len()));
        self.file.write_all_at(&bytes[..first], self.page + start)?;
        self.file.write_all_at(&bytes[first..], self.page)
    }

    fn set_head(&mut self, head: u64) -> io::Result<()> {
        self.head = head;
        self.file.write_all_at(&head.to_ne_bytes(), DATA_HEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_to(ring: &FakeRing, tail: u64) {
        ring.file.write_all_at(&tail.to_ne_bytes(), DATA_TAIL).unwrap();
    }

    fn data(ring: &FakeRing, at: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        ring.file.read_exact_at(&mut bytes, ring.page + at).unwrap();
        bytes
    }

    #[test]
    fn bytes_wrap_and_a_full_ring_takes_none() {
        let mut ring = FakeRing::new(4096, 1).unwrap();
        let size = ring.free_bytes().unwrap();
        assert!(ring.push(&vec![1; size as usize - 4]).unwrap());
        assert!(!ring.push(&[2; 8]).unwrap());
        tail_to(&ring, 8);
        assert!(ring.push(&[2; 8]).unwrap());
        assert_eq!(
            (data(&ring, size - 4, 4), data(&ring, 0, 5)),
            (vec![2; 4], vec![2, 2, 2, 2, 1])
        );
        assert_eq!((ring.unread_bytes().unwrap(), ring.free_bytes().unwrap()), (size - 4, 4));
    }

    #[test]
    fn backward_bytes_are_written_in_front_and_overwrite() {
        let mut ring = FakeRing::new(4096, 1).unwrap();
        let size = ring.data_size;
        ring.push_backward(&[1; 8]).unwrap();
        ring.push_backward(&[2; 8]).unwrap();
        assert_eq!(data(&ring, size - 16, 16), [[2; 8], [1; 8]].concat());
        ring.push_backward(&vec![3; size as usize]).unwrap();
        assert_eq!(data(&ring, 0, size as usize), vec![3; size as usize]);
        assert_eq!(ring.head, 0u64.wrapping_sub(16 + size));
    }
}
