//! Bit fields of the registers of [`crate::msr`].
//!
//! Source: Intel SDM volume 3 chapters 19 and 20 and volume 4; AMD APM volume 2 chapter 13; checked
//! against `msr-index.h` and `perf_event.h` of Linux.

/// IA32_PERFEVTSELn and AMD's PERF_CTLn.
pub mod evtsel {
    /// Event select, bits 7:0.
    pub const EVENT: u64 = 0xff;
    /// Unit mask.
    pub const UMASK: u64 = 0xff00;
    /// Count in user mode.
    pub const USR: u64 = 1 << 16;
    /// Count in kernel mode.
    pub const OS: u64 = 1 << 17;
    /// Interrupt on overflow.
    pub const INT: u64 = 1 << 20;
    /// Enable.
    pub const EN: u64 = 1 << 22;
    /// AMD: event select, bits 11:8.
    pub const AMD_EVENT_HIGH: u64 = 0xf << 32;
    /// Bits of a register that select the event.
    pub const EVENT_CODE: u64 = EVENT | UMASK;
}

/// IA32_FIXED_CTR_CTRL: four bits for each fixed counter.
pub mod fixed_ctrl {
    /// Bits of one counter.
    pub const BITS: u32 = 4;
    /// All bits of counter 0.
    pub const MASK: u64 = 0xf;
    /// Count in kernel mode.
    pub const OS: u64 = 1;
    /// Count in user mode.
    pub const USR: u64 = 2;
    /// Interrupt on overflow.
    pub const PMI: u64 = 8;
}

/// IA32_PERF_GLOBAL_STATUS, beside one bit for each counter (fixed ones from bit 32).
pub mod global_status {
    /// The metrics of the slots counter overflowed.
    pub const PERF_METRICS_OVF: u64 = 1 << 48;
    /// A processor trace table is full.
    pub const TRACE_TOPA_PMI: u64 = 1 << 55;
    /// Branch records are frozen.
    pub const LBR_FRZ: u64 = 1 << 58;
    /// Counters are frozen.
    pub const CTR_FRZ: u64 = 1 << 59;
    /// Anti side-channel interference.
    pub const ASCI: u64 = 1 << 60;
    /// An uncore counter overflowed.
    pub const OVF_UNCORE: u64 = 1 << 61;
    /// The debug store (PEBS) buffer is at its threshold.
    pub const OVF_DS_BUFFER: u64 = 1 << 62;
    /// The condition of the PMU changed.
    pub const COND_CHGD: u64 = 1 << 63;
    /// Bits that are not overflows of counters, and are cleared with the rest.
    pub const NOT_COUNTERS: u64 = PERF_METRICS_OVF
        | TRACE_TOPA_PMI
        | LBR_FRZ
        | CTR_FRZ
        | ASCI
        | OVF_UNCORE
        | OVF_DS_BUFFER
        | COND_CHGD;
    /// Bits of a state, not of an event: alone they are no reason for an interrupt.
    pub const STATES: u64 = LBR_FRZ | CTR_FRZ | ASCI;
}

/// IA32_DEBUGCTL.
pub mod debugctl {
    /// Record branches (before architectural LBR).
    pub const LBR: u64 = 1;
    /// Single-step on branches.
    pub const BTF: u64 = 1 << 1;
    /// Branch trace messages.
    pub const TR: u64 = 1 << 6;
    /// Branch trace store.
    pub const BTS: u64 = 1 << 7;
    /// Interrupt where the trace store is full.
    pub const BTINT: u64 = 1 << 8;
    /// No trace store in kernel mode.
    pub const BTS_OFF_OS: u64 = 1 << 9;
    /// No trace store in user mode.
    pub const BTS_OFF_USR: u64 = 1 << 10;
    /// Freezes the branch records at an overflow interrupt.
    pub const FREEZE_LBRS_ON_PMI: u64 = 1 << 11;
    /// FREEZE_PERFMON_ON_PMI; the hardware freezes on *overflow*.
    pub const FREEZE_PERFMON_ON_PMI: u64 = 1 << 12;
    /// Stops the counters in system-management mode.
    pub const FREEZE_WHILE_SMM: u64 = 1 << 14;
}

/// IA32_PERF_CAPABILITIES.
pub mod perf_capabilities {
    /// Format of branch records.
    pub const LBR_FMT: u64 = 0x3f;
    /// Format of PEBS records.
    pub const PEBS_FMT: u64 = 0xf00;
    /// Counters can be written in full width.
    pub const FW_WRITE: u64 = 1 << 13;
}

/// The local APIC's performance monitoring entry.
pub mod lvtpc {
    /// Delivery mode of LVTPC: non-maskable interrupt.
    pub const DELIVER_NMI: u64 = 0x400;
    /// Masked. Delivery sets it on Intel.
    pub const MASKED: u64 = 1 << 16;
}

/// MSR_LBR_SELECT: branches that are *not* recorded.
pub mod lbr_select {
    /// Not in kernel mode.
    pub const CPL_EQ_0: u64 = 1;
    /// Not in user mode.
    pub const CPL_NEQ_0: u64 = 2;
    /// Keep a call stack.
    pub const EN_CALLSTACK: u64 = 1 << 9;
}

/// IA32_LBR_CTL: branches that *are* recorded.
pub mod lbr_ctl {
    /// Enable.
    pub const LBREN: u64 = 1;
    /// In kernel mode.
    pub const OS: u64 = 2;
    /// In user mode.
    pub const USR: u64 = 4;
    /// Keep a call stack.
    pub const CALL_STACK: u64 = 8;
}

/// DbgExtnCfg of AMD.
pub mod dbg_extn_cfg {
    /// LBRv2 is on.
    pub const LBR_V2_EN: u64 = 1 << 6;
}
