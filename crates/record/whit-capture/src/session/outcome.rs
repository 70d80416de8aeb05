//! How a recording ended.

use std::io;

use whit_engine_api::EngineSummary;
use whit_sys::{ExitStatus, Signal};

use crate::summary::Summary;

/// Exit code where recording failed but the command did not.
const EXIT_WRITE_FAILED: i32 = 1;
/// Shells report death by a signal as this plus its number.
pub(super) const EXIT_SIGNAL_BASE: i32 = 128;

/// Why recording ended.
#[derive(Debug)]
pub enum End {
    /// The command exited.
    CommandEnded,
    /// Every recorded thread exited.
    TargetEnded,
    /// A signal asked for it.
    Signal(Signal),
    /// The control channel asked for it.
    Stopped,
    /// The recording has the size that it may have.
    SizeReached,
    /// The recording could not be written.
    WriteFailed(io::Error),
    /// A reader ended by itself; it knows why.
    ReaderEnded,
}

/// A finished recording.
#[derive(Debug)]
pub struct Outcome {
    /// The recording in numbers; of one that was switched, the last output.
    pub summary: Summary,
    /// Why it ended.
    pub end: End,
    /// How the command ended.
    pub command: Option<ExitStatus>,
    /// The work of the engine, where it says more than the ledger.
    pub stacks: Option<Box<dyn EngineSummary>>,
}

impl Outcome {
    /// The recorder's own exit code: the command's, unless a signal ended the recording or
    /// writing failed under a command that did not. A command that we ended because the recording
    /// was complete has not failed.
    pub fn exit_code(&self) -> i32 {
        let of_command = self.command.map_or(0, ExitStatus::shell_code);
        match &self.end {
            End::Signal(signal) => EXIT_SIGNAL_BASE + signal.number(),
            End::Stopped | End::SizeReached => 0,
            End::WriteFailed(_) | End::ReaderEnded if of_command == 0 => EXIT_WRITE_FAILED,
            _ => of_command,
        }
    }
}
