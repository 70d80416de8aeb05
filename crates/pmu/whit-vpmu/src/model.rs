//! Which PMU the guest sees.

use core::fmt;

use crate::msr::{evtsel, fixed_ctrl, status};

/// A counter of the guest.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CounterIndex {
    /// General-purpose counter *n*.
    General(u8),
    /// Fixed counter *n*.
    Fixed(u8),
}

impl fmt::Display for CounterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CounterIndex::General(number) => write!(f, "pmc{number}"),
            CounterIndex::Fixed(number) => write!(f, "fixed{number}"),
        }
    }
}

/// How a PMU is controlled.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum PmuKind {
    /// Intel, architectural performance monitoring.
    Intel {
        /// Its version, 2 to 5.
        version: u8,
    },
    /// AMD before the core extension: four counters.
    AmdK7,
    /// AMD's core extension: six counters, nothing global.
    AmdCore,
    /// AMD PerfMonV2: global control and status.
    AmdV2,
}

/// An Intel PMU to make a [`PmuModel`] of.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct IntelPmu {
    /// Version of architectural performance monitoring, 2 to 5. Version 4 brings the registers that
    /// set the status and show the counters in use.
    pub version: u8,
    /// General-purpose counters, 1 to 8.
    pub general: u8,
    /// Fixed counters, up to 4: instructions, cycles, reference cycles, slots.
    pub fixed: u8,
    /// Bits of all counters, 32 to 48.
    pub width_bits: u8,
    /// Counters can be written in full width (IA32_PERF_CAPABILITIES bit 13).
    pub full_width_writes: bool,
}

impl Default for IntelPmu {
    /// Version 4 as a Skylake has it.
    fn default() -> IntelPmu {
        IntelPmu { version: 4, general: 4, fixed: 3, width_bits: 48, full_width_writes: true }
    }
}

/// The PMU that the guest sees. It cannot change while a guest runs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PmuModel {
    pub(crate) kind: PmuKind,
    pub(crate) general: u8,
    pub(crate) fixed: u8,
    pub(crate) width_bits: u8,
    pub(crate) full_width_writes: bool,
}

/// Why there is no such PMU.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ModelError {
    /// A version of Intel's that the device does not have.
    Version(u8),
    /// A number of general-purpose counters.
    General(u8),
    /// A number of fixed counters.
    Fixed(u8),
    /// A number of bits of a counter.
    Width(u8),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::Version(version) => {
                write!(f, "there are versions 2 to 5 of Intel's PMU here, not {version}")
            }
            ModelError::General(count) => {
                write!(f, "{count} general-purpose counters: Intel has 1 to 8 here, AMD V2 4 to 16")
            }
            ModelError::Fixed(count) => write!(f, "{count} fixed counters: there are 4 at most"),
            ModelError::Width(bits) => write!(f, "counters of {bits} bits: there are 32 to 48"),
        }
    }
}

impl core::error::Error for ModelError {}

/// Counters of AMD before the core extension.
const K7_COUNTERS: u8 = 4;
/// Counters of the core extension.
const CORE_COUNTERS: u8 = 6;
/// Width of AMD's counters.
const AMD_WIDTH_BITS: u8 = 48;
/// Event codes of Intel's fixed counters: instructions, cycles, reference cycles (Linux's number), slots.
const FIXED_EVENTS: [u64; 4] = [0xc0, 0x3c, 0x300, 0x400];

impl PmuModel {
    /// An Intel PMU.
    ///
    /// # Errors
    /// Where a number is out of its range.
    pub fn intel(pmu: IntelPmu) -> Result<PmuModel, ModelError> {
        if !(2..=5).contains(&pmu.version) {
            return Err(ModelError::Version(pmu.version));
        }
        if !(1..=8).contains(&pmu.general) {
            return Err(ModelError::General(pmu.general));
        }
        if usize::from(pmu.fixed) > FIXED_EVENTS.len() {
            return Err(ModelError::Fixed(pmu.fixed));
        }
        if !(32..=48).contains(&pmu.width_bits) {
            return Err(ModelError::Width(pmu.width_bits));
        }
        Ok(PmuModel {
            kind: PmuKind::Intel { version: pmu.version },
            general: pmu.general,
            fixed: pmu.fixed,
            width_bits: pmu.width_bits,
            full_width_writes: pmu.full_width_writes,
        })
    }

    /// AMD before the core extension: four counters at the old addresses.
    #[must_use]
    pub const fn amd_k7() -> PmuModel {
        PmuModel::amd(PmuKind::AmdK7, K7_COUNTERS)
    }

    /// AMD's core extension (families 0x15 to Zen 3): six counters, the first four at both addresses.
    #[must_use]
    pub const fn amd_core() -> PmuModel {
        PmuModel::amd(PmuKind::AmdCore, CORE_COUNTERS)
    }

    /// AMD PerfMonV2 (Zen 4) with `counters` counters, 4 to 16.
    ///
    /// # Errors
    /// Where there are more or fewer.
    pub const fn amd_v2(counters: u8) -> Result<PmuModel, ModelError> {
        if counters < 4 || counters > 16 {
            return Err(ModelError::General(counters));
        }
        Ok(PmuModel::amd(PmuKind::AmdV2, counters))
    }

    const fn amd(kind: PmuKind, general: u8) -> PmuModel {
        PmuModel { kind, general, fixed: 0, width_bits: AMD_WIDTH_BITS, full_width_writes: true }
    }

    /// How it is controlled.
    #[must_use]
    pub const fn kind(&self) -> PmuKind {
        self.kind
    }

    /// General-purpose counters.
    #[must_use]
    pub const fn general(&self) -> u8 {
        self.general
    }

    /// Fixed counters.
    #[must_use]
    pub const fn fixed(&self) -> u8 {
        self.fixed
    }

    /// Bits of every counter.
    #[must_use]
    pub const fn width_bits(&self) -> u8 {
        self.width_bits
    }

    /// True where general-purpose counters can be written in full width.
    #[must_use]
    pub const fn full_width_writes(&self) -> bool {
        self.full_width_writes
    }

    /// The version of architectural performance monitoring; 0 for AMD.
    pub(crate) const fn intel_version(&self) -> u8 {
        if let PmuKind::Intel { version } = self.kind { version } else { 0 }
    }

    pub(crate) const fn is_intel(&self) -> bool {
        matches!(self.kind, PmuKind::Intel { .. })
    }

    pub(crate) const fn has_global_control(&self) -> bool {
        matches!(self.kind, PmuKind::Intel { .. } | PmuKind::AmdV2)
    }

    /// A model that came from outside, made by no constructor.
    pub(crate) fn is_valid(&self) -> bool {
        let same = match self.kind {
            PmuKind::Intel { version } => PmuModel::intel(IntelPmu {
                version,
                general: self.general,
                fixed: self.fixed,
                width_bits: self.width_bits,
                full_width_writes: self.full_width_writes,
            }),
            PmuKind::AmdK7 => Ok(PmuModel::amd_k7()),
            PmuKind::AmdCore => Ok(PmuModel::amd_core()),
            PmuKind::AmdV2 => PmuModel::amd_v2(self.general),
        };
        same == Ok(*self)
    }

    /// All counters: general-purpose ones first. A *slot* is a place in this row.
    pub(crate) const fn slots(&self) -> usize {
        self.general as usize + self.fixed as usize
    }

    pub(crate) const fn counter(&self, slot: usize) -> CounterIndex {
        if slot < self.general as usize {
            CounterIndex::General(slot as u8)
        } else {
            CounterIndex::Fixed(slot as u8 - self.general)
        }
    }

    /// A counter's bit in global control and status.
    pub(crate) const fn status_bit(&self, slot: usize) -> u64 {
        match self.counter(slot) {
            CounterIndex::General(number) => 1 << number,
            CounterIndex::Fixed(number) => 1 << (32 + number),
        }
    }

    /// The bits that a counter has.
    pub(crate) const fn counter_mask(&self) -> u64 {
        (1 << self.width_bits) - 1
    }

    /// Bits of all counters in global control and status.
    pub(crate) const fn counter_bits(&self) -> u64 {
        ((1 << self.general) - 1) | (((1 << self.fixed) - 1) << 32)
    }

    /// Bits of the status register that can be cleared. KVM refuses 58 to 61, which version 4 defines.
    pub(crate) const fn status_bits(&self) -> u64 {
        let other = match self.intel_version() {
            0 => 0,
            1..=3 => status::OVF_BUF | status::COND_CHGD,
            _ => {
                status::LBR_FRZ
                    | status::CTR_FRZ
                    | status::ASCI
                    | status::OVF_UNCORE
                    | status::OVF_BUF
                    | status::COND_CHGD
            }
        };
        self.counter_bits() | other
    }

    /// Bits of the status register that can be set. The condition of the PMU cannot.
    pub(crate) const fn settable_bits(&self) -> u64 {
        self.status_bits() & !status::COND_CHGD
    }

    /// Global control at power-on: all general-purpose counters, so that software for a PMU without it
    /// finds them enabled.
    pub(crate) const fn global_control_at_reset(&self) -> u64 {
        if self.has_global_control() { (1 << self.general) - 1 } else { 0 }
    }

    /// An event select as it is stored; `None` where a reserved bit is refused.
    pub(crate) const fn event_select(&self, value: u64) -> Option<u64> {
        if !self.is_intel() {
            Some(value & !evtsel::AMD_RESERVED)
        } else if value & evtsel::INTEL_RESERVED == 0 {
            Some(value)
        } else {
            None
        }
    }

    /// The event select in a slot after power-on.
    pub(crate) const fn select_at_reset(&self, slot: usize) -> u64 {
        self.fixed_select(slot, 0)
    }

    /// A fixed counter's control bits as an event select. General-purpose counters have none: 0.
    pub(crate) const fn fixed_select(&self, slot: usize, control: u64) -> u64 {
        let general = self.general as usize;
        if slot < general {
            return 0;
        }
        let shift = fixed_ctrl::BITS * (slot - general) as u32;
        let bits = (control >> shift) & fixed_ctrl::MASK;
        let mut select = PmuModel::fixed_event((slot - general) as u8);
        if bits & fixed_ctrl::OS != 0 {
            select |= evtsel::OS | evtsel::EN;
        }
        if bits & fixed_ctrl::USR != 0 {
            select |= evtsel::USR | evtsel::EN;
        }
        if bits & fixed_ctrl::PMI != 0 {
            select |= evtsel::INT;
        }
        select
    }

    /// Bits of the control register of fixed counters that can be written.
    pub(crate) const fn fixed_control_bits(&self) -> u64 {
        let (mut bits, mut number) = (0, 0);
        while number < self.fixed as u32 {
            bits |= fixed_ctrl::WRITABLE << (number * fixed_ctrl::BITS);
            number += 1;
        }
        bits
    }

    /// The event of a fixed counter.
    pub(crate) const fn fixed_event(number: u8) -> u64 {
        FIXED_EVENTS[number as usize % FIXED_EVENTS.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intel(version: u8) -> PmuModel {
        PmuModel::intel(IntelPmu { version, ..IntelPmu::default() }).unwrap()
    }

    #[test]
    fn slots_are_general_purpose_counters_and_then_fixed_ones() {
        let model = intel(4);
        assert_eq!(model.slots(), 7);
        let counters = [0, 3, 4, 6].map(|slot| (model.counter(slot), model.status_bit(slot)));
        use CounterIndex::{Fixed, General};
        let fixed = |number: u8| (Fixed(number), 1 << (32 + number));
        assert_eq!(counters, [(General(0), 1), (General(3), 8), fixed(0), fixed(2)]);
        assert_eq!([0, 1, 2, 3].map(PmuModel::fixed_event), [0xc0, 0x3c, 0x300, 0x400]);
    }

    #[test]
    fn registers_have_the_bits_of_their_manual() {
        assert_eq!(intel(4).counter_mask(), 0xffff_ffff_ffff);
        assert_eq!(intel(4).counter_bits(), 0x7_0000_000f);
        assert_eq!(PmuModel::amd_core().counter_bits(), 0x3f);
        // OvfBuf and CondChgd; version 4: LBR_Frz, CTR_Frz, ASCI and Ovf_Uncore as well.
        assert_eq!([2, 3].map(|version| intel(version).status_bits()), [0xc000_0007_0000_000f; 2]);
        assert_eq!([4, 5].map(|version| intel(version).status_bits()), [0xfc00_0007_0000_000f; 2]);
        assert_eq!(intel(4).settable_bits(), 0x7c00_0007_0000_000f);
        let v2 = PmuModel::amd_v2(6).unwrap();
        assert_eq!((v2.status_bits(), v2.settable_bits()), (0x3f, 0x3f));
        let at_reset = [intel(2), v2, PmuModel::amd_core(), PmuModel::amd_k7()]
            .map(|model| model.global_control_at_reset());
        assert_eq!(at_reset, [0xf, 0x3f, 0, 0]);
    }

    #[test]
    fn event_selects_keep_defined_bits() {
        let (intel, amd) = (intel(4), PmuModel::amd_core());
        assert_eq!(intel.event_select(0xffdf_ffff), Some(0xffdf_ffff));
        for bit in (32..64).chain([21]) {
            assert_eq!(intel.event_select(1 << bit), None, "{bit}");
        }
        assert_eq!(amd.event_select(u64::MAX), Some(0xf_ffd7_ffff));
    }

    #[test]
    fn models_that_no_constructor_makes_are_not_valid() {
        for model in [intel(2), intel(5), PmuModel::amd_k7(), PmuModel::amd_core()] {
            assert!(model.is_valid());
            assert!(!PmuModel { general: 17, ..model }.is_valid());
            assert!(!PmuModel { width_bits: 64, ..model }.is_valid());
            assert!(!PmuModel { fixed: 5, ..model }.is_valid());
        }
        let v2 = PmuModel::amd_v2(8).unwrap();
        assert!(v2.is_valid() && PmuModel { general: 9, ..v2 }.is_valid());
        assert!(!PmuModel { kind: PmuKind::AmdCore, ..v2 }.is_valid());
    }
}
