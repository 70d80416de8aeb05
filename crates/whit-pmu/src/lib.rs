//! Drives x86 performance monitoring units (PMUs): for kernels, unikernels, guests and hypervisors.
//!
//! All access to hardware goes through [`bus::PmuBus`]. The number of accesses is the currency here: one
//! costs 30 ns on bare metal and over 10 µs where it is trapped and emulated, and interrupts and context
//! switches make several each.
//!
//! - [`model`] describes a CPU's PMU, from CPUID.
//! - [`driver`] counts and samples events on it, and [`pmi`] handles its interrupts.
//! - [`assign`](mod@assign) gives events counters; `sched` (feature `alloc`) schedules groups of events, also by
//!   cgroup, and plans ahead.
//! - [`lbr`] keeps branch records apart between address spaces.
//! - `sim` (feature `sim`) is simulated hardware to test a driver on, this one or another.
//!
//! # Invariants
//!
//! - No `std`, no `unsafe`, no allocation without the feature `alloc`, no clock, no global state.
//! - Nothing here knows an operating system.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod assign;
pub mod bits;
pub mod bus;
pub mod counter;
pub mod cpuid;
pub mod driver;
pub mod known_models;
pub mod lbr;
pub mod model;
pub mod msr;
pub mod period;
pub mod pmi;
#[cfg(feature = "alloc")]
pub mod sched;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(test)]
mod testing;
