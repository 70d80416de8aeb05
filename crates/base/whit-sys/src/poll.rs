//! Waiting for many descriptors at once, and being woken by another thread.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::OwnedFd;

use crate::Errno;

/// Most descriptors reported by one wait; the rest are reported by the next.
const READY_MAX: usize = 64;

/// A set of descriptors to wait for, each with a token of the caller's choice.
pub struct Poller {
    epoll: OwnedFd,
}

/// One descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token it was added with.
    pub token: u64,
    /// There is something to read.
    pub readable: bool,
    /// The other side is gone (for a perf event: its task has exited), or the event is in
    /// error. Reported again at every wait until the descriptor is removed.
    pub hung_up: bool,
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Poller").field(&self.epoll).finish()
    }
}

impl Poller {
    /// An empty set.
    pub fn new() -> Result<Poller, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll })
    }

    /// Waits for input on `fd`, level-triggered.
    pub fn add(&self, fd: impl AsFd, token: u64) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)
    }

    /// Waits for the other side of `fd` to go, and for nothing else.
    pub fn add_hang_up(&self, fd: impl AsFd, token: u64) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::empty())
    }

    /// Waits for an exceptional condition of `fd`, as files of stalls have it (`EPOLLPRI`), and for its end.
    /// `Errno::PERM` where a file has no such conditions: ordinary files.
    pub fn add_priority(&self, fd: impl AsFd, token: u64) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(token), epoll::EventFlags::PRI)
    }

    /// Waits for `fd` no longer.
    pub fn remove(&self, fd: impl AsFd) -> Result<(), Errno> {
        epoll::delete(&self.epoll, fd)
    }

    /// Waits until something is ready or `timeout` has passed (`None`: for ever); an empty result is
    /// a timeout. Interruptions do not end the wait: io_uring interrupts its thread whenever a write
    /// is done, and signals are taken by [`SignalFd`](crate::SignalFd).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Vec<Ready>, Errno> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let mut left = timeout;
        let mut buffer = [const { MaybeUninit::uninit() }; READY_MAX];
        loop {
            let limit = left.map(rustix::event::Timespec::try_from).transpose();
            let limit = limit.map_err(|_| Errno::INVAL)?;
            match epoll::wait(&self.epoll, &mut buffer, limit.as_ref()) {
                Ok((ready, _)) => return Ok(described(ready)),
                Err(Errno::INTR) => {
                    left = end.map(|end| end.saturating_duration_since(Instant::now()));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn described(ready: &[epoll::Event]) -> Vec<Ready> {
    let gone = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    let described = ready.iter().map(|event| {
        let flags = event.flags;
        Ready {
            token: event.data.u64(),
            readable: flags.contains(epoll::EventFlags::IN),
            hung_up: flags.intersects(gone),
        }
    });
    described.collect()
}

/// Wakes a [`Poller`] from another thread. Clones wake the same poller.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A waker; add it to a poller with [`Poller::add`].
    pub fn new() -> Result<Waker, Errno> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Waker(Arc::new(fd)))
    }

    /// Makes the waker readable until [`Waker::clear`].
    pub fn wake(&self) -> Result<(), Errno> {
        match rustix::io::write(&*self.0, &1u64.to_ne_bytes()) {
            // The counter is full: it is readable already.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the wake-ups that have come so far.
    pub fn clear(&self) -> Result<(), Errno> {
        let mut count = [0u8; 8];
        match rustix::io::read(&*self.0, &mut count) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_is_seen_until_it_is_cleared() {
        let mut poller = Poller::new().unwrap();
        let waker = Waker::new().unwrap();
        poller.add(&waker, 7).unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
        let other = waker.clone();
        std::thread::spawn(move || other.wake().unwrap()).join().unwrap();
        let ready = Ready { token: 7, readable: true, hung_up: false };
        assert_eq!(poller.wait(None).unwrap(), [ready]);
        assert_eq!(poller.wait(None).unwrap(), [ready]);
        waker.clear().unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
    }

    #[test]
    fn a_closed_pipe_is_reported_as_hung_up_until_it_is_removed() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&read, 1).unwrap();
        drop(write);
        assert!(poller.wait(None).unwrap()[0].hung_up);
        poller.remove(&read).unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
    }

    #[test]
    fn a_wait_for_conditions_ignores_input_and_refuses_ordinary_files() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add_priority(&read, 1).unwrap();
        rustix::io::write(&write, b"input").unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
        let file = tempfile::tempfile().unwrap();
        assert_eq!(poller.add_priority(&file, 2), Err(Errno::PERM));
    }

    #[test]
    fn a_wait_for_the_end_alone_ignores_input() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add_hang_up(&read, 1).unwrap();
        rustix::io::write(&write, b"input").unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), []);
        drop(write);
        assert!(poller.wait(None).unwrap()[0].hung_up);
    }
}
