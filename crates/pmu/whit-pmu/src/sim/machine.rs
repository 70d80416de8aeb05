//! A CPU with its driver: runs events and delivers interrupts.

use super::{SimulatedPmu, SimulationParameters};
use crate::bus::{Accesses, Counting};
use crate::driver::Driver;
use crate::model::PmuModel;
use crate::pmi::{PmiOutcome, PmiSink};

/// The simulated PMU behind a counter of register accesses.
pub type MachineBus = Counting<SimulatedPmu>;

/// A simulated CPU, its driver, and the cost of its interrupts.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The registers.
    pub bus: MachineBus,
    /// The driver under test; its bus is a [`MachineBus`].
    pub driver: Driver,
    interrupts: u64,
    handler: Accesses,
}

/// Interrupts in a row after which a machine does nothing else: a period shorter than its handler.
pub const STORM_MAX: u32 = 10_000;

impl Machine {
    /// After [`Driver::init`]; nothing runs yet.
    #[must_use]
    pub fn new(model: PmuModel, parameters: SimulationParameters) -> Machine {
        let mut bus = Counting::new(SimulatedPmu::new(model, parameters));
        let mut driver = Driver::new(model);
        driver.init(&mut bus);
        Machine { bus, driver, interrupts: 0, handler: Accesses::default() }
    }

    /// The hardware behind the bus.
    #[must_use]
    pub fn pmu(&self) -> &SimulatedPmu {
        self.bus.get_ref()
    }

    /// An event occurs `count` times, and every interrupt is handled when it comes. An interrupt
    /// within the skid of the last event is still to come.
    ///
    /// # Panics
    /// After [`STORM_MAX`] interrupts in a row.
    pub fn run(&mut self, event: u16, mut count: u64, sink: &mut impl PmiSink<MachineBus>) {
        while count > 0 {
            count = self.bus.get_mut().occur_until_nmi(event, count);
            self.interrupts(sink);
        }
    }

    /// Handles the interrupts that are pending.
    ///
    /// # Panics
    /// As [`Machine::run`].
    pub fn interrupts(&mut self, sink: &mut impl PmiSink<MachineBus>) {
        let mut storm = 0;
        while self.interrupt(sink).is_some() {
            storm += 1;
            assert!(storm < STORM_MAX, "interrupts without an end: the period is too short");
        }
    }

    /// Handles one interrupt, where one is pending.
    pub fn interrupt(&mut self, sink: &mut impl PmiSink<MachineBus>) -> Option<PmiOutcome> {
        if !self.bus.get_mut().take_nmi() {
            return None;
        }
        let before = *self.bus.accesses();
        let outcome = self.driver.handle_pmi(&mut self.bus, self.interrupts, sink);
        self.bus.get_mut().iret();
        self.handler.add(&self.bus.accesses().since(&before));
        self.interrupts += 1;
        Some(outcome)
    }

    /// How many interrupts were handled, and their register accesses.
    #[must_use]
    pub const fn handled(&self) -> (u64, &Accesses) {
        (self.interrupts, &self.handler)
    }
}
