//! Traps of the order of things, one test each.

use super::*;
use crate::bits::{debugctl, global_status, lvtpc};
use crate::bus::PmuBus;
use crate::driver::{Driver, FreezeRefusal, StartError};
use crate::known_models as models;
use crate::model::FreezeGate;
use crate::msr::{self, Msr};
use crate::pmi::{PmiOutcome, PmiSink, ROUNDS_MAX};
use crate::sim::SimulatedPmu;
use crate::sim::machine::MachineBus;

#[test]
fn an_interrupt_in_a_disabled_section_leaves_the_pmu_disabled() {
    for (model, freezing) in [
        (models::skylake(), false),
        (models::skylake(), true),
        (models::zen4(), false),
        (models::zen3(), false),
    ] {
        let events = [(PMC0, sampling(INSTRUCTIONS, 10)), (PMC1, counting(INSTRUCTIONS))];
        let mut machine = machine(model, quiet(5), &events);
        machine.driver.set_freezing(&mut machine.bus, freezing);
        machine.run(INSTRUCTIONS, 10, &mut sample);
        machine.driver.disable(&mut machine.bus);
        settle(&mut machine);
        assert_eq!(machine.driver.statistics().samples, 1, "its overflow is sampled");
        assert!(!machine.driver.is_enabled());
        machine.run(INSTRUCTIONS, 50, &mut sample);
        assert_eq!(machine.driver.read(&mut machine.bus, PMC1), Some(10), "nothing counts");
        machine.driver.enable(&mut machine.bus);
        machine.run(INSTRUCTIONS, 9, &mut sample);
        assert_eq!(machine.driver.read(&mut machine.bus, PMC1), Some(19));
    }
}

/// A status that comes back as often as it is cleared.
struct Stuck(SimulatedPmu);

impl PmuBus for Stuck {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        let stuck =
            if msr == msr::IA32_PERF_GLOBAL_STATUS { 2 | global_status::CTR_FRZ } else { 0 };
        self.0.rdmsr(msr) | stuck
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        self.0.wrmsr(msr, value);
    }
}

#[test]
fn a_status_that_stays_is_given_up_after_100_rounds() {
    let mut bus = Stuck(SimulatedPmu::new(models::skylake(), quiet(0)));
    let mut driver = Driver::new(models::skylake());
    driver.init(&mut bus);
    driver.start(&mut bus, PMC0, sampling(INSTRUCTIONS, 10)).unwrap();
    driver.enable(&mut bus);
    let outcome = driver.handle_pmi(&mut bus, 0, &mut sample);
    assert_eq!(outcome, PmiOutcome::Handled(ROUNDS_MAX));
    assert_eq!((driver.statistics().stuck, driver.statistics().stale), (1, 100));
    assert!(!driver.is_enabled() && driver.active().is_empty());
    assert_eq!(bus.0.rdmsr(msr::IA32_PERF_GLOBAL_CTRL), 0);
    assert_eq!(bus.0.rdmsr(msr::X2APIC_LVTPC) & lvtpc::MASKED, 0);
}

/// A status that is 0 at first and then an overflow, whose interrupt met a masked entry.
struct Appearing(SimulatedPmu, u32);

impl PmuBus for Appearing {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        let looks = u32::from(msr == msr::IA32_PERF_GLOBAL_STATUS);
        self.1 += looks;
        let appears = looks == 1 && self.1 == 2;
        self.0.rdmsr(msr) | if appears { 1 | global_status::CTR_FRZ } else { 0 }
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        self.0.wrmsr(msr, value);
    }
}

#[test]
fn a_frozen_handler_that_finds_nothing_looks_again() {
    let mut bus = Appearing(SimulatedPmu::new(models::skylake(), quiet(0)), 0);
    let mut driver = Driver::new(models::skylake());
    driver.init(&mut bus);
    driver.set_freezing(&mut bus, true);
    driver.start(&mut bus, PMC0, sampling(INSTRUCTIONS, 10)).unwrap();
    driver.enable(&mut bus);
    assert_eq!(driver.handle_pmi(&mut bus, 0, &mut sample), PmiOutcome::Handled(1));
    assert_eq!(bus.1, 2);
}

#[derive(Default)]
struct Others(u64);

impl PmiSink<MachineBus> for Others {
    fn overflow(&mut self, _: &mut MachineBus, overflow: &Overflow<'_>) -> Verdict {
        panic!("{overflow:?} is none");
    }

    fn other(&mut self, _: &mut MachineBus, status: u64) {
        self.0 |= status;
    }
}

#[test]
fn status_bits_of_other_things_are_no_counters() {
    let mut machine = machine(models::skylake(), quiet(0), &[(PMC0, sampling(INSTRUCTIONS, 10))]);
    let reasons = global_status::PERF_METRICS_OVF | global_status::TRACE_TOPA_PMI;
    let silent = global_status::COND_CHGD | global_status::ASCI | global_status::LBR_FRZ;
    machine.bus.wrmsr(msr::IA32_PERF_GLOBAL_STATUS_SET, reasons | silent);
    let mut others = Others::default();
    let outcome = machine.driver.handle_pmi(&mut machine.bus, 0, &mut others);
    assert_eq!((outcome, others.0), (PmiOutcome::Handled(2), reasons));
    assert_eq!(machine.pmu().status(), 0);
    machine.bus.wrmsr(msr::IA32_PERF_GLOBAL_STATUS_SET, silent);
    let outcome = machine.driver.handle_pmi(&mut machine.bus, u64::MAX, &mut others);
    assert_eq!(outcome, PmiOutcome::NotOurs, "a state is no reason for an interrupt");
}

#[test]
fn the_status_bit_of_a_precise_counter_is_not_its_overflow() {
    let config = EventConfig { precise: true, ..EventConfig::sampling(0xc0, 1000) };
    let mut machine = machine(models::skylake(), quiet(0), &[(PMC0, Event::new(config))]);
    machine.bus.wrmsr(msr::IA32_PERF_GLOBAL_STATUS_SET, 1);
    let outcome = machine.driver.handle_pmi(&mut machine.bus, 0, &mut Others::default());
    assert_eq!((outcome, machine.pmu().status()), (PmiOutcome::NotOurs, 0));
}

#[test]
fn stopping_an_event_with_an_interrupt_on_its_way_claims_it() {
    for model in [models::skylake(), models::zen4(), models::zen3()] {
        let mut machine = machine(model, quiet(5), &[(PMC0, sampling(INSTRUCTIONS, 10))]);
        machine.run(INSTRUCTIONS, 12, &mut sample);
        machine.driver.stop(&mut machine.bus, PMC0).unwrap();
        // The next event on the counter must not be taken for the one that overflowed.
        machine.driver.start(&mut machine.bus, PMC0, sampling(CYCLES, 50)).unwrap();
        settle(&mut machine);
        let statistics = *machine.driver.statistics();
        assert_eq!((statistics.samples, statistics.stopped), (0, 1), "{model:?}");
        assert_eq!((statistics.already_handled, statistics.not_ours), (1, 0), "{model:?}");
        machine.run(CYCLES, 50, &mut sample);
        settle(&mut machine);
        assert_eq!(machine.driver.statistics().samples, 1);
    }
}

#[test]
fn a_throttled_event_stops_and_continues() {
    for model in [models::skylake(), models::zen3()] {
        let mut machine = machine(model, quiet(0), &[(PMC0, sampling(INSTRUCTIONS, 10))]);
        let mut left = 2;
        let mut limited = |_: &Overflow<'_>| {
            left -= 1;
            if left < 0 { Verdict::Throttle } else { Verdict::Sampled }
        };
        machine.run(INSTRUCTIONS, 100, &mut limited);
        let statistics = *machine.driver.statistics();
        assert_eq!((statistics.samples, statistics.throttled), (2, 1));
        assert_eq!(machine.driver.read(&mut machine.bus, PMC0), Some(30));
        machine.driver.disable(&mut machine.bus);
        machine.driver.enable(&mut machine.bus);
        machine.run(INSTRUCTIONS, 9, &mut sample);
        assert_eq!(machine.driver.read(&mut machine.bus, PMC0), Some(30), "still throttled");
        machine.driver.unthrottle(&mut machine.bus, PMC0);
        machine.run(INSTRUCTIONS, 10, &mut sample);
        assert_eq!(machine.driver.statistics().samples, 3);
    }
}

#[test]
fn periods_longer_than_a_counter_take_partial_overflows() {
    // 31 bits of a legacy write: 2^33 events take four overflows and more.
    let period = (1 << 33) + 5;
    let events = [(PMC0, sampling(INSTRUCTIONS, period))];
    let mut machine = machine(models::version_2(), quiet(0), &events);
    machine.run(INSTRUCTIONS, period - 1, &mut sample);
    assert_eq!((machine.driver.statistics().partial, machine.driver.statistics().samples), (4, 0));
    machine.run(INSTRUCTIONS, 1, &mut sample);
    assert_eq!((machine.driver.statistics().partial, machine.driver.statistics().samples), (4, 1));
    assert_eq!(machine.driver.read(&mut machine.bus, PMC0), Some(period));
}

#[test]
fn freezing_is_refused_with_the_reason() {
    let mut machine = machine(models::ivy_bridge(), quiet(0), &[]);
    let refusal = |machine: &Machine| machine.driver.freeze_refusal();
    assert_eq!(refusal(&machine), Some(FreezeRefusal::NotOptedIn));
    machine.driver.set_freezing(&mut machine.bus, true);
    assert_eq!(refusal(&machine), Some(FreezeRefusal::Model(FreezeGate::VersionBelow4)));
    assert!(!machine.driver.is_freezing());
}

#[test]
fn an_event_of_any_context_with_a_frequency_turns_freezing_off() {
    let mut machine = machine(models::skylake(), quiet(0), &[(PMC0, sampling(INSTRUCTIONS, 100))]);
    machine.driver.set_freezing(&mut machine.bus, true);
    let bit = debugctl::FREEZE_PERFMON_ON_PMI;
    assert_ne!(machine.bus.rdmsr(msr::IA32_DEBUGCTL) & bit, 0);
    assert_eq!(machine.driver.set_period(PMC0, 50), Err(StartError::Frozen));
    let config = EventConfig { sampling: Sampling::Frequency(1000), ..EventConfig::counting(0x3c) };
    machine.driver.start(&mut machine.bus, PMC1, Event::new(config)).unwrap();
    assert_eq!(machine.driver.freeze_refusal(), Some(FreezeRefusal::ChangingPeriod(PMC1)));
    assert_eq!(machine.bus.rdmsr(msr::IA32_DEBUGCTL) & bit, 0);
    assert_eq!(machine.driver.set_period(PMC0, 50), Ok(()));
    machine.driver.stop(&mut machine.bus, PMC1);
    assert!(machine.driver.is_freezing());
    assert_eq!(machine.pmu().violation(), None, "DEBUGCTL changed while nothing was enabled");
    machine.run(INSTRUCTIONS, 1000, &mut sample);
    // The first period was begun before it was changed.
    assert_eq!(machine.driver.statistics().samples, 19);
}

#[test]
fn freezing_that_begins_within_a_skid_loses_no_overflow() {
    let events = [(PMC0, sampling(INSTRUCTIONS, 10)), (PMC1, sampling(CYCLES, 3))];
    let parameters =
        SimulationParameters { skid: 4, masked: MaskedPmi::Drop, per_access: (CYCLES, 1) };
    let mut machine = machine(models::skylake(), parameters, &events);
    machine.run(INSTRUCTIONS, 10, &mut sample);
    machine.driver.set_freezing(&mut machine.bus, true);
    machine.driver.stop(&mut machine.bus, PMC1);
    settle(&mut machine);
    assert_eq!(machine.pmu().status(), 0);
    let truth = |counter| machine.pmu().truth(counter).overflows;
    assert_eq!(machine.driver.statistics().overflows(), truth(PMC0) + truth(PMC1));
}

#[test]
fn an_event_that_cannot_start_is_refused_and_writes_nothing() {
    let mut machine = machine(models::zen4(), quiet(0), &[(PMC0, counting(CYCLES))]);
    let before = *machine.bus.accesses();
    let mut start = |counter, event| machine.driver.start(&mut machine.bus, counter, event);
    let fixed = CounterIndex::fixed(0);
    assert_eq!(start(fixed, counting(CYCLES)), Err(StartError::NoSuchCounter(fixed)));
    assert_eq!(start(PMC0, counting(CYCLES)), Err(StartError::CounterBusy(PMC0)));
    assert_eq!(start(PMC1, sampling(CYCLES, 0)), Err(StartError::Period(0)));
    assert_eq!(start(PMC1, sampling(CYCLES, u64::MAX)), Err(StartError::Period(u64::MAX)));
    let precise = EventConfig { precise: true, ..EventConfig::counting(0xc0) };
    assert_eq!(start(PMC1, Event::new(precise)), Err(StartError::NoPebs));
    assert_eq!(machine.driver.set_period(PMC1, 5), Err(StartError::CounterIdle(PMC1)));
    assert_eq!(machine.bus.accesses().since(&before).total().total(), 0);
    let mut intel = super::machine(models::skylake(), quiet(0), &[]);
    let refused = intel.driver.start(&mut intel.bus, fixed, counting(CYCLES));
    assert_eq!(refused, Err(StartError::FixedCounter(fixed)));
}

#[test]
fn the_trace_store_pauses_in_interrupts() {
    struct Trace(bool);
    impl PmiSink<MachineBus> for Trace {
        fn overflow(&mut self, _: &mut MachineBus, _: &Overflow<'_>) -> Verdict {
            Verdict::Sampled
        }

        fn drain_trace_store(&mut self, bus: &mut MachineBus) -> bool {
            assert_eq!(bus.rdmsr(msr::IA32_DEBUGCTL) & debugctl::BTS, 0);
            core::mem::take(&mut self.0)
        }
    }
    for freezing in [false, true] {
        let mut machine =
            machine(models::skylake(), quiet(0), &[(PMC0, sampling(INSTRUCTIONS, 10))]);
        machine.driver.set_freezing(&mut machine.bus, freezing);
        machine.driver.set_branch_trace_store(&mut machine.bus, true);
        let mut trace = Trace(true);
        let outcome = machine.driver.handle_pmi(&mut machine.bus, 0, &mut trace);
        assert_eq!(outcome, PmiOutcome::Handled(1), "a full buffer is its own reason");
        assert_ne!(machine.bus.rdmsr(msr::IA32_DEBUGCTL) & debugctl::BTS, 0);
        machine.run(INSTRUCTIONS, 10, &mut trace);
        assert_eq!(machine.driver.statistics().samples, 1);
    }
}

#[test]
fn user_events_do_not_count_the_handler() {
    let parameters = SimulationParameters { per_access: (INSTRUCTIONS, 3), ..quiet(0) };
    let mut machine = machine(models::zen3(), parameters, &[(PMC0, user_only(INSTRUCTIONS, 50))]);
    machine.run(INSTRUCTIONS, 500, &mut sample);
    assert_eq!(machine.pmu().truth(PMC0).counted_in_handler, 0);
    assert_eq!(machine.driver.statistics().samples, 10);
}
