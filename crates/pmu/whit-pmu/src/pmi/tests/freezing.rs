//! The loss of counts by freezing, and its measurement.

use super::*;
use crate::bits::global_status;
use crate::known_models as models;
use proptest::prelude::*;

const FIXED_CYCLES: CounterIndex = CounterIndex::fixed(1);

proptest! {
    #![proptest_config(crate::testing::cases(64))]

    /// Frozen: nothing counts from the overflow to the acknowledgement, the loss is at most the
    /// skid and the handler, and the meter reports exactly that. A counting event beside it is
    /// disturbed, which is why this is never the default.
    #[test]
    fn the_gap_is_bounded_and_measured(
        skid in 0..20_u32,
        period in 100..1000_u64,
        per_access in 0..4_u64,
        every in 1..5_u32,
        chunks in prop::collection::vec(1..700_u64, 1..40),
    ) {
        let parameters = SimulationParameters { skid, masked: MaskedPmi::Drop, per_access: (CYCLES, per_access) };
        let events = [(PMC0, sampling(CYCLES, period)), (FIXED_CYCLES, counting(CYCLES))];
        let mut machine = machine(models::skylake(), parameters, &events);
        machine.driver.set_freezing(&mut machine.bus, true);
        prop_assert!(machine.driver.measure_gap(FIXED_CYCLES, every));
        for chunk in &chunks {
            machine.run(CYCLES, *chunk, &mut sample);
            prop_assert!(machine.pmu().status() == 0 || machine.pmu().interrupt_is_due());
        }
        settle(&mut machine);
        let before = *machine.bus.accesses();
        let counted = machine.driver.read(&mut machine.bus, FIXED_CYCLES).unwrap();
        let looked = machine.bus.accesses().since(&before).total();
        let truth = *machine.pmu().truth(FIXED_CYCLES);
        let interrupts = machine.driver.statistics().interrupts;
        prop_assert_eq!(truth.counted_in_handler, 0);
        // Another period may end in the cycles of the look at the count. No interrupt is taken before the look is over.
        let look = (looked.rdmsr + looked.wrmsr + looked.rdpmc) * per_access;
        prop_assert!(truth.frozen_in_skid <= (interrupts + 1) * u64::from(skid) + look);
        // R status, R and W counter, R APERF and R cycles, W LVTPC, W status.
        prop_assert!(truth.frozen_in_handler <= interrupts * 7 * per_access);
        let gap = machine.driver.freeze_gap().unwrap();
        prop_assert!(gap.cycles <= truth.frozen_in_skid + truth.frozen_in_handler);
        // All that lies between the first and the last measurement is in it.
        let per_interrupt = u64::from(skid) + 7 * per_access;
        let unmeasured = (interrupts + 1).saturating_sub(gap.interrupts) * per_interrupt + 7 * per_access;
        prop_assert!(gap.cycles + unmeasured >= truth.frozen_in_skid + truth.frozen_in_handler);
        prop_assert!(gap.cycles_max <= u64::from(every) * per_interrupt);
        // The counting event lost what the sampling event's freezing took.
        prop_assert_eq!(counted, truth.counted);
        prop_assert_eq!(truth.workload - counted, truth.frozen_in_skid);
    }

    /// Classic: nothing counts between GLOBAL_CTRL = 0 and the restart, nothing is lost, and a counting
    /// event beside the sampling one deviates by the handler's own first and last accesses alone.
    #[test]
    fn classic_loses_nothing(
        model in prop::sample::select(std::vec![models::skylake(), models::ivy_bridge(), models::zen4()]),
        skid in 0..20_u32,
        period in 100..1000_u64,
        per_access in 0..4_u64,
        chunks in prop::collection::vec(1..700_u64, 1..40),
    ) {
        let parameters = SimulationParameters { skid, masked: MaskedPmi::Drop, per_access: (CYCLES, per_access) };
        let events = [(PMC0, sampling(CYCLES, period)), (PMC1, counting(CYCLES))];
        let mut machine = machine(model, parameters, &events);
        for chunk in &chunks {
            machine.run(CYCLES, *chunk, &mut sample);
        }
        settle(&mut machine);
        let counted = machine.driver.read(&mut machine.bus, PMC1);
        let truth = *machine.pmu().truth(PMC1);
        let interrupts = machine.handled().0;
        prop_assert_eq!(truth.frozen_in_skid + truth.frozen_in_handler, 0);
        // The write that stops it, before it the early and after it the late acknowledgement.
        prop_assert!(truth.counted_in_handler <= interrupts * 2 * per_access);
        prop_assert_eq!(counted, Some(truth.counted));
        prop_assert_eq!(truth.workload, truth.counted - truth.counted_in_handler);
    }
}

#[test]
fn the_gap_needs_an_event_of_all_cycles() {
    let events = [(PMC0, sampling(CYCLES, 100)), (PMC1, user_only(CYCLES, 100))];
    let mut machine = machine(models::skylake(), quiet(0), &events);
    assert!(!machine.driver.measure_gap(PMC1, 1), "user mode alone");
    assert!(!machine.driver.measure_gap(FIXED_CYCLES, 1), "no event");
    assert!(machine.driver.measure_gap(PMC0, 0), "0 is taken as 1");
    assert_eq!(
        machine.driver.freeze_gap().map(|gap| (gap.every, gap.lost_permille())),
        Some((1, 0))
    );
}

/// One PMI, cycle by cycle: the trap that got freezing removed from Linux.
#[test]
fn a_second_event_that_counts_misses_the_skid() {
    let count = |freezing| {
        let events = [(PMC0, sampling(INSTRUCTIONS, 10)), (PMC1, counting(INSTRUCTIONS))];
        let mut machine = machine(models::skylake(), quiet(6), &events);
        machine.driver.set_freezing(&mut machine.bus, freezing);
        machine.run(INSTRUCTIONS, 12, &mut sample);
        let frozen = machine.pmu().status() & global_status::CTR_FRZ != 0;
        assert_eq!(frozen, freezing);
        machine.run(INSTRUCTIONS, 8, &mut sample);
        machine.driver.read(&mut machine.bus, PMC1)
    };
    assert_eq!((count(false), count(true)), (Some(20), Some(14)));
}
