//! Readers of the output of perf and whit.

pub mod report;
pub mod script;
pub mod stats;
