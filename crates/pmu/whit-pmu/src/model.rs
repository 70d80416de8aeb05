//! The abilities of a CPU's PMU: the description that drives everything else.

mod amd;
mod freeze;
mod intel;

use core::fmt;

use crate::bits::evtsel;
use crate::counter::{CounterIndex, CounterMask};
use crate::cpuid::CpuidLeaves;
use crate::lbr::LbrModel;
use crate::msr::{self, Msr};

pub use freeze::FreezeGate;

/// How a PMU is controlled.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum PmuKind {
    /// Intel with global control, architectural version 2 and later.
    Intel,
    /// AMD PerfMonV2: global control.
    AmdV2,
    /// AMD's core extension, six counters, each with its own enable bit and nothing global.
    AmdCore,
    /// AMD before that, four counters at other addresses.
    AmdK7,
}

/// When the local APIC's entry, which delivery of an interrupt masks on Intel, is unmasked again.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum AckOrder {
    /// Before the handler touches the PMU.
    Early,
    /// After the overflowed counters were reset and before the PMU is enabled (Linux: `mid_ack`).
    /// Right whether a masked interrupt is latched or dropped.
    Mid,
    /// After the PMU is enabled (Linux: `late_ack`, Haswell and later). Loses an interrupt between the
    /// two where a masked interrupt is dropped, unless [`PmuModel::verify_after_late_ack`] is set.
    Late,
}

/// A PMU. Made by [`PmuModel::from_cpuid`], or written down for a machine that is known.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct PmuModel {
    /// How it is controlled.
    pub kind: PmuKind,
    /// Version of architectural performance monitoring; AMD: 2 with PerfMonV2, else 1.
    pub version: u8,
    /// General-purpose counters.
    pub general: CounterMask,
    /// Their width in bits.
    pub general_width: u8,
    /// Fixed counters.
    pub fixed: CounterMask,
    /// Their width in bits.
    pub fixed_width: u8,
    /// True where general-purpose counters can be written in full width.
    pub full_width_writes: bool,
    /// True where counters can write PEBS records.
    pub pebs: bool,
    /// When LVTPC is unmasked.
    pub ack: AckOrder,
    /// With [`AckOrder::Late`]: read the status once more after unmasking, so that an interrupt that
    /// was dropped in between is not lost. One RDMSR.
    pub verify_after_late_ack: bool,
    /// Whether counter freezing can be trusted on this model.
    pub freeze: FreezeGate,
    /// Branch records, where there are any that this crate knows.
    pub lbr: Option<LbrModel>,
}

/// Why a CPU's PMU cannot be driven.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ModelError {
    /// Neither Intel nor AMD (nor Hygon).
    UnknownVendor([u8; 12]),
    /// Intel without global control.
    IntelVersion(u8),
    /// CPUID names no counter, as under a hypervisor without a virtual PMU.
    NoCounters,
    /// A width that no driver could work with.
    CounterWidth(u8),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::UnknownVendor(name) => {
                write!(f, "the CPU's vendor \"{}\" is neither Intel nor AMD", name.escape_ascii())
            }
            ModelError::IntelVersion(version) => write!(
                f,
                "the PMU has version {version} of architectural performance monitoring, and version 2 \
                 is the oldest with global control"
            ),
            ModelError::NoCounters => f.write_str(
                "the CPU names no performance counters; under a hypervisor, switch its virtual PMU on",
            ),
            ModelError::CounterWidth(bits) => write!(f, "the CPU says its counters have {bits} bits"),
        }
    }
}

impl core::error::Error for ModelError {}

/// Narrowest counters that are believed.
const WIDTH_MIN_BITS: u8 = 32;
/// Widest.
const WIDTH_MAX_BITS: u8 = 63;

impl PmuModel {
    /// Describes the PMU of a CPU.
    ///
    /// # Errors
    /// See [`ModelError`].
    pub fn from_cpuid(leaves: &CpuidLeaves) -> Result<PmuModel, ModelError> {
        let model = match &leaves.vendor_name() {
            b"GenuineIntel" => intel::model(leaves)?,
            b"AuthenticAMD" | b"HygonGenuine" => amd::model(leaves),
            name => return Err(ModelError::UnknownVendor(*name)),
        };
        let widths = [(model.general, model.general_width), (model.fixed, model.fixed_width)];
        for (counters, width) in widths {
            if !counters.is_empty() && !(WIDTH_MIN_BITS..=WIDTH_MAX_BITS).contains(&width) {
                return Err(ModelError::CounterWidth(width));
            }
        }
        if model.general.is_empty() { Err(ModelError::NoCounters) } else { Ok(model) }
    }

    /// All counters.
    #[must_use]
    pub const fn counters(&self) -> CounterMask {
        self.general.union(self.fixed)
    }

    /// True where one register enables and disables all counters.
    #[must_use]
    pub const fn has_global_control(&self) -> bool {
        matches!(self.kind, PmuKind::Intel | PmuKind::AmdV2)
    }

    /// The bits that a counter has.
    #[must_use]
    pub const fn counter_mask(&self, counter: CounterIndex) -> u64 {
        let width = if counter.is_fixed() { self.fixed_width } else { self.general_width };
        (1 << width) - 1
    }

    /// The longest period that can be written at once. With the top bit of a counter never set by a
    /// period, a clear top bit says that the counter overflowed.
    #[must_use]
    pub const fn period_max(&self, counter: CounterIndex) -> u64 {
        if counter.is_fixed() || self.full_width_writes {
            self.counter_mask(counter) >> 1
        } else {
            // A legacy write sign-extends bit 31.
            0x7fff_ffff
        }
    }

    /// The register to read a counter from.
    #[must_use]
    pub const fn counter_msr(&self, counter: CounterIndex) -> Msr {
        let index = counter.index() as u32;
        match (counter.as_fixed(), self.kind) {
            (Some(number), _) => msr::IA32_FIXED_CTR.offset(number as u32),
            (None, PmuKind::Intel) => msr::IA32_PMC.offset(index),
            (None, PmuKind::AmdV2 | PmuKind::AmdCore) => msr::CORE_PERF_CTR.offset(2 * index),
            (None, PmuKind::AmdK7) => msr::K7_PERF_CTR.offset(index),
        }
    }

    /// The register to write a counter to.
    #[must_use]
    pub const fn counter_write_msr(&self, counter: CounterIndex) -> Msr {
        if matches!(self.kind, PmuKind::Intel) && self.full_width_writes && !counter.is_fixed() {
            msr::IA32_A_PMC.offset(counter.index() as u32)
        } else {
            self.counter_msr(counter)
        }
    }

    /// The event select of a general-purpose counter; fixed counters share one register.
    #[must_use]
    pub const fn control_msr(&self, counter: CounterIndex) -> Msr {
        let index = counter.index() as u32;
        match (counter.is_fixed(), self.kind) {
            (true, _) => msr::IA32_FIXED_CTR_CTRL,
            (false, PmuKind::Intel) => msr::IA32_PERFEVTSEL.offset(index),
            (false, PmuKind::AmdV2 | PmuKind::AmdCore) => msr::CORE_PERF_CTL.offset(2 * index),
            (false, PmuKind::AmdK7) => msr::K7_PERF_CTL.offset(index),
        }
    }

    /// The counters that can count an architectural event, given as event select and unit mask.
    ///
    /// General-purpose counters all count every such event; fixed counters add theirs (instructions,
    /// cycles, reference cycles, slots). Reference cycles (0x0300 in Linux's numbering) and slots
    /// (0x0400) are counted by their fixed counters alone. Events that are not architectural may have
    /// narrower constraints, which the vendor's event lists name.
    #[must_use]
    pub const fn constraint(&self, event_code: u64) -> CounterMask {
        let (fixed, general) = match event_code & evtsel::EVENT_CODE {
            0x00c0 => (Some(0), true),
            0x003c => (Some(1), true),
            0x0300 => (Some(2), false),
            0x0400 => (Some(3), false),
            _ => (None, true),
        };
        let own = match fixed {
            Some(number) => {
                self.fixed.intersection(CounterMask::single(CounterIndex::fixed(number)))
            }
            None => CounterMask::EMPTY,
        };
        if general { self.general.union(own) } else { own }
    }
}

#[cfg(test)]
mod tests;
