//! Signals as input to wait for, instead of handlers.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{Errno, check};

/// The signals that a recorder waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGINT`.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
    /// `SIGHUP`.
    HangUp,
    /// `SIGCHLD`.
    Child,
    /// `SIGUSR2`.
    User2,
}

impl Signal {
    const ALL: [Signal; 5] =
        [Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::Child, Signal::User2];

    /// The signal's number on this architecture.
    pub const fn number(self) -> i32 {
        match self {
            Signal::Interrupt => libc::SIGINT,
            Signal::Terminate => libc::SIGTERM,
            Signal::HangUp => libc::SIGHUP,
            Signal::Child => libc::SIGCHLD,
            Signal::User2 => libc::SIGUSR2,
        }
    }
}

/// Has a command start with a signal's usual action. An ignored signal stays ignored in started
/// commands. A command that a shell runs in the background without job control ignores `SIGINT`.
pub fn reset_signal_disposition(command: &mut std::process::Command, signal: Signal) {
    let number = signal.number();
    let reset = move || {
        // SAFETY: a valid signal and an action that needs no handler.
        match unsafe { libc::signal(number, libc::SIG_DFL) } {
            libc::SIG_ERR => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec, the closure makes one call that is async-signal-safe
    // (signal-safety(7)), and allocates nothing.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, reset) };
}

/// Sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The kernel: a key was pressed or the terminal has gone, and the whole foreground process
    /// group has the signal.
    Kernel,
    /// A process, which meant us alone.
    Process,
}

/// `si_code` of signals of the kernel (`include/uapi/asm-generic/siginfo.h`).
const SI_KERNEL: i32 = 0x80;

/// A descriptor that becomes readable when one of a set of signals has come.
///
/// The signals stay blocked in the thread that made this, and in the threads that it starts
/// afterwards, until it is dropped in that same thread (hence not `Send`).
pub struct SignalFd {
    fd: OwnedFd,
    before: libc::sigset_t,
    not_send: PhantomData<*const ()>,
}

impl SignalFd {
    /// Blocks `signals` in this thread and gives a descriptor that reports them. Call it before
    /// any other thread is started. `SIGHUP` is left out where it is ignored (`nohup`);
    /// `SIGCHLD` gets its default disposition, because children vanish unreaped where a parent
    /// process left it ignored.
    pub fn block(signals: &[Signal]) -> Result<SignalFd, Errno> {
        let mut wanted = empty_set();
        for &signal in signals {
            if signal == Signal::HangUp && is_ignored(signal)? {
                continue;
            }
            if signal == Signal::Child {
                set_default(signal.number())?;
            }
            // SAFETY: `wanted` is an initialized set and the number is a valid signal.
            unsafe { libc::sigaddset(&mut wanted, signal.number()) };
        }
        let mut before = empty_set();
        // SAFETY: both sets are live and initialized.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &wanted, &mut before) };
        if result != 0 {
            return Err(Errno::from_raw_os_error(result));
        }
        Ok(SignalFd { fd: descriptor(&wanted)?, before, not_send: PhantomData })
    }

    /// Takes the next signal that has come, `None` when there is none.
    pub fn next(&self) -> Result<Option<Signal>, Errno> {
        Ok(self.next_with_sender()?.map(|(signal, _)| signal))
    }

    /// As [`SignalFd::next`], with the sender.
    pub fn next_with_sender(&self) -> Result<Option<(Signal, Sender)>, Errno> {
        take(&self.fd)
    }

    /// Makes a command start with the mask that this thread had before: a child inherits blocked
    /// signals, and would never see them.
    pub fn leave_out_of(&self, command: &mut std::process::Command) {
        let before = self.before;
        let restore = move || {
            // SAFETY: `before` is an initialized set, which the closure owns.
            let result =
                unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
            if result == 0 { Ok(()) } else { Err(std::io::Error::from_raw_os_error(result)) }
        };
        // SAFETY: between fork and exec, the closure makes one call that is async-signal-safe
        // (signal-safety(7)), and allocates nothing.
        unsafe { std::os::unix::process::CommandExt::pre_exec(command, restore) };
    }

    /// The mask that this thread had before, for a child that is to start with it.
    pub(crate) fn mask_before(&self) -> libc::sigset_t {
        self.before
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SignalFd {
    fn drop(&mut self) {
        // Pending signals are taken first: unblocking them would deliver them now.
        while let Ok(Some(_)) = self.next() {}
        // SAFETY: `before` is the set that pthread_sigmask stored; not Send, so this is the
        // thread whose mask it was.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

impl std::fmt::Debug for SignalFd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SignalFd").field(&self.fd.as_raw_fd()).finish()
    }
}

/// Sees signals that are blocked, in any thread. Signals that it does not take stay for others,
/// even when it is dropped.
#[derive(Debug)]
pub struct SignalWatch {
    fd: OwnedFd,
}

impl SignalWatch {
    /// Watches for these. The mask stays: the thread that started this one has blocked them
    /// ([`SignalFd`]).
    pub fn new(signals: &[Signal]) -> Result<SignalWatch, Errno> {
        let mut wanted = empty_set();
        for signal in signals {
            // SAFETY: `wanted` is an initialized set and the number is a valid signal.
            unsafe { libc::sigaddset(&mut wanted, signal.number()) };
        }
        Ok(SignalWatch { fd: descriptor(&wanted)? })
    }

    /// Takes the next signal that has come, `None` when there is none.
    pub fn next(&self) -> Result<Option<Signal>, Errno> {
        Ok(take(&self.fd)?.map(|(signal, _)| signal))
    }
}

impl AsFd for SignalWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A descriptor that becomes readable when one of these has come.
fn descriptor(signals: &libc::sigset_t) -> Result<OwnedFd, Errno> {
    // SAFETY: the set is live; -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, signals, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    let fd = check(i64::from(fd))? as i32;
    // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes the next signal from a descriptor, with its sender.
fn take(fd: &OwnedFd) -> Result<Option<(Signal, Sender)>, Errno> {
    let mut info = [0u8; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(fd, &mut info) {
        Ok(size) if size == info.len() => {}
        Ok(_) | Err(Errno::AGAIN) => return Ok(None),
        Err(error) => return Err(error),
    }
    // signalfd_siginfo begins with ssi_signo, ssi_errno and ssi_code, of 32 bits each.
    let word = |at: usize| i32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
    let sender = if word(8) == SI_KERNEL { Sender::Kernel } else { Sender::Process };
    let signal = Signal::ALL.into_iter().find(|s| s.number() == word(0));
    Ok(signal.map(|signal| (signal, sender)))
}

/// The current thread's signal mask.
pub(crate) fn current_mask() -> Result<libc::sigset_t, Errno> {
    let mut mask = empty_set();
    // SAFETY: a null new set only reads the mask into a live set.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask) };
    if result == 0 { Ok(mask) } else { Err(Errno::from_raw_os_error(result)) }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initializes the set that it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialized by the line above.
    unsafe { set.assume_init() }
}

fn is_ignored(signal: Signal) -> Result<bool, Errno> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only reads the present one into a live struct.
    let result = unsafe { libc::sigaction(signal.number(), std::ptr::null(), action.as_mut_ptr()) };
    check(i64::from(result))?;
    // SAFETY: all-zero is a valid sigaction, and the call above has filled it.
    let action = unsafe { action.assume_init() };
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

fn set_default(number: i32) -> Result<(), Errno> {
    // SAFETY: the default disposition runs no code of ours.
    let previous = unsafe { libc::signal(number, libc::SIG_DFL) };
    if previous == libc::SIG_ERR { check(-1).map(drop) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_read_instead_of_killing() {
        let signals = SignalFd::block(&[Signal::Interrupt, Signal::Terminate]).unwrap();
        assert_eq!(signals.next().unwrap(), None);
        // SAFETY: raising a signal that this thread has blocked.
        unsafe { libc::raise(libc::SIGTERM) };
        assert_eq!(signals.next().unwrap(), Some(Signal::Terminate));
        assert_eq!(signals.next().unwrap(), None);
    }

    #[test]
    fn a_command_starts_without_blocked_signals() {
        let blocked = |command: &mut std::process::Command| {
            let output = command.args(["SigBlk", "/proc/self/status"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            u64::from_str_radix(text.split_whitespace().nth(1).unwrap(), 16).unwrap()
        };
        let is_term = 1u64 << (libc::SIGTERM - 1);
        let signals = SignalFd::block(&[Signal::Terminate]).unwrap();
        assert_ne!(blocked(&mut std::process::Command::new("grep")) & is_term, 0);
        let mut command = std::process::Command::new("grep");
        signals.leave_out_of(&mut command);
        assert_eq!(blocked(&mut command) & is_term, 0);
    }

    #[test]
    fn a_command_receives_signals_that_are_ignored_here() {
        let ignored = |heeds: bool| {
            let mut command = std::process::Command::new("grep");
            let ignore = || {
                // SAFETY: a valid signal and an action that needs no handler.
                unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
                Ok(())
            };
            // SAFETY: the closure makes one call that is async-signal-safe.
            unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, ignore) };
            if heeds {
                reset_signal_disposition(&mut command, Signal::Interrupt);
            }
            let output = command.args(["SigIgn", "/proc/self/status"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mask = u64::from_str_radix(text.split_whitespace().nth(1).unwrap(), 16).unwrap();
            mask >> (libc::SIGINT - 1) & 1
        };
        assert_eq!([ignored(false), ignored(true)], [1, 0]);
    }

    #[test]
    fn dropping_restores_the_mask() {
        let member = |mask: &libc::sigset_t| {
            // SAFETY: an initialized set and a valid signal number.
            unsafe { libc::sigismember(mask, libc::SIGINT) }
        };
        assert_eq!(member(&current_mask().unwrap()), 0);
        let signals = SignalFd::block(&[Signal::Interrupt]).unwrap();
        assert_eq!(member(&current_mask().unwrap()), 1);
        assert_eq!(member(&signals.mask_before()), 0);
        drop(signals);
        assert_eq!(member(&current_mask().unwrap()), 0);
    }
}
