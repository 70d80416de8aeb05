//! AMD's PMUs: four counters of the K7, six of the core extension, PerfMonV2.

use super::{AckOrder, FreezeGate, PmuKind, PmuModel};
use crate::counter::CounterMask;
use crate::cpuid::CpuidLeaves;
use crate::lbr::LbrModel;

/// Counters before the core extension.
const K7_COUNTERS: u8 = 4;
/// Counters of the core extension.
const CORE_COUNTERS: u8 = 6;
/// Width of all of them.
const WIDTH_BITS: u8 = 48;
/// PerfCtrExtCore, leaf 0x80000001 ECX.
const PERF_CTR_EXT_CORE: u32 = 1 << 23;
/// PerfMonV2, leaf 0x80000022 EAX.
const PERF_MON_V2: u32 = 1;

pub(super) fn model(leaves: &CpuidLeaves) -> PmuModel {
    let (kind, count) = if leaves.amd_perfmon.eax & PERF_MON_V2 != 0 {
        (PmuKind::AmdV2, (leaves.amd_perfmon.ebx & 0xf) as u8)
    } else if leaves.amd_features.ecx & PERF_CTR_EXT_CORE != 0 {
        (PmuKind::AmdCore, CORE_COUNTERS)
    } else {
        (PmuKind::AmdK7, K7_COUNTERS)
    };
    PmuModel {
        kind,
        version: if kind == PmuKind::AmdV2 { 2 } else { 1 },
        general: CounterMask::first_general(count),
        general_width: WIDTH_BITS,
        fixed: CounterMask::EMPTY,
        fixed_width: 0,
        // The only addresses that there are take the full width.
        full_width_writes: true,
        pebs: false,
        // Delivery does not mask LVTPC, so there is nothing to unmask.
        ack: AckOrder::Early,
        verify_after_late_ack: false,
        freeze: FreezeGate::VersionBelow4,
        lbr: LbrModel::amd(leaves),
    }
}
