//! `whit record`: control while it runs, the files that it makes, and the options that leave things
//! out.
//!
//! Only software events are needed. A test that needs perf, or the right to record whole CPUs, says
//! so by name if that is missing.

mod accounting;
mod cgroups;
mod control;
mod drain;
mod fields;
mod files;
mod kernel_side;
mod outputs;
mod overwrite;
mod published_command_lines;
mod support;
