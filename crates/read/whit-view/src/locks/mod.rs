//! Waits for locks: by lock, by call site, or by the thread that ended them; as text and JSON.
//!
//! A wait is one sleep of a thread at a lock. Waits whose length is uncertain are counted apart, and in no time.

mod detail;
mod held;
mod json;
mod kernel;
mod keys;
mod table;
mod text;
mod top;

pub use json::{VERSION as JSON_VERSION, write_json};
pub(crate) use keys::{lock_name, site_name};
pub use text::write_text;
pub(crate) use top::{TopLock, TopLocks, top_locks};

#[cfg(test)]
mod tests;

use crate::hists::Filters;

/// The property of waits that a row of the table stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// The lock, by address or name.
    #[default]
    Lock,
    /// The function that wants it.
    CallSite,
    /// The thread that ended the wait, and its function.
    Holder,
}

impl By {
    /// The word in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            By::Lock => "lock",
            By::CallSite => "callsite",
            By::Holder => "holder",
        }
    }
}

/// The rows to print, and their order.
#[derive(Clone, Debug, Default)]
pub struct LockViewOptions {
    /// Which stacks of waits.
    pub filters: Filters,
    /// Rows of the table.
    pub by: By,
    /// Rows to print; all where absent.
    pub limit: Option<usize>,
    /// Print call chains below each row.
    pub chains: bool,
    /// Show inlined functions in call chains.
    pub inline: bool,
    /// Leave out all lines that begin with `#`, except reports of gaps.
    pub quiet: bool,
}

/// Rows of the text where no number is given.
pub const DEFAULT_LIMIT: usize = 20;
