//! Register accesses of one interrupt, exactly.

use super::*;
use crate::bus::{RegisterClass, Tally};
use crate::driver::EventConfig;
use crate::known_models as models;
use crate::lbr::BranchFilter;
use crate::model::AckOrder;
use crate::pmi::PmiSink;
use crate::sim::Branch;
use crate::sim::machine::MachineBus;

fn tally(rdmsr: u64, wrmsr: u64, rdpmc: u64) -> Tally {
    Tally { rdmsr, wrmsr, rdpmc }
}

/// Accesses of one interrupt with one overflow: control, counters, branch records, APIC.
fn of_one(machine: &mut Machine) -> [Tally; 4] {
    machine.run(INSTRUCTIONS, 1000, &mut sample);
    let (interrupts, accesses) = machine.handled();
    assert_eq!(interrupts, 1);
    assert_eq!(accesses.of(RegisterClass::Other), tally(0, 0, 0));
    [RegisterClass::Control, RegisterClass::Counter, RegisterClass::Branch, RegisterClass::Apic]
        .map(|class| accesses.of(class))
}

fn sampled(model: PmuModel, freezing: bool) -> Machine {
    let mut machine = machine(model, quiet(0), &[(PMC0, sampling(INSTRUCTIONS, 1000))]);
    machine.driver.set_freezing(&mut machine.bus, freezing);
    assert_eq!(machine.driver.is_freezing(), freezing);
    machine
}

/// A sink with the DS area: takes the records out of the simulated hardware.
struct Pebs;

impl PmiSink<MachineBus> for Pebs {
    fn overflow(&mut self, _: &mut MachineBus, _: &Overflow<'_>) -> Verdict {
        Verdict::Sampled
    }

    fn drain_pebs(&mut self, bus: &mut MachineBus, counter: CounterIndex) -> u32 {
        bus.get_mut().take_pebs_records(counter)
    }
}

#[test]
fn the_published_counts() {
    // 5x WRMSR, 2x RDMSR for a PEBS counter; the published counts have neither counters nor APIC.
    let config = EventConfig { precise: true, ..EventConfig::sampling(0xc0, 1000) };
    let mut machine = machine(models::skylake(), quiet(0), &[(PMC0, Event::new(config))]);
    machine.bus.get_mut().set_pebs_reload(PMC0, 1000);
    machine.run(INSTRUCTIONS, 1000, &mut Pebs);
    let (interrupts, accesses) = machine.handled();
    assert_eq!((interrupts, machine.driver.statistics().pebs_records), (1, 1));
    assert_eq!(accesses.of(RegisterClass::Control), tally(2, 5, 0));
    assert_eq!(accesses.of(RegisterClass::Apic), tally(0, 1, 0));

    // 1x WRMSR, 1x RDMSR with freezing.
    let [control, counters, branches, apic] = of_one(&mut sampled(models::skylake(), true));
    assert_eq!(control, tally(1, 1, 0));
    assert_eq!((counters, branches, apic), (tally(0, 1, 1), tally(0, 0, 0), tally(0, 1, 0)));
}

#[test]
fn without_pebs_events_their_register_is_left_alone() {
    let [control, counters, _, apic] = of_one(&mut sampled(models::skylake(), false));
    assert_eq!((control, counters, apic), (tally(2, 3, 0), tally(0, 1, 1), tally(0, 1, 0)));
    // A late acknowledgement that is verified takes one look more.
    let verified = PmuModel { verify_after_late_ack: true, ..models::skylake() };
    assert_eq!(of_one(&mut sampled(verified, false))[0], tally(3, 3, 0));
    let mid = PmuModel { ack: AckOrder::Mid, ..models::skylake() };
    assert_eq!(of_one(&mut sampled(mid, false))[0], tally(2, 3, 0));
}

#[test]
fn amd() {
    let none = tally(0, 0, 0);
    let [control, counters, branches, apic] = of_one(&mut sampled(models::zen4(), false));
    assert_eq!((control, counters), (tally(1, 3, 0), tally(0, 1, 1)));
    assert_eq!((branches, apic), (none, none));
    let [control, counters, _, apic] = of_one(&mut sampled(models::zen3(), false));
    assert_eq!((control, counters, apic), (none, tally(0, 1, 1), none));
    // Before PerfMonV2 each event is looked at.
    let events = [(PMC0, sampling(INSTRUCTIONS, 1000)), (PMC1, counting(CYCLES))];
    let [_, counters, ..] = of_one(&mut machine(models::zen3(), quiet(0), &events));
    assert_eq!(counters, tally(0, 1, 2));
}

#[test]
fn branch_records() {
    let config = EventConfig { branches: true, ..EventConfig::sampling(0xc0, 1000) };
    let cases = [
        (models::skylake(), 3, tally(1 + 3 * 3 + 1, 0, 0)),
        (models::ivy_bridge(), 3, tally(1 + 3 * 2 + 1, 1, 0)),
        (models::sapphire_rapids(), 3, tally(3 * 3 + 1, 0, 0)),
        (models::zen4(), 3, tally(3 * 2 + 1, 0, 0)),
        (models::skylake(), 40, tally(1 + 3 * 32, 0, 0)),
    ];
    for (model, branches, expected) in cases {
        let mut machine = machine(model, quiet(0), &[(PMC0, Event::new(config))]);
        machine.driver.enable_branches(&mut machine.bus, BranchFilter::ALL);
        for n in 1..=branches {
            machine.bus.get_mut().branch(Branch { from: n, to: n, info: 0 });
        }
        let before = machine.driver.statistics().samples;
        assert_eq!(of_one(&mut machine)[2], expected, "{model:?}");
        assert_eq!(machine.driver.statistics().samples, before + 1);
        // The hardware goes on recording afterwards.
        machine.bus.get_mut().branch(Branch { from: 99, to: 99, info: 0 });
        let mut newest = None;
        machine.run(INSTRUCTIONS, 1000, &mut |overflow: &Overflow<'_>| {
            newest = overflow.branches.and_then(|branches| branches.as_slice().first().copied());
            Verdict::Sampled
        });
        assert_eq!(newest.map(|record| record.from), Some(99), "{model:?}");
    }
}
