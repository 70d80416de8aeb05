//! Intel's PMUs, architectural version 2 and later.

use super::{AckOrder, FreezeGate, ModelError, PmuKind, PmuModel};
use crate::bits::perf_capabilities;
use crate::counter::CounterMask;
use crate::cpuid::CpuidLeaves;
use crate::lbr::LbrModel;

/// Models of family 6 whose entry Linux unmasks last (`late_ack`): Haswell, Broadwell, Knights Landing
/// and Mill, Skylake to Rocket Lake, Tremont, Sapphire Rapids and later servers.
const LATE: [u32; 42] = [
    0x3c, 0x3f, 0x45, 0x46, 0x3d, 0x47, 0x4f, 0x56, 0x57, 0x85, 0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5,
    0xa6, 0x66, 0x7d, 0x7e, 0x6a, 0x6c, 0x9d, 0x8c, 0x8d, 0xa7, 0x86, 0x96, 0x9c, 0x8f, 0xcf, 0xad,
    0xae, 0x97, 0x9a, 0xb7, 0xba, 0xbf, 0xaa, 0xac, 0xc5, 0xc6,
];

pub(super) fn model(leaves: &CpuidLeaves) -> Result<PmuModel, ModelError> {
    let version = (leaves.perfmon.eax & 0xff) as u8;
    if version < 2 {
        return Err(if version == 0 {
            ModelError::NoCounters
        } else {
            ModelError::IntelVersion(version)
        });
    }
    let (general, fixed) = counters(leaves, version);
    let ack = ack(leaves, version);
    let capabilities = leaves.perf_capabilities;
    Ok(PmuModel {
        kind: PmuKind::Intel,
        version,
        general,
        general_width: (leaves.perfmon.eax >> 16) as u8,
        fixed,
        fixed_width: (leaves.perfmon.edx >> 5) as u8,
        full_width_writes: capabilities & perf_capabilities::FW_WRITE != 0,
        pebs: capabilities & perf_capabilities::PEBS_FMT != 0,
        ack,
        verify_after_late_ack: ack == AckOrder::Late && leaves.has_hypervisor(),
        freeze: FreezeGate::of(leaves, version),
        lbr: LbrModel::intel(leaves),
    })
}

/// Leaf 0x23 has bitmaps of both kinds; leaf 0xA a number, and from version 5 a bitmap of fixed ones.
fn counters(leaves: &CpuidLeaves, version: u8) -> (CounterMask, CounterMask) {
    let bitmaps = leaves.perfmon_ext_counters;
    if bitmaps.eax != 0 {
        let fixed = CounterMask::from_bits(u64::from(bitmaps.ebx) << 32);
        return (CounterMask::from_bits(bitmaps.eax.into()), fixed);
    }
    let general = CounterMask::first_general((leaves.perfmon.eax >> 8) as u8);
    let mut fixed = CounterMask::first_fixed((leaves.perfmon.edx & 0x1f) as u8);
    if version >= 5 {
        fixed = fixed.union(CounterMask::from_bits(u64::from(leaves.perfmon.ecx) << 32));
    }
    (general, fixed)
}

/// Where nothing is known of a model, the order that is right on all hardware.
fn ack(leaves: &CpuidLeaves, version: u8) -> AckOrder {
    match (leaves.family(), leaves.model()) {
        (6, model) if LATE.contains(&model) => AckOrder::Late,
        (6, _) if version < 4 => AckOrder::Early,
        _ => AckOrder::Mid,
    }
}
