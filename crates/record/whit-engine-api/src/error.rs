//! Why an engine cannot do its work.

use std::io;

use whit_sys::Errno;

/// Why an engine cannot do its work.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum EngineError {
    /// A step in setting up that should never fail.
    #[error("cannot {attempt}")]
    System { attempt: &'static str, source: Errno },
    /// A thread of the engine.
    #[error("cannot start a reader's thread (allow more with ulimit -u)")]
    Thread { source: io::Error },
    /// A precise event that no program can be called at.
    #[error(
        "this kernel gives the precise event '{event}' no BPF program that takes stacks: leave :p out, or take --engine=ring"
    )]
    Precise { event: String },
    /// A reason that only the engine knows; it says so in its own words.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
}

impl EngineError {
    /// For `map_err` on steps that have no better story.
    pub fn system(attempt: &'static str) -> impl FnOnce(Errno) -> EngineError {
        move |source| EngineError::System { attempt, source }
    }

    /// For `map_err` on errors of the engine's own kind.
    pub fn own(error: impl std::error::Error + Send + Sync + 'static) -> EngineError {
        EngineError::Own(Box::new(error))
    }
}
