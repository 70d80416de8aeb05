//! The simulated PMU's registers.

use super::{SimulatedPmu, Violation};
use crate::bits::debugctl;
use crate::bus::PmuBus;
use crate::counter::CounterIndex;
use crate::model::PmuKind;
use crate::msr::{self, Msr};

/// A register, by its function.
enum Register {
    Counter(CounterIndex, Width),
    Select(CounterIndex),
    FixedControl,
    GlobalControl,
    Status,
    StatusClear,
    StatusSet,
    InUse,
    Plain(Plain),
    Apic,
    DebugControl,
}

/// How a counter is written.
enum Width {
    Full,
    /// 32 bits, with the top one extended.
    Legacy,
}

/// Registers that hold the written value.
enum Plain {
    PebsEnable,
    PebsDataCfg,
    DsArea,
    DebugExtension,
    Aperf,
}

impl SimulatedPmu {
    fn register(&self, register: Msr) -> Option<Register> {
        if register == msr::X2APIC_LVTPC {
            return Some(Register::Apic);
        }
        if register == msr::IA32_APERF {
            return Some(Register::Plain(Plain::Aperf));
        }
        let counter = self.model.counters().iter().find_map(|counter| {
            if self.model.control_msr(counter) == register && !counter.is_fixed() {
                return Some(Register::Select(counter));
            }
            if self.model.kind == PmuKind::Intel && !counter.is_fixed() {
                return self.intel_counter(counter, register);
            }
            (self.model.counter_msr(counter) == register)
                .then_some(Register::Counter(counter, Width::Full))
        });
        counter.or_else(|| match self.model.kind {
            PmuKind::Intel => self.intel(register),
            PmuKind::AmdV2 => amd_v2(register),
            PmuKind::AmdCore | PmuKind::AmdK7 => None,
        })
    }

    fn intel_counter(&self, counter: CounterIndex, register: Msr) -> Option<Register> {
        let number = counter.index() as u32;
        if register == msr::IA32_PMC.offset(number) {
            return Some(Register::Counter(counter, Width::Legacy));
        }
        let full = self.model.full_width_writes && register == msr::IA32_A_PMC.offset(number);
        full.then_some(Register::Counter(counter, Width::Full))
    }

    fn intel(&self, register: Msr) -> Option<Register> {
        let version_4 = self.model.version >= 4;
        Some(match register {
            msr::IA32_FIXED_CTR_CTRL => Register::FixedControl,
            msr::IA32_PERF_GLOBAL_CTRL => Register::GlobalControl,
            msr::IA32_PERF_GLOBAL_STATUS => Register::Status,
            msr::IA32_PERF_GLOBAL_STATUS_RESET => Register::StatusClear,
            msr::IA32_PERF_GLOBAL_STATUS_SET if version_4 => Register::StatusSet,
            msr::IA32_PERF_GLOBAL_INUSE if version_4 => Register::InUse,
            msr::IA32_DEBUGCTL => Register::DebugControl,
            msr::IA32_PEBS_ENABLE if self.model.pebs => Register::Plain(Plain::PebsEnable),
            msr::PEBS_DATA_CFG if self.model.pebs => Register::Plain(Plain::PebsDataCfg),
            msr::IA32_DS_AREA => Register::Plain(Plain::DsArea),
            _ => return None,
        })
    }

    fn plain(&mut self, register: Plain) -> &mut u64 {
        match register {
            Plain::PebsEnable => &mut self.pebs_enable,
            Plain::PebsDataCfg => &mut self.pebs_data_cfg,
            Plain::DsArea => &mut self.ds_area,
            Plain::DebugExtension => &mut self.debug_extension,
            Plain::Aperf => &mut self.aperf,
        }
    }

    fn in_use(&self) -> u64 {
        let selected = self
            .model
            .general
            .iter()
            .filter(|counter| self.selects[counter.index()] & crate::bits::evtsel::EVENT != 0);
        selected.fold(0, |bits, counter| bits | counter.bit())
    }

    fn access(&mut self) {
        let (event, count) = self.parameters.per_access;
        self.occur(event, count);
    }

    fn refuse(&mut self, register: Msr) {
        self.violation = self.violation.or(Some(Violation::NoSuchRegister(register.0)));
    }

    fn write_debug_control(&mut self, value: u64) {
        let toggles = (self.debug_control ^ value) & debugctl::FREEZE_PERFMON_ON_PMI != 0;
        if toggles && self.global_control != 0 {
            self.violation = self.violation.or(Some(Violation::FreezeToggledWhileEnabled));
        }
        self.debug_control = value;
    }
}

fn amd_v2(register: Msr) -> Option<Register> {
    Some(match register {
        msr::PERF_CNTR_GLOBAL_STATUS => Register::Status,
        msr::PERF_CNTR_GLOBAL_CTL => Register::GlobalControl,
        msr::PERF_CNTR_GLOBAL_STATUS_CLR => Register::StatusClear,
        msr::PERF_CNTR_GLOBAL_STATUS_SET => Register::StatusSet,
        msr::IA32_DEBUGCTL => Register::DebugControl,
        msr::DBG_EXTN_CFG => Register::Plain(Plain::DebugExtension),
        _ => return None,
    })
}

impl PmuBus for SimulatedPmu {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        self.access();
        if let Some(value) = self.records.as_mut().and_then(|records| records.read(msr)) {
            return value;
        }
        match self.register(msr) {
            Some(Register::Counter(counter, _)) => self.counters[counter.index()],
            Some(Register::Select(counter)) => self.selects[counter.index()],
            Some(Register::FixedControl) => self.fixed_control,
            Some(Register::GlobalControl) => self.global_control,
            Some(Register::Status) => self.status,
            Some(Register::InUse) => self.in_use(),
            Some(Register::Plain(register)) => *self.plain(register),
            Some(Register::Apic) => self.apic.entry,
            Some(Register::DebugControl) => self.debug_control,
            Some(Register::StatusClear | Register::StatusSet) => 0,
            None => {
                self.refuse(msr);
                0
            }
        }
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        self.access();
        if self.records.as_mut().is_some_and(|records| records.write(msr, value)) {
            return;
        }
        match self.register(msr) {
            Some(Register::Counter(counter, width)) => {
                let value = match width {
                    Width::Full => value,
                    Width::Legacy => i64::from(value as u32 as i32) as u64,
                };
                self.counters[counter.index()] = value & self.model.counter_mask(counter);
            }
            Some(Register::Select(counter)) => self.selects[counter.index()] = value,
            Some(Register::FixedControl) => self.fixed_control = value,
            Some(Register::GlobalControl) => self.global_control = value,
            Some(Register::StatusClear) => self.status &= !value,
            Some(Register::StatusSet) => self.status |= value,
            Some(Register::Plain(register)) => *self.plain(register) = value,
            Some(Register::Apic) => self.apic.write(value),
            Some(Register::DebugControl) => self.write_debug_control(value),
            Some(Register::Status | Register::InUse) | None => self.refuse(msr),
        }
    }
}
