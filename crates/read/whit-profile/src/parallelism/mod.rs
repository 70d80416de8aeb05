//! Parallelism: how many threads of the profiled set ran at the time of each sample.
//!
//! Context switches tell the running threads, so samples are read in order of time with them (`load`). A state for
//! each CPU (`occupancy`) is all that is kept of the past. The first pass notes the first record of each CPU
//! (`first_seen`), which names the thread that ran there before.
//!
//! Each moment is either known or not. After a loss, the thread on a CPU is unknown until the next record of that CPU.
//! Until then no parallelism is known at all: samples are [`Parallelism::Unknown`], and the time is summed.

pub(crate) mod first_seen;
mod follower;
pub(crate) mod level;
mod load;
mod occupancy;
pub(crate) mod set;

pub use level::Parallelism;
pub(crate) use load::load;
pub use set::{ParallelismInfo, ParallelismOf, UnknownSet};
