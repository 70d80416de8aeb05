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
    /// Rows of different blocks of the recorded time are apart, for errors from the scatter between blocks. A wait or a
    /// run of several blocks has its part in each, and counts in the first one.
    pub blocks: bool,
    /// Waits that count.
    pub waits: WaitFilter,
}

impl SwitchOptions {
    /// Longest waits that can be asked for.
    pub const MAX_WORST: usize = 100_000;
    /// Blocks of the recorded time.
    pub const BLOCKS: u16 = 48;
}
