//! `whit stat`, the whole program: beside the installed perf on the same work, and where it goes
//! further.
//!
//! Counts are of software events, which every machine has; what needs perf, root, or the right to
//! count whole CPUs says so by name where that is missing.

mod bench_cgroup;
mod bpf;
mod cgroup;
mod cgroups;
mod command_line;
mod engines;
mod intervals;
mod parity;
mod support;
mod table;
mod targets;
mod users;
