//! Measuring programs from outside: run time, CPU time and peak memory of single runs, medians and spread of
//! several, and the slowdown that pairs of runs show.
//!
//! A run's figures come from `wait4(2)`. A run that exceeds its time limit is killed with all that it has
//! started.
//!
//! This crate does not know which programs are measured, nor why.
//!
//! ```
//! use std::process::Command;
//! use std::time::Duration;
//! use whit_measure::measure::{Outcome, run};
//! use whit_measure::overhead::Slowdown;
//!
//! let one = run(Command::new("true"), Duration::from_secs(60))?;
//! assert_eq!(one.outcome, Outcome::Success);
//! assert!(one.wall_s > 0.0 && one.max_rss_bytes > 0);
//!
//! // Seconds without and with a recorder, in pairs.
//! let slowdown = Slowdown::of(&[(1.00, 1.05), (1.01, 1.06), (0.99, 1.04)]).unwrap();
//! assert!(slowdown.is_certain() && slowdown.factor > 1.04);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The caller gives a time limit, and runs nothing else meanwhile: the figures are those of the whole machine.

#![forbid(unsafe_code)]

mod error;
pub mod measure;
pub mod overhead;
pub mod process_tree;
pub mod summary;

pub use error::Error;
