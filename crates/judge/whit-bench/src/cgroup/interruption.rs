//! Signals that ask for the end: a program that just died of them would leave cgroups behind.

use std::process::Command;

use anyhow::{Context, ensure};
use whit_sys::{Signal, SignalFd};

use crate::error::Error;

const NO_SIGNALS: &str = "cannot watch for signals";

/// Watches for signals until it is dropped.
#[derive(Debug)]
pub(super) struct Interruption(SignalFd);

impl Interruption {
    pub(super) fn watch() -> Result<Interruption, Error> {
        let wanted = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
        Ok(Interruption(SignalFd::block(&wanted).context(NO_SIGNALS)?))
    }

    /// Started programs must not miss these signals.
    pub(super) fn leave_out_of(&self, command: &mut Command) {
        self.0.leave_out_of(command);
    }

    /// Whether it is time to end.
    pub(super) fn check(&self) -> Result<(), Error> {
        let signal = self.0.next().context(NO_SIGNALS)?;
        ensure!(signal.is_none(), "interrupted; what was made for the benchmark is removed");
        Ok(())
    }
}
