//! PMUs as real CPUs have them: to plan for, and to simulate.

use crate::counter::CounterMask;
use crate::lbr::{LbrKind, LbrModel};
use crate::model::{AckOrder, FreezeGate, PmuKind, PmuModel};

/// Skylake client: version 4, PEBS, 32 branch records with INFO, LVTPC unmasked late.
#[must_use]
pub const fn skylake() -> PmuModel {
    PmuModel {
        kind: PmuKind::Intel,
        version: 4,
        general: CounterMask::first_general(4),
        general_width: 48,
        fixed: CounterMask::first_fixed(3),
        fixed_width: 48,
        full_width_writes: true,
        pebs: true,
        ack: AckOrder::Late,
        verify_after_late_ack: false,
        freeze: FreezeGate::Passed,
        lbr: Some(LbrModel {
            kind: LbrKind::PairsWithInfo,
            depth: 32,
            call_stack: true,
            deep_c_reset: true,
        }),
    }
}

/// Sapphire Rapids: version 5, eight counters, architectural LBR.
#[must_use]
pub const fn sapphire_rapids() -> PmuModel {
    PmuModel {
        version: 5,
        general: CounterMask::first_general(8),
        fixed: CounterMask::first_fixed(4),
        lbr: Some(LbrModel {
            kind: LbrKind::Architectural,
            depth: 32,
            call_stack: true,
            deep_c_reset: true,
        }),
        ..skylake()
    }
}

/// Ivy Bridge: version 3, 16 branch records, LVTPC unmasked early, no counter freezing.
#[must_use]
pub const fn ivy_bridge() -> PmuModel {
    PmuModel {
        version: 3,
        ack: AckOrder::Early,
        freeze: FreezeGate::VersionBelow4,
        lbr: Some(LbrModel {
            kind: LbrKind::Pairs,
            depth: 16,
            call_stack: false,
            deep_c_reset: true,
        }),
        ..skylake()
    }
}

/// Penryn-like: version 2, two counters that are written with 32 bits.
#[must_use]
pub const fn version_2() -> PmuModel {
    PmuModel {
        version: 2,
        general: CounterMask::first_general(2),
        general_width: 40,
        fixed_width: 40,
        full_width_writes: false,
        pebs: false,
        lbr: None,
        ..ivy_bridge()
    }
}

/// AMD Zen 4: PerfMonV2, six counters, LBRv2.
#[must_use]
pub const fn zen4() -> PmuModel {
    PmuModel {
        kind: PmuKind::AmdV2,
        version: 2,
        general: CounterMask::first_general(6),
        general_width: 48,
        fixed: CounterMask::EMPTY,
        fixed_width: 0,
        full_width_writes: true,
        pebs: false,
        ack: AckOrder::Early,
        verify_after_late_ack: false,
        freeze: FreezeGate::VersionBelow4,
        lbr: Some(LbrModel {
            kind: LbrKind::AmdV2,
            depth: 16,
            call_stack: false,
            deep_c_reset: false,
        }),
    }
}

/// AMD Zen 3: six counters of the core extension, nothing global.
#[must_use]
pub const fn zen3() -> PmuModel {
    PmuModel { kind: PmuKind::AmdCore, version: 1, lbr: None, ..zen4() }
}

/// AMD before the core extension: four counters.
#[must_use]
pub const fn k10() -> PmuModel {
    PmuModel { kind: PmuKind::AmdK7, general: CounterMask::first_general(4), ..zen3() }
}
