//! Mappings of files that others cut meanwhile: a read of a page that the file no longer has gives zeros.
//!
//! The kernel raises `SIGBUS` in the thread that reads such a page. Its handler here puts zeros in the place of the page
//! and of all behind it, up to the end of the mapping, and marks the mapping as cut. The read then goes on. A signal that
//! comes from anywhere else ends the process as it would have.
//!
//! The handler may interrupt any code, so that it takes no lock and allocates nothing: mappings are in a list of
//! [`Slot`]s that only ever grows.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::param::page_size;

use crate::workload::last_errno;

/// The start in a slot without a mapping.
const FREE: usize = 0;

/// A place for a mapping.
#[derive(Debug)]
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut: AtomicBool,
    next: AtomicPtr<Slot>,
}

/// The newest slot. Slots live as long as the process.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());

/// Held while a slot is taken.
static TAKING: Mutex<()> = Mutex::new(());

/// Size of a page, for the handler.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A mapping that the handler knows, until this is dropped. It is dropped before the mapping ends.
#[derive(Debug)]
pub(crate) struct KnownMapping {
    slot: &'static Slot,
}

impl KnownMapping {
    /// Makes a mapping known that begins at a page. Only the caller unmaps it.
    pub(crate) fn new(mapping: &[u8]) -> io::Result<KnownMapping> {
        install()?;
        let start = mapping.as_ptr() as usize;
        let end = start + mapping.len().next_multiple_of(page_size());
        let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |slot: &&Slot| slot.start.load(Ordering::Acquire) == FREE;
        let slot = slots().find(is_free).unwrap_or_else(append);
        slot.is_cut.store(false, Ordering::Relaxed);
        // Pairs with the handler's loads: an end that it sees with a start is of that mapping, or the start has changed.
        slot.end.store(end, Ordering::Release);
        slot.start.store(start, Ordering::Release);
        Ok(KnownMapping { slot })
    }

    /// Whether a read met a page that the file no longer had.
    pub(crate) fn is_cut(&self) -> bool {
        self.slot.is_cut.load(Ordering::Acquire)
    }
}

impl Drop for KnownMapping {
    fn drop(&mut self) {
        self.slot.start.store(FREE, Ordering::Release);
    }
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    let slot = |at: *mut Slot| {
        // SAFETY: null, or a slot that `append` leaked whole before it stored the pointer, and that nothing frees.
        unsafe { at.as_ref() }
    };
    let first = slot(SLOTS.load(Ordering::Acquire));
    std::iter::successors(first, move |before| slot(before.next.load(Ordering::Acquire)))
}

/// A new slot. The caller holds [`TAKING`].
fn append() -> &'static Slot {
    let slot = Box::leak(Box::new(Slot {
        start: AtomicUsize::new(FREE),
        end: AtomicUsize::new(0),
        is_cut: AtomicBool::new(false),
        next: AtomicPtr::new(SLOTS.load(Ordering::Relaxed)),
    }));
    SLOTS.store(slot, Ordering::Release);
    slot
}

fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let install = || {
        PAGE_BYTES.store(page_size(), Ordering::Relaxed);
        // SAFETY: all-zero is a valid sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the action is initialized, and its handler makes calls that are async-signal-safe alone.
        let result = unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) };
        if result == 0 { Ok(()) } else { Err(last_errno()) }
    };
    INSTALLED.get_or_init(install).map_err(io::Error::from_raw_os_error)
}

extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let before = last_errno();
    // SAFETY: with SA_SIGINFO, the kernel passes a whole siginfo_t, which lives as long as the handler runs.
    let info = unsafe { &*info };
    let code = info.si_code;
    if code == libc::BUS_ADRERR {
        // SAFETY: signals with this code have an address.
        let address = unsafe { info.si_addr() } as usize;
        if slots().any(|slot| slot.patch(address)) {
            set_errno(before);
            return;
        }
    }
    // SAFETY: the default disposition runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    if code <= 0 {
        // A process has sent it: no instruction would raise it again.
        // SAFETY: a plain signal number; it is delivered when this handler returns.
        unsafe { libc::raise(signal) };
    }
}

impl Slot {
    /// Puts zeros in the place of the rest of this mapping, if the address lies in it.
    fn patch(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        // The thread that faulted reads its mapping, which stays. A slot that changed meanwhile is not that one.
        let is_settled = start != FREE && self.start.load(Ordering::Acquire) == start;
        if !is_settled || !(start..end).contains(&address) {
            return false;
        }
        let page = address - address % PAGE_BYTES.load(Ordering::Relaxed);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the range is the end of a mapping of ours, which lives while one of its pages is read, and whose
        // readers bear any bytes. The call changes no memory but that, and is async-signal-safe on Linux.
        let placed = unsafe {
            libc::mmap(page as *mut libc::c_void, end - page, libc::PROT_READ, flags, -1, 0)
        };
        self.is_cut.store(true, Ordering::Release);
        placed != libc::MAP_FAILED
    }
}

fn set_errno(errno: i32) {
    // SAFETY: the call has no requirements.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is that of this thread's errno, which is always valid.
    unsafe { *place = errno };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_no_known_mapping_is_never_replaced() {
        let bytes = [7u8; 64];
        let at = bytes.as_ptr() as usize;
        let slot = |start, end| Slot {
            start: AtomicUsize::new(start),
            end: AtomicUsize::new(end),
            is_cut: AtomicBool::new(false),
            next: AtomicPtr::new(std::ptr::null_mut()),
        };
        // A free slot still has the end of its last mapping.
        for slot in [slot(FREE, usize::MAX), slot(at + 64, at + 128), slot(at - 64, at)] {
            assert!(!slot.patch(at) && !slot.is_cut.load(Ordering::Relaxed));
        }
        assert_eq!(bytes, [7; 64]);
    }
}
