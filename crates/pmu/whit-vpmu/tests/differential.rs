//! A guest's view does not depend on how host events are used: reuse with lazy release, creation
//! anew and plain arithmetic are the same on every sequence.

mod support;

use proptest::prelude::*;
use support::guest::{Pair, Setting, Step, register, value};
use support::models;
use whit_vpmu::{Backing, PmuModel};

fn steps(model: PmuModel) -> impl Strategy<Value = Vec<Step>> {
    let msr = any::<u32>().prop_map(move |number| register(&model, number));
    let step = prop_oneof![
        4 => msr.clone().prop_map(Step::Read),
        9 => (msr, any::<u64>()).prop_map(move |(msr, number)| Step::Write(msr, value(&model, number))),
        1 => prop_oneof![Just(0x400_u32), Just(0x1_0400), any::<u32>()].prop_map(Step::Apic),
        6 => (0..4_usize, any::<bool>(), 0..400_u64)
            .prop_map(|(code, kernel, count)| Step::Occur { code, kernel, count }),
        3 => any::<bool>().prop_map(|kernel| Step::Emulate { kernel }),
        2 => (0..80_000_000_u64).prop_map(Step::Tick),
        1 => Just(Step::Release),
        1 => Just(Step::Poll),
        1 => Just(Step::Migrate),
    ];
    prop::collection::vec(step, 0..120)
}

fn models_and_steps() -> impl Strategy<Value = (PmuModel, Vec<Step>)> {
    (0..models().len()).prop_flat_map(|number| {
        let model = models()[number];
        (Just(model), steps(model))
    })
}

fn check(setting: Setting, steps: &[Step]) {
    let mut pair = Pair::new(setting);
    steps.iter().for_each(|step| pair.step(step));
    pair.compare();
    assert!(pair.device.open_events() == pair.device.source().open_events());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn reuse_is_creation_anew_is_arithmetic(
        (model, steps) in models_and_steps(),
        pmis_per_tick_max in prop_oneof![Just(2_u32), Just(5000)],
    ) {
        for (backing, lingers) in
            [(Backing::Recreate, false), (Backing::Reuse, false), (Backing::Reuse, true)]
        {
            check(Setting { model, backing, lingers, pmis_per_tick_max }, &steps);
        }
    }
}

/// The shortest sampling session, so that the test above is seen to go where it should.
#[test]
fn a_sampling_guest_is_interrupted_at_each_period() {
    let model = models()[1];
    for backing in [Backing::Recreate, Backing::Reuse] {
        let setting = Setting { model, backing, lingers: true, pmis_per_tick_max: 5000 };
        let mut pair = Pair::new(setting);
        pair.step(&Step::Write(0x4c1, (1 << 48) - 100));
        pair.step(&Step::Write(0x186, 0x53_00c0));
        for _ in 0..10 {
            pair.step(&Step::Occur { code: 0, kernel: true, count: 100 });
            pair.step(&Step::Write(0x38f, 0));
            pair.step(&Step::Read(0x38e));
            pair.step(&Step::Write(0x390, 1));
            pair.step(&Step::Write(0x4c1, (1 << 48) - 100));
            pair.step(&Step::Apic(0x400));
            pair.step(&Step::Write(0x38f, 0xf));
        }
        assert_eq!(pair.device.interrupt().nmis, 10);
        let statistics = pair.device.statistics();
        let opens = if backing == Backing::Reuse { 1 } else { 11 };
        assert_eq!((statistics.opens, statistics.opens_avoided), (opens, 11 - opens));
    }
}
