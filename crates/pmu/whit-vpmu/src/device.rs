//! The device: registers, and the meaning of accesses to them.

mod backing;
mod control;
mod interrupts;
mod snapshot;

use alloc::vec::Vec;
use core::fmt;

use crate::config::VpmuConfig;
use crate::cpuid::CpuidLeaf;
use crate::event::EventConfig;
use crate::interrupt::Interrupt;
use crate::model::PmuModel;
use crate::msr::FW_WRITE;
use crate::register::{Gp, Register};
use crate::source::CounterSource;
use crate::statistics::{Fault, Statistics};

pub use snapshot::{SnapshotError, StateError, VpmuState};

/// The virtual PMU of one vCPU. Everything is called on the thread that runs the vCPU.
///
/// ```text
/// loop {
///     vpmu.on_vcpu_enter();              // what the guest wrote takes effect; an interrupt, if one is due
///     run the vCPU
///     vpmu.poll_overflows();             // or on_overflow(token), where the source has notices
///     RDMSR exit:  vpmu.rdmsr(msr)       // Err(Gp): inject #GP
///     WRMSR exit:  vpmu.wrmsr(msr, value)
///     vpmu.on_tick(now_ns);              // at any rate; a clock that moves on
/// }
/// ```
pub struct Vpmu<S: CounterSource, I: Interrupt> {
    config: VpmuConfig,
    source: S,
    interrupt: I,
    /// General-purpose counters, then fixed ones. A *slot* is a place in this row.
    counters: Vec<Counter<S::Event>>,
    fixed_control: u64,
    global_control: u64,
    global_status: u64,
    /// Slots to be looked at before the guest runs on.
    pending: Slots,
    /// Slots that were accessed since the last tick.
    in_use: Slots,
    /// Slots whose event could not be opened; tried again at the next tick.
    retry: Slots,
    /// An interrupt is due.
    pmi_due: bool,
    /// The bound on interrupts was reached in this tick.
    storm: bool,
    pmis_left: u32,
    ticked_ns: Option<u64>,
    fault: Option<Fault>,
    statistics: Statistics,
}

/// A counter of the guest.
struct Counter<E> {
    /// Its value when events were last added.
    value: u64,
    /// Its event select; of a fixed counter, one that says the same as its control bits.
    select: u64,
    /// The value is not one that the backing event has counted to.
    moved: bool,
    /// Which start this is. Changes whenever the counter stops.
    generation: u32,
    backing: Option<BackingEvent<E>>,
}

/// The host's event of a counter.
struct BackingEvent<E> {
    event: E,
    /// The counted event.
    config: EventConfig,
    running: bool,
}

/// A set of slots.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
struct Slots(u64);

impl Slots {
    fn insert(&mut self, slot: usize) {
        self.0 |= 1 << slot;
    }

    fn contains(self, slot: usize) -> bool {
        self.0 & (1 << slot) != 0
    }

    fn take(&mut self) -> Slots {
        core::mem::take(self)
    }

    fn iter(self) -> impl Iterator<Item = usize> {
        (0..u64::BITS as usize).filter(move |slot| self.contains(*slot))
    }
}

impl<S: CounterSource, I: Interrupt> Vpmu<S, I> {
    /// A device after power-on.
    pub fn new(config: VpmuConfig, source: S, interrupt: I) -> Vpmu<S, I> {
        let model = config.model;
        let counter = |slot| Counter {
            value: 0,
            select: model.select_at_reset(slot),
            moved: false,
            generation: 0,
            backing: None,
        };
        Vpmu {
            counters: (0..model.slots()).map(counter).collect(),
            fixed_control: 0,
            global_control: model.global_control_at_reset(),
            global_status: 0,
            pending: Slots::default(),
            in_use: Slots::default(),
            retry: Slots::default(),
            pmi_due: false,
            storm: false,
            pmis_left: config.pmis_per_tick_max,
            ticked_ns: None,
            fault: None,
            statistics: Statistics::default(),
            config,
            source,
            interrupt,
        }
    }

    /// The guest resets: registers as after power-on, no host events. Statistics go on.
    pub fn reset(&mut self) {
        let model = self.config.model;
        for slot in 0..model.slots() {
            self.close(slot);
            let counter = &mut self.counters[slot];
            (counter.value, counter.select) = (0, model.select_at_reset(slot));
        }
        self.fixed_control = 0;
        self.global_control = model.global_control_at_reset();
        self.global_status = 0;
        (self.pending, self.retry, self.pmi_due) = (Slots::default(), Slots::default(), false);
        self.fault = None;
    }

    /// The PMU that the guest sees.
    #[must_use]
    pub fn model(&self) -> &PmuModel {
        &self.config.model
    }

    /// CPUID for the guest. Architectural events of Intel's that the filter refuses are not there.
    #[must_use]
    pub fn cpuid_leaves(&self) -> Vec<CpuidLeaf> {
        self.config.model.cpuid_leaves(self.config.filter.as_ref())
    }

    /// Statistics so far.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The last reason for which a counter stood still that the guest had enabled.
    #[must_use]
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Host events that are open for counters now; never more than there are counters.
    #[must_use]
    pub fn open_events(&self) -> usize {
        self.counters.iter().filter(|counter| counter.backing.is_some()).count()
    }

    /// Where counts come from.
    pub const fn source(&self) -> &S {
        &self.source
    }

    /// Where counts come from.
    pub const fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// The line to the interrupt controller.
    pub const fn interrupt(&self) -> &I {
        &self.interrupt
    }

    /// The line to the interrupt controller.
    pub const fn interrupt_mut(&mut self) -> &mut I {
        &mut self.interrupt
    }

    /// The guest reads a register.
    ///
    /// # Errors
    /// [`Gp`] where the PMU has no such register.
    pub fn rdmsr(&mut self, msr: u32) -> Result<u64, Gp> {
        self.statistics.rdmsr += 1;
        let Some(register) = self.config.model.register(msr) else { return Err(self.gp()) };
        Ok(match register {
            Register::Counter(slot, _) => {
                self.in_use.insert(slot);
                self.fold(slot);
                self.counters[slot].value
            }
            Register::Select(slot) => {
                self.in_use.insert(slot);
                self.counters[slot].select
            }
            Register::FixedControl => self.fixed_control,
            Register::GlobalControl => self.global_control,
            Register::Status => self.global_status,
            Register::StatusClear | Register::StatusSet => 0,
            Register::InUse => {
                let selects = self.counters.iter().map(|counter| counter.select);
                self.config.model.registers_in_use(selects)
            }
            Register::Capabilities => FW_WRITE,
        })
    }

    /// The guest writes a register. Counters that it starts do so in [`Vpmu::on_vcpu_enter`].
    ///
    /// # Errors
    /// [`Gp`] where the PMU has no such register, or has it to read only, or the value has reserved
    /// bits; nothing is changed then. AMD drops such bits and ignores such writes.
    pub fn wrmsr(&mut self, msr: u32, value: u64) -> Result<(), Gp> {
        self.statistics.wrmsr += 1;
        let model = self.config.model;
        let accepted = model.register(msr).ok_or(Gp).and_then(|register| {
            model.accepted(register, value).map(|value| value.map(|value| (register, value)))
        });
        match accepted {
            Ok(Some((register, value))) => self.write(register, value),
            Ok(None) => {}
            Err(Gp) => return Err(self.gp()),
        }
        Ok(())
    }

    fn write(&mut self, register: Register, value: u64) {
        match register {
            Register::Counter(slot, _) => self.write_counter(slot, value),
            Register::Select(slot) => self.write_select(slot, value),
            Register::FixedControl => self.write_fixed_control(value),
            Register::GlobalControl => self.write_global_control(value),
            Register::StatusClear => self.write_status(self.global_status & !value),
            Register::StatusSet => self.write_status(self.global_status | value),
            Register::Status | Register::InUse | Register::Capabilities => {}
        }
    }

    fn write_counter(&mut self, slot: usize, value: u64) {
        self.in_use.insert(slot);
        // The count until now may have overflowed.
        self.fold(slot);
        let counter = &mut self.counters[slot];
        counter.value = value;
        counter.moved = true;
        self.pending.insert(slot);
    }

    fn gp(&mut self) -> Gp {
        self.statistics.faults += 1;
        Gp
    }
}

impl<S: CounterSource + fmt::Debug, I: Interrupt + fmt::Debug> fmt::Debug for Vpmu<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vpmu")
            .field("config", &self.config)
            .field("source", &self.source)
            .field("interrupt", &self.interrupt)
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}

impl<S: CounterSource, I: Interrupt> Drop for Vpmu<S, I> {
    fn drop(&mut self) {
        for counter in &mut self.counters {
            if let Some(backing) = counter.backing.take() {
                self.source.close(backing.event);
            }
        }
    }
}
