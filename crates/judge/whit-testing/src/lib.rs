//! The one harness of whit's tests: probes of the machine, running programs, waiting, parsing what tools
//! print, judging repeated measurements.
//!
//! - [`probe`] asks the kernel, never whit, what this machine can do. On a machine where a probe says yes,
//!   a failure of whit is a failure of the test.
//! - [`check`] and [`skip`] announce a test that this machine cannot run. Each skip is a line on standard
//!   error and in the file that `WHIT_SKIP_LOG` names; `make test` compares the lines with `tests/expected-skips`.
//! - [`run`] starts whit, perf and the workloads, [`wait`] waits for them, [`parse`] reads their output.
//! - [`assert_published`] compares reference pages and schemas with the code that they come from.
//! - [`cgroups`] limits busy programs, and moves perf events to cgroups of version 1.
//! - [`fault`] makes files that fail and rings without a kernel.
//! - [`golden`] compares golden recordings with texts beside them.
//! - [`hotplug`] takes CPUs offline for a while.
//! - [`measure`] judges a measurement by all its repetitions.
//!
//! Invariants: this crate is a dev-dependency only, and depends on no other crate of the workspace: a probe
//! that went through whit would ask whit whether whit works. `unsafe` lives in `syscalls` alone.
#![deny(unsafe_code)]

pub mod cgroups;
pub mod fault;
pub mod golden;
pub mod hotplug;
pub mod machine;
pub mod measure;
pub mod parse;
mod plain;
pub mod probe;
pub mod prose;
mod published;
pub mod run;
mod skip;
#[allow(unsafe_code)]
mod syscalls;
pub mod wait;
mod workload;

pub use plain::assert_plain;
pub use published::{assert_published, published};
pub use skip::{Skip, check, skip};
pub use workload::workload;
