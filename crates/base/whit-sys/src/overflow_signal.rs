//! The signal that perf events send to a thread when a period is over.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{Errno, PerfEventFd, check};

/// `F_SETOWN_EX` and `F_OWNER_TID` of `include/uapi/asm-generic/fcntl.h`.
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

/// `struct f_owner_ex`.
#[repr(C)]
struct Owner {
    kind: libc::c_int,
    id: libc::pid_t,
}

impl PerfEventFd {
    /// From now on a `SIGIO` is sent to thread `tid` whenever a period of this event is over. It is no
    /// queued signal: any number of periods leave one behind. The thread has to block it
    /// ([`OverflowSignal`]), or it ends the process.
    pub fn notify_thread(&self, tid: i32) -> Result<(), Errno> {
        let fd = self.as_fd().as_raw_fd();
        let owner = Owner { kind: F_OWNER_TID, id: tid };
        // SAFETY: the kernel reads one `f_owner_ex` from the address of a live one.
        let result = unsafe { libc::fcntl(fd, F_SETOWN_EX, &raw const owner) };
        check(i64::from(result))?;
        // SAFETY: the flags are a plain number.
        let result = unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_RDWR | libc::O_ASYNC) };
        check(i64::from(result)).map(drop)
    }
}

/// `SIGIO`, blocked in the thread that made this until it is dropped there (hence not `Send`), and read
/// like a file.
pub struct OverflowSignal {
    fd: OwnedFd,
    was_blocked: bool,
    not_send: PhantomData<*const ()>,
}

impl OverflowSignal {
    /// The signal's number, for `KVM_SET_SIGNAL_MASK` and `kill -l`.
    pub const NUMBER: i32 = libc::SIGIO;

    /// Blocks the signal in this thread.
    pub fn block() -> Result<OverflowSignal, Errno> {
        let set = signal_set();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` is initialized; the kernel's answer goes to a live set.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr()) };
        if result != 0 {
            return Err(Errno::from_raw_os_error(result));
        }
        // SAFETY: all-zero is a valid set, and the call above has filled it.
        let before = unsafe { before.assume_init() };
        // SAFETY: an initialized set and a valid signal number.
        let was_blocked = unsafe { libc::sigismember(&before, libc::SIGIO) } == 1;
        // SAFETY: the set is live; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        let fd = check(i64::from(fd))? as i32;
        // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(OverflowSignal { fd, was_blocked, not_send: PhantomData })
    }

    /// Takes the signal; true where one was there. One system call.
    pub fn take(&self) -> Result<bool, Errno> {
        let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.fd, &mut info) {
            Ok(size) => Ok(size > 0),
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for OverflowSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::fmt::Debug for OverflowSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OverflowSignal").field(&self.fd.as_raw_fd()).finish()
    }
}

impl Drop for OverflowSignal {
    fn drop(&mut self) {
        // One that is pending would end the process when it is unblocked.
        let _ = self.take();
        if !self.was_blocked {
            let set = signal_set();
            // SAFETY: an initialized set; not Send, so this is the thread that blocked the signal.
            unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
        }
    }
}

fn signal_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initializes the set that it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialized and the number is a valid signal.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGIO) };
    // SAFETY: initialized above.
    unsafe { set.assume_init() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenFlags;
    use crate::perf_event::tests::sampling_attr;

    #[test]
    fn periods_that_are_over_send_one_signal_to_the_thread() {
        let signal = OverflowSignal::block().unwrap();
        let attr = sampling_attr(20_000);
        let event = PerfEventFd::open(&attr, 0, -1, None, OpenFlags::default()).unwrap();
        event.notify_thread(crate::system::thread_id()).unwrap();
        let mut count = [0];
        let mut came = false;
        while count[0] < 1_000_000_000 && !came {
            event.read(&mut count).unwrap();
            came = signal.take().unwrap();
        }
        assert!(came, "a second of CPU time has periods of 20 µs");
        event.set_period(1 << 40).unwrap();
        signal.take().unwrap();
        assert!(!signal.take().unwrap(), "the new period is long");
        assert_eq!(event.set_period(0).unwrap_err(), Errno::INVAL);
        assert_eq!(event.set_period(1 << 63).unwrap_err(), Errno::INVAL);
    }
}
