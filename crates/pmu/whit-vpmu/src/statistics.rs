//! Counts of the device's work, for the VMM's metrics.

use crate::model::CounterIndex;
use crate::source::{OpenError, SourceError};

/// Counts since the device was made. Nothing here is visible to the guest.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub struct Statistics {
    /// Reads of registers.
    pub rdmsr: u64,
    /// Writes of registers.
    pub wrmsr: u64,
    /// Accesses that were answered with #GP.
    pub faults: u64,
    /// Host events opened.
    pub opens: u64,
    /// Times that an event was used again instead of another being opened.
    pub opens_avoided: u64,
    /// Events that went on without a call, as a write changed nothing for the host.
    pub kept: u64,
    /// Host events closed.
    pub closes: u64,
    /// Among them: released because the guest left their counter alone.
    pub lazy_releases: u64,
    /// Host events that could not be opened; [`Fault`] has the last reason.
    pub open_failures: u64,
    /// Times that an open event did not count (pinned and without a counter) or refused a call.
    pub source_failures: u64,
    /// Guest counters that overflowed.
    pub overflows: u64,
    /// Notices of overflows that came too late: their counter had stopped since.
    pub stale_notices: u64,
    /// Notices that came before the overflow; the event was armed anew.
    pub early_notices: u64,
    /// Interrupts delivered.
    pub pmis: u64,
    /// Interrupts that met a masked LVTPC.
    pub pmis_masked: u64,
    /// Overflows that asked for an interrupt while one was due, and share it.
    pub pmis_merged: u64,
    /// Times that the bound on interrupts was reached; they wait for the next tick.
    pub storms: u64,
}

/// Why a counter stands still that the guest has enabled.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Fault {
    /// The counter that stands still.
    pub counter: CounterIndex,
    /// The cause of the standstill.
    pub reason: FaultReason,
}

/// Why a counter stands still.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum FaultReason {
    /// Its host event could not be opened.
    Open(OpenError),
    /// Its host event does not count.
    Source(SourceError),
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.reason {
            FaultReason::Open(error) => write!(f, "{}: {error}", self.counter),
            FaultReason::Source(error) => write!(f, "{}: {error}", self.counter),
        }
    }
}
