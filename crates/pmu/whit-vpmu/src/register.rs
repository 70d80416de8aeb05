//! Which register a number names.

use core::fmt;

use alloc::vec;
use alloc::vec::Vec;

use crate::model::{PmuKind, PmuModel};
use crate::msr::{self, evtsel};

/// The access is to be answered with a general protection exception.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Gp;

impl fmt::Display for Gp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("general protection exception (#GP)")
    }
}

impl core::error::Error for Gp {}

/// A register of the device, by its function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Register {
    /// The counter in a slot.
    Counter(usize, Width),
    /// The event select in a slot.
    Select(usize),
    FixedControl,
    GlobalControl,
    Status,
    StatusClear,
    StatusSet,
    InUse,
    Capabilities,
}

/// How a counter is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    /// 32 bits, with the top one extended (IA32_PMCn).
    Legacy,
    /// All bits; those beyond are refused (IA32_A_PMCn).
    Full,
    /// All bits; those beyond are dropped (fixed counters, AMD), as KVM does.
    Truncated,
}

/// A row of registers: the first and how many there are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MsrRange {
    /// Address of the first register.
    pub first: u32,
    /// Number of registers in the row.
    pub count: u32,
}

impl PmuModel {
    /// The registers that the device answers for, for a hypervisor's filter. Some numbers among
    /// AMD's have no register and give #GP.
    #[must_use]
    pub fn msrs(&self) -> Vec<MsrRange> {
        let general = u32::from(self.general);
        let row = |first, count| MsrRange { first, count };
        let mut rows = match self.kind {
            PmuKind::Intel { version } => vec![
                row(msr::IA32_PMC, general),
                row(msr::IA32_PERFEVTSEL, general),
                row(msr::IA32_FIXED_CTR, self.fixed.into()),
                row(msr::IA32_FIXED_CTR_CTRL, if version >= 4 { 6 } else { 4 }),
                row(msr::IA32_A_PMC, if self.full_width_writes { general } else { 0 }),
                row(msr::IA32_PERF_CAPABILITIES, self.full_width_writes.into()),
            ],
            PmuKind::AmdK7 => vec![row(msr::K7_PERF_CTL, 8)],
            PmuKind::AmdCore => {
                vec![row(msr::K7_PERF_CTL, 8), row(msr::CORE_PERF_CTL, 2 * general)]
            }
            PmuKind::AmdV2 => vec![
                row(msr::K7_PERF_CTL, 8),
                row(msr::CORE_PERF_CTL, 2 * general),
                row(msr::PERF_CNTR_GLOBAL_STATUS, 4),
            ],
        };
        rows.retain(|row| row.count > 0);
        rows
    }

    /// Whether the device has a register with this number.
    #[must_use]
    pub fn has_msr(&self, msr: u32) -> bool {
        self.register(msr).is_some()
    }

    /// The register with a number, where the device has it.
    pub(crate) fn register(&self, number: u32) -> Option<Register> {
        match self.kind {
            PmuKind::Intel { version } => self.intel_register(number, version),
            kind => self.amd_register(number, kind),
        }
    }

    fn intel_register(&self, number: u32, version: u8) -> Option<Register> {
        let general = |first| self.place(number, first, self.general);
        if let Some(slot) = general(msr::IA32_PMC) {
            return Some(Register::Counter(slot, Width::Legacy));
        }
        if let Some(slot) = general(msr::IA32_A_PMC).filter(|_| self.full_width_writes) {
            return Some(Register::Counter(slot, Width::Full));
        }
        if let Some(slot) = general(msr::IA32_PERFEVTSEL) {
            return Some(Register::Select(slot));
        }
        if let Some(place) = self.place(number, msr::IA32_FIXED_CTR, self.fixed) {
            return Some(Register::Counter(usize::from(self.general) + place, Width::Truncated));
        }
        Some(match number {
            msr::IA32_FIXED_CTR_CTRL => Register::FixedControl,
            msr::IA32_PERF_GLOBAL_CTRL => Register::GlobalControl,
            msr::IA32_PERF_GLOBAL_STATUS => Register::Status,
            msr::IA32_PERF_GLOBAL_STATUS_RESET => Register::StatusClear,
            msr::IA32_PERF_GLOBAL_STATUS_SET if version >= 4 => Register::StatusSet,
            msr::IA32_PERF_GLOBAL_INUSE if version >= 4 => Register::InUse,
            msr::IA32_PERF_CAPABILITIES if self.full_width_writes => Register::Capabilities,
            _ => return None,
        })
    }

    fn amd_register(&self, number: u32, kind: PmuKind) -> Option<Register> {
        let counter = |slot| Register::Counter(slot, Width::Truncated);
        let old = self.general.min(4);
        if let Some(slot) = self.place(number, msr::K7_PERF_CTL, old) {
            return Some(Register::Select(slot));
        }
        if let Some(slot) = self.place(number, msr::K7_PERF_CTR, old) {
            return Some(counter(slot));
        }
        let core = self.place(number, msr::CORE_PERF_CTL, 2 * self.general);
        if let Some(place) = core.filter(|_| kind != PmuKind::AmdK7) {
            let slot = place / 2;
            return Some(if place % 2 == 0 { Register::Select(slot) } else { counter(slot) });
        }
        match number {
            _ if kind != PmuKind::AmdV2 => None,
            msr::PERF_CNTR_GLOBAL_STATUS => Some(Register::Status),
            msr::PERF_CNTR_GLOBAL_CTL => Some(Register::GlobalControl),
            msr::PERF_CNTR_GLOBAL_STATUS_CLR => Some(Register::StatusClear),
            msr::PERF_CNTR_GLOBAL_STATUS_SET => Some(Register::StatusSet),
            _ => None,
        }
    }

    /// A written value as the register takes it; `None`: the write has no effect. Intel refuses reserved bits
    /// and registers that can only be read, AMD drops the bits and ignores the writes.
    pub(crate) fn accepted(&self, register: Register, value: u64) -> Result<Option<u64>, Gp> {
        let mask = self.counter_mask();
        let writable = match register {
            Register::Counter(_, Width::Legacy) => {
                return Ok(Some(value as u32 as i32 as u64 & mask));
            }
            Register::Counter(_, Width::Full) if value & !mask != 0 => return Err(Gp),
            Register::Counter(..) => return Ok(Some(value & mask)),
            Register::Select(_) => return self.event_select(value).ok_or(Gp).map(Some),
            Register::FixedControl => self.fixed_control_bits(),
            Register::GlobalControl => self.counter_bits(),
            Register::StatusClear => self.status_bits(),
            Register::StatusSet => self.settable_bits(),
            Register::Status | Register::InUse | Register::Capabilities => {
                return if self.is_intel() { Err(Gp) } else { Ok(None) };
            }
        };
        if self.is_intel() && value & !writable != 0 {
            return Err(Gp);
        }
        Ok(Some(value & writable))
    }

    /// IA32_PERF_GLOBAL_INUSE: who has an event select or control bits, and whether any interrupts.
    pub(crate) fn registers_in_use(&self, selects: impl Iterator<Item = u64>) -> u64 {
        const PMI: u64 = 1 << 63;
        selects.enumerate().take(self.slots()).fold(0, |bits, (slot, select)| {
            let fixed = slot >= usize::from(self.general);
            let used = select & if fixed { evtsel::EN } else { evtsel::EVENT } != 0;
            let interrupts = select & evtsel::INT != 0;
            bits | if used { self.status_bit(slot) } else { 0 } | if interrupts { PMI } else { 0 }
        })
    }

    /// The place of a number in a row of registers.
    fn place(&self, number: u32, first: u32, count: u8) -> Option<usize> {
        let place = number.checked_sub(first)?;
        (place < u32::from(count)).then_some(place as usize)
    }
}
