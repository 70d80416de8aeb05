//! Handling performance monitoring interrupts.
//!
//! Register accesses of one interrupt with one overflow, by class ([`crate::bus::RegisterClass`]):
//!
//! | protocol | control | counters | APIC |
//! |---|---|---|---|
//! | Intel classic, PEBS event active | 5 W + 2 R | 1 R + 1 W each overflow | 1 W |
//! | Intel classic, no PEBS event | 3 W + 2 R | 1 R + 1 W each overflow | 1 W |
//! | Intel frozen | 1 W + 1 R | 1 R + 1 W each overflow | 1 W |
//! | AMD PerfMonV2 | 3 W + 1 R | 1 R + 1 W each overflow | – |
//! | AMD before | – | 1 R each event + 1 W each overflow | – |
//!
//! Branch records come on top where an event samples them: up to 3 R for each record, and 1 R for the top
//! of stack; on versions 2 and 3 1 W to record again.

mod amd;
mod classic;
mod frozen;

use crate::bits::global_status;
use crate::bus::PmuBus;
use crate::counter::{CounterIndex, CounterMask};
use crate::driver::Driver;
use crate::lbr::{BranchStack, LbrRegisters};
use crate::model::PmuKind;

/// Rounds after which a status that does not become 0 is cleared by force.
pub const ROUNDS_MAX: u32 = 100;

/// A period that ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Overflow<'a> {
    /// The counter of the overflow.
    pub counter: CounterIndex,
    /// Its length in events.
    pub period: u64,
    /// Count of the event.
    pub count: u64,
    /// Branch records at the interrupt, for events that sample them.
    pub branches: Option<&'a BranchStack>,
}

/// Action after an overflow.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Verdict {
    /// It was sampled.
    Sampled,
    /// There are too many: there is no sample and the event stops counting, though it stays on its
    /// counter. [`Driver::unthrottle`] lets it go on.
    Throttle,
}

/// Takes samples.
pub trait PmiSink<B: PmuBus + ?Sized> {
    /// A period ended.
    fn overflow(&mut self, bus: &mut B, overflow: &Overflow<'_>) -> Verdict;

    /// Takes the PEBS records of a counter out of the buffer; the result is how many there were.
    fn drain_pebs(&mut self, bus: &mut B, counter: CounterIndex) -> u32 {
        let _ = (bus, counter);
        0
    }

    /// Takes what the branch trace store has written; called in every interrupt while it is on
    /// ([`Driver::set_branch_trace_store`]). The result is whether its buffer was full, so that this
    /// interrupt is its.
    fn drain_trace_store(&mut self, bus: &mut B) -> bool {
        let _ = bus;
        false
    }

    /// Status bits that are neither overflows of counters nor states: trace buffers (55), metrics (48),
    /// the uncore (61). They have been acknowledged.
    fn other(&mut self, bus: &mut B, status: u64) {
        let _ = (bus, status);
    }
}

impl<B: PmuBus + ?Sized, F: FnMut(&Overflow<'_>) -> Verdict> PmiSink<B> for F {
    fn overflow(&mut self, _: &mut B, overflow: &Overflow<'_>) -> Verdict {
        self(overflow)
    }
}

/// Kind of an interrupt.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum PmiOutcome {
    /// It had so many overflows and other reasons.
    Handled(u32),
    /// It had none, because an earlier interrupt handled them together with its own. Claim it.
    AlreadyHandled,
    /// It was not the PMU's.
    NotOurs,
}

impl Driver {
    /// Handles an interrupt that may be the PMU's. `now_ns` is the time of any clock that moves on.
    ///
    /// At the end the PMU is enabled if it was at the beginning, and either its status is clear or
    /// another interrupt is pending.
    pub fn handle_pmi<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        now_ns: u64,
        sink: &mut S,
    ) -> PmiOutcome {
        let handled = match self.model.kind {
            PmuKind::Intel if self.freezing => self.intel_frozen(bus, sink),
            PmuKind::Intel => self.intel_classic(bus, sink),
            PmuKind::AmdV2 => self.amd_v2(bus, sink),
            PmuKind::AmdCore | PmuKind::AmdK7 => self.amd(bus, sink),
        };
        match (handled, self.claims.settle(handled, now_ns)) {
            (0, true) => {
                self.statistics.already_handled += 1;
                PmiOutcome::AlreadyHandled
            }
            (0, false) => {
                self.statistics.not_ours += 1;
                PmiOutcome::NotOurs
            }
            _ => {
                self.statistics.interrupts += 1;
                PmiOutcome::Handled(handled)
            }
        }
    }

    /// Lets an event that was throttled count again.
    pub fn unthrottle(&mut self, bus: &mut (impl PmuBus + ?Sized), counter: CounterIndex) {
        let is_throttled = self.slots[counter.index()].is_some_and(|slot| slot.throttled);
        if is_throttled {
            if let Some(slot) = &mut self.slots[counter.index()] {
                slot.throttled = false;
            }
            self.write_control(bus, counter, self.enabled || self.model.has_global_control());
        }
    }

    /// Handles what a global status says; the result counts its reasons.
    fn service<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        status: u64,
        sink: &mut S,
    ) -> u32 {
        let mut handled = 0;
        if status & global_status::OVF_DS_BUFFER != 0 {
            handled += self.drain_pebs(bus, sink);
        }
        let reasons = status
            & (global_status::PERF_METRICS_OVF
                | global_status::TRACE_TOPA_PMI
                | global_status::OVF_UNCORE);
        if reasons != 0 {
            sink.other(bus, reasons);
            handled += reasons.count_ones();
        }
        // Hardware may set the bit of a PEBS counter, whose records are drained apart.
        let overflowed = CounterMask::from_bits(status & !self.pebs_enabled);
        for counter in overflowed.intersection(self.model.counters()).iter() {
            handled += 1;
            if self.active.contains(counter) {
                self.update(bus, counter);
                self.overflow(bus, counter, sink);
            } else {
                self.statistics.stale += 1;
            }
        }
        handled
    }

    /// An overflow of a counter that has been read.
    fn overflow<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        counter: CounterIndex,
        sink: &mut S,
    ) {
        let due = self.reload(bus, counter);
        let Some(slot) = self.slots[counter.index()] else { return };
        let config = slot.event.config;
        if !due {
            let counts = config.sampling.period().is_none();
            let tally = &mut self.statistics;
            *(if counts { &mut tally.wraps } else { &mut tally.partial }) += 1;
            return;
        }
        let overflow = Overflow {
            counter,
            period: slot.event.period.length(),
            count: slot.event.count,
            branches: config.branches.then_some(&self.branches),
        };
        match sink.overflow(bus, &overflow) {
            Verdict::Sampled => self.statistics.samples += 1,
            Verdict::Throttle => {
                self.statistics.throttled += 1;
                self.write_control(bus, counter, false);
                if let Some(slot) = &mut self.slots[counter.index()] {
                    slot.throttled = true;
                }
            }
        }
    }

    /// A counter with `n` records has wrapped `n` times beyond its value.
    fn drain_pebs<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        sink: &mut S,
    ) -> u32 {
        let mut handled = 0_u32;
        for counter in CounterMask::from_bits(self.pebs_enabled).iter() {
            let records = sink.drain_pebs(bus, counter);
            let mask = self.model.counter_mask(counter);
            let slot = self.slots[counter.index()].as_mut();
            if let Some(slot) = slot.filter(|_| records > 0) {
                let raw = bus.rdpmc(counter, self.model.counter_msr(counter)) & mask;
                let wrapped = u64::from(records).wrapping_mul(slot.event.period.length());
                let shown = raw.wrapping_sub(slot.raw) & mask;
                let shown = if shown > mask >> 1 { shown | !mask } else { shown };
                slot.event.count = slot.event.count.wrapping_add(wrapped).wrapping_add(shown);
                slot.raw = raw;
            }
            self.statistics.pebs_records += u64::from(records);
            handled = handled.saturating_add(records);
        }
        handled
    }

    /// Switches the trace store off and empties it.
    fn stop_trace_store<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        sink: &mut S,
    ) -> u32 {
        if !self.trace_store {
            return 0;
        }
        self.pause_trace_store(bus, true);
        u32::from(sink.drain_trace_store(bus))
    }

    fn read_branches(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        if let Some(model) = self.model.lbr.filter(|_| self.branch_users > 0) {
            LbrRegisters::new(model).read(bus, &mut self.branches);
        }
    }
}

#[cfg(test)]
mod tests;
