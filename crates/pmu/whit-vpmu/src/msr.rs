//! Numbers of the registers that the device answers for.
//!
//! Source: Intel SDM volume 4 and AMD APM volume 2, checked against `msr-index.h` and `perf_event.h` of
//! Linux.

/// IA32_PMC0: written with 32 bits; the top one is extended.
pub const IA32_PMC: u32 = 0xc1;
/// IA32_A_PMC0: the same counters, written in full width.
pub const IA32_A_PMC: u32 = 0x4c1;
/// IA32_PERFEVTSEL0.
pub const IA32_PERFEVTSEL: u32 = 0x186;
/// IA32_FIXED_CTR0.
pub const IA32_FIXED_CTR: u32 = 0x309;
/// Formats of PEBS and branch records; whether counters take full-width writes.
pub const IA32_PERF_CAPABILITIES: u32 = 0x345;
/// Four bits for each fixed counter: rings and interrupt.
pub const IA32_FIXED_CTR_CTRL: u32 = 0x38d;
/// Overflow bits of the counters.
pub const IA32_PERF_GLOBAL_STATUS: u32 = 0x38e;
/// One enable bit for each counter.
pub const IA32_PERF_GLOBAL_CTRL: u32 = 0x38f;
/// IA32_PERF_GLOBAL_STATUS_RESET of version 4, IA32_PERF_GLOBAL_OVF_CTRL before.
pub const IA32_PERF_GLOBAL_STATUS_RESET: u32 = 0x390;
/// IA32_PERF_GLOBAL_STATUS_SET, version 4.
pub const IA32_PERF_GLOBAL_STATUS_SET: u32 = 0x391;
/// IA32_PERF_GLOBAL_INUSE, version 4.
pub const IA32_PERF_GLOBAL_INUSE: u32 = 0x392;
/// PERF_LEGACY_CTL0 of AMD, four of them.
pub const K7_PERF_CTL: u32 = 0xc001_0000;
/// PERF_LEGACY_CTR0 of AMD.
pub const K7_PERF_CTR: u32 = 0xc001_0004;
/// PERF_CTL0 of AMD's core extension; controls and counters alternate.
pub const CORE_PERF_CTL: u32 = 0xc001_0200;
/// PerfCntrGlobalStatus of AMD PerfMonV2.
pub const PERF_CNTR_GLOBAL_STATUS: u32 = 0xc000_0300;
/// PerfCntrGlobalCtl.
pub const PERF_CNTR_GLOBAL_CTL: u32 = 0xc000_0301;
/// PerfCntrGlobalStatusClr.
pub const PERF_CNTR_GLOBAL_STATUS_CLR: u32 = 0xc000_0302;
/// PerfCntrGlobalStatusSet.
pub const PERF_CNTR_GLOBAL_STATUS_SET: u32 = 0xc000_0303;

/// Bits of event selects.
pub(crate) mod evtsel {
    pub(crate) const EVENT: u64 = 0xff;
    pub(crate) const UMASK: u64 = 0xff00;
    pub(crate) const USR: u64 = 1 << 16;
    pub(crate) const OS: u64 = 1 << 17;
    pub(crate) const EDGE: u64 = 1 << 18;
    pub(crate) const INT: u64 = 1 << 20;
    pub(crate) const EN: u64 = 1 << 22;
    pub(crate) const INV: u64 = 1 << 23;
    pub(crate) const CMASK: u64 = 0xff00_0000;
    pub(crate) const AMD_EVENT_HIGH: u64 = 0xf << 32;
    /// AMD: counts in guests alone.
    pub(crate) const GUEST_ONLY: u64 = 1 << 40;
    /// Bits that a guest of Intel may not set: AnyThread and bits 63:32 (no transactional memory).
    pub(crate) const INTEL_RESERVED: u64 = 0xffff_ffff_0020_0000;
    /// Bits that AMD drops: pin control, AnyThread, host-only and guest-only among them.
    pub(crate) const AMD_RESERVED: u64 = 0xffff_fff0_0028_0000;
    /// Bits that select the event.
    pub(crate) const RAW: u64 = EVENT | UMASK | EDGE | INV | CMASK | AMD_EVENT_HIGH;
}

/// Bits of IA32_FIXED_CTR_CTRL, four for each counter. The third (AnyThread) is reserved.
pub(crate) mod fixed_ctrl {
    pub(crate) const BITS: u32 = 4;
    pub(crate) const MASK: u64 = 0xf;
    pub(crate) const WRITABLE: u64 = 0xb;
    pub(crate) const OS: u64 = 1;
    pub(crate) const USR: u64 = 2;
    pub(crate) const PMI: u64 = 8;
}

/// Bits of IA32_PERF_GLOBAL_STATUS that are no counters.
pub(crate) mod status {
    pub(crate) const LBR_FRZ: u64 = 1 << 58;
    /// Counters are frozen.
    pub(crate) const CTR_FRZ: u64 = 1 << 59;
    pub(crate) const ASCI: u64 = 1 << 60;
    pub(crate) const OVF_UNCORE: u64 = 1 << 61;
    pub(crate) const OVF_BUF: u64 = 1 << 62;
    pub(crate) const COND_CHGD: u64 = 1 << 63;
}

/// IA32_PERF_CAPABILITIES: counters can be written in full width.
pub(crate) const FW_WRITE: u64 = 1 << 13;
