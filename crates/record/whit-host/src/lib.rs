//! The machine as recording, counting and diagnosis see it. It finds the kernel's file systems, CPUs,
//! processes, cgroups and targets, explains refusals of the kernel, and has the channel by which another
//! program controls a running session.
//!
//! ```
//! use whit_host::processes::{Status, namespace};
//! use whit_host::roots::Roots;
//! use whit_host::{cpus, processes};
//! use whit_types::{Pid, Tid};
//!
//! let roots = Roots::default();
//! let online = cpus::online(&roots)?;
//! assert!(!online.is_empty() && online.iter().all(|cpu| !cpus::is_offline(&roots, *cpu)));
//!
//! let own = std::process::id() as i32;
//! let status = Status::read(&roots, Pid(own), Tid(own)).expect("this process runs");
//! assert_eq!(status.tgid, Pid(own));
//! assert!(processes::threads(&roots, Pid(own)).contains(&Tid(own)));
//!
//! // A folder stands for a machine.
//! let empty = Roots { proc: "/nonexistent".into(), sys: "/nonexistent".into(), ..roots };
//! assert!(cpus::online(&empty).is_err() && namespace(&empty).is_none());
//! # Ok::<(), whit_host::error::HostError>(())
//! ```
//!
//! The caller treats each answer as one of the past: processes end and CPUs go offline between a look and the next call.
//!
//! Invariants:
//! - `/proc` and `/sys` are values ([`roots::Roots`]), so that all that reads them is testable.
//! - Nothing here records, counts, prints, or reads the environment.
#![forbid(unsafe_code)]

pub mod advice;
pub mod borrowing;
pub mod cgroup;
pub mod control;
pub mod cpu_quota;
pub mod cpus;
pub mod error;
pub mod futex_wait;
pub mod java;
pub mod level;
pub mod list_cut;
pub mod memory_limit;
pub mod moved_text;
pub mod named;
pub mod open;
pub mod perf_cache;
pub mod process_name;
pub mod processes;
pub mod rights;
pub mod roots;
pub mod runtimes;
pub mod target;
pub mod topology;
pub mod tracepoint;
pub mod user_probe;
