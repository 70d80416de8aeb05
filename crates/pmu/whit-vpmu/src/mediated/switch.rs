//! Load and put: the guest's registers go into the CPU, and come back.

use super::{HostCpu, Mediated, Rule, Slots};
use crate::model::PmuModel;
use crate::msr;

impl PmuModel {
    pub(super) const fn control_msr(&self) -> u32 {
        if self.is_intel() { msr::IA32_PERF_GLOBAL_CTRL } else { msr::PERF_CNTR_GLOBAL_CTL }
    }

    pub(super) const fn status_msr(&self) -> u32 {
        if self.is_intel() { msr::IA32_PERF_GLOBAL_STATUS } else { msr::PERF_CNTR_GLOBAL_STATUS }
    }

    pub(super) const fn status_clear_msr(&self) -> u32 {
        if self.is_intel() {
            msr::IA32_PERF_GLOBAL_STATUS_RESET
        } else {
            msr::PERF_CNTR_GLOBAL_STATUS_CLR
        }
    }

    pub(super) const fn status_set_msr(&self) -> u32 {
        if self.is_intel() {
            msr::IA32_PERF_GLOBAL_STATUS_SET
        } else {
            msr::PERF_CNTR_GLOBAL_STATUS_SET
        }
    }

    /// The register that takes all bits of a counter.
    pub(super) const fn counter_msr(&self, slot: usize) -> u32 {
        let general = self.general as usize;
        if !self.is_intel() {
            msr::CORE_PERF_CTL + 2 * slot as u32 + 1
        } else if slot < general {
            msr::IA32_A_PMC + slot as u32
        } else {
            msr::IA32_FIXED_CTR + (slot - general) as u32
        }
    }

    /// The event select of a general-purpose counter.
    pub(super) const fn select_msr(&self, slot: usize) -> u32 {
        if self.is_intel() {
            msr::IA32_PERFEVTSEL + slot as u32
        } else {
            msr::CORE_PERF_CTL + 2 * slot as u32
        }
    }
}

impl Mediated {
    /// The vCPU is about to run on this CPU.
    pub fn load(&mut self, cpu: &mut impl HostCpu) {
        self.loaded = true;
        if !self.in_use.is_empty() {
            self.move_in(cpu);
        } else if self.model.is_intel() && self.keeps(Rule::IdleControl) {
            cpu.set_entry_control(0);
        }
    }

    /// The vCPU leaves this CPU, or the host wants its PMU.
    pub fn put(&mut self, cpu: &mut impl HostCpu) {
        self.loaded = false;
        if self.resident {
            self.move_out(cpu);
        }
        let mut in_use = Slots::default();
        for slot in 0..self.model.slots() {
            let enabled = self.is_enabled(slot) && self.keeps(Rule::KeepEnabled);
            if enabled || self.touched.has(slot) && self.in_use.has(slot) {
                in_use.insert(slot);
            }
        }
        (self.in_use, self.touched) = (in_use, Slots::default());
    }

    /// The host's registers go, the guest's come.
    pub(super) fn move_in(&mut self, cpu: &mut impl HostCpu) {
        self.resident = true;
        let used = if self.keeps(Rule::HostLeaves) { cpu.host_leaves() } else { 0 };
        if self.keeps(Rule::StopFirst) && used != 0 {
            cpu.wrmsr(self.model.control_msr(), 0);
        }
        if self.keeps(Rule::OwnVector) {
            cpu.write_lvtpc(Mediated::VECTOR.into());
        }
        for slot in 0..self.model.slots() {
            let host_value =
                used & self.model.status_bit(slot) != 0 && self.keeps(Rule::OverwriteHost);
            let value = self.counters[slot];
            if host_value || value != 0 && self.keeps(Rule::LoadCounters) {
                cpu.wrmsr(self.model.counter_msr(slot), value);
            }
            let is_general = slot < usize::from(self.model.general);
            let select = if is_general { self.hardware_select(slot) } else { 0 };
            if select != 0 {
                cpu.wrmsr(self.model.select_msr(slot), select);
            }
        }
        let fixed_control = self.hardware_fixed_control();
        if fixed_control != 0 {
            cpu.wrmsr(msr::IA32_FIXED_CTR_CTRL, fixed_control);
        }
        self.move_status_in(cpu, used);
        if self.model.is_intel() {
            cpu.set_entry_control(self.global_control);
        } else {
            // Selects that count in guests alone stop the counters until then, and after a put there are none.
            cpu.wrmsr(self.model.control_msr(), self.global_control);
        }
    }

    /// The status is 0 unless the host has counted.
    fn move_status_in(&self, cpu: &mut impl HostCpu, used: u64) {
        let mut present = 0;
        if used != 0 && self.keeps(Rule::ClearHostStatus) {
            present = cpu.rdmsr(self.model.status_msr());
            let foreign = present & !self.global_status;
            if foreign != 0 {
                cpu.wrmsr(self.model.status_clear_msr(), foreign);
            }
        }
        let missing = self.global_status & !present & self.model.settable_bits();
        if missing != 0 && self.keeps(Rule::LoadStatus) {
            cpu.wrmsr(self.model.status_set_msr(), missing);
        }
    }

    /// The guest's registers go, and leave zeros.
    fn move_out(&mut self, cpu: &mut impl HostCpu) {
        self.save_control(cpu);
        self.move_status_out(cpu);
        if self.hardware_fixed_control() != 0 && self.keeps(Rule::ClearSelects) {
            cpu.wrmsr(msr::IA32_FIXED_CTR_CTRL, 0);
        }
        for slot in 0..self.model.slots() {
            if self.in_use.has(slot) && self.keeps(Rule::SaveCounters) {
                self.counters[slot] = cpu.rdpmc(self.model.counter(slot));
            }
            if self.counters[slot] != 0 && self.keeps(Rule::ClearCounters) {
                cpu.wrmsr(self.model.counter_msr(slot), 0);
            }
            let is_general = slot < usize::from(self.model.general);
            let select = if is_general { self.hardware_select(slot) } else { 0 };
            if select != 0 && self.keeps(Rule::ClearSelects) {
                cpu.wrmsr(self.model.select_msr(slot), 0);
            }
        }
        self.resident = false;
        if self.keeps(Rule::HostLeaves) {
            cpu.host_returns();
        }
    }

    /// Where accesses to the control register exit, memory has the guest's value.
    fn save_control(&mut self, cpu: &mut impl HostCpu) {
        if self.is_whole() && self.keeps(Rule::SaveControl) {
            self.global_control = self.resident_control(cpu);
        }
    }

    /// The guest's control while it is resident.
    pub(super) fn resident_control(&self, cpu: &mut impl HostCpu) -> u64 {
        if self.model.is_intel() { cpu.exit_control() } else { cpu.rdmsr(self.model.control_msr()) }
    }

    fn move_status_out(&mut self, cpu: &mut impl HostCpu) {
        let status = cpu.rdmsr(self.model.status_msr());
        if self.keeps(Rule::SaveStatus) {
            self.global_status = status & self.model.status_bits();
        }
        if status != 0 && self.keeps(Rule::ClearStatus) {
            cpu.wrmsr(self.model.status_clear_msr(), status);
        }
    }
}
