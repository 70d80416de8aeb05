//! Waiting for rings to fill, signals to come, and targets to go.

use std::time::Duration;

use whit_sys::{Poller, Signal, SignalFd};

use crate::error::CaptureError;
use crate::open::{Instance, OpenEvent};
use crate::ring_set::MappedRing;

/// Token of the signals; rings have their index.
const SIGNALS: u64 = u64::MAX;

/// Waits.
///
/// Of the events that share a ring only one is waited for: all of them become ready together. When
/// its task exits the next one takes its place; when none is left, the ring's target is gone.
pub(super) struct Waiter {
    poller: Poller,
    signals: SignalFd,
    rings: Vec<Watched>,
    alive: usize,
}

struct Watched {
    /// Events of the ring whose tasks may still run, the one that is waited for last.
    members: Vec<(usize, usize)>,
}

/// What woke the reader.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// A signal that ends the recording.
    pub(super) stop: Option<Signal>,
    /// A child has changed.
    pub(super) child: bool,
    /// No recorded task is left.
    pub(super) all_gone: bool,
}

impl Waiter {
    pub(super) fn new(
        signals: SignalFd,
        events: &[OpenEvent],
        rings: &[MappedRing],
    ) -> Result<Waiter, CaptureError> {
        let poller = Poller::new().map_err(CaptureError::system("create an epoll descriptor"))?;
        poller.add(&signals, SIGNALS).map_err(CaptureError::system("wait for signals"))?;
        let mut waiter = Waiter { poller, signals, rings: Vec::new(), alive: rings.len() };
        for (index, ring) in rings.iter().enumerate() {
            let mut members = ring.members.clone();
            members.reverse();
            waiter.rings.push(Watched { members });
            waiter.add(index, events)?;
        }
        Ok(waiter)
    }

    /// Waits for input or until the time is over.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        events: &[OpenEvent],
    ) -> Result<Woken, CaptureError> {
        let ready =
            self.poller.wait(Some(timeout)).map_err(CaptureError::system("wait for events"))?;
        let mut woken = Woken::default();
        for ready in ready {
            if ready.token == SIGNALS {
                self.take_signals(&mut woken)?;
            } else if ready.hung_up {
                self.next_member(ready.token as usize, events)?;
            }
        }
        woken.all_gone = self.alive == 0;
        Ok(woken)
    }

    /// The next signal, without waiting for rings.
    pub(super) fn wait_for_signal(&mut self, timeout: Duration) -> Result<Woken, CaptureError> {
        let mut woken = Woken::default();
        self.poller.wait(Some(timeout)).map_err(CaptureError::system("wait for signals"))?;
        self.take_signals(&mut woken)?;
        Ok(woken)
    }

    /// Waits for rings no longer: their events are about to be closed.
    pub(super) fn forget_rings(&mut self, events: &[OpenEvent]) {
        for ring in &mut self.rings {
            if let Some(&member) = ring.members.last() {
                // It fails only for what is not waited for.
                let _ = self.poller.remove(&instance(events, member).fd);
            }
            ring.members.clear();
        }
    }

    fn take_signals(&self, woken: &mut Woken) -> Result<(), CaptureError> {
        let error = CaptureError::system("read signals");
        let next = || self.signals.next();
        loop {
            match next() {
                Ok(Some(Signal::Child)) => woken.child = true,
                Ok(Some(signal)) => woken.stop = woken.stop.or(Some(signal)),
                Ok(None) => return Ok(()),
                Err(errno) => return Err(error(errno)),
            }
        }
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
