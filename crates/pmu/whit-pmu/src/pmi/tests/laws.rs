//! Laws of every protocol on random workloads.

use super::*;
use crate::known_models as models;
use crate::model::AckOrder;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Occur(u16, u64),
    Disable,
    Enable,
    Stop(u8),
    Start(u8, u16, u64),
    Freeze(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let event = prop::sample::select(std::vec![INSTRUCTIONS, CYCLES, IDLE]);
    let counted = prop::sample::select(std::vec![INSTRUCTIONS, CYCLES]);
    prop_oneof![
        8 => (event, 1..300_u64).prop_map(|(event, count)| Step::Occur(event, count)),
        1 => Just(Step::Disable),
        2 => Just(Step::Enable),
        2 => (0..4_u8).prop_map(Step::Stop),
        3 => (0..4_u8, counted, 64..400_u64).prop_map(|(counter, event, period)| {
            Step::Start(counter, event, period)
        }),
        1 => any::<bool>().prop_map(Step::Freeze),
    ]
}

fn model() -> impl Strategy<Value = PmuModel> {
    let models = [
        models::skylake(),
        models::sapphire_rapids(),
        models::ivy_bridge(),
        models::zen4(),
        models::zen3(),
        models::k10(),
    ];
    let orders = [AckOrder::Early, AckOrder::Mid, AckOrder::Late];
    (prop::sample::select(models.to_vec()), prop::sample::select(orders.to_vec())).prop_map(
        |(model, ack)| PmuModel { ack, verify_after_late_ack: ack == AckOrder::Late, ..model },
    )
}

fn take(machine: &mut Machine, step: &Step) {
    let (driver, bus) = (&mut machine.driver, &mut machine.bus);
    match *step {
        Step::Occur(event, count) => machine.run(event, count, &mut sample),
        Step::Disable => driver.disable(bus),
        Step::Enable => driver.enable(bus),
        Step::Stop(counter) => drop(driver.stop(bus, CounterIndex::general(counter))),
        Step::Start(counter, event, period) => {
            let counter = CounterIndex::general(counter);
            let busy = driver.active().contains(counter);
            assert_eq!(driver.start(bus, counter, sampling(event, period)).is_err(), busy);
        }
        Step::Freeze(on) => driver.set_freezing(bus, on),
    }
    machine.interrupts(&mut sample);
}

proptest! {
    #![proptest_config(crate::testing::cases(400))]

    /// Each overflow has exactly one outcome; no interrupt is unclaimed; status is clear or an
    /// interrupt is due; the hardware is never misused; counts are exact.
    #[test]
    fn books_balance(
        model in model(),
        skid in 0..12_u32,
        latch in any::<bool>(),
        per_access in 0..2_u64,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let masked = if latch { MaskedPmi::Latch } else { MaskedPmi::Drop };
        let parameters = SimulationParameters { skid, masked, per_access: (INSTRUCTIONS, per_access) };
        let mut machine = machine(model, parameters, &[(PMC0, sampling(INSTRUCTIONS, 100))]);
        for step in &steps {
            let enabled = machine.driver.is_enabled();
            take(&mut machine, step);
            let switches = matches!(step, Step::Enable | Step::Disable);
            prop_assert!(switches || machine.driver.is_enabled() == enabled);
            prop_assert!(machine.pmu().status() == 0 || machine.pmu().interrupt_is_due());
        }
        // Stop first, so that pending interrupts come and no new ones.
        machine.driver.disable(&mut machine.bus);
        settle(&mut machine);
        let statistics = *machine.driver.statistics();
        prop_assert_eq!(statistics.not_ours, 0);
        prop_assert_eq!(statistics.stuck, 0);
        prop_assert_eq!(machine.pmu().violation(), None);
        prop_assert_eq!(machine.pmu().status(), 0);
        let overflows: u64 = model.counters().iter().map(|counter| machine.pmu().truth(counter).overflows).sum();
        prop_assert_eq!(statistics.overflows(), overflows);
    }

    /// An event's count is its counter's, for any interrupts in between.
    #[test]
    fn counts_are_exact(
        model in model(),
        skid in 0..12_u32,
        freezing in any::<bool>(),
        chunks in prop::collection::vec((any::<bool>(), 1..300_u64), 1..60),
    ) {
        let events = [(PMC0, sampling(INSTRUCTIONS, 77)), (PMC1, sampling(CYCLES, 130))];
        let mut machine = machine(model, quiet(skid), &events);
        machine.driver.set_freezing(&mut machine.bus, freezing);
        for (instructions, count) in chunks {
            machine.run(if instructions { INSTRUCTIONS } else { CYCLES }, count, &mut sample);
        }
        for counter in [PMC0, PMC1] {
            let counted = machine.driver.read(&mut machine.bus, counter);
            prop_assert_eq!(counted, Some(machine.pmu().truth(counter).counted));
        }
    }
}
