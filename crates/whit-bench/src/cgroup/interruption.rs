//! Signals that ask for the end: a program that just died of them would leave cgroups behind.

use std::process::Command;

use whit_sys::{Signal, SignalFd};

use crate::Error;

/// Watches for signals until it is dropped.
#[derive(Debug)]
pub(super) struct Interruption(SignalFd);

impl Interruption {
    pub(super) fn watch() -> Result<Interruption, Error> {
        let wanted = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
        SignalFd::block(&wanted).map(Interruption).map_err(|errno| Error::Signals(errno.into()))
    }

    /// Started programs must not miss these signals.
    pub(super) fn leave_out_of(&self, command: &mut Command) {
        self.0.leave_out_of(command);
    }

    /// Whether it is time to end.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self.0.next().map_err(|errno| Error::Signals(errno.into()))? {
            Some(_) => Err(Error::Interrupted),
            None => Ok(()),
        }
    }
}
