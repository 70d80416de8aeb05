//! Which events are on the counters of a CPU, as cgroups come and go.
//!
//! [`CpuScheduler`] keeps groups of events in two trees, pinned and flexible, ordered by cgroup and
//! then by a place in line. A switch between cgroups visits the groups of those cgroups and their
//! ancestors, not all groups. Only groups that are not common to both change their counters. Every
//! call returns the writes to the hardware ([`Changes`]); there is one scheduler for each PMU of a
//! CPU.
//!
//! # Invariants
//!
//! - A group is on counters with all of its events or none.
//! - Pinned groups come first; one that does not fit is in error until it is enabled again.
//! - Where everything fits, a switch does not touch events that count before and after it, and every
//!   event runs for as long as it is enabled.
//! - Each flexible group that can run runs within as many rotations as there are flexible groups.

mod cgroup;
mod cpu;
mod flat;
mod group;
pub mod plan;
mod tree;

pub use cgroup::{CgroupError, CgroupId, Hierarchy, NESTING_MAX};
pub use cpu::{Changes, CpuScheduler, Move, SchedulerStatistics};
pub use flat::FlatList;
pub use group::{EventId, GroupId, GroupSpec, GroupState, GroupTimes};
pub use tree::{GroupKey, GroupTree};
