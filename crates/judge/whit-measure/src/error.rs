//! Reasons for which a command cannot be measured.

use std::io;
use std::path::PathBuf;

/// Why a command cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be run or waited for.
    #[error("cannot run {program}: {source}")]
    Run {
        /// Program that was to be started.
        program: PathBuf,
        /// The answer of the system.
        source: io::Error,
    },
    /// The command failed.
    #[error("cannot measure: `{command}` ended with {outcome}\n{stderr}")]
    Measured {
        /// The command line.
        command: String,
        /// Its exit code, or the time limit that it exceeded.
        outcome: String,
        /// The end of its standard error.
        stderr: String,
    },
}
