//! Simulated hardware: a PMU with the semantics that drivers depend on and trip over.
//!
//! The simulation has counters that overflow and interrupt after a *skid*, freezing on overflow,
//! and the local APIC's LVTPC that delivery masks. Interrupts are dropped or latched while masked,
//! and one NMI can be pending. PEBS counters reload themselves, and there are branch records of all
//! kinds. It does not have events' meanings (an event is a code that occurs so and so often),
//! caches, pipelines, time. Costs are assigned to register accesses afterwards ([`cost`]).
//!
//! [`explore`] runs a program with every sequence of decisions.

mod apic;
pub mod cost;
pub mod explore;
mod lbr;
pub mod machine;
mod pmu;
mod registers;

pub use lbr::Branch;
pub use pmu::{MaskedPmi, Privilege, SimulatedPmu, SimulationParameters, Truth, Violation};
