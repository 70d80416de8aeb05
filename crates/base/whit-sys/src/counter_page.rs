//! The page that the kernel shares with those who read an event's count without a system call.
//!
//! The protocol is that of `perf_event_mmap_page` (`include/uapi/linux/perf_event.h`): the kernel makes
//! `lock` another number before and after each change, so equal numbers around a reading say that it is
//! of one piece.

use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::{Errno, PerfEventFd, check, system};

/// Bit of `capabilities`: `index` and `offset` are kept, and RDPMC is allowed.
const CAP_USER_RDPMC: u64 = 1 << 2;
/// How often a reading is tried while the kernel changes the page.
const RETRIES: u32 = 100;

/// An event's page, without a ring.
#[derive(Debug)]
pub struct CounterPage {
    base: NonNull<perf_event_mmap_page>,
    size_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is only read.
unsafe impl Send for CounterPage {}

/// Values of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCount {
    /// The event's count.
    pub count: u64,
    /// It is on a hardware counter at this moment.
    pub counting: bool,
}

impl CounterPage {
    /// Maps the page of `event`; `Errno::PERM` when the user's locked-memory allowance is used up.
    pub fn map(event: &PerfEventFd) -> Result<CounterPage, Errno> {
        let size_bytes = system::page_size();
        let fd = event.as_fd().as_raw_fd();
        // SAFETY: a new shared mapping at an address of the kernel's choice touches no memory that
        // exists; the result is checked before use.
        let address = unsafe {
            libc::mmap(std::ptr::null_mut(), size_bytes, libc::PROT_READ, libc::MAP_SHARED, fd, 0)
        };
        if address == libc::MAP_FAILED {
            check(-1)?;
        }
        let base = NonNull::new(address.cast()).ok_or(Errno::NOMEM)?;
        Ok(CounterPage { base, size_bytes })
    }

    /// The count, without a system call; only for the event's own thread. `None` where the kernel does
    /// not keep the page for this event (software events, or RDPMC is not allowed): read it then.
    pub fn read(&self) -> Option<PageCount> {
        for _ in 0..RETRIES {
            let before = self.lock().load(Ordering::Acquire);
            let count = page_count(&self.fields(), read_counter);
            fence(Ordering::Acquire);
            if self.lock().load(Ordering::Relaxed) == before {
                return count;
            }
        }
        None
    }

    /// The fields that counts are made of; volatile because the kernel may write them at any time, which
    /// the lock's number tells.
    fn fields(&self) -> Fields {
        let page = self.base.as_ptr();
        // SAFETY: the page is mapped for as long as `self`; no reference to it is made.
        let capabilities = unsafe { &raw const (*page).__bindgen_anon_1.capabilities };
        // SAFETY: as above.
        let index = unsafe { &raw const (*page).index };
        // SAFETY: as above.
        let offset = unsafe { &raw const (*page).offset };
        // SAFETY: as above.
        let width = unsafe { &raw const (*page).pmc_width };
        Fields {
            // SAFETY: mapped, readable, aligned, and any bits are a value.
            capabilities: unsafe { capabilities.read_volatile() },
            // SAFETY: as above.
            index: unsafe { index.read_volatile() },
            // SAFETY: as above.
            offset: unsafe { offset.read_volatile() },
            // SAFETY: as above.
            width_bits: unsafe { width.read_volatile() },
        }
    }

    fn lock(&self) -> &AtomicU32 {
        let offset = std::mem::offset_of!(perf_event_mmap_page, lock);
        // SAFETY: the page is mapped for as long as `self`, the field is inside it.
        let field = unsafe { self.base.as_ptr().cast::<u8>().add(offset) };
        // SAFETY: aligned to 4; this process never writes it.
        unsafe { AtomicU32::from_ptr(field.cast()) }
    }
}

impl Drop for CounterPage {
    fn drop(&mut self) {
        // SAFETY: this value made the mapping and nothing borrowed from it is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size_bytes) };
    }
}

/// The fields of a page that make the count.
#[derive(Clone, Copy)]
struct Fields {
    capabilities: u64,
    index: u32,
    offset: i64,
    width_bits: u16,
}

/// Values of a page; `rdpmc` reads a hardware counter, where this architecture has such an
/// instruction.
fn page_count(page: &Fields, rdpmc: impl FnOnce(u32) -> Option<u64>) -> Option<PageCount> {
    if page.capabilities & CAP_USER_RDPMC == 0 {
        return None;
    }
    let Some(counter) = page.index.checked_sub(1) else {
        return Some(PageCount { count: page.offset as u64, counting: false });
    };
    let unused = 64_u32.checked_sub(u32::from(page.width_bits))?;
    // The counter's top bit is a sign: the kernel counts up to 0 from below.
    let value = (rdpmc(counter)?.checked_shl(unused)? as i64) >> unused;
    Some(PageCount { count: page.offset.wrapping_add(value) as u64, counting: true })
}

#[cfg(target_arch = "x86_64")]
fn read_counter(counter: u32) -> Option<u64> {
    let (low, high): (u32, u32);
    // SAFETY: RDPMC writes the two registers alone. The kernel allows it to the process while a page
    // that says so is mapped, and `page_count` has seen that it says so.
    unsafe {
        std::arch::asm!(
            "rdpmc",
            in("ecx") counter,
            out("eax") low,
            out("edx") high,
            options(nomem, nostack, preserves_flags)
        );
    }
    Some((u64::from(high) << 32) | u64::from(low))
}

#[cfg(not(target_arch = "x86_64"))]
fn read_counter(_: u32) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenFlags;
    use crate::perf_event::tests::dummy_attr;

    fn page(capabilities: u64, index: u32, offset: i64) -> Fields {
        Fields { capabilities, index, offset, width_bits: 48 }
    }

    #[test]
    fn counts_are_offset_and_counter() {
        let read = |page: &Fields, value| {
            page_count(page, |counter| {
                assert_eq!(counter, 2);
                value
            })
        };
        assert_eq!(read(&page(0, 3, 100), Some(5)), None, "not kept for this event");
        let stopped = PageCount { count: 100, counting: false };
        assert_eq!(read(&page(CAP_USER_RDPMC, 0, 100), Some(5)), Some(stopped));
        let counting = |count| Some(PageCount { count, counting: true });
        assert_eq!(read(&page(CAP_USER_RDPMC, 3, 100), Some(5)), counting(105));
        let negative = (1 << 48) - 30;
        assert_eq!(read(&page(CAP_USER_RDPMC, 3, 100), Some(negative)), counting(70));
        assert_eq!(read(&page(CAP_USER_RDPMC, 3, 100), None), None);
        let mut wide = page(CAP_USER_RDPMC, 3, 0);
        wide.width_bits = 65;
        assert_eq!(read(&wide, Some(1)), None);
    }

    #[test]
    fn software_events_have_a_page_that_says_nothing() {
        let event = PerfEventFd::open(&dummy_attr(), 0, -1, None, OpenFlags::default()).unwrap();
        assert_eq!(CounterPage::map(&event).unwrap().read(), None);
    }
}
