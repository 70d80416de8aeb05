//! Overflows, interrupts, and the moments at which a VMM calls.

use super::Vpmu;
use crate::interrupt::{Delivery, Interrupt};
use crate::msr::evtsel;
use crate::source::{CounterSource, Reading, Token};

impl<S: CounterSource, I: Interrupt> Vpmu<S, I> {
    /// Before the guest runs (on): its writes take effect, and one interrupt is delivered where one
    /// is due.
    pub fn on_vcpu_enter(&mut self) {
        let pending = self.pending.take();
        pending.iter().for_each(|slot| self.reprogram(slot));
        self.deliver();
    }

    /// Time has passed; `now_ns` is that of any clock that moves on. Rounds are at least
    /// [`VpmuConfig::tick_ns`](crate::VpmuConfig::tick_ns) apart, however often this is called. A device that is never
    /// told the time delivers [`VpmuConfig::pmis_per_tick_max`](crate::VpmuConfig::pmis_per_tick_max) interrupts and no more.
    pub fn on_tick(&mut self, now_ns: u64) {
        let since = now_ns.saturating_sub(*self.ticked_ns.get_or_insert(now_ns));
        if since < self.config.tick_ns {
            return;
        }
        self.ticked_ns = Some(now_ns);
        (self.pmis_left, self.storm) = (self.config.pmis_per_tick_max, false);
        self.clean_up();
    }

    /// The source gives notice that an event's period is over. Notices of events that have stopped
    /// since are dropped: their counts were added when they stopped.
    pub fn on_overflow(&mut self, token: Token) {
        let slot = token.slot();
        let current = self.counters.get(slot).filter(|counter| {
            counter.generation == token.generation()
                && counter.backing.as_ref().is_some_and(|backing| backing.running)
        });
        if current.is_none() {
            self.statistics.stale_notices += 1;
            return;
        }
        let before = self.statistics.overflows;
        self.fold(slot);
        if self.statistics.overflows == before {
            self.early(slot);
        }
    }

    /// Looks which counters have overflowed: for sources that give notice without a token, as a signal does.
    /// The result is how many.
    pub fn poll_overflows(&mut self) -> u64 {
        let before = self.statistics.overflows;
        let mut due = false;
        for slot in 0..self.counters.len() {
            let overflows = self.statistics.overflows;
            if self.fold(slot) {
                due = true;
                if self.statistics.overflows == overflows {
                    self.early(slot);
                }
            }
        }
        if !due && self.statistics.overflows == before && self.settle() {
            self.statistics.early_notices += 1;
        }
        self.statistics.overflows - before
    }

    /// The VMM has answered an exit for an instruction of the guest, in its kernel or user mode, and the guest runs on
    /// behind it: hardware counts no such instruction. `select` is an event's number and unit mask: 0xc0 for
    /// instructions, for branches 0xc4 (Intel) or 0xc2 (AMD). Called after the instruction's effect, as one that
    /// starts a counter is the first in its count, and one that stops a counter is not in it.
    pub fn count_emulated(&mut self, select: u64, kernel: bool) {
        for slot in 0..self.counters.len() {
            let counts = self.wanted(slot).is_some_and(|config| {
                config.select == select && (if kernel { config.kernel } else { config.user })
            });
            // A counter without a host event stands still, and does not count these alone.
            if !counts || self.retry.contains(slot) {
                continue;
            }
            self.fold(slot);
            self.account(slot, Ok(Reading { events: 1, due: false }));
            self.counters[slot].moved = true;
            self.pending.insert(slot);
        }
    }

    /// The host counted to its notice, and the guest's counter is not there yet: a period that the host
    /// began by itself, or one that had shrunk in a pause.
    fn early(&mut self, slot: usize) {
        self.statistics.early_notices += 1;
        self.rearm(slot);
    }

    /// A counter passed its last value.
    pub(super) fn overflowed(&mut self, slot: usize) {
        self.statistics.overflows += 1;
        if self.config.model.has_global_control() {
            self.global_status |= self.config.model.status_bit(slot);
        }
        if self.counters[slot].select & evtsel::INT != 0 {
            self.statistics.pmis_merged += u64::from(self.pmi_due);
            self.pmi_due = true;
        }
    }

    fn deliver(&mut self) {
        if !self.pmi_due {
            return;
        }
        if self.pmis_left == 0 {
            self.statistics.storms += u64::from(!core::mem::replace(&mut self.storm, true));
            return;
        }
        self.pmis_left -= 1;
        self.pmi_due = false;
        match self.interrupt.pmi(self.config.model.is_intel()) {
            Delivery::Delivered => self.statistics.pmis += 1,
            Delivery::Masked => self.statistics.pmis_masked += 1,
        }
    }

    /// Whether an interrupt is due, which the next [`Vpmu::on_vcpu_enter`] delivers.
    #[must_use]
    pub const fn pmi_due(&self) -> bool {
        self.pmi_due
    }
}
