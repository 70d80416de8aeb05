//! When counters may freeze on overflow.
//!
//! FREEZE_PERFMON_ON_PMI (DEBUGCTL bit 12) saves four WRMSRs and one RDMSR in each interrupt. Its
//! price: the hardware freezes on *overflow*, not when the interrupt is delivered. No event counts
//! in between, not even those that only count and have nothing to do with the sampling event beside
//! them. That broke replay debuggers, and Linux removed it in 5.11. So it is never the default
//! here, a user who opts in should have the PMU alone, and the loss can be measured
//! ([`Driver::measure_gap`](crate::driver::Driver::measure_gap)).

use core::fmt;

use super::{Driver, Sampling};
use crate::bits::debugctl;
use crate::bus::PmuBus;
use crate::counter::CounterIndex;
use crate::model::FreezeGate;

/// Why counters do not freeze on overflow.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum FreezeRefusal {
    /// Nobody asked for it.
    NotOptedIn,
    /// The model cannot do it, or not well.
    Model(FreezeGate),
    /// An event's period will change, which frozen hardware does not take. Events of all contexts on
    /// the CPU count, not just those of the one that is being started.
    ChangingPeriod(CounterIndex),
}

impl fmt::Display for FreezeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FreezeRefusal::NotOptedIn => f.write_str("freezing was not asked for"),
            FreezeRefusal::Model(FreezeGate::VersionBelow4) => {
                f.write_str("freezing needs version 4 of architectural performance monitoring")
            }
            FreezeRefusal::Model(FreezeGate::Microcode { needed }) => {
                write!(f, "freezing needs microcode {needed:#x} on this CPU: update it")
            }
            FreezeRefusal::Model(_) => f.write_str("freezing is broken on this CPU"),
            FreezeRefusal::ChangingPeriod(counter) => {
                write!(f, "the event on {counter} has a frequency, not a fixed period")
            }
        }
    }
}

impl Driver {
    /// Asks for counters that freeze on overflow, or for an end of it. The module's documentation says
    /// what that costs in counts. They freeze while [`Driver::freeze_refusal`] has no reason against it.
    pub fn set_freezing(&mut self, bus: &mut (impl PmuBus + ?Sized), opt_in: bool) {
        self.freeze_opt_in = opt_in;
        self.refresh_freezing(bus);
    }

    /// Whether counters freeze on overflow at present.
    #[must_use]
    pub const fn is_freezing(&self) -> bool {
        self.freezing
    }

    /// Why counters do not freeze.
    #[must_use]
    pub fn freeze_refusal(&self) -> Option<FreezeRefusal> {
        if !self.freeze_opt_in {
            return Some(FreezeRefusal::NotOptedIn);
        }
        if self.model.freeze != FreezeGate::Passed {
            return Some(FreezeRefusal::Model(self.model.freeze));
        }
        let changes = |counter: &CounterIndex| {
            let slot = self.slots[counter.index()];
            slot.is_some_and(|slot| matches!(slot.event.config.sampling, Sampling::Frequency(_)))
        };
        self.active.iter().find(changes).map(FreezeRefusal::ChangingPeriod)
    }

    /// Brings DEBUGCTL into line. It may change only while no counter is enabled.
    pub(super) fn refresh_freezing(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        let freezing = self.freeze_refusal().is_none();
        if freezing == self.freezing {
            return;
        }
        let bit = debugctl::FREEZE_PERFMON_ON_PMI;
        let value = (self.debug_control & !bit) | if freezing { bit } else { 0 };
        if self.enabled {
            self.write_global_control(bus, 0);
        }
        self.write_debug_control(bus, value);
        self.freezing = freezing;
        if self.enabled {
            self.write_global_control(bus, self.model.counters().bits());
        }
        if let Some(gap) = &mut self.gap {
            gap.forget();
        }
    }
}
