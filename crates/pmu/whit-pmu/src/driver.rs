//! The state of one CPU's PMU, and its changes outside of interrupts.

mod claims;
mod event;
mod freeze;
mod gap;
mod statistics;

use core::fmt;

use crate::bits::{debugctl, evtsel, fixed_ctrl, lvtpc};
use crate::bus::PmuBus;
use crate::counter::{COUNTERS_MAX, CounterIndex, CounterMask};
use crate::lbr::{BranchFilter, BranchStack, LbrRegisters};
use crate::model::{PmuKind, PmuModel};
use crate::msr;
use crate::period::PERIOD_MAX;

pub use claims::CLAIM_WINDOW_NS;
pub(crate) use claims::Claims;
pub use event::{Event, EventConfig, Sampling};
pub use freeze::FreezeRefusal;
pub use gap::FreezeGap;
pub(crate) use gap::GapMeter;
pub use statistics::Statistics;

/// Drives the PMU of one CPU.
///
/// All calls for a CPU come from that CPU, with interrupts of the kind that calls
/// [`Driver::handle_pmi`](crate::pmi) either impossible or, as NMIs are, ordered by
/// [`Driver::disable`]: between it and [`Driver::enable`] no counter runs, and an interrupt that was on
/// its way leaves the PMU disabled.
#[derive(Clone, Debug)]
pub struct Driver {
    pub(crate) model: PmuModel,
    pub(crate) enabled: bool,
    pub(crate) active: CounterMask,
    pub(crate) slots: [Option<Slot>; COUNTERS_MAX],
    fixed_control: u64,
    pub(crate) pebs_enabled: u64,
    pub(crate) debug_control: u64,
    pub(crate) freezing: bool,
    freeze_opt_in: bool,
    pub(crate) trace_store: bool,
    pub(crate) branch_users: u32,
    pub(crate) branches: BranchStack,
    pub(crate) claims: Claims,
    pub(crate) gap: Option<GapMeter>,
    pub(crate) statistics: Statistics,
}

/// An event on a counter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub(crate) event: Event,
    /// The counter's value when it was last read or written.
    pub(crate) raw: u64,
    /// Too many samples: it does not count.
    pub(crate) throttled: bool,
}

/// Why an event cannot be started, or its period not changed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The PMU does not have this counter.
    NoSuchCounter(CounterIndex),
    /// Another event is on the counter.
    CounterBusy(CounterIndex),
    /// There is no event on the counter.
    CounterIdle(CounterIndex),
    /// A fixed counter does not count this event.
    FixedCounter(CounterIndex),
    /// No period, or one beyond [`PERIOD_MAX`].
    Period(u64),
    /// The PMU writes no PEBS records.
    NoPebs,
    /// A period cannot change while counters freeze.
    Frozen,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NoSuchCounter(counter) => write!(f, "this PMU has no counter {counter}"),
            StartError::CounterBusy(counter) => write!(f, "counter {counter} has an event already"),
            StartError::CounterIdle(counter) => write!(f, "counter {counter} has no event"),
            StartError::FixedCounter(counter) => {
                write!(f, "counter {counter} counts one event, and it is not this one")
            }
            StartError::Period(period) => {
                write!(f, "a period of {period} is not between 1 and {PERIOD_MAX}")
            }
            StartError::NoPebs => f.write_str("this PMU writes no PEBS records"),
            StartError::Frozen => f.write_str(
                "periods cannot change while counters freeze: start the event with \
                 Sampling::Frequency, which turns freezing off",
            ),
        }
    }
}

impl core::error::Error for StartError {}

impl Driver {
    /// The state before [`Driver::init`].
    #[must_use]
    pub const fn new(model: PmuModel) -> Driver {
        Driver {
            model,
            enabled: false,
            active: CounterMask::EMPTY,
            slots: [None; COUNTERS_MAX],
            fixed_control: 0,
            pebs_enabled: 0,
            debug_control: 0,
            freezing: false,
            freeze_opt_in: false,
            trace_store: false,
            branch_users: 0,
            branches: BranchStack::new(),
            claims: Claims::new(),
            gap: None,
            statistics: Statistics::ZERO,
        }
    }

    /// The counters and features that the driver was made for.
    #[must_use]
    pub const fn model(&self) -> &PmuModel {
        &self.model
    }

    /// Counters that have an event.
    #[must_use]
    pub const fn active(&self) -> CounterMask {
        self.active
    }

    /// Whether counters that have an event run.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Statistics so far.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Brings the PMU into a known state: all counters off, status clear, LVTPC delivers NMIs.
    /// Events are forgotten, statistics are kept.
    pub fn init(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        self.quiesce(bus);
        self.debug_control = 0;
        self.freezing = false;
        self.branch_users = 0;
        self.trace_store = false;
        if self.model.kind == PmuKind::Intel {
            bus.wrmsr(msr::IA32_DEBUGCTL, 0);
        }
        bus.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
    }

    /// All counters off and forgotten, status clear.
    pub(crate) fn quiesce(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        self.enabled = false;
        self.write_global_control(bus, 0);
        for counter in self.model.general.iter() {
            bus.wrmsr(self.model.control_msr(counter), 0);
            bus.wrmsr(self.model.counter_write_msr(counter), 0);
        }
        if !self.model.fixed.is_empty() {
            bus.wrmsr(msr::IA32_FIXED_CTR_CTRL, 0);
        }
        if self.model.pebs {
            bus.wrmsr(msr::IA32_PEBS_ENABLE, 0);
        }
        self.fixed_control = 0;
        self.pebs_enabled = 0;
        self.active = CounterMask::EMPTY;
        self.slots = [None; COUNTERS_MAX];
        let status = self.read_status(bus);
        if status != 0 {
            self.clear_status(bus, status);
        }
    }

    /// Puts an event on a counter; it counts once the PMU is enabled.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is written then.
    pub fn start(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        counter: CounterIndex,
        event: Event,
    ) -> Result<(), StartError> {
        self.check(counter, &event)?;
        self.active.insert(counter);
        self.slots[counter.index()] = Some(Slot { event, raw: 0, throttled: false });
        // Freezing has to be off before an event counts that must not meet it.
        self.refresh_freezing(bus);
        self.reload(bus, counter);
        if event.config.precise {
            self.pebs_enabled |= counter.bit();
            if self.enabled {
                bus.wrmsr(msr::IA32_PEBS_ENABLE, self.pebs_enabled);
            }
        }
        self.write_control(bus, counter, self.enabled || self.model.has_global_control());
        self.branch_users += u32::from(event.config.branches);
        Ok(())
    }

    fn check(&self, counter: CounterIndex, event: &Event) -> Result<(), StartError> {
        let config = &event.config;
        if !self.model.counters().contains(counter) {
            return Err(StartError::NoSuchCounter(counter));
        }
        if self.active.contains(counter) {
            return Err(StartError::CounterBusy(counter));
        }
        if counter.is_fixed() && !self.model.constraint(config.select).contains(counter) {
            return Err(StartError::FixedCounter(counter));
        }
        let wrong = |period: &u64| !(1..=PERIOD_MAX).contains(period);
        if let Some(period) = config.sampling.period().filter(wrong) {
            return Err(StartError::Period(period));
        }
        if config.precise && !self.model.pebs {
            return Err(StartError::NoPebs);
        }
        Ok(())
    }

    /// Takes the event off a counter, with its count. An overflow whose interrupt has not come yet
    /// gives no sample; it is in [`Statistics::stopped`], and its interrupt will be claimed.
    pub fn stop(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        counter: CounterIndex,
    ) -> Option<Event> {
        self.slots[counter.index()]?;
        self.write_control(bus, counter, false);
        self.update(bus, counter);
        let slot = self.slots[counter.index()].take()?;
        self.active.remove(counter);
        if slot.event.config.precise {
            self.pebs_enabled &= !counter.bit();
            if self.enabled {
                bus.wrmsr(msr::IA32_PEBS_ENABLE, self.pebs_enabled);
            }
        } else if self.has_overflowed(counter, slot.raw) {
            self.statistics.stopped += 1;
            self.claims.owe(1);
            self.clear_status(bus, counter.bit());
        }
        self.branch_users -= u32::from(slot.event.config.branches);
        self.refresh_freezing(bus);
        Some(slot.event)
    }

    /// Count of the event on a counter up to now: one RDPMC.
    pub fn read(&mut self, bus: &mut (impl PmuBus + ?Sized), counter: CounterIndex) -> Option<u64> {
        self.slots[counter.index()]?;
        self.update(bus, counter);
        self.slots[counter.index()].map(|slot| slot.event.count)
    }

    /// Changes an event's period from its next one on.
    ///
    /// # Errors
    /// Where there is no event, the period is none, or counters freeze: hardware does not take other
    /// periods then.
    pub fn set_period(&mut self, counter: CounterIndex, period: u64) -> Result<(), StartError> {
        if !(1..=PERIOD_MAX).contains(&period) {
            return Err(StartError::Period(period));
        }
        if self.freezing {
            return Err(StartError::Frozen);
        }
        match &mut self.slots[counter.index()] {
            Some(slot) => slot.event.period.set_length(period),
            None => return Err(StartError::CounterIdle(counter)),
        }
        Ok(())
    }

    /// Lets counters run. One WRMSR (two with PEBS events); before AMD PerfMonV2 one for each event.
    pub fn enable(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        if core::mem::replace(&mut self.enabled, true) {
            return;
        }
        self.resume(bus);
    }

    /// Stops all counters. Accesses as [`Driver::enable`].
    pub fn disable(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        if !core::mem::replace(&mut self.enabled, false) {
            return;
        }
        if self.model.has_global_control() {
            self.write_global_control(bus, 0);
            if self.pebs_enabled != 0 {
                bus.wrmsr(msr::IA32_PEBS_ENABLE, 0);
            }
        } else {
            self.active.iter().for_each(|counter| self.write_control(bus, counter, false));
        }
    }

    /// The registers of an enabled PMU.
    pub(crate) fn resume(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        if !self.model.has_global_control() {
            self.active.iter().for_each(|counter| self.write_control(bus, counter, true));
            return;
        }
        if self.pebs_enabled != 0 {
            bus.wrmsr(msr::IA32_PEBS_ENABLE, self.pebs_enabled);
        }
        self.write_global_control(bus, self.model.counters().bits());
    }

    /// Switches branch records on; interrupts freeze them. Events that want them say so in their
    /// [`EventConfig::branches`].
    pub fn enable_branches(&mut self, bus: &mut (impl PmuBus + ?Sized), filter: BranchFilter) {
        let Some(registers) = self.model.lbr.map(LbrRegisters::new) else { return };
        registers.enable(bus, filter);
        // With a call stack, freezing tears calls and returns apart.
        let freeze = if filter.call_stack { 0 } else { debugctl::FREEZE_LBRS_ON_PMI };
        let bits = registers.debugctl() | freeze;
        let all = debugctl::LBR | debugctl::FREEZE_LBRS_ON_PMI;
        self.write_debug_control(bus, (self.debug_control & !all) | bits);
    }

    /// Switches branch records off.
    pub fn disable_branches(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        let Some(registers) = self.model.lbr.map(LbrRegisters::new) else { return };
        registers.disable(bus);
        let all = debugctl::LBR | debugctl::FREEZE_LBRS_ON_PMI;
        self.write_debug_control(bus, self.debug_control & !all);
    }

    /// Switches the branch trace store on or off, whose buffer the caller has set up. No freeze stops
    /// it, so interrupts switch it off and on: two WRMSRs each.
    pub fn set_branch_trace_store(&mut self, bus: &mut (impl PmuBus + ?Sized), on: bool) {
        let bits = debugctl::TR | debugctl::BTS | debugctl::BTINT;
        self.trace_store = on;
        self.write_debug_control(bus, (self.debug_control & !bits) | if on { bits } else { 0 });
    }

    /// Within an interrupt.
    pub(crate) fn pause_trace_store(&mut self, bus: &mut (impl PmuBus + ?Sized), pause: bool) {
        if self.trace_store {
            let bits = debugctl::TR | debugctl::BTS | debugctl::BTINT;
            self.write_debug_control(
                bus,
                (self.debug_control & !bits) | if pause { 0 } else { bits },
            );
        }
    }

    /// Adds the count since the last look to the event.
    pub(crate) fn update(&mut self, bus: &mut (impl PmuBus + ?Sized), counter: CounterIndex) {
        let (register, mask) = (self.model.counter_msr(counter), self.model.counter_mask(counter));
        let Some(slot) = &mut self.slots[counter.index()] else { return };
        let raw = bus.rdpmc(counter, register) & mask;
        let events = raw.wrapping_sub(slot.raw) & mask;
        slot.raw = raw;
        slot.event.count = slot.event.count.wrapping_add(events);
        slot.event.period.consume(events);
    }

    /// Writes a counter with its next period; true where a period ended.
    pub(crate) fn reload(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        counter: CounterIndex,
    ) -> bool {
        let max = self.model.period_max(counter);
        let mask = self.model.counter_mask(counter);
        let register = self.model.counter_write_msr(counter);
        let Some(slot) = &mut self.slots[counter.index()] else { return false };
        let reload = slot.event.next_period(max);
        slot.raw = reload.left.wrapping_neg() & mask;
        bus.wrmsr(register, slot.raw);
        reload.due
    }

    /// No period sets a counter's top bit to 0, so it is 0 after an overflow alone.
    pub(crate) fn has_overflowed(&self, counter: CounterIndex, raw: u64) -> bool {
        let mask = self.model.counter_mask(counter);
        raw & (mask ^ (mask >> 1)) == 0
    }

    pub(crate) fn write_control(
        &mut self,
        bus: &mut (impl PmuBus + ?Sized),
        counter: CounterIndex,
        enable: bool,
    ) {
        let Some(slot) = &self.slots[counter.index()] else { return };
        let (select, enable) = (slot.event.config.select, enable && !slot.throttled);
        let Some(number) = counter.as_fixed() else {
            let enable = if enable { evtsel::EN } else { 0 };
            let value = (select & !evtsel::EN) | evtsel::INT | enable;
            bus.wrmsr(self.model.control_msr(counter), value);
            return;
        };
        let shift = fixed_ctrl::BITS * u32::from(number);
        let mut bits = fixed_ctrl::PMI;
        bits |= if select & evtsel::OS != 0 { fixed_ctrl::OS } else { 0 };
        bits |= if select & evtsel::USR != 0 { fixed_ctrl::USR } else { 0 };
        self.fixed_control &= !(fixed_ctrl::MASK << shift);
        self.fixed_control |= if enable { bits << shift } else { 0 };
        bus.wrmsr(msr::IA32_FIXED_CTR_CTRL, self.fixed_control);
    }

    pub(crate) fn write_global_control(&self, bus: &mut (impl PmuBus + ?Sized), value: u64) {
        match self.model.kind {
            PmuKind::Intel => bus.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, value),
            PmuKind::AmdV2 => bus.wrmsr(msr::PERF_CNTR_GLOBAL_CTL, value),
            PmuKind::AmdCore | PmuKind::AmdK7 => {}
        }
    }

    /// The global status; 0 where there is none.
    fn read_status(&self, bus: &mut (impl PmuBus + ?Sized)) -> u64 {
        match self.model.kind {
            PmuKind::Intel => bus.rdmsr(msr::IA32_PERF_GLOBAL_STATUS),
            PmuKind::AmdV2 => bus.rdmsr(msr::PERF_CNTR_GLOBAL_STATUS),
            PmuKind::AmdCore | PmuKind::AmdK7 => 0,
        }
    }

    /// Clears bits that are set: which others can be written differs between CPUs, and hardware
    /// answers with #GP.
    pub(crate) fn clear_status(&self, bus: &mut (impl PmuBus + ?Sized), bits: u64) {
        match self.model.kind {
            PmuKind::Intel => bus.wrmsr(msr::IA32_PERF_GLOBAL_STATUS_RESET, bits),
            PmuKind::AmdV2 => bus.wrmsr(msr::PERF_CNTR_GLOBAL_STATUS_CLR, bits),
            PmuKind::AmdCore | PmuKind::AmdK7 => {}
        }
    }

    pub(crate) fn write_debug_control(&mut self, bus: &mut (impl PmuBus + ?Sized), value: u64) {
        if self.debug_control != value {
            self.debug_control = value;
            bus.wrmsr(msr::IA32_DEBUGCTL, value);
        }
    }
}
