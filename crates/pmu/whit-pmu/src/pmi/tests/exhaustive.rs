//! Every interleaving of a small machine: events that occur before any register access of the handler.

use super::*;
use crate::bus::PmuBus;
use crate::counter::CounterMask;
use crate::driver::Driver;
use crate::known_models as models;
use crate::model::{AckOrder, PmuModel};
use crate::msr::Msr;
use crate::sim::SimulatedPmu;
use crate::sim::explore::{Chooser, exhaust};
use std::format;
use std::string::String;
use std::vec::Vec;

/// Before each access of a handler, an event may occur.
struct Adversary<'a> {
    pmu: SimulatedPmu,
    chooser: &'a mut Chooser,
    /// Events that may still occur within handlers.
    budget: u32,
    in_handler: bool,
}

impl Adversary<'_> {
    fn interfere(&mut self) {
        if self.in_handler && self.budget > 0 {
            let choice = self.chooser.choose(3);
            if choice > 0 {
                self.budget -= 1;
                self.pmu.occur([INSTRUCTIONS, CYCLES][choice - 1], 1);
            }
        }
    }
}

impl PmuBus for Adversary<'_> {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        self.interfere();
        self.pmu.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        self.interfere();
        self.pmu.wrmsr(msr, value);
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Freezing {
    Off,
    On,
    /// At any moment between events, also within a skid.
    Begins,
}

struct Setting {
    model: PmuModel,
    freezing: Freezing,
    skid: u32,
    masked: MaskedPmi,
    /// Events outside of handlers, and events within.
    events: (usize, u32),
}

fn small(model: PmuModel, ack: AckOrder, verify: bool) -> PmuModel {
    PmuModel {
        general: CounterMask::first_general(2),
        fixed: CounterMask::EMPTY,
        pebs: false,
        lbr: None,
        ack,
        verify_after_late_ack: verify,
        ..model
    }
}

/// Two counters of different events, two events each before their overflow.
fn run(setting: &Setting, chooser: &mut Chooser) -> Result<(), String> {
    let parameters =
        SimulationParameters { skid: setting.skid, masked: setting.masked, per_access: (0, 0) };
    let pmu = SimulatedPmu::new(setting.model, parameters);
    let mut bus = Adversary { pmu, chooser, budget: setting.events.1, in_handler: false };
    let mut driver = Driver::new(setting.model);
    driver.init(&mut bus);
    driver.start(&mut bus, PMC0, sampling(INSTRUCTIONS, 2)).map_err(|error| format!("{error}"))?;
    driver.start(&mut bus, PMC1, sampling(CYCLES, 2)).map_err(|error| format!("{error}"))?;
    driver.set_freezing(&mut bus, setting.freezing == Freezing::On);
    driver.enable(&mut bus);
    for _ in 0..setting.events.0 {
        let may_begin = setting.freezing == Freezing::Begins && !driver.is_freezing();
        if may_begin && bus.chooser.choose(2) == 1 {
            driver.set_freezing(&mut bus, true);
        }
        let event = [INSTRUCTIONS, CYCLES][bus.chooser.choose(2)];
        bus.pmu.occur(event, 1);
        interrupts(&mut bus, &mut driver)?;
    }
    for _ in 0..=2 * setting.skid {
        bus.pmu.occur(IDLE, 1);
        interrupts(&mut bus, &mut driver)?;
    }
    let statistics = driver.statistics();
    let overflows = bus.pmu.truth(PMC0).overflows + bus.pmu.truth(PMC1).overflows;
    let balance =
        (statistics.overflows(), statistics.not_ours, bus.pmu.status(), bus.pmu.violation());
    if balance == (overflows, 0, 0, None) {
        Ok(())
    } else {
        Err(format!("{overflows} overflows, {statistics:?}, status {:#x}", bus.pmu.status()))
    }
}

fn interrupts(bus: &mut Adversary<'_>, driver: &mut Driver) -> Result<(), String> {
    while bus.pmu.take_nmi() {
        bus.in_handler = true;
        driver.handle_pmi(bus, 0, &mut sample);
        bus.in_handler = false;
        bus.pmu.iret();
        if bus.pmu.status() != 0 && !bus.pmu.interrupt_is_due() {
            return Err(format!("status {:#x} and no interrupt is due", bus.pmu.status()));
        }
        if !driver.is_enabled() {
            return Err("the PMU is left disabled".into());
        }
    }
    Ok(())
}

fn check(setting: &Setting) -> Result<u64, String> {
    exhaust(|chooser| {
        run(setting, chooser).map_err(|what| {
            let decisions = chooser.decisions().collect::<Vec<_>>();
            format!("{:?}, {what}: decisions {decisions:?}", setting.model.kind)
        })
    })
}

fn all_hardware(model: PmuModel, freezing: Freezing) -> u64 {
    let mut runs = 0;
    for (skid, masked) in [0, 1, 2]
        .into_iter()
        .flat_map(|skid| [MaskedPmi::Drop, MaskedPmi::Latch].map(|masked| (skid, masked)))
    {
        for events in [(6, 1), (5, 2)] {
            let setting = Setting { model, freezing, skid, masked, events };
            runs +=
                check(&setting).unwrap_or_else(|what| panic!("skid {skid}, {masked:?}: {what}"));
        }
    }
    runs
}

#[test]
fn intel_classic_with_every_order_of_lvtpc() {
    for (ack, verify) in [(AckOrder::Early, false), (AckOrder::Mid, false), (AckOrder::Late, true)]
    {
        assert!(all_hardware(small(models::skylake(), ack, verify), Freezing::Off) > 10_000);
    }
}

#[test]
fn intel_frozen() {
    for freezing in [Freezing::On, Freezing::Begins] {
        let model = small(models::skylake(), AckOrder::Late, true);
        assert!(all_hardware(model, freezing) > 10_000);
    }
}

#[test]
fn amd_in_both_generations() {
    for model in [models::zen4(), models::zen3()] {
        assert!(all_hardware(small(model, AckOrder::Early, false), Freezing::Off) > 1000);
    }
}

/// Linux's order for Haswell and later is right where hardware latches, and loses an interrupt where it
/// drops: the search finds it.
#[test]
fn a_late_acknowledgement_that_is_not_verified_needs_hardware_that_latches() {
    let model = small(models::skylake(), AckOrder::Late, false);
    let setting =
        |masked| Setting { model, freezing: Freezing::Off, skid: 0, masked, events: (5, 2) };
    assert!(check(&setting(MaskedPmi::Latch)).is_ok());
    let found = check(&setting(MaskedPmi::Drop)).unwrap_err();
    assert!(found.contains("no interrupt is due"), "{found}");
}
