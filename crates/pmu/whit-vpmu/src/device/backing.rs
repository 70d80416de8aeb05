//! The host's events behind the counters: opened, reused, released.

use super::{BackingEvent, Vpmu};
use crate::config::Backing;
use crate::event::EventConfig;
use crate::interrupt::Interrupt;
use crate::msr::evtsel;
use crate::source::{Arm, CounterSource, OpenError, Reading, SourceError, Token};
use crate::statistics::{Fault, FaultReason};

impl<S: CounterSource, I: Interrupt> Vpmu<S, I> {
    /// Makes a counter count its event.
    pub(super) fn reprogram(&mut self, slot: usize) {
        let Some(config) = self.wanted(slot) else {
            self.pause(slot);
            return;
        };
        let same = self.counters[slot].backing.as_ref().filter(|backing| backing.config == config);
        if let Some(backing) = same {
            if backing.running {
                self.statistics.kept += 1;
                if self.counters[slot].moved {
                    self.rearm(slot);
                }
                return;
            }
            if self.resume(slot) {
                self.statistics.opens_avoided += 1;
                return;
            }
        }
        self.close(slot);
        self.open(slot, config);
    }

    /// Adds the count since the last look. True where the host's period was over.
    pub(super) fn fold(&mut self, slot: usize) -> bool {
        let Some(backing) = &mut self.counters[slot].backing else { return false };
        if !backing.running {
            return false;
        }
        let reading = self.source.read(&mut backing.event);
        self.account(slot, reading)
    }

    /// Stops a counter. Its event is kept, unless events are not used again.
    pub(super) fn pause(&mut self, slot: usize) {
        let counter = &mut self.counters[slot];
        let Some(backing) = counter.backing.as_mut().filter(|backing| backing.running) else {
            return;
        };
        backing.running = false;
        counter.generation = counter.generation.wrapping_add(1);
        let reading = match self.config.backing {
            Backing::Reuse => self.source.pause(&mut backing.event),
            Backing::Recreate => self.source.read(&mut backing.event),
        };
        self.account(slot, reading);
        if self.config.backing == Backing::Recreate {
            self.close(slot);
        }
    }

    /// Starts a paused event; false where it is refused.
    fn resume(&mut self, slot: usize) -> bool {
        let arm = self.arm(slot);
        let counter = &mut self.counters[slot];
        let Some(backing) = &mut counter.backing else { return false };
        match self.source.resume(&mut backing.event, arm) {
            Ok(()) => {
                backing.running = true;
                counter.moved = false;
                true
            }
            Err(error) => {
                self.failed(slot, error);
                false
            }
        }
    }

    /// Gives a running event the distance that its counter is from its overflow.
    pub(super) fn rearm(&mut self, slot: usize) {
        let arm = self.arm(slot);
        let counter = &mut self.counters[slot];
        let Some(backing) = counter.backing.as_mut().filter(|backing| backing.running) else {
            return;
        };
        match self.source.rearm(&mut backing.event, arm) {
            Ok(()) => counter.moved = false,
            Err(error) => self.failed(slot, error),
        }
    }

    fn open(&mut self, slot: usize, config: EventConfig) {
        let arm = self.arm(slot);
        let mut opened = self.source.open(&config, arm);
        if opened.as_ref().err() == Some(&OpenError::TooManyOpen) && self.release_idle() > 0 {
            opened = self.source.open(&config, arm);
        }
        match opened {
            Ok(event) => {
                let counter = &mut self.counters[slot];
                counter.backing = Some(BackingEvent { event, config, running: true });
                counter.moved = false;
                self.statistics.opens += 1;
            }
            Err(error) => {
                self.statistics.open_failures += 1;
                self.record_fault(slot, FaultReason::Open(error));
            }
        }
    }

    /// Closes a counter's event, and adds its count.
    pub(super) fn close(&mut self, slot: usize) {
        let running = self.counters[slot].backing.as_ref().is_some_and(|backing| backing.running);
        if running {
            // A second path has the same result as a pause.
            self.fold(slot);
        }
        let counter = &mut self.counters[slot];
        if let Some(backing) = counter.backing.take() {
            counter.generation = counter.generation.wrapping_add(u32::from(running));
            self.source.close(backing.event);
            self.statistics.closes += 1;
        }
    }

    /// Closes the events of all counters that do not run, as when the VMM is short of file
    /// descriptors. The result is how many. Guests see nothing of it.
    pub fn release_idle(&mut self) -> usize {
        let before = self.statistics.closes;
        for slot in 0..self.counters.len() {
            if self.counters[slot].backing.as_ref().is_some_and(|backing| !backing.running) {
                self.close(slot);
            }
        }
        (self.statistics.closes - before) as usize
    }

    /// The round of a tick. It releases events of counters that the guest neither enables nor
    /// touches. It really stops the others where a pause left them running, and tries again to open
    /// events that could not be opened.
    pub(super) fn clean_up(&mut self) {
        let in_use = self.in_use.take();
        for slot in 0..self.counters.len() {
            let counter = &mut self.counters[slot];
            let enabled = counter.select & evtsel::EN != 0;
            let Some(backing) = counter.backing.as_mut().filter(|backing| !backing.running) else {
                continue;
            };
            if enabled || in_use.contains(slot) {
                self.source.settle(&mut backing.event);
            } else {
                self.close(slot);
                self.statistics.lazy_releases += 1;
            }
        }
        let again = self.retry.take();
        again.iter().for_each(|slot| self.pending.insert(slot));
    }

    /// Really stops what pauses have left running.
    pub(super) fn settle(&mut self) -> bool {
        let mut settled = false;
        for counter in &mut self.counters {
            if let Some(backing) = counter.backing.as_mut().filter(|backing| !backing.running) {
                settled |= self.source.settle(&mut backing.event);
            }
        }
        settled
    }

    /// How a counter's event has to be started.
    fn arm(&self, slot: usize) -> Arm {
        let counter = &self.counters[slot];
        let mask = self.config.model.counter_mask();
        let left = counter.value.wrapping_neg() & mask;
        Arm {
            left: if left == 0 { mask + 1 } else { left },
            moved: counter.moved,
            token: Token::new(slot, counter.generation),
        }
    }

    /// Adds a reading to a counter. True where the host's period was over.
    pub(super) fn account(&mut self, slot: usize, reading: Result<Reading, SourceError>) -> bool {
        let reading = match reading {
            Ok(reading) => reading,
            Err(error) => {
                self.failed(slot, error);
                return false;
            }
        };
        let mask = self.config.model.counter_mask();
        let counter = &mut self.counters[slot];
        let overflowed = reading.events > mask - counter.value;
        counter.value = counter.value.wrapping_add(reading.events) & mask;
        // The host counts to its next notice by itself, and not to where the counter has to.
        counter.moved |= overflowed || reading.due;
        if overflowed {
            self.overflowed(slot);
        }
        reading.due
    }

    /// An open event failed: it is closed, and the next tick tries again.
    fn failed(&mut self, slot: usize, error: SourceError) {
        self.statistics.source_failures += 1;
        self.record_fault(slot, FaultReason::Source(error));
        let counter = &mut self.counters[slot];
        counter.generation = counter.generation.wrapping_add(1);
        if let Some(backing) = counter.backing.take() {
            self.source.close(backing.event);
            self.statistics.closes += 1;
        }
    }

    fn record_fault(&mut self, slot: usize, reason: FaultReason) {
        self.retry.insert(slot);
        self.fault = Some(Fault { counter: self.config.model.counter(slot), reason });
    }
}
