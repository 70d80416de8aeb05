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
//! A sampling event on the simulated hardware (feature `sim`):
//!
//! ```
//! use whit_pmu::counter::CounterIndex;
//! use whit_pmu::driver::{Event, EventConfig};
//! use whit_pmu::known_models::skylake;
//! use whit_pmu::pmi::{Overflow, Verdict};
//! use whit_pmu::sim::SimulationParameters;
//! use whit_pmu::sim::machine::Machine;
//!
//! let mut machine = Machine::new(skylake(), SimulationParameters::default());
//! let Machine { bus, driver, .. } = &mut machine;
//! let (sampling, counting) = (CounterIndex::general(0), CounterIndex::fixed(0));
//! driver.start(bus, sampling, Event::new(EventConfig::sampling(0xc0, 1000)))?;
//! driver.start(bus, counting, Event::new(EventConfig::counting(0xc0)))?;
//! driver.enable(bus);
//!
//! let mut samples = 0;
//! machine.run(0xc0, 100_000, &mut |_: &Overflow<'_>| {
//!     samples += 1;
//!     Verdict::Sampled
//! });
//! assert!((90..=100).contains(&samples), "{samples}");
//! assert_eq!(machine.driver.read(&mut machine.bus, counting), Some(100_000));
//! # Ok::<(), whit_pmu::driver::StartError>(())
//! ```
//!
//! The caller implements [`bus::PmuBus`] with its RDMSR, WRMSR and RDPMC, calls [`driver`] from one CPU at a time with
//! interrupts of the PMU masked or expected, and calls its handler from the NMI. It tells [`lbr`] of each context switch.
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
