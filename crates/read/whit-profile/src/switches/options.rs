//! How much of context switches an answer keeps.

use super::wait_filter::WaitFilter;

/// How much of single intervals is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchOptions {
    /// The longest waits.
    pub max_worst: usize,
    /// Stretches of the time line; none where zero.
    pub max_spans: usize,
    /// The run-queue delays of threads.
    pub run_queue: bool,
    /// Waits by futex and waker.
    pub locks: bool,
    /// Rows that differ in the object of their waits are apart.
    pub objects: bool,
    /// Waits that count.
    pub waits: WaitFilter,
}

impl SwitchOptions {
    /// Longest waits that can be asked for.
    pub const MAX_WORST: usize = 100_000;
}
