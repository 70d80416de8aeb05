//! A ring that the kernel writes backwards and overwrites: the newest records are always there, the
//! oldest go.
//!
//! The mapping cannot be written, which is how the kernel knows that nobody frees space. With
//! `write_backward` each record is written *in front* of the one before, so that from the head on,
//! records stand newest first and only the oldest can be cut. Source: `__perf_output_begin` in
//! `kernel/events/ring_buffer.c`.

use std::sync::atomic::{Ordering, fence};

use crate::ring::Ring;
use crate::{Errno, PerfEventFd};

/// A mapped ring of events with `write_backward`.
#[derive(Debug)]
pub struct BackwardRing(Ring);

impl BackwardRing {
    /// Maps the ring of `event` with `data_pages` pages of data, a power of two. Errors are those of
    /// [`Ring::map`].
    pub fn map(event: &PerfEventFd, data_pages: usize) -> Result<BackwardRing, Errno> {
        Ok(BackwardRing(Ring::map_with(event, data_pages, libc::PROT_READ)?))
    }

    /// Size of the data area.
    pub fn data_size_bytes(&self) -> usize {
        self.0.data_size_bytes()
    }

    /// Appends the records since the last call that are still there, newest first; the last record
    /// may be cut. The event's output must be paused ([`PerfEventFd::pause_output`]): a record that
    /// was being written at that moment can still overwrite the oldest ones, which are then left
    /// out. False where older new records were overwritten.
    pub fn copy_new(&mut self, out: &mut Vec<u8>) -> bool {
        let size = self.data_size_bytes();
        // Acquire: pairs with the kernel's smp_wmb() between the data and the head.
        let head = self.0.data_head().load(Ordering::Acquire);
        let written = self.0.tail.wrapping_sub(head) as usize;
        let new = written.min(size);
        let start = head as usize & (size - 1);
        let first = new.min(size - start);
        // SAFETY: inside the data area, from the head on. The output is paused.
        out.extend_from_slice(unsafe { self.0.data(start, first) });
        // SAFETY: as above, from the start of the data area on.
        out.extend_from_slice(unsafe { self.0.data(0, new - first) });
        // The copy is done before the head is looked at again.
        fence(Ordering::Acquire);
        let moved = head.wrapping_sub(self.0.data_head().load(Ordering::Acquire)) as usize;
        let overwritten = (new + moved).saturating_sub(size).min(new);
        out.truncate(out.len() - overwritten);
        self.0.tail = head;
        written <= size && overwritten == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenFlags;
    use crate::perf_event::tests::dummy_attr;

    /// Bit 27 of the flags.
    fn backward_attr() -> Vec<u8> {
        let mut attr = dummy_attr();
        attr[43] |= 1 << 3;
        attr
    }

    fn new_names(ring: &mut BackwardRing, event: &PerfEventFd, is_whole: bool) -> Vec<String> {
        event.pause_output(true).unwrap();
        let mut bytes = Vec::new();
        assert_eq!(ring.copy_new(&mut bytes), is_whole);
        event.pause_output(false).unwrap();
        let mut names = Vec::new();
        let mut rest = &bytes[..];
        while rest.len() >= 8 {
            let size = usize::from(u16::from_ne_bytes([rest[6], rest[7]]));
            if size > rest.len() {
                break;
            }
            let name = &rest[16..size];
            let end = name.iter().position(|b| *b == 0).unwrap();
            names.push(String::from_utf8(name[..end].to_vec()).unwrap());
            rest = &rest[size..];
        }
        names
    }

    #[test]
    fn the_newest_records_come_first_and_only_once_and_the_oldest_go() {
        let event = PerfEventFd::open(&backward_attr(), 0, -1, None, OpenFlags::default()).unwrap();
        let mut ring = BackwardRing::map(&event, 1).unwrap();
        assert_eq!(new_names(&mut ring, &event, true), Vec::<String>::new());
        let set = |name: &str| {
            rustix::thread::set_name(&std::ffi::CString::new(name).unwrap()).unwrap();
        };
        ["one", "two", "three"].into_iter().for_each(set);
        assert_eq!(new_names(&mut ring, &event, true), ["three", "two", "one"]);
        set("four");
        assert_eq!(new_names(&mut ring, &event, true), ["four"]);
        (0..1000).for_each(|i| set(&format!("name-{i}")));
        let names = new_names(&mut ring, &event, false);
        // One page of records of 32 bytes.
        assert_eq!(names.len(), ring.data_size_bytes() / 32);
        assert_eq!(names[0], "name-999");
        assert_eq!(names[names.len() - 1], format!("name-{}", 1000 - names.len()));
        set("five");
        assert_eq!(new_names(&mut ring, &event, true), ["five"]);
    }
}
