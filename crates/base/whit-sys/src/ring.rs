//! The ring that the kernel writes an event's records into, mapped into this process.
//!
//! The kernel is the only writer of `data_head` and of the bytes between `data_tail` and the
//! end of the free space; we are the only writer of `data_tail`. The barriers pair as
//! `kernel/events/ring_buffer.c` (`perf_output_put_handle`) states:
//!
//! ```text
//!   kernel                              here
//!   if (LOAD ->data_tail) {             LOAD ->data_head
//!                       (A)             Acquire           (C)
//!     STORE $data                       LOAD $data
//!     smp_wmb()         (B)             Release           (D)
//!     STORE ->data_head                 STORE ->data_tail
//!   }
//! ```
//!
//! B pairs with C (data is visible before the head that announces it), A with D (our reads of
//! the data are done before the kernel may overwrite it).

use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::capability::Capability;
use crate::{Errno, PerfEventFd, check, privilege, system};

/// Bit of `capabilities`: `time_mult`, `time_shift` and `time_offset` are valid.
const CAP_USER_TIME: u64 = 1 << 3;
/// Bit of `capabilities`: `time_zero` is valid.
const CAP_USER_TIME_ZERO: u64 = 1 << 4;
/// Bit of `capabilities`: `time_cycles` and `time_mask` are valid.
const CAP_USER_TIME_SHORT: u64 = 1 << 5;
/// How often the time fields are read again when the kernel changes them meanwhile.
const SEQLOCK_RETRIES: u32 = 1000;

/// A mapped ring: one control page and a power-of-two number of data pages.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    map_size_bytes: usize,
    data_offset: usize,
    data_size_bytes: usize,
    /// Up to where it was read.
    pub(crate) tail: u64,
}

// SAFETY: the mapping belongs to this value alone and is reached through `&self`/`&mut self`
// only; the kernel's accesses follow the protocol above, which does not depend on the thread.
unsafe impl Send for Ring {}

/// How the hardware's time stamp counter maps to perf time, from the control page.
/// `time = time_zero + (cycles >> shift) * mult + (((cycles & mask) * mult) >> shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConversion {
    /// `time_shift`.
    pub shift: u16,
    /// `time_mult`.
    pub mult: u32,
    /// `time_zero`.
    pub zero: u64,
    /// `time_cycles` and `time_mask`, on machines whose counter is short.
    pub short: Option<(u64, u64)>,
}

/// Contents of a ring. The records stay in the ring until [`RingRead::release`].
#[derive(Debug)]
pub struct RingRead<'r> {
    ring: &'r mut Ring,
    head: u64,
}

impl Ring {
    /// Maps the ring of `event` with `data_pages` pages of data, a power of two.
    /// `Errno::PERM` when the user's locked-memory allowance is used up, `Errno::INVAL` when
    /// the number of pages is no power of two or the event's records go elsewhere.
    pub fn map(event: &PerfEventFd, data_pages: usize) -> Result<Ring, Errno> {
        Ring::map_with(event, data_pages, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// A mapping that cannot be written makes the kernel overwrite unread records.
    pub(crate) fn map_with(
        event: &PerfEventFd,
        data_pages: usize,
        protection: libc::c_int,
    ) -> Result<Ring, Errno> {
        use std::os::fd::AsFd;
        let page = system::page_size();
        let size = data_pages
            .checked_add(1)
            .and_then(|pages| pages.checked_mul(page))
            .filter(|_| data_pages.is_power_of_two())
            .ok_or(Errno::INVAL)?;
        let fd = event.as_fd().as_raw_fd();
        let _in_force = privilege::raise(&[Capability::IpcLock]);
        // SAFETY: a new shared mapping at an address of the kernel's choice touches no memory
        // that exists; the result is checked before use.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED, fd, 0) };
        if address == libc::MAP_FAILED {
            check(-1)?;
        }
        let base = NonNull::new(address.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let mut ring = Ring {
            base,
            map_size_bytes: size,
            data_offset: page,
            data_size_bytes: data_pages * page,
            tail: 0,
        };
        ring.tail = ring.data_tail().load(Ordering::Relaxed);
        Ok(ring)
    }

    /// Size of the data area.
    pub fn data_size_bytes(&self) -> usize {
        self.data_size_bytes
    }

    /// Bytes that wait to be read.
    pub fn available_bytes(&self) -> usize {
        self.data_head().load(Ordering::Relaxed).wrapping_sub(self.tail) as usize
    }

    /// Looks at everything that the kernel has finished writing. Nothing is copied, and nothing
    /// is given back to the kernel until the result is released.
    pub fn read(&mut self) -> RingRead<'_> {
        // Acquire: C of the module's diagram, pairs with the kernel's smp_wmb() (B).
        let head = self.data_head().load(Ordering::Acquire);
        RingRead { head, ring: self }
    }

    /// Hands the ring's contents to `take` as at most two slices. It gives the space back to the
    /// kernel afterwards, for any result of `take`. `None` when the ring is empty.
    pub fn drain<R>(&mut self, take: impl FnOnce([&[u8]; 2]) -> R) -> Option<R> {
        let read = self.read();
        if read.is_empty() {
            return None;
        }
        let result = take(read.slices());
        read.release();
        Some(result)
    }

    /// How the time stamp counter maps to perf time; `None` where the kernel does not say.
    pub fn time_conversion(&self) -> Option<TimeConversion> {
        for _ in 0..SEQLOCK_RETRIES {
            let before = self.lock().load(Ordering::Acquire);
            let page = self.page();
            // SAFETY: the control page is mapped and readable; volatile because the kernel
            // may write it at any time, which the sequence count detects.
            let page = unsafe { page.read_volatile() };
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.lock().load(Ordering::Relaxed) == before {
                return conversion(&page);
            }
        }
        None
    }

    fn page(&self) -> *const perf_event_mmap_page {
        self.base.as_ptr().cast()
    }

    pub(crate) fn data_head(&self) -> &AtomicU64 {
        let offset = std::mem::offset_of!(perf_event_mmap_page, data_head);
        // SAFETY: the control page is mapped for as long as `self`, the field is inside it.
        let field = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: aligned to 8, and every access to it in this process is atomic.
        unsafe { AtomicU64::from_ptr(field.cast()) }
    }

    fn data_tail(&self) -> &AtomicU64 {
        let offset = std::mem::offset_of!(perf_event_mmap_page, data_tail);
        // SAFETY: the control page is mapped for as long as `self`, the field is inside it.
        let field = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: aligned to 8, and every access to it in this process is atomic.
        unsafe { AtomicU64::from_ptr(field.cast()) }
    }

    fn lock(&self) -> &AtomicU32 {
        let offset = std::mem::offset_of!(perf_event_mmap_page, lock);
        // SAFETY: the control page is mapped for as long as `self`, the field is inside it.
        let field = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: aligned to 4; this process never writes it.
        unsafe { AtomicU32::from_ptr(field.cast()) }
    }

    /// `size` bytes of the data area from `offset` on.
    ///
    /// # Safety
    /// The range must lie in the data area and between `data_tail` and `data_head`.
    pub(crate) unsafe fn data(&self, offset: usize, size: usize) -> &[u8] {
        // SAFETY: `offset` is inside the data area, as the caller promises.
        let start = unsafe { self.base.as_ptr().add(self.data_offset + offset) };
        // SAFETY: mapped, and the kernel leaves bytes between tail and head alone.
        unsafe { std::slice::from_raw_parts(start, size) }
    }
}

fn conversion(page: &perf_event_mmap_page) -> Option<TimeConversion> {
    // SAFETY: every bit pattern of the union is a valid u64.
    let capabilities = unsafe { page.__bindgen_anon_1.capabilities };
    let needed = CAP_USER_TIME | CAP_USER_TIME_ZERO;
    (capabilities & needed == needed).then(|| TimeConversion {
        shift: page.time_shift,
        mult: page.time_mult,
        zero: page.time_zero,
        short: (capabilities & CAP_USER_TIME_SHORT != 0)
            .then_some((page.time_cycles, page.time_mask)),
    })
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this value made the mapping and nothing borrowed from it is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.map_size_bytes) };
    }
}

impl RingRead<'_> {
    /// Bytes that can be read.
    pub fn len(&self) -> usize {
        (self.head.wrapping_sub(self.ring.tail) as usize).min(self.ring.data_size_bytes)
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in order: up to the end of the data area, and from its start on. A record may
    /// be cut at the seam.
    pub fn slices(&self) -> [&[u8]; 2] {
        let start = self.ring.tail as usize & (self.ring.data_size_bytes - 1);
        let first = self.len().min(self.ring.data_size_bytes - start);
        let second = self.len() - first;
        // SAFETY: from the tail to at most the end of the data area, not past the head.
        let front = unsafe { self.ring.data(start, first) };
        // SAFETY: from the start of the data area, the rest up to the head.
        let back = unsafe { self.ring.data(0, second) };
        [front, back]
    }

    /// Gives the space of the first `size` bytes back to the kernel; later bytes stay readable.
    ///
    /// # Panics
    /// Where there are fewer.
    pub fn release_bytes(&mut self, size: usize) {
        assert!(size <= self.len(), "only what was read can be released");
        self.ring.tail = self.ring.tail.wrapping_add(size as u64);
        // Release: D of the module's diagram, pairs with the kernel's load of data_tail (A).
        self.ring.data_tail().store(self.ring.tail, Ordering::Release);
    }

    /// Gives the space back to the kernel.
    pub fn release(self) {
        self.ring.tail = self.head;
        // Release: D of the module's diagram, pairs with the kernel's load of data_tail (A).
        self.ring.data_tail().store(self.head, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenFlags;
    use crate::perf_event::tests::dummy_attr;

    fn set_comm(name: &std::ffi::CStr) {
        rustix::thread::set_name(name).unwrap();
    }

    #[test]
    fn records_come_out_whole_and_once() {
        let event = PerfEventFd::open(&dummy_attr(), 0, -1, None, OpenFlags::default()).unwrap();
        let mut ring = Ring::map(&event, 1).unwrap();
        assert_eq!(ring.data_size_bytes(), system::page_size());
        assert!(ring.drain(|_| ()).is_none());
        set_comm(c"ring-test-one");
        let read = ring.read();
        let bytes = read.slices().concat();
        // PERF_RECORD_COMM: header, pid, tid, name.
        assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()), 3);
        assert_eq!(usize::from(u16::from_ne_bytes([bytes[6], bytes[7]])), bytes.len());
        assert_eq!(&bytes[16..29], b"ring-test-one");
        assert_eq!(ring.read().len(), bytes.len(), "an unreleased read takes nothing out");
        let mut read = ring.read();
        read.release_bytes(8);
        assert_eq!(read.slices().concat(), bytes[8..]);
        assert_eq!(ring.drain(|s| s.concat()).unwrap(), bytes[8..]);
        assert_eq!(ring.available_bytes(), 0);
    }

    #[test]
    fn a_ring_that_wraps_gives_two_slices_in_order() {
        let event = PerfEventFd::open(&dummy_attr(), 0, -1, None, OpenFlags::default()).unwrap();
        let mut ring = Ring::map(&event, 1).unwrap();
        let mut wrapped = false;
        for i in 0..2000u32 {
            let name = std::ffi::CString::new(format!("w{}", 10u64.pow(i % 12 + 1))).unwrap();
            set_comm(&name);
            let (bytes, second) = ring.drain(|s| (s.concat(), s[1].len())).unwrap();
            wrapped |= second > 0;
            assert_eq!(&bytes[16..16 + name.count_bytes()], name.to_bytes());
        }
        assert!(wrapped, "2000 records of 24 and 32 bytes must cross the seam of one page");
    }

    #[test]
    fn page_counts_that_are_no_power_of_two_are_refused() {
        let event = PerfEventFd::open(&dummy_attr(), 0, -1, None, OpenFlags::default()).unwrap();
        assert_eq!(Ring::map(&event, 3).unwrap_err(), Errno::INVAL);
        assert_eq!(Ring::map(&event, 0).unwrap_err(), Errno::INVAL);
        assert_eq!(Ring::map(&event, usize::MAX).unwrap_err(), Errno::INVAL);
    }
}
