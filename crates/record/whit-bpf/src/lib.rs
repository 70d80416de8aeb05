//! whit's BPF programs and their typed loaders.
//!
//! [`cgroup::CgroupCounter`] counts perf events per cgroup: events that are open on whole CPUs are
//! read at each change of cgroup and never reprogrammed. `docs/cgroup.md` describes the mechanism,
//! its cost and its precision.
//!
//! [`pmi::PmiMeter`] adds up the interrupts of the PMU and their time, for the ledger of a recording.
//!
//! [`nothing::Nothing`] is what programs at switches are compared with.
//!
//! [`RunTimer`] has the kernel time what such programs take, for a part of the time.
//!
//! ```
//! use whit_bpf::nothing::Nothing;
//!
//! // Without CAP_BPF and CAP_PERFMON the kernel refuses, and the error says so.
//! match Nothing::attach() {
//!     Ok(program) => assert!(program.statistics().is_ok()),
//!     Err(error) => assert!(error.is_permission() || error.is_absent() || error.is_unsupported()),
//! }
//! ```
//!
//! The caller opens events and finds cgroups. It keeps a loaded program alive as long as the program is to run:
//! dropping it detaches it. It looks at the program's health before it trusts counts.
//!
//! Invariants:
//! - Nothing here opens an event, knows its name, or reads `/proc` and `/sys`: events, cgroups and
//!   CPUs come in as descriptors, ids and numbers.
//! - The kernel's messages never reach the terminal by themselves: they are part of errors.
//! - Borrowed capabilities are in force around system calls on BPF alone.
//! - A count that could not be taken is counted ([`cgroup::Health`]).
//!
//! The programs are in `bpf/`, under `GPL-2.0-only OR BSD-2-Clause`; the kernel wants to hear of a
//! licence that goes with its own before it lends a program its helpers.
#![forbid(unsafe_code)]

pub mod cgroup;
mod error;
mod kernel_need;
mod loading;
mod messages;
pub mod nothing;
mod packed_object;
pub mod pmi;
pub mod programs;
mod run_timer;
#[cfg(test)]
mod stack_use;
pub mod stacks;

pub use error::{BpfError, Messages};
pub use kernel_need::KernelNeed;
pub use run_timer::RunTimer;

/// The compiled programs, compressed; their hash identifies the code that runs in the kernel.
pub const OBJECTS: [&[u8]; 5] = [
    cgroup::OBJECT.packed,
    nothing::OBJECT.packed,
    pmi::OBJECT.packed,
    stacks::BLOCKED_OBJECT.packed,
    stacks::OBJECT.packed,
];
