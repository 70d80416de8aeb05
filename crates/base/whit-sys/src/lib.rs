//! The kernel boundary: `perf_event_open`, the rings that it shares with us, waiting, signals, and
//! the start of a command. It also has capabilities and the policy for borrowed ones, users and
//! groups, limits, affinity, scheduling, clocks, asynchronous writes, read-only file mappings, and
//! the files of processes.
//!
//! ```
//! use std::path::Path;
//! use whit_sys::MappedFile;
//! use whit_sys::usage::CpuUsage;
//!
//! let before = CpuUsage::of_thread()?;
//! let program = MappedFile::open(Path::new("/proc/self/exe"))?;
//! assert!(program.starts_with(b"\x7fELF"));
//! let sum: u64 = program.iter().map(|&byte| u64::from(byte)).sum();
//! assert!(sum > 0 && CpuUsage::of_thread()?.since(&before).total_ns() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller decodes the bytes of rings, which outsiders may have written, and releases them to let the kernel go on.
//! It bears that mapped files change, and that the rest of a file that is cut reads as zeros.
//!
//! Invariants: nothing here decodes a record, owns a thread or prints. This is the only crate of
//! the workspace that may hold `unsafe`; every block does one thing and names the contract that
//! it relies on. Errors keep the kernel's errno.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod affinity;
mod async_write;
mod backward_ring;
pub mod bpf;
pub mod capability;
pub mod clock;
mod counter_page;
mod cut_mapping;
pub mod descriptor;
mod environment;
pub mod file_capability;
mod file_lock;
pub mod group;
pub mod limit;
pub mod locale;
mod mapped_file;
pub mod maps;
pub mod memory;
mod overflow_signal;
mod perf_event;
pub mod pidfd;
mod poll;
pub mod privilege;
pub mod process_files;
mod ring;
pub mod scheduling;
mod signal;
mod slices;
pub mod system;
mod timer;
pub mod unnamed_file;
pub mod usage;
pub mod users;
pub mod wall_clock;
mod workload;

pub use async_write::{AsyncWriter, Completion, WriteBuffer};
pub use backward_ring::BackwardRing;
pub use counter_page::{CounterPage, PageCount};
pub use environment::EnvironmentError;
pub use file_lock::FileLock;
pub use mapped_file::MappedFile;
pub use overflow_signal::OverflowSignal;
pub use perf_event::{OpenFlags, PerfEventFd};
pub use poll::{Poller, Ready, Waker};
pub use ring::{Ring, RingRead, TimeConversion};
pub use rustix::io::Errno;
pub use signal::{Sender, Signal, SignalFd, SignalWatch, reset_signal_disposition};
pub use slices::take_short_slices;
pub use timer::Timer;
pub use workload::{Exit, ExitStatus, Workload, WorkloadError, WorkloadOptions};

/// Turns the `-1` of a libc call into the errno that it left behind.
fn check(result: i64) -> Result<i64, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
