//! Waiting: readers for their rings, the session for signals and for its readers.

use std::time::Duration;

use whit_sys::{Poller, Signal, SignalFd, Waker};

use crate::error::CaptureError;
use crate::open::{Instance, OpenEvent};
use crate::ring_set::MappedRing;

/// Token of the waker; rings have their index.
const WAKER: u64 = u64::MAX;
/// Token of the signals.
const SIGNALS: u64 = u64::MAX - 1;

/// Waits for rings to fill and for their targets to go.
///
/// Of the events that share a ring only one is waited for: all of them become ready together. When
/// its task exits the next one takes its place; when none is left, the ring's target is gone.
#[derive(Debug)]
pub(super) struct RingWaiter {
    poller: Poller,
    waker: Waker,
    rings: Vec<Watched>,
    alive: usize,
}

#[derive(Debug)]
struct Watched {
    /// Events of the ring whose tasks may still run, the one that is waited for last.
    members: Vec<(usize, usize)>,
}

impl RingWaiter {
    pub(super) fn new<'r>(
        events: &[OpenEvent],
        rings: impl IntoIterator<Item = &'r MappedRing>,
    ) -> Result<RingWaiter, CaptureError> {
        let poller = Poller::new().map_err(CaptureError::system("create an epoll descriptor"))?;
        let waker = Waker::new().map_err(CaptureError::system("create an event descriptor"))?;
        poller.add(&waker, WAKER).map_err(CaptureError::system("wait for orders"))?;
        let mut waiter = RingWaiter { poller, waker, rings: Vec::new(), alive: 0 };
        for ring in rings {
            let mut members = ring.members.clone();
            members.reverse();
            waiter.rings.push(Watched { members });
            waiter.alive += 1;
            waiter.add(waiter.rings.len() - 1, events)?;
        }
        Ok(waiter)
    }

    /// Wakes this waiter.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Waits for input or until the time is over. Tells whether no recorded task is left.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        events: &[OpenEvent],
    ) -> Result<bool, CaptureError> {
        let ready =
            self.poller.wait(Some(timeout)).map_err(CaptureError::system("wait for events"))?;
        for ready in ready {
            if ready.token == WAKER {
                self.waker.clear().map_err(CaptureError::system("take orders"))?;
            } else if ready.hung_up {
                self.next_member(ready.token as usize, events)?;
            }
        }
        Ok(self.alive == 0)
    }

    fn next_member(&mut self, ring: usize, events: &[OpenEvent]) -> Result<(), CaptureError> {
        let error = CaptureError::system("stop waiting for an event");
        if let Some(gone) = self.rings[ring].members.pop() {
            self.poller.remove(&instance(events, gone).fd).map_err(error)?;
        }
        if self.rings[ring].members.is_empty() {
            self.alive -= 1;
            return Ok(());
        }
        self.add(ring, events)
    }

    fn add(&mut self, ring: usize, events: &[OpenEvent]) -> Result<(), CaptureError> {
        let error = CaptureError::system("wait for an event");
        match self.rings[ring].members.last() {
            Some(&member) => {
                self.poller.add(&instance(events, member).fd, ring as u64).map_err(error)
            }
            None => Ok(()),
        }
    }
}

fn instance(events: &[OpenEvent], (event, index): (usize, usize)) -> &Instance {
    &events[event].instances[index]
}

/// Waits for signals and for news of the readers.
#[derive(Debug)]
pub(super) struct SessionWaiter {
    poller: Poller,
    signals: SignalFd,
    news: Waker,
}

/// What woke the session.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// A signal that ends the recording.
    pub(super) stop: Option<Signal>,
    /// A child has changed.
    pub(super) child: bool,
}

impl SessionWaiter {
    pub(super) fn new(signals: SignalFd, news: Waker) -> Result<SessionWaiter, CaptureError> {
        let poller = Poller::new().map_err(CaptureError::system("create an epoll descriptor"))?;
        poller.add(&signals, SIGNALS).map_err(CaptureError::system("wait for signals"))?;
        poller.add(&news, WAKER).map_err(CaptureError::system("wait for readers"))?;
        Ok(SessionWaiter { poller, signals, news })
    }

    /// Waits until something happens or the time is over.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> Result<Woken, CaptureError> {
        self.poller.wait(timeout).map_err(CaptureError::system("wait for signals"))?;
        self.news.clear().map_err(CaptureError::system("hear of readers"))?;
        let mut woken = Woken::default();
        loop {
            match self.signals.next() {
                Ok(Some(Signal::Child)) => woken.child = true,
                Ok(Some(signal)) => woken.stop = woken.stop.or(Some(signal)),
                Ok(None) => return Ok(woken),
                Err(errno) => return Err(CaptureError::system("read signals")(errno)),
            }
        }
    }
}
