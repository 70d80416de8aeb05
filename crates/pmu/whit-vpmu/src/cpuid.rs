//! The guest's PMU in CPUID.

use alloc::vec::Vec;

use crate::event::EventConfig;
use crate::filter::EventFilter;
use crate::model::{CounterIndex, PmuKind, PmuModel};

/// The registers that CPUID returns.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
#[allow(missing_docs)]
pub struct CpuidRegisters {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// Bits of one leaf that are the PMU's. The others are the VMM's.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct CpuidLeaf {
    /// The leaf's number (EAX).
    pub function: u32,
    /// The bits' values.
    pub value: CpuidRegisters,
    /// Which bits.
    pub mask: CpuidRegisters,
}

impl CpuidLeaf {
    /// The registers for the guest, where it would get `registers` without a PMU.
    #[must_use]
    pub const fn applied_to(&self, registers: CpuidRegisters) -> CpuidRegisters {
        let (value, mask) = (&self.value, &self.mask);
        CpuidRegisters {
            eax: (registers.eax & !mask.eax) | value.eax,
            ebx: (registers.ebx & !mask.ebx) | value.ebx,
            ecx: (registers.ecx & !mask.ecx) | value.ecx,
            edx: (registers.edx & !mask.edx) | value.edx,
        }
    }
}

const NONE: CpuidRegisters = CpuidRegisters { eax: 0, ebx: 0, ecx: 0, edx: 0 };
const ALL: CpuidRegisters = CpuidRegisters { eax: !0, ebx: !0, ecx: !0, edx: !0 };
/// Leaf 1 ECX: IA32_PERF_CAPABILITIES exists.
const PDCM: u32 = 1 << 15;
/// Leaf 1 EDX: debug store. Leaf 1 ECX bits 2 and 4: 64-bit store, CPL-qualified.
const DS: u32 = 1 << 21;
const DS_ECX: u32 = (1 << 2) | (1 << 4);
/// Events that leaf 0xA EBX describes, in the order of its bits: cycles, instructions, reference cycles, references to
/// the last-level cache, its misses, branches, mispredicted branches.
const ARCHITECTURAL_EVENTS: [u64; 7] = [0x3c, 0xc0, 0x13c, 0x4f2e, 0x412e, 0xc4, 0xc5];
/// Leaf 0xA EDX: AnyThread is gone.
const ANY_THREAD_DEPRECATED: u32 = 1 << 15;
/// Leaf 0x80000001 ECX: core extension; northbridge, time stamp and last-level cache counters.
const PERF_CTR_EXT_CORE: u32 = 1 << 23;
const OTHER_AMD_PMUS: u32 = (1 << 24) | (1 << 27) | (1 << 28);

impl PmuModel {
    /// The leaves, for the VMM to lay over its own. Leaf 0 has to name 0xA as at most the highest, and
    /// 0x80000000 names 0x80000022 with PerfMonV2.
    pub(crate) fn cpuid_leaves(&self, filter: Option<&EventFilter>) -> Vec<CpuidLeaf> {
        match self.kind {
            PmuKind::Intel { version } => self.intel_leaves(version, filter).to_vec(),
            kind => self.amd_leaves(kind).to_vec(),
        }
    }

    fn intel_leaves(&self, version: u8, filter: Option<&EventFilter>) -> [CpuidLeaf; 2] {
        let described = ARCHITECTURAL_EVENTS.len() as u32;
        let (general, width) = (u32::from(self.general), u32::from(self.width_bits));
        let fixed = u32::from(self.fixed);
        let perfmon = CpuidRegisters {
            eax: u32::from(version) | (general << 8) | (width << 16) | (described << 24),
            ebx: filter.map_or(0, refused_events),
            ecx: if version >= 5 { (1 << fixed) - 1 } else { 0 },
            edx: fixed | (width << 5) | ANY_THREAD_DEPRECATED,
        };
        let features =
            CpuidRegisters { ecx: if self.full_width_writes { PDCM } else { 0 }, ..NONE };
        let mask = CpuidRegisters { ecx: PDCM | DS_ECX, edx: DS, ..NONE };
        [
            CpuidLeaf { function: 1, value: features, mask },
            CpuidLeaf { function: 0xa, value: perfmon, mask: ALL },
        ]
    }

    fn amd_leaves(&self, kind: PmuKind) -> [CpuidLeaf; 2] {
        let core = if kind == PmuKind::AmdK7 { 0 } else { PERF_CTR_EXT_CORE };
        let features = CpuidLeaf {
            function: 0x8000_0001,
            value: CpuidRegisters { ecx: core, ..NONE },
            mask: CpuidRegisters { ecx: PERF_CTR_EXT_CORE | OTHER_AMD_PMUS, ..NONE },
        };
        let v2 = kind == PmuKind::AmdV2;
        let value =
            if v2 { CpuidRegisters { eax: 1, ebx: self.general.into(), ..NONE } } else { NONE };
        [features, CpuidLeaf { function: 0x8000_0022, value, mask: ALL }]
    }
}

/// Bits of the events that a filter refuses: the guest sees that they are not there, and does not count zeros.
fn refused_events(filter: &EventFilter) -> u32 {
    let counter = CounterIndex::General(0);
    let refused =
        |select: u64| !filter.allows(&EventConfig { counter, select, user: true, kernel: true });
    let events = ARCHITECTURAL_EVENTS.iter().enumerate();
    events.fold(0, |bits, (bit, select)| bits | (u32::from(refused(*select)) << bit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{FilterAction, FilterEntry};
    use crate::model::IntelPmu;

    /// Function, and the values of EAX, EBX, ECX and EDX.
    fn leaves(model: PmuModel) -> Vec<(u32, [u32; 4])> {
        let registers = |value: CpuidRegisters| [value.eax, value.ebx, value.ecx, value.edx];
        let leaves = model.cpuid_leaves(None);
        leaves.iter().map(|leaf| (leaf.function, registers(leaf.value))).collect()
    }

    #[test]
    fn leaves_have_the_values_of_the_manuals() {
        let intel = |version, full_width_writes| {
            let pmu = IntelPmu { version, full_width_writes, ..IntelPmu::default() };
            leaves(PmuModel::intel(pmu).unwrap())
        };
        let perfmon = |version: u32, ecx| (0xa, [0x0730_0400 | version, 0, ecx, 0x8603]);
        assert_eq!(intel(4, true), [(1, [0, 0, 0x8000, 0]), perfmon(4, 0)]);
        assert_eq!(intel(5, false), [(1, [0; 4]), perfmon(5, 7)]);
        let amd = |core, v2| [(0x8000_0001, [0, 0, core, 0]), (0x8000_0022, v2)];
        assert_eq!(leaves(PmuModel::amd_k7()), amd(0, [0; 4]));
        assert_eq!(leaves(PmuModel::amd_core()), amd(1 << 23, [0; 4]));
        assert_eq!(leaves(PmuModel::amd_v2(7).unwrap()), amd(1 << 23, [1, 7, 0, 0]));
    }

    #[test]
    fn events_that_the_filter_refuses_are_not_there() {
        let model = PmuModel::intel(IntelPmu::default()).unwrap();
        let ebx = |action, events: &[(u16, u8)]| {
            let entry = |(event, umask): &(u16, u8)| FilterEntry::exact(*event, *umask);
            let filter = EventFilter::new(action, events.iter().map(entry).collect(), 0).unwrap();
            model.cpuid_leaves(Some(&filter))[1].value.ebx
        };
        assert_eq!(ebx(FilterAction::Allow, &[(0xc0, 0), (0xc4, 0)]), 0b101_1101);
        assert_eq!(ebx(FilterAction::Deny, &[(0x3c, 1), (0x2e, 0x4f), (0xc5, 0)]), 0b100_1100);
        assert_eq!(ebx(FilterAction::Deny, &[]), 0);
    }

    #[test]
    fn the_vmms_other_bits_stay() {
        let none = CpuidRegisters::default();
        let laid = |model: PmuModel, over: CpuidRegisters| {
            model.cpuid_leaves(None).iter().map(|leaf| leaf.applied_to(over)).collect::<Vec<_>>()
        };
        let intel = PmuModel::intel(IntelPmu::default()).unwrap();
        for model in [intel, PmuModel::amd_core()] {
            let values: Vec<_> = model.cpuid_leaves(None).iter().map(|leaf| leaf.value).collect();
            assert_eq!(laid(model, none), values);
            assert_eq!(laid(model, ALL)[1], values[1], "the whole leaf is the PMU's");
        }
        // Debug store and its two companions are taken away, IA32_PERF_CAPABILITIES is there.
        let features = laid(intel, ALL)[0];
        assert_eq!([features.eax, features.ebx], [!0; 2]);
        assert_eq!((features.ecx, features.edx), (!0x14, !(1 << 21)));
        let features = laid(PmuModel::amd_core(), ALL)[0];
        assert_eq!((features.ecx, features.edx), (!0x1900_0000, !0));
    }
}
