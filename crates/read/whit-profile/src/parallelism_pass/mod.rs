//! The pass that finds the parallelism at each sample.
//!
//! Context switches tell the running threads, so samples are read in order of time with them (`read`). A state for
//! each CPU (`occupancy`) is all that is kept of the past. The first pass notes the first record of each CPU, which names
//! the thread that ran there before.

mod follower;
mod occupancy;
mod read;

pub(crate) use read::read;
