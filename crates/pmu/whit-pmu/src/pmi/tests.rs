mod accesses;
mod exhaustive;
mod freezing;
mod laws;
mod traps;

use crate::bits::evtsel;
use crate::counter::CounterIndex;
use crate::driver::{Event, EventConfig, Sampling};
use crate::model::PmuModel;
use crate::pmi::{Overflow, Verdict};
use crate::sim::machine::Machine;
use crate::sim::{MaskedPmi, SimulationParameters};

const INSTRUCTIONS: u16 = 0x00c0;
const CYCLES: u16 = 0x003c;
/// An event that nobody counts: time that passes.
const IDLE: u16 = 0x01ff;
const PMC0: CounterIndex = CounterIndex::general(0);
const PMC1: CounterIndex = CounterIndex::general(1);

fn quiet(skid: u32) -> SimulationParameters {
    SimulationParameters { skid, masked: MaskedPmi::Drop, per_access: (0, 0) }
}

fn sampling(event: u16, period: u64) -> Event {
    Event::new(EventConfig::sampling(event.into(), period))
}

fn counting(event: u16) -> Event {
    Event::new(EventConfig::counting(event.into()))
}

fn machine(
    model: PmuModel,
    parameters: SimulationParameters,
    events: &[(CounterIndex, Event)],
) -> Machine {
    let mut machine = Machine::new(model, parameters);
    for (counter, event) in events {
        machine.driver.start(&mut machine.bus, *counter, *event).unwrap();
    }
    machine.driver.enable(&mut machine.bus);
    machine
}

fn sample(_: &Overflow<'_>) -> Verdict {
    Verdict::Sampled
}

/// Lets all interrupts come that are on their way.
fn settle(machine: &mut Machine) {
    for _ in 0..64 {
        machine.run(IDLE, 1, &mut sample);
    }
}

#[test]
fn an_event_counts_and_samples_on_every_model() {
    use crate::known_models::*;
    for model in [skylake(), sapphire_rapids(), ivy_bridge(), version_2(), zen4(), zen3(), k10()] {
        let events = [(PMC0, sampling(INSTRUCTIONS, 100)), (PMC1, counting(INSTRUCTIONS))];
        let mut machine = machine(model, quiet(0), &events);
        let mut samples = std::vec::Vec::new();
        machine.run(INSTRUCTIONS, 1050, &mut |overflow: &Overflow<'_>| {
            samples.push((overflow.counter, overflow.period, overflow.count));
            Verdict::Sampled
        });
        let expected: std::vec::Vec<_> = (1..=10).map(|n| (PMC0, 100, 100 * n)).collect();
        assert_eq!(samples, expected, "{model:?}");
        let (driver, bus) = (&mut machine.driver, &mut machine.bus);
        assert_eq!(driver.read(bus, PMC1), Some(1050));
        let stopped = driver.stop(bus, PMC0).unwrap();
        assert_eq!((stopped.count(), driver.active().len()), (1050, 1));
        assert_eq!(machine.pmu().violation(), None);
        assert_eq!(machine.handled().0, 10);
        let idle = machine.driver.stop(&mut machine.bus, PMC0);
        assert!(idle.is_none());
        // The rest of its period is unchanged.
        machine.driver.start(&mut machine.bus, PMC0, stopped).unwrap();
        machine.run(INSTRUCTIONS, 49, &mut sample);
        assert_eq!(machine.handled().0, 10);
        machine.run(INSTRUCTIONS, 1, &mut sample);
        assert_eq!(machine.handled().0, 11);
    }
}

#[test]
fn fixed_counters_count_their_own_event() {
    let fixed = CounterIndex::fixed(0);
    let events = [(fixed, sampling(INSTRUCTIONS, 10)), (CounterIndex::fixed(1), counting(CYCLES))];
    let mut machine = machine(crate::known_models::skylake(), quiet(2), &events);
    machine.run(INSTRUCTIONS, 35, &mut sample);
    machine.run(CYCLES, 7, &mut sample);
    assert_eq!(machine.driver.statistics().samples, 3);
    let stopped = machine.driver.stop(&mut machine.bus, CounterIndex::fixed(1)).unwrap();
    assert_eq!(stopped.count(), 7);
    machine.run(CYCLES, 7, &mut sample);
    assert_eq!(machine.driver.read(&mut machine.bus, fixed), Some(35));
}

fn user_only(event: u16, period: u64) -> Event {
    let select = u64::from(event) | evtsel::USR;
    Event::new(EventConfig {
        select,
        sampling: Sampling::Period(period),
        precise: false,
        branches: false,
    })
}
