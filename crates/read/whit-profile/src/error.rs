//! Why a recording cannot be loaded.

use whit_perfdata::stream::StreamError;

/// Reasons why a recording could not be loaded at all. A defect that spoils only a part is a
/// warning.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A stream that was readable in the first pass no longer is.
    #[error("the recording changed while it was read: {0}")]
    Changed(#[from] StreamError),
    /// A decoding thread panicked.
    #[error("a decoding thread ended unexpectedly; please report this with the recording")]
    WorkerDied,
}
