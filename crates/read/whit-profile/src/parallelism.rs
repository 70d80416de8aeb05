//! Parallelism: how many threads of the profiled set ran at the time of each sample.
//!
//! Each moment is either known or not. After a loss, the thread on a CPU is unknown until the next record of that CPU.
//! Until then no parallelism is known at all: samples are [`Parallelism::Unknown`], and the time is summed.

use std::str::FromStr;

/// How many threads of the profiled set ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Parallelism {
    /// So many; zero at samples of the idle task, which belongs to no set.
    Threads(u32),
    /// Records that would tell are missing.
    Unknown,
}

/// Which threads count together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ParallelismOf {
    /// All that were recorded, except the idle task.
    #[default]
    All,
    /// Those of the sample's process.
    Process,
    /// Those in the sample's cgroup.
    Cgroup,
}

/// No set of this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no set of threads: give all, process or cgroup")]
pub struct UnknownSet(String);

impl ParallelismOf {
    /// As it is written in options and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ParallelismOf::All => "all",
            ParallelismOf::Process => "process",
            ParallelismOf::Cgroup => "cgroup",
        }
    }
}

impl FromStr for ParallelismOf {
    type Err = UnknownSet;

    fn from_str(word: &str) -> Result<ParallelismOf, UnknownSet> {
        let all = [ParallelismOf::All, ParallelismOf::Process, ParallelismOf::Cgroup];
        let known = all.into_iter().find(|of| of.name() == word);
        known.ok_or_else(|| UnknownSet(word.to_owned()))
    }
}

/// The time of a recording by whether its parallelism is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ParallelismInfo {
    /// Which threads count together.
    pub of: ParallelismOf,
    /// Time in which switches were recorded, in nanoseconds.
    pub recorded_ns: u64,
    /// Time in it in which any recorded thread ran, as far as that is known.
    pub ran_ns: u64,
    /// Time in it in which the thread of some CPU is unknown.
    pub unknown_ns: u64,
}

impl ParallelismInfo {
    /// The times of both.
    pub(crate) fn add(&mut self, other: &ParallelismInfo) {
        let sums = [
            (&mut self.recorded_ns, other.recorded_ns),
            (&mut self.ran_ns, other.ran_ns),
            (&mut self.unknown_ns, other.unknown_ns),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}
