//! Counting per cgroup on this machine's kernel, with cgroups and tasks of our own.
//!
//! All that is needed is software events, so that a virtual machine without a PMU will do. What the
//! machine lacks is said by name on standard error, and in the file that `WHIT_SKIP_LOG` names.
//! Tests that change the whole machine for a moment (a CPU goes offline; the `perf_event` controller
//! moves to a hierarchy of version 1) are only run where `WHIT_TEST_MACHINE` is set: they would spoil
//! what others measure.

mod agreement;
mod machine;
mod many;
mod moves;
mod sums;
mod support;
