//! How much a message matters.

/// How loud a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Shown with `-v`.
    Verbose,
    /// An answer; shown as it is unless `-q` is given.
    Answer,
    /// Shown unless `-q` is given.
    Warning,
    /// Always shown: data was lost, or the recording differs from the request.
    Error,
}
