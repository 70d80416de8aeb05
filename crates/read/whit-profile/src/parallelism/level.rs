//! The parallelism at one moment.

/// How many threads of the profiled set ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Parallelism {
    /// So many; zero at samples of the idle task, which belongs to no set.
    Threads(u32),
    /// Records that would tell are missing.
    Unknown,
}
