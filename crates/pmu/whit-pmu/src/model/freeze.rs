//! Whether counter freezing works on a model.

use crate::cpuid::CpuidLeaves;

/// Whether a model's counter freezing can be trusted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum FreezeGate {
    /// Nothing is known against it.
    Passed,
    /// There is no such freezing before version 4 (before, overflow clears global control instead).
    VersionBelow4,
    /// An erratum that newer microcode mends.
    Microcode {
        /// The revision that is needed.
        needed: u32,
    },
    /// A stepping for which no good microcode is known.
    Stepping,
}

/// Model, stepping, first good microcode. Goldmont and Goldmont Plus, as Linux 4.20 to 5.10 had it
/// (`counter_freezing_ucodes`).
const GOLDMONT: [(u32, u32, u32); 6] = [
    (0x5c, 2, 0x0e),
    (0x5c, 9, 0x2e),
    (0x5c, 10, 0x08),
    (0x5f, 1, 0x28),
    (0x7a, 1, 0x28),
    (0x7a, 8, 0x06),
];

impl FreezeGate {
    /// For an Intel CPU with this version of architectural performance monitoring.
    pub(super) fn of(leaves: &CpuidLeaves, version: u8) -> FreezeGate {
        if version < 4 {
            return FreezeGate::VersionBelow4;
        }
        let (model, stepping) = (leaves.model(), leaves.stepping());
        if leaves.family() != 6 || !GOLDMONT.iter().any(|(gated, ..)| *gated == model) {
            return FreezeGate::Passed;
        }
        let entry = GOLDMONT.iter().find(|entry| (entry.0, entry.1) == (model, stepping));
        match entry {
            Some(&(.., needed)) if leaves.microcode < needed => FreezeGate::Microcode { needed },
            Some(_) => FreezeGate::Passed,
            None => FreezeGate::Stepping,
        }
    }
}
