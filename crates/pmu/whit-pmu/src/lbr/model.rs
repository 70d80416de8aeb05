//! The branch records of a CPU model.

use crate::bits::perf_capabilities;
use crate::cpuid::CpuidLeaves;

/// Most records of any CPU.
pub const DEPTH_MAX: usize = 64;

/// Where branch records are kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum LbrKind {
    /// FROM and TO registers, a top-of-stack register (Nehalem to Broadwell).
    Pairs,
    /// Also INFO registers (Skylake and later).
    PairsWithInfo,
    /// Architectural LBR: no top of stack, and a write of the depth resets all.
    Architectural,
    /// AMD LBRv2: FROM and TO alternate, no top of stack.
    AmdV2,
}

/// Branch records of a CPU.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct LbrModel {
    /// Where they are kept.
    pub kind: LbrKind,
    /// How many, [`DEPTH_MAX`] at most.
    pub depth: u8,
    /// True where the hardware can keep a call stack.
    pub call_stack: bool,
    /// True where deep C-states zero the records.
    pub deep_c_reset: bool,
}

impl LbrModel {
    /// From leaf 0x1C, else from the format in IA32_PERF_CAPABILITIES. Formats of CPUs whose depth does
    /// not follow from the format (Core 2, small cores before Goldmont) give `None`.
    pub(crate) fn intel(leaves: &CpuidLeaves) -> Option<LbrModel> {
        let arch = leaves.arch_lbr;
        // Bit n: a depth of 8 * (n + 1).
        if let Some(top) = (arch.eax & 0xff).checked_ilog2() {
            return Some(LbrModel {
                kind: LbrKind::Architectural,
                depth: 8 * (top as u8 + 1),
                call_stack: arch.ebx & 4 != 0,
                deep_c_reset: arch.eax & (1 << 30) != 0,
            });
        }
        if !leaves.has_perf_capabilities() {
            return None;
        }
        // Linux: LBR_FORMAT_EIP_FLAGS (3), EIP_FLAGS2 (4, Haswell), INFO (5), INFO2 (7).
        let (kind, depth, call_stack) = match leaves.perf_capabilities & perf_capabilities::LBR_FMT
        {
            3 => (LbrKind::Pairs, 16, false),
            4 => (LbrKind::Pairs, 16, true),
            5 | 7 => (LbrKind::PairsWithInfo, 32, true),
            _ => return None,
        };
        Some(LbrModel { kind, depth, call_stack, deep_c_reset: true })
    }

    /// From leaf 0x80000022.
    pub(crate) fn amd(leaves: &CpuidLeaves) -> Option<LbrModel> {
        let depth = ((leaves.amd_perfmon.ebx >> 4) & 0x3f) as u8;
        let has_v2 = leaves.amd_perfmon.eax & 2 != 0 && depth > 0;
        has_v2.then_some(LbrModel {
            kind: LbrKind::AmdV2,
            depth,
            call_stack: false,
            deep_c_reset: false,
        })
    }
}
