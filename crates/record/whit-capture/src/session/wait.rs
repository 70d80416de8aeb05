//! Waiting: readers for their rings, the session for signals and for its readers.

use std::time::Duration;

use whit_engine_api::open_event::ConfiguredEvent;
use whit_engine_api::open_event::{InstanceIndex, OpenEvent};
use whit_engine_api::rings::MappedRing;
use whit_host::control::{ControlChannel, Received};
use whit_sys::{Poller, Signal, SignalFd, Waker};

use crate::error::CaptureError;

/// Token of the waker; rings have their index.
const WAKER: u64 = u64::MAX;
/// Token of the signals.
const SIGNALS: u64 = u64::MAX - 1;
/// Token of the control channel.
const CONTROL: u64 = u64::MAX - 2;

/// Waits for rings to fill and for their targets to go.
///
/// Only one of the events that share a ring is waited for: all of them become ready together. When
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
    /// Its contents wake no reader.
    is_backward: bool,
    /// Events of the ring whose tasks may still run, the one that is waited for last.
    members: Vec<InstanceIndex>,
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
            // An event of a whole CPU never goes.
            let is_of_cpu = |event: &ConfiguredEvent| event.is_bpf_output || event.spec.is_of_cpus;
            members.retain(|member| {
                !is_of_cpu(&events[member.event].event) || ring.members.len() == 1
            });
            members.reverse();
            waiter.rings.push(Watched { members, is_backward: ring.ring.is_backward() });
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
            self.poller.remove(&gone.of(events).fd).map_err(error)?;
        }
        if self.rings[ring].members.is_empty() {
            self.alive -= 1;
            return Ok(());
        }
        self.add(ring, events)
    }

    fn add(&mut self, ring: usize, events: &[OpenEvent]) -> Result<(), CaptureError> {
        let error = CaptureError::system("wait for an event");
        let Watched { is_backward, members } = &self.rings[ring];
        let Some(&member) = members.last() else { return Ok(()) };
        let fd = &member.of(events).fd;
        match is_backward {
            true => self.poller.add_hang_up(fd, ring as u64).map_err(error),
            false => self.poller.add(fd, ring as u64).map_err(error),
        }
    }
}

/// Waits for signals, for news of the readers, and for commands.
#[derive(Debug)]
pub(super) struct SessionWaiter {
    poller: Poller,
    signals: SignalFd,
    news: Waker,
    control: Option<ControlChannel>,
}

/// The reasons for a wake-up.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// A signal that ends the recording.
    pub(super) stop: Option<Signal>,
    /// A child has changed.
    pub(super) child: bool,
    /// SIGUSR2.
    pub(super) snapshot: bool,
    /// Signals and commands that arrived.
    pub(super) received: Received,
}

impl SessionWaiter {
    pub(super) fn new(
        signals: SignalFd,
        news: Waker,
        control: Option<ControlChannel>,
    ) -> Result<SessionWaiter, CaptureError> {
        let poller = Poller::new().map_err(CaptureError::system("create an epoll descriptor"))?;
        poller.add(&signals, SIGNALS).map_err(CaptureError::system("wait for signals"))?;
        poller.add(&news, WAKER).map_err(CaptureError::system("wait for readers"))?;
        if let Some(control) = &control {
            poller.add(control, CONTROL).map_err(CaptureError::system("wait for commands"))?;
        }
        Ok(SessionWaiter { poller, signals, news, control })
    }

    /// Says that a command has been carried out. A failure means that nobody reads it.
    pub(super) fn acknowledge(&self) {
        if let Some(control) = &self.control {
            let _ = control.acknowledge();
        }
    }

    /// Takes no more commands.
    pub(super) fn close_control(&mut self) -> Result<(), CaptureError> {
        if let Some(control) = self.control.take() {
            self.poller
                .remove(&control)
                .map_err(CaptureError::system("stop waiting for commands"))?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Received, CaptureError> {
        let Some(control) = &mut self.control else { return Ok(Received::default()) };
        let received = control.receive().map_err(CaptureError::system("read commands"))?;
        if received.closed {
            self.close_control()?;
        }
        Ok(received)
    }

    /// Waits until something happens or the time is over.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> Result<Woken, CaptureError> {
        let ready = self.poller.wait(timeout).map_err(CaptureError::system("wait for signals"))?;
        self.news.clear().map_err(CaptureError::system("hear of readers"))?;
        let mut woken = Woken::default();
        // Also when the other side has gone: it may have said something before.
        if ready.iter().any(|ready| ready.token == CONTROL) {
            woken.received = self.receive()?;
        }
        loop {
            match self.signals.next() {
                Ok(Some(Signal::Child)) => woken.child = true,
                Ok(Some(Signal::User2)) => woken.snapshot = true,
                Ok(Some(signal)) => woken.stop = woken.stop.or(Some(signal)),
                Ok(None) => return Ok(woken),
                Err(errno) => return Err(CaptureError::system("read signals")(errno)),
            }
        }
    }
}
