//! Defects of a recording that leave some of it to be read.

use super::OpenError;
use std::path::PathBuf;
use std::sync::Arc;

/// A part of a recording that is missing or unreadable.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingDefect {
    /// A feature, or a part of a directory.
    #[error(transparent)]
    Unreadable(#[from] Arc<OpenError>),
    /// A directory has no streams of its own.
    #[error("{path}: there is no data.N beside data")]
    NoParts {
        /// The directory.
        path: PathBuf,
    },
    /// A directory lacks streams.
    #[error("{path}: data.{first} is missing ({missing} missing in all)")]
    MissingParts {
        /// The directory.
        path: PathBuf,
        /// Number of the first one that is missing.
        first: u64,
        /// Number of streams that are missing.
        missing: u64,
    },
    /// The recorder was killed.
    #[error(
        "{path}: the recorder did not end properly (killed?); what it had written is read (for \
         stock perf: whit export --perf)"
    )]
    NotEnded {
        /// File.
        path: PathBuf,
    },
    /// The file ends before its records do.
    #[error(
        "{path}: cut short at offset {offset}: {missing_bytes} bytes of records and the features \
         behind them are missing"
    )]
    CutShort {
        /// File.
        path: PathBuf,
        /// Its end.
        offset: u64,
        /// Bytes of records that should follow.
        missing_bytes: u64,
    },
}

impl From<OpenError> for RecordingDefect {
    fn from(error: OpenError) -> Self {
        RecordingDefect::Unreadable(Arc::new(error))
    }
}
