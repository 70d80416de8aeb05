//! Counting: which events on which CPUs, threads and cgroups, read how, added up how, shown how.
//!
//! A count takes this way: a [`source::Source`] gives a [`reading::Reading`] for each of its
//! [`source::Slot`]s. The kernel's perf events are the first source ([`perf::PerfSource`]). Where
//! cgroups are counted, BPF is the second ([`bpf::BpfSource`]), and the first one counts the rest
//! beside it.
//!
//! Two readings of a counter that shared its PMU counter with others:
//!
//! ```
//! use whit_stat::reading::Reading;
//! use whit_stat::statistics::Statistics;
//!
//! let before = Reading { value: 100, enabled_ns: 1_000, running_ns: 1_000 };
//! let after = Reading { value: 400, enabled_ns: 5_000, running_ns: 2_000 };
//! let interval = after.since(before);
//! // It ran for a quarter of the time.
//! assert_eq!((interval.value, interval.percent_running(), interval.scaled()), (300, 25.0, 1200));
//!
//! // Several runs of a command.
//! let mut runs = Statistics::default();
//! [10.0, 12.0, 14.0].into_iter().for_each(|count| runs.add(count));
//! assert_eq!((runs.count(), runs.mean()), (3, 12.0));
//! ```
//!
//! The caller gives resolved events and a target to [`session::count`] and takes finished tables in a listener. It shows
//! the notices: each says which counter could not be opened, and why.
//!
//! Invariants:
//! - A source knows nothing of intervals, sums or output: it counts up from zero, and its caller
//!   subtracts.
//! - A counter that cannot count is data: it gives the reason from a closed list
//!   ([`counter::Absence`]).
//! - One system call reads a whole group.
//! - Nothing here records, and nothing here reads the environment.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod bpf;
pub mod bpf_refusal;
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
pub mod unserved;
