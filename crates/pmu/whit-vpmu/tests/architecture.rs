//! Numbers, bits and texts of each model, by the manuals of Intel and AMD.

use whit_vpmu::{CounterIndex, Gp, IntelPmu, ModelError, MsrRange, PmuKind, PmuModel, VpmuConfig};

fn intel(version: u8, general: u8, fixed: u8, full_width_writes: bool) -> PmuModel {
    PmuModel::intel(IntelPmu { version, general, fixed, width_bits: 40, full_width_writes })
        .unwrap()
}

fn rows(model: &PmuModel) -> Vec<(u32, u32)> {
    model.msrs().iter().map(|MsrRange { first, count }| (*first, *count)).collect()
}

#[test]
fn each_model_has_the_registers_of_its_manual_and_no_others() {
    let amd_v2 = PmuModel::amd_v2(5).unwrap();
    let cases: [(PmuModel, &[(u32, u32)]); 6] = [
        (
            intel(4, 8, 3, true),
            &[(0xc1, 8), (0x186, 8), (0x309, 3), (0x38d, 6), (0x4c1, 8), (0x345, 1)],
        ),
        (intel(3, 2, 1, false), &[(0xc1, 2), (0x186, 2), (0x309, 1), (0x38d, 4)]),
        (intel(2, 1, 0, false), &[(0xc1, 1), (0x186, 1), (0x38d, 4)]),
        (PmuModel::amd_k7(), &[(0xc001_0000, 8)]),
        (PmuModel::amd_core(), &[(0xc001_0000, 8), (0xc001_0200, 12)]),
        (amd_v2, &[(0xc001_0000, 8), (0xc001_0200, 10), (0xc000_0300, 4)]),
    ];
    for (model, expected) in cases {
        assert_eq!(rows(&model), expected, "{model:?}");
        let numbers = (0..0x600).chain(0xc000_0000..0xc000_0400).chain(0xc001_0000..0xc001_0400);
        for number in numbers {
            let is_listed = expected.iter().any(|(first, count)| {
                (u64::from(*first)..u64::from(*first) + u64::from(*count))
                    .contains(&u64::from(number))
            });
            assert_eq!(model.has_msr(number), is_listed, "{model:?} {number:#x}");
        }
    }
}

#[test]
fn models_are_what_they_were_made_of() {
    let facts = |model: PmuModel| {
        let sizes = (model.general(), model.fixed(), model.width_bits());
        (model.kind(), sizes, model.full_width_writes())
    };
    let kind = PmuKind::Intel { version: 3 };
    assert_eq!(facts(intel(3, 7, 4, false)), (kind, (7, 4, 40), false));
    assert_eq!(facts(PmuModel::amd_k7()), (PmuKind::AmdK7, (4, 0, 48), true));
    assert_eq!(facts(PmuModel::amd_core()), (PmuKind::AmdCore, (6, 0, 48), true));
    assert_eq!(facts(PmuModel::amd_v2(16).unwrap()), (PmuKind::AmdV2, (16, 0, 48), true));
    assert_eq!(facts(PmuModel::amd_v2(4).unwrap()).1.0, 4);
    assert_eq!(PmuModel::amd_v2(3), Err(ModelError::General(3)));
    assert_eq!(PmuModel::amd_v2(17), Err(ModelError::General(17)));
    let with = |change: fn(&mut IntelPmu)| {
        let mut pmu = IntelPmu::default();
        change(&mut pmu);
        PmuModel::intel(pmu).map(|_| ())
    };
    assert_eq!(with(|pmu| pmu.version = 1), Err(ModelError::Version(1)));
    assert_eq!(with(|pmu| pmu.version = 6), Err(ModelError::Version(6)));
    assert_eq!(with(|pmu| pmu.general = 0), Err(ModelError::General(0)));
    assert_eq!(with(|pmu| pmu.general = 9), Err(ModelError::General(9)));
    assert_eq!(with(|pmu| pmu.fixed = 5), Err(ModelError::Fixed(5)));
    assert_eq!(with(|pmu| pmu.fixed = 4), Ok(()));
    assert_eq!(with(|pmu| pmu.width_bits = 31), Err(ModelError::Width(31)));
    assert_eq!(with(|pmu| pmu.width_bits = 49), Err(ModelError::Width(49)));
}

#[test]
fn refusals_name_the_number_and_its_bounds() {
    let texts = [
        ModelError::Version(9).to_string(),
        ModelError::General(9).to_string(),
        ModelError::Fixed(9).to_string(),
        ModelError::Width(9).to_string(),
        Gp.to_string(),
        CounterIndex::General(3).to_string(),
        CounterIndex::Fixed(2).to_string(),
    ];
    assert_eq!(
        texts,
        [
            "there are versions 2 to 5 of Intel's PMU here, not 9",
            "9 general-purpose counters: Intel has 1 to 8 here, AMD V2 4 to 16",
            "9 fixed counters: there are 4 at most",
            "counters of 9 bits: there are 32 to 48",
            "general protection exception (#GP)",
            "pmc3",
            "fixed2",
        ]
    );
}

#[test]
fn a_configuration_is_bounded_from_the_start() {
    let config = VpmuConfig::new(PmuModel::amd_core());
    assert_eq!((config.tick_ns, config.pmis_per_tick_max), (50_000_000, 5_000));
    assert!(config.filter.is_none());
}
