//! Counting per cgroup on this machine's kernel, with cgroups and tasks of our own.
//!
//! The tests need software events alone, so a virtual machine without a PMU will do. A missing
//! ability is named on standard error, and in the file that `WHIT_SKIP_LOG` names.

mod agreement;
mod many;
mod moves;
mod sums;
mod support;
mod times;
