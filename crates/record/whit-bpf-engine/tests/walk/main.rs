//! The walk that runs in the kernel, compiled for this machine and compared with the offline
//! unwinder: on recorded stacks of real programs, and on arbitrary bytes.

mod arm64;
mod host;
mod hostile;
mod interpreted;
mod recorded;
#[path = "../../../../code/whit-unwind/tests/common/mod.rs"]
mod simulated;
