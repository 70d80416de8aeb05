//! Comparing programs on the same work: interleaved runs, medians, spread.
//!
//! A comparison runs every peer once per round, in turn, so that a slow minute of the machine
//! hits all of them alike. Each run's wall time, CPU time and peak memory come from `wait4(2)`;
//! results are medians with their minimum and maximum, and a run that exceeds its time limit is
//! killed and shown as `> N s`, never dropped.
//!
//! [`report`] is the comparison behind `whit bench report`: readers of large recordings.
//! [`agents`] is behind `whit bench agents`: the cost of agents, and the stacks of their profiles.
//! [`accuracy`] is behind `whit bench accuracy`: whether shares are right.
//! [`archive`] is behind `whit bench archive`: sizes and times of names and copies of binaries.
//! [`record`](mod@record) is the one behind `whit bench record`: what recording costs and loses.
//! [`cgroup`] is behind `whit bench cgroup`: what counting per cgroup costs at each switch.
//! [`interval`] is behind `whit bench stat`: what counting in short intervals costs.
//! [`stacks`] is behind `whit bench stacks`: whether stacks unwound in the kernel are right.
//! [`diff`](mod@diff) is behind `whit bench diff`: whether verdicts and intervals are right.
//! [`switches`] is behind `whit bench switches`: what every context switch with its stack costs.
//! [`serve`] is behind `whit bench serve`: how soon a served page and its ranges are there.
//! [`top`] is behind `whit bench top`: the cost of a live picture.
//! [`day`] is behind `whit bench day`: its memory over a day.
//! [`frames`] is behind `whit bench frames`: the cost of a frame of Python in the kernel.
//! [`forms`] is behind `whit bench forms`: names from all forms of debug information.
//! [`flight`] is behind `whit bench flight`: how soon the last seconds are in a file, and whole.
//! [`watch`] is behind `whit bench watch`: the cost of the recorder that runs all week.
//! [`pmu`] is behind `whit bench pmi`, `lbr` and `sched`: what driving a PMU costs.
//! [`vpmu`] is behind `whit bench vpmu`: what a guest waits for its virtual PMU.
//!
//! This crate makes no claims. It reports numbers as measured, and reads the recordings of all
//! recorders by the same code.

#![forbid(unsafe_code)]

pub mod accuracy;
pub mod agents;
pub mod archive;
pub mod budget;
pub mod cgroup;
pub mod compare;
pub mod core_pmu;
pub mod day;
pub mod diff;
pub mod disk;
pub mod error;
pub mod flight;
pub mod forms;
pub mod frames;
pub mod interval;
mod load;
mod markdown;
pub mod named;
pub mod peer;
pub mod pmu;
mod program_runs;
mod random;
pub mod record;
pub mod recording;
pub mod render;
pub mod report;
pub mod samples;
pub mod scratch;
pub mod serve;
pub mod setup;
pub mod stacks;
pub mod switches;
pub mod system;
pub mod top;
mod turns;
pub mod vpmu;
pub mod watch;

pub use error::Error;
