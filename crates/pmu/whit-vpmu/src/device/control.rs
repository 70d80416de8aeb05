//! Writes that start and stop counters. Counters stop at once, under the settings that they ran
//! with. They start before the guest runs on, when all settings are known.

use super::Vpmu;
use crate::event::EventConfig;
use crate::interrupt::Interrupt;
use crate::msr::{evtsel, status};
use crate::source::CounterSource;

impl<S: CounterSource, I: Interrupt> Vpmu<S, I> {
    /// The event that a counter would count with this event select; `None`: it stands still.
    fn wanted_with(&self, slot: usize, select: u64) -> Option<EventConfig> {
        if !self.is_globally_enabled(slot) {
            return None;
        }
        let config = EventConfig::of_select(self.config.model.counter(slot), select)?;
        let allowed = self.config.filter.as_ref().is_none_or(|filter| filter.allows(&config));
        allowed.then_some(config)
    }

    /// The event that a counter has to count now.
    pub(super) fn wanted(&self, slot: usize) -> Option<EventConfig> {
        self.wanted_with(slot, self.counters[slot].select)
    }

    fn is_globally_enabled(&self, slot: usize) -> bool {
        let model = &self.config.model;
        !model.has_global_control()
            || (self.global_control & model.status_bit(slot) != 0
                && self.global_status & status::CTR_FRZ == 0)
    }

    pub(super) fn write_select(&mut self, slot: usize, select: u64) {
        self.in_use.insert(slot);
        let before = self.counters[slot].select;
        if before == select {
            return;
        }
        let running = self.counters[slot].backing.as_ref().filter(|backing| backing.running);
        if let Some(config) = running.map(|backing| backing.config) {
            if self.wanted_with(slot, select) != Some(config) {
                self.pause(slot);
            } else if (before ^ select) & evtsel::INT != 0 {
                // An overflow until now interrupts as it was set until now.
                self.fold(slot);
            }
        }
        self.counters[slot].select = select;
        self.pending.insert(slot);
    }

    pub(super) fn write_fixed_control(&mut self, value: u64) {
        let model = self.config.model;
        self.fixed_control = value;
        for slot in usize::from(model.general)..model.slots() {
            let select = model.fixed_select(slot, value);
            if select != self.counters[slot].select {
                self.write_select(slot, select);
            }
        }
    }

    pub(super) fn write_global_control(&mut self, value: u64) {
        let changed = self.global_control ^ value;
        self.global_control = value;
        self.retarget(changed);
    }

    pub(super) fn write_status(&mut self, value: u64) {
        let thawed_or_frozen = (self.global_status ^ value) & status::CTR_FRZ != 0;
        self.global_status = value;
        if thawed_or_frozen {
            self.retarget(self.config.model.counter_bits());
        }
    }

    /// Stops the counters with these status bits that are no longer to run, and marks the others
    /// for a check.
    fn retarget(&mut self, bits: u64) {
        for slot in 0..self.counters.len() {
            if bits & self.config.model.status_bit(slot) != 0 {
                if self.wanted(slot).is_none() {
                    self.pause(slot);
                }
                self.pending.insert(slot);
            }
        }
    }
}
