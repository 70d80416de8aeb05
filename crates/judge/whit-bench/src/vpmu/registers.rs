//! Register accesses and exits of a guest's profiler, by kind of virtual PMU: counted on simulated hardware.
//!
//! The guest is `whit-pmu`'s driver. Below it is one of four virtual PMUs: events of the host that are closed and opened
//! (emulation), or used again; the CPU's counters lent as Linux lends them, or as `whit_vpmu::mediated` does.

mod backed;
mod lent;
mod linux;
mod render;

use serde::Serialize;
use whit_pmu::bus::{PmuBus, Tally};
use whit_pmu::counter::CounterIndex;
use whit_pmu::driver::{Driver, Event, EventConfig};
use whit_pmu::msr::Msr;
use whit_pmu::pmi::{Overflow, Verdict};
use whit_vpmu::{Backing, IntelPmu, PmuModel};

use super::guest::driver_model;
use crate::error::Error;

pub(super) use render::show;

/// Events of the sampling guest, more than it has counters.
const EVENTS: u16 = 10;
const PERIOD: u64 = 1000;
/// Numbers of events of no meaning.
const FIRST_CODE: u16 = 0x11;
/// Operations that an average is taken over.
const OPERATIONS: u64 = 400;

/// A virtual PMU below a guest's driver.
trait Below {
    fn read(&mut self, msr: Msr, counter: Option<CounterIndex>) -> u64;
    fn write(&mut self, msr: Msr, value: u64);
    /// The guest's events occur.
    fn occur(&mut self, code: u16, count: u64);
    /// Takes an interrupt that the guest has.
    fn take_nmi(&mut self) -> bool;
    /// An exit that has nothing to do with the PMU: a timer, a device.
    fn other_exit(&mut self);
    fn cost(&self) -> Cost;
}

/// The cost of something.
#[derive(Copy, Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Cost {
    /// Exits of the guest for its PMU and its interrupt.
    pub(crate) exits: f64,
    /// Accesses of the host to the CPU's registers.
    pub(crate) writes: f64,
    pub(crate) reads: f64,
    /// Host events opened.
    pub(crate) opens: f64,
}

impl Cost {
    fn of(exits: u64, tally: Tally, opens: u64) -> Cost {
        let reads = (tally.rdmsr + tally.rdpmc) as f64;
        Cost { exits: exits as f64, writes: tally.wrmsr as f64, reads, opens: opens as f64 }
    }

    /// Since `earlier`, for each of so many operations.
    fn since(self, earlier: Cost, operations: u64) -> Cost {
        let mean = |now: f64, before: f64| (now - before) / operations.max(1) as f64;
        Cost {
            exits: mean(self.exits, earlier.exits),
            writes: mean(self.writes, earlier.writes),
            reads: mean(self.reads, earlier.reads),
            opens: mean(self.opens, earlier.opens),
        }
    }

    /// The sum of operations by their numbers.
    fn sum(parts: &[(f64, Cost)]) -> Cost {
        let add = |field: fn(&Cost) -> f64| parts.iter().map(|(n, cost)| n * field(cost)).sum();
        Cost {
            exits: add(|cost| cost.exits),
            writes: add(|cost| cost.writes),
            reads: add(|cost| cost.reads),
            opens: add(|cost| cost.opens),
        }
    }
}

/// One virtual PMU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) scheme: &'static str,
    /// One interrupt of four sampling counters.
    pub(crate) interrupt: Cost,
    /// Four other events take the counters.
    pub(crate) rotation: Cost,
    /// A task whose one event is counted leaves the CPU and comes back.
    pub(crate) switch: Cost,
    /// Any other exit while four counters sample, while one counts, and while none does.
    pub(crate) exit_sampling: Cost,
    pub(crate) exit_counting: Cost,
    pub(crate) exit_idle: Cost,
    /// A second of each usage.
    pub(crate) sampling: Cost,
    pub(crate) counting: Cost,
    pub(crate) idle: Cost,
}

/// Rates of the composed second.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Rates {
    /// Four counters at 1000 Hz.
    pub(crate) interrupts: f64,
    /// Linux changes the set each 4 ms.
    pub(crate) rotations: f64,
    pub(crate) switches: f64,
    pub(crate) other_exits: f64,
}

pub(crate) const RATES: Rates =
    Rates { interrupts: 4000.0, rotations: 250.0, switches: 1000.0, other_exits: 2000.0 };

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) rates: Rates,
    pub(crate) rows: Vec<Row>,
}

struct Guest<B> {
    below: Registers<B>,
    driver: Driver,
    samples: u64,
}

struct Registers<B>(B);

impl<B: Below> PmuBus for Registers<B> {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        self.0.read(msr, None)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        self.0.write(msr, value);
    }

    fn rdpmc(&mut self, counter: CounterIndex, msr: Msr) -> u64 {
        self.0.read(msr, Some(counter))
    }
}

impl<B: Below> Guest<B> {
    fn new(below: B, pmu: &IntelPmu) -> Guest<B> {
        let mut below = Registers(below);
        let mut driver = Driver::new(driver_model(pmu));
        driver.init(&mut below);
        Guest { below, driver, samples: 0 }
    }

    fn start(&mut self, first: u16, count: u8, config: fn(u16) -> EventConfig) {
        for counter in 0..count {
            let code = FIRST_CODE + (first + u16::from(counter)) % EVENTS;
            let event = Event::new(config(code));
            // The counter is free and the period is one.
            let _ = self.driver.start(&mut self.below, CounterIndex::general(counter), event);
        }
        self.driver.enable(&mut self.below);
    }

    fn stop(&mut self, count: u8) {
        self.driver.disable(&mut self.below);
        for counter in 0..count {
            self.driver.stop(&mut self.below, CounterIndex::general(counter));
        }
    }

    fn run(&mut self, code: u16, count: u64) {
        self.below.0.occur(FIRST_CODE + code % EVENTS, count);
        while self.below.0.take_nmi() {
            let samples = &mut self.samples;
            self.driver.handle_pmi(&mut self.below, 0, &mut |_: &Overflow<'_>| {
                *samples += 1;
                Verdict::Sampled
            });
        }
    }

    fn each(&mut self, mut operation: impl FnMut(&mut Guest<B>, u64)) -> Cost {
        let before = self.below.0.cost();
        (0..OPERATIONS).for_each(|number| operation(self, number));
        self.below.0.cost().since(before, OPERATIONS)
    }

    fn measure(mut self, scheme: &'static str) -> Result<Row, Error> {
        let sampling = |code: u16| EventConfig::sampling(code.into(), PERIOD);
        let exit_idle = self.each(|guest, _| guest.below.0.other_exit());
        self.start(0, 4, sampling);
        let interrupt = self.each(|guest, number| guest.run((number % 4) as u16, PERIOD));
        if self.samples != OPERATIONS {
            anyhow::bail!("{scheme}: {} samples of {OPERATIONS} periods", self.samples);
        }
        let exit_sampling = self.each(|guest, _| guest.below.0.other_exit());
        let rotation = self.each(|guest, number| {
            guest.stop(4);
            guest.start((4 * number % u64::from(EVENTS)) as u16, 4, sampling);
        });
        self.stop(4);
        // Counters leave their use when nobody has touched them for a while.
        (0..3).for_each(|_| self.below.0.other_exit());
        let counting = |code: u16| EventConfig::counting(code.into());
        self.start(0, 1, counting);
        let switch = self.each(|guest, _| {
            guest.stop(1);
            guest.start(0, 1, counting);
        });
        let exit_counting = self.each(|guest, _| guest.below.0.other_exit());
        let second = |parts: &[(f64, Cost)]| Cost::sum(parts);
        Ok(Row {
            scheme,
            interrupt,
            rotation,
            switch,
            exit_sampling,
            exit_counting,
            exit_idle,
            sampling: second(&[
                (RATES.interrupts, interrupt),
                (RATES.rotations, rotation),
                (RATES.other_exits, exit_sampling),
            ]),
            counting: second(&[(RATES.switches, switch), (RATES.other_exits, exit_counting)]),
            idle: second(&[(RATES.other_exits, exit_idle)]),
        })
    }
}

/// Counts; every machine has the same.
pub(super) fn compare() -> Result<Comparison, Error> {
    let pmu = IntelPmu::default();
    let model = PmuModel::intel(pmu).map_err(|error| anyhow::anyhow!("{error}"))?;
    let backed = |backing| Guest::new(backed::Backed::new(model, backing), &pmu);
    let lent = lent::Lent::new(model).map_err(|error| anyhow::anyhow!("{error}"))?;
    let rows = vec![
        backed(Backing::Recreate).measure("emulation")?,
        backed(Backing::Reuse).measure("event reuse")?,
        Guest::new(linux::Linux::new(&pmu), &pmu).measure("mediated, Linux")?,
        Guest::new(lent, &pmu).measure("mediated, whit")?,
    ];
    Ok(Comparison { rates: RATES, rows })
}

#[cfg(test)]
mod tests;
