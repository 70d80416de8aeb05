//! Comparing programs on the same work: interleaved runs, medians, spread.
//!
//! A comparison runs every peer once per round, in turn, so that a slow minute of the machine
//! hits all of them alike. Each run's wall time, CPU time and peak memory come from `wait4(2)`;
//! results are medians with their minimum and maximum, and a run that exceeds its time limit is
//! killed and shown as `> N s`, never dropped.
//!
//! [`report`] is the comparison behind `whit bench report`: readers of large recordings.
//!
//! What is not here: any reading of recordings, and any claim. Numbers go out as measured.

#![forbid(unsafe_code)]

pub mod compare;
pub mod disk;
pub mod error;
pub mod measure;
pub mod peer;
pub mod recording;
pub mod render;
pub mod report;
pub mod size;
pub mod summary;
pub mod system;

pub use error::Error;
