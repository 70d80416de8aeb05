//! Measuring programs from outside: run time, CPU time and peak memory of single runs, medians and spread of
//! several, and the slowdown that pairs of runs show.
//!
//! A run's figures come from `wait4(2)`. A run that exceeds its time limit is killed with all that it has
//! started.
//!
//! This crate does not know which programs are measured, nor why.

#![forbid(unsafe_code)]

mod error;
pub mod measure;
pub mod overhead;
pub mod process_tree;
pub mod summary;

pub use error::Error;
