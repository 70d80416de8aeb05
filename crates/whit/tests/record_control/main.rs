//! `whit record`: who controls it while it runs, which files it makes, what it is asked to leave out.
//!
//! Only software events are needed. What needs perf, or the right to record whole CPUs, says so by
//! name where that is missing.

mod accounting;
mod cgroups;
mod control;
mod fields;
mod files;
mod kernel_side;
mod outputs;
mod overwrite;
mod published_command_lines;
mod support;
