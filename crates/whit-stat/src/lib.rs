//! Counting: which events on which CPUs, threads and cgroups, read how, added up how, shown how.
//!
//! The way of a count: a [`source::Source`] gives a [`reading::Reading`] for each of its
//! [`source::Slot`]s. The kernel's perf events are the first source ([`perf::PerfSource`]); where
//! cgroups are counted, BPF is the other ([`bpf::BpfSource`]), with the first one beside it for what
//! it cannot count.
//!
//! Invariants:
//! - A source knows nothing of intervals, sums or output: it counts up from zero, and whoever
//!   wants differences subtracts.
//! - What cannot be counted is data: each counter that is absent says why, from a closed list
//!   ([`counter::Absence`]).
//! - One system call reads a whole group.
//! - Nothing here records, and nothing here reads the environment.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod bpf;
pub mod cgroups;
pub mod counter;
pub mod derived_metrics;
pub mod error;
pub mod metric;
pub mod note;
pub mod notice;
pub mod options;
pub mod perf;
pub mod plan;
pub mod reading;
pub mod session;
pub mod show;
pub mod source;
pub mod statistics;
pub mod table;
