//! Waiting for signals, commands, the end of a thread, and the time.

use std::os::fd::OwnedFd;
use std::time::Duration;

use whit_host::control::{ControlChannel, Received};
use whit_sys::{Poller, Sender, Signal, SignalFd, Timer};

use crate::error::StatError;

/// Tokens.
const SIGNALS: u64 = 0;
const CONTROL: u64 = 1;
const THREAD: u64 = 2;
const INTERVAL: u64 = 3;

/// The reasons for a wake-up.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// A signal that asks for the end, and who sent it.
    pub(super) stop: Option<(Signal, Sender)>,
    /// A child has changed.
    pub(super) child: bool,
    /// Signals and commands that arrived.
    pub(super) received: Received,
    /// The watched thread has ended.
    pub(super) thread_ended: bool,
    /// An interval is over.
    pub(super) tick: bool,
}

/// Waits.
#[derive(Debug)]
pub(super) struct Waiter {
    poller: Poller,
    signals: SignalFd,
    control: Option<ControlChannel>,
    intervals: Option<Timer>,
}

impl Waiter {
    pub(super) fn new(
        signals: SignalFd,
        control: Option<ControlChannel>,
    ) -> Result<Waiter, StatError> {
        let poller = Poller::new().map_err(StatError::system("create an epoll descriptor"))?;
        poller.add(&signals, SIGNALS).map_err(StatError::system("wait for signals"))?;
        if let Some(control) = &control {
            poller.add(control, CONTROL).map_err(StatError::system("wait for commands"))?;
        }
        Ok(Waiter { poller, signals, control, intervals: None })
    }

    pub(super) fn signals(&self) -> &SignalFd {
        &self.signals
    }

    /// Watches a thread. Closing its descriptor ends that.
    pub(super) fn watch(&self, thread: &OwnedFd) -> Result<(), StatError> {
        self.poller.add(thread, THREAD).map_err(StatError::system("wait for a thread"))
    }

    /// Has intervals of this length end, the first one so long after now; `None` for no intervals.
    pub(super) fn set_intervals(&mut self, length: Option<Duration>) -> Result<(), StatError> {
        // The old ones end with their descriptor.
        self.intervals = None;
        let Some(length) = length else { return Ok(()) };
        let timer = Timer::every(length).map_err(StatError::system("set a timer"))?;
        self.poller.add(&timer, INTERVAL).map_err(StatError::system("wait for a timer"))?;
        self.intervals = Some(timer);
        Ok(())
    }

    /// Says that a command has been carried out. A failure means that nobody reads it.
    pub(super) fn acknowledge(&self) {
        if let Some(control) = &self.control {
            let _ = control.acknowledge();
        }
    }

    /// Waits until something happens or the time is over.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> Result<Woken, StatError> {
        let ready = self.poller.wait(timeout).map_err(StatError::system("wait for signals"))?;
        let mut woken = Woken::default();
        for ready in &ready {
            match ready.token {
                SIGNALS => self.take_signals(&mut woken)?,
                // Also when the other side has gone: it may have said something before.
                CONTROL => woken.received = self.receive()?,
                THREAD => woken.thread_ended = true,
                INTERVAL => woken.tick = self.take_tick()?,
                _ => {}
            }
        }
        Ok(woken)
    }

    /// Ticks that came while nobody looked are one: its interval was longer.
    fn take_tick(&self) -> Result<bool, StatError> {
        let Some(timer) = &self.intervals else { return Ok(false) };
        timer.take().map(|ticks| ticks > 0).map_err(StatError::system("read a timer"))
    }

    fn take_signals(&self, woken: &mut Woken) -> Result<(), StatError> {
        let read = || self.signals.next_with_sender().map_err(StatError::system("read signals"));
        while let Some((signal, sender)) = read()? {
            match signal {
                Signal::Child => woken.child = true,
                Signal::User2 => {}
                stop => woken.stop = woken.stop.or(Some((stop, sender))),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Received, StatError> {
        let Some(control) = &mut self.control else { return Ok(Received::default()) };
        let received = control.receive().map_err(StatError::system("read commands"))?;
        if received.closed {
            let removed = self.poller.remove(&*control);
            removed.map_err(StatError::system("stop waiting for commands"))?;
            self.control = None;
        }
        Ok(received)
    }
}
