//! Numbers of model-specific registers, by the manuals' names.
//!
//! Source: Intel SDM volume 4 and AMD APM volume 2, checked against `arch/x86/include/asm/msr-index.h`
//! and `perf_event.h` of Linux, whose names for the same registers stand where they differ.

use core::fmt;

/// The number of a model-specific register, as RDMSR and WRMSR take it in ECX.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Msr(pub u32);

impl Msr {
    /// The register `count` numbers further on. Wraps, as numbers that no processor has may come in.
    #[must_use]
    pub const fn offset(self, count: u32) -> Msr {
        Msr(self.0.wrapping_add(count))
    }
}

impl fmt::Debug for Msr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Msr({:#x})", self.0)
    }
}

impl fmt::LowerHex for Msr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// IA32_PMC0, counters that can only be written with 32 bits, sign-extended (`MSR_IA32_PERFCTR0`).
pub const IA32_PMC: Msr = Msr(0xc1);
/// IA32_A_PMC0, the same counters written in full width (`MSR_IA32_PMC0`).
pub const IA32_A_PMC: Msr = Msr(0x4c1);
/// IA32_PERFEVTSEL0 (`MSR_ARCH_PERFMON_EVENTSEL0`).
pub const IA32_PERFEVTSEL: Msr = Msr(0x186);
/// IA32_FIXED_CTR0 (`MSR_CORE_PERF_FIXED_CTR0`).
pub const IA32_FIXED_CTR: Msr = Msr(0x309);
/// Formats of branch records and PEBS; whether counters take full-width writes.
pub const IA32_PERF_CAPABILITIES: Msr = Msr(0x345);
/// Four bits for each fixed counter: rings and interrupt.
pub const IA32_FIXED_CTR_CTRL: Msr = Msr(0x38d);
/// Overflow bits; a PMI handler reads them first.
pub const IA32_PERF_GLOBAL_STATUS: Msr = Msr(0x38e);
/// One enable bit for each counter, general and fixed.
pub const IA32_PERF_GLOBAL_CTRL: Msr = Msr(0x38f);
/// IA32_PERF_GLOBAL_STATUS_RESET of version 4, IA32_PERF_GLOBAL_OVF_CTRL before (`..._OVF_CTRL`).
pub const IA32_PERF_GLOBAL_STATUS_RESET: Msr = Msr(0x390);
/// IA32_PERF_GLOBAL_STATUS_SET, version 4.
pub const IA32_PERF_GLOBAL_STATUS_SET: Msr = Msr(0x391);
/// IA32_PERF_GLOBAL_INUSE, version 4.
pub const IA32_PERF_GLOBAL_INUSE: Msr = Msr(0x392);
/// One enable bit for each counter whose overflow writes a PEBS record.
pub const IA32_PEBS_ENABLE: Msr = Msr(0x3f1);
/// MSR_PEBS_DATA_CFG.
pub const PEBS_DATA_CFG: Msr = Msr(0x3f2);
/// Address of the debug store with the PEBS buffer.
pub const IA32_DS_AREA: Msr = Msr(0x600);
/// IA32_DEBUGCTL (`MSR_IA32_DEBUGCTLMSR`).
pub const IA32_DEBUGCTL: Msr = Msr(0x1d9);
/// IA32_APERF: cycles at the actual frequency; no freeze stops it.
pub const IA32_APERF: Msr = Msr(0xe8);

/// MSR_LBR_SELECT.
pub const LBR_SELECT: Msr = Msr(0x1c8);
/// MSR_LASTBRANCH_TOS (`MSR_LBR_TOS`).
pub const LASTBRANCH_TOS: Msr = Msr(0x1c9);
/// MSR_LASTBRANCH_0_FROM_IP (`MSR_LBR_NHM_FROM`).
pub const LASTBRANCH_FROM: Msr = Msr(0x680);
/// MSR_LASTBRANCH_0_TO_IP (`MSR_LBR_NHM_TO`).
pub const LASTBRANCH_TO: Msr = Msr(0x6c0);
/// MSR_LBR_INFO_0.
pub const LBR_INFO: Msr = Msr(0xdc0);
/// IA32_LBR_CTL of architectural LBR (`MSR_ARCH_LBR_CTL`).
pub const IA32_LBR_CTL: Msr = Msr(0x14ce);
/// IA32_LBR_DEPTH (`MSR_ARCH_LBR_DEPTH`). A write resets all records.
pub const IA32_LBR_DEPTH: Msr = Msr(0x14cf);
/// IA32_LBR_0_INFO (`MSR_ARCH_LBR_INFO_0`).
pub const IA32_LBR_INFO: Msr = Msr(0x1200);
/// IA32_LBR_0_FROM_IP (`MSR_ARCH_LBR_FROM_0`).
pub const IA32_LBR_FROM: Msr = Msr(0x1500);
/// IA32_LBR_0_TO_IP (`MSR_ARCH_LBR_TO_0`).
pub const IA32_LBR_TO: Msr = Msr(0x1600);

/// LVT performance monitoring entry of the local APIC in x2APIC mode. On a machine in xAPIC mode a
/// bus turns accesses to it into accesses to offset 0x340 of the APIC's page.
pub const X2APIC_LVTPC: Msr = Msr(0x834);

/// PERF_LEGACY_CTL0, four of them (`MSR_K7_EVNTSEL0`).
pub const K7_PERF_CTL: Msr = Msr(0xc001_0000);
/// PERF_LEGACY_CTR0 (`MSR_K7_PERFCTR0`).
pub const K7_PERF_CTR: Msr = Msr(0xc001_0004);
/// PERF_CTL0 of the core extension; controls and counters alternate (`MSR_F15H_PERF_CTL`).
pub const CORE_PERF_CTL: Msr = Msr(0xc001_0200);
/// PERF_CTR0 of the core extension (`MSR_F15H_PERF_CTR`).
pub const CORE_PERF_CTR: Msr = Msr(0xc001_0201);
/// PerfCntrGlobalStatus of PerfMonV2 (`MSR_AMD64_PERF_CNTR_GLOBAL_STATUS`).
pub const PERF_CNTR_GLOBAL_STATUS: Msr = Msr(0xc000_0300);
/// PerfCntrGlobalCtl.
pub const PERF_CNTR_GLOBAL_CTL: Msr = Msr(0xc000_0301);
/// PerfCntrGlobalStatusClr.
pub const PERF_CNTR_GLOBAL_STATUS_CLR: Msr = Msr(0xc000_0302);
/// PerfCntrGlobalStatusSet.
pub const PERF_CNTR_GLOBAL_STATUS_SET: Msr = Msr(0xc000_0303);
/// DbgExtnCfg; bit 6 switches LBRv2 on (`MSR_AMD_DBG_EXTN_CFG`).
pub const DBG_EXTN_CFG: Msr = Msr(0xc000_010f);
/// LbrSelect of AMD LBRv2 (`MSR_AMD64_LBR_SELECT`).
pub const AMD_LBR_SELECT: Msr = Msr(0xc000_010e);
/// SampBrFrom/LbrFrom of AMD LBRv2; from and to alternate (`MSR_AMD_SAMP_BR_FROM`).
pub const AMD_LBR_FROM: Msr = Msr(0xc001_0300);
/// LbrTo of AMD LBRv2.
pub const AMD_LBR_TO: Msr = Msr(0xc001_0301);
