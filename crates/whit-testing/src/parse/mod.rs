//! Readers of what perf and whit print.

pub mod report;
pub mod script;
pub mod stats;
