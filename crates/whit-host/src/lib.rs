//! The machine as recording, counting and diagnosis see it: where the kernel's file systems are, CPUs,
//! processes and cgroups, whom to record or count, what a refusal of the kernel means, and the channel by which
//! another program controls a running session.
//!
//! Invariants:
//! - `/proc` and `/sys` are values ([`roots::Roots`]), so that all that reads them is testable.
//! - Nothing here records, counts, prints, or reads the environment.
#![forbid(unsafe_code)]

pub mod advice;
pub mod cgroup;
pub mod control;
pub mod cpus;
pub mod error;
pub mod level;
pub mod open;
pub mod processes;
pub mod rights;
pub mod roots;
pub mod target;
pub mod topology;
pub mod tracepoint;
