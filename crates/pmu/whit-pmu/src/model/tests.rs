use super::*;
use crate::cpuid::Leaf;
use crate::lbr::LbrKind;
use std::string::ToString;

fn vendor(name: &[u8; 12], max: u32) -> Leaf {
    let word = |at: usize| u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]);
    Leaf { eax: max, ebx: word(0), edx: word(4), ecx: word(8) }
}

fn intel(signature: u32, perfmon: Leaf, perf_capabilities: u64) -> CpuidLeaves {
    CpuidLeaves {
        vendor: vendor(b"GenuineIntel", 0x16),
        signature: Leaf { eax: signature, ecx: 1 << 15, ..Leaf::default() },
        perfmon,
        perf_capabilities,
        ..CpuidLeaves::default()
    }
}

/// Leaf 0xA of a Skylake client: version 4, four counters of 48 bits, three fixed ones.
const SKYLAKE_PERFMON: Leaf = Leaf { eax: 0x0730_0404, ebx: 0, ecx: 0, edx: 0x603 };

#[test]
fn skylake() {
    let model = PmuModel::from_cpuid(&intel(0x0005_06e3, SKYLAKE_PERFMON, 0x33c5)).unwrap();
    assert_eq!((model.kind, model.version), (PmuKind::Intel, 4));
    assert_eq!((model.general.len(), model.fixed.len()), (4, 3));
    assert_eq!((model.general_width, model.fixed_width), (48, 48));
    assert!(model.full_width_writes && model.pebs);
    assert_eq!((model.ack, model.freeze), (AckOrder::Late, FreezeGate::Passed));
    assert!(!model.verify_after_late_ack, "on bare metal");
    let lbr = model.lbr.unwrap();
    assert_eq!((lbr.kind, lbr.depth, lbr.call_stack), (LbrKind::PairsWithInfo, 32, true));
}

#[test]
fn a_guest_verifies_late_acks() {
    let mut leaves = intel(0x0005_06e3, SKYLAKE_PERFMON, 0);
    leaves.signature.ecx |= 1 << 31;
    let model = PmuModel::from_cpuid(&leaves).unwrap();
    assert!(model.verify_after_late_ack);
    assert!(!model.full_width_writes && !model.pebs && model.lbr.is_none());
    assert_eq!(model.period_max(CounterIndex::general(0)), 0x7fff_ffff);
    assert_eq!(model.period_max(CounterIndex::fixed(0)), (1 << 47) - 1);
}

#[test]
fn fixed_counters_of_version_5_are_those_of_either_list() {
    let perfmon = Leaf { eax: 0x0730_0805, ebx: 0, ecx: 0b1_0000, edx: 0x604 };
    let model = PmuModel::from_cpuid(&intel(0x0008_06f8, perfmon, 0)).unwrap();
    assert_eq!(model.fixed.bits() >> 32, 0b1_1111);
    assert_eq!(model.general.len(), 8);
}

#[test]
fn leaf_0x23_names_counters_one_by_one() {
    let mut leaves = intel(0x000c_06c1, Leaf { eax: 0x0730_0806, ebx: 0, ecx: 0, edx: 0x604 }, 0);
    leaves.perfmon_ext_counters = Leaf { eax: 0b1110_1111, ebx: 0b101, ..Leaf::default() };
    let model = PmuModel::from_cpuid(&leaves).unwrap();
    assert_eq!(model.general.bits(), 0b1110_1111);
    assert_eq!(model.fixed.bits() >> 32, 0b101);
}

#[test]
fn architectural_lbr_has_the_deepest_of_its_depths() {
    let mut leaves = intel(0x0008_06f8, SKYLAKE_PERFMON, 0);
    leaves.arch_lbr = Leaf { eax: (1 << 30) | 0b1011, ebx: 7, ..Leaf::default() };
    let lbr = PmuModel::from_cpuid(&leaves).unwrap().lbr.unwrap();
    assert_eq!((lbr.kind, lbr.depth), (LbrKind::Architectural, 32));
    assert!(lbr.call_stack && lbr.deep_c_reset);
}

#[test]
fn goldmont_freezes_with_good_microcode_alone() {
    let mut leaves = intel(0x0005_06c9, SKYLAKE_PERFMON, 0);
    let gate = |leaves: &CpuidLeaves| PmuModel::from_cpuid(leaves).unwrap().freeze;
    assert_eq!(gate(&leaves), FreezeGate::Microcode { needed: 0x2e });
    leaves.microcode = 0x2e;
    assert_eq!(gate(&leaves), FreezeGate::Passed);
    leaves.signature.eax = 0x0005_06c1;
    assert_eq!(gate(&leaves), FreezeGate::Stepping);
    leaves.perfmon.eax = 0x0730_0403;
    assert_eq!(gate(&leaves), FreezeGate::VersionBelow4);
}

#[test]
fn amd_in_three_generations() {
    let mut leaves =
        CpuidLeaves { vendor: vendor(b"AuthenticAMD", 0x10), ..CpuidLeaves::default() };
    let k7 = PmuModel::from_cpuid(&leaves).unwrap();
    assert_eq!((k7.kind, k7.general.len(), k7.has_global_control()), (PmuKind::AmdK7, 4, false));
    assert_eq!(k7.counter_msr(CounterIndex::general(3)), msr::Msr(0xc001_0007));
    leaves.amd_features.ecx = 1 << 23;
    let core = PmuModel::from_cpuid(&leaves).unwrap();
    assert_eq!((core.kind, core.general.len()), (PmuKind::AmdCore, 6));
    assert_eq!(core.control_msr(CounterIndex::general(5)), msr::Msr(0xc001_020a));
    assert_eq!(core.counter_write_msr(CounterIndex::general(5)), msr::Msr(0xc001_020b));
    leaves.amd_perfmon = Leaf { eax: 3, ebx: 6 | (16 << 4), ..Leaf::default() };
    let v2 = PmuModel::from_cpuid(&leaves).unwrap();
    assert_eq!((v2.kind, v2.version, v2.general.len()), (PmuKind::AmdV2, 2, 6));
    assert!(v2.has_global_control());
    assert_eq!(v2.lbr.map(|lbr| (lbr.kind, lbr.depth)), Some((LbrKind::AmdV2, 16)));
}

#[test]
fn unsupported_models_are_refused_with_a_reason() {
    let refused = |leaves: &CpuidLeaves| PmuModel::from_cpuid(leaves).unwrap_err();
    let cyrix = CpuidLeaves { vendor: vendor(b"CyrixInstead", 1), ..CpuidLeaves::default() };
    assert_eq!(refused(&cyrix), ModelError::UnknownVendor(*b"CyrixInstead"));
    assert!(refused(&cyrix).to_string().contains("\"CyrixInstead\""));
    assert_eq!(refused(&intel(0x6e3, Leaf::default(), 0)), ModelError::NoCounters);
    let v1 = Leaf { eax: 0x0730_0201, ..Leaf::default() };
    assert_eq!(refused(&intel(0x6e3, v1, 0)), ModelError::IntelVersion(1));
    let narrow = Leaf { eax: 0x0708_0404, edx: 0x603, ..Leaf::default() };
    assert_eq!(refused(&intel(0x506e3, narrow, 0)), ModelError::CounterWidth(8));
    let none = Leaf { eax: 0x0730_0004, edx: 0x600, ..Leaf::default() };
    assert_eq!(refused(&intel(0x506e3, none, 0)), ModelError::NoCounters);
}

#[test]
fn registers_of_intel_counters() {
    let model = PmuModel::from_cpuid(&intel(0x0005_06e3, SKYLAKE_PERFMON, 0x33c5)).unwrap();
    let (general, fixed) = (CounterIndex::general(2), CounterIndex::fixed(2));
    assert_eq!(model.counter_msr(general), msr::Msr(0xc3));
    assert_eq!(model.counter_write_msr(general), msr::Msr(0x4c3));
    assert_eq!(model.control_msr(general), msr::Msr(0x188));
    assert_eq!(model.counter_write_msr(fixed), msr::Msr(0x30b));
    assert_eq!(model.control_msr(fixed), msr::Msr(0x38d));
}

#[test]
fn constraints_of_architectural_events() {
    let model = PmuModel::from_cpuid(&intel(0x0005_06e3, SKYLAKE_PERFMON, 0x33c5)).unwrap();
    let fixed = |number| CounterMask::single(CounterIndex::fixed(number));
    assert_eq!(model.constraint(0xc0), model.general.union(fixed(0)));
    assert_eq!(model.constraint(0x3c), model.general.union(fixed(1)));
    assert_eq!(model.constraint(0x300), fixed(2));
    assert_eq!(model.constraint(0x400), CounterMask::EMPTY, "no slots counter here");
    assert_eq!(model.constraint(0x4f2e), model.general);
}

#[test]
fn leaves_beyond_the_cpus_maximum_are_not_read() {
    let leaves = CpuidLeaves::collect(|leaf, _| match leaf {
        0 => vendor(b"GenuineIntel", 0xa),
        1 => Leaf { eax: 0x506e3, ..Leaf::default() },
        7 => Leaf::default(),
        0xa => SKYLAKE_PERFMON,
        0x8000_0000 => Leaf { eax: 0x8000_0008, ..Leaf::default() },
        0x8000_0001 => Leaf::default(),
        other => panic!("leaf {other:#x} is beyond"),
    });
    assert_eq!((leaves.family(), leaves.model(), leaves.stepping()), (6, 0x5e, 3));
    assert_eq!(&leaves.vendor_name(), b"GenuineIntel");
    assert!(PmuModel::from_cpuid(&leaves).is_ok());
}
