//! Counting per cgroup on this machine's kernel, with cgroups and tasks of our own.
//!
//! All that is needed is software events, so that a virtual machine without a PMU will do. What the
//! machine lacks is said by name on standard error, and in the file that `WHIT_SKIP_LOG` names.

mod agreement;
mod many;
mod moves;
mod sums;
mod support;
mod times;
