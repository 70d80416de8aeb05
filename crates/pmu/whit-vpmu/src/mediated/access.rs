//! Accesses that exit, and those that do not.

use super::{HostCpu, Mediated, Rule};
use crate::event::EventConfig;
use crate::model::CounterIndex;
use crate::msr::{FW_WRITE, evtsel, status};
use crate::register::{Gp, Register};

/// Accesses to a register that do not exit.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Passing {
    /// RDMSR.
    pub read: bool,
    /// WRMSR.
    pub write: bool,
}

impl Mediated {
    /// Which accesses to a register need no exit. It changes with exits, loads and puts; the hypervisor's bitmaps
    /// follow before the guest is entered.
    #[must_use]
    pub fn passes(&self, msr: u32) -> Passing {
        let no = Passing { read: false, write: false };
        let Some(register) = self.model.register(msr).filter(|_| self.resident) else { return no };
        match register {
            Register::Counter(slot, _) => Passing {
                read: true,
                write: self.in_use.has(slot) || !self.keeps(Rule::CatchWrites),
            },
            Register::GlobalControl
            | Register::Status
            | Register::StatusClear
            | Register::StatusSet => Passing { read: self.is_whole(), write: self.is_whole() },
            Register::Select(_) | Register::FixedControl => {
                Passing { read: !self.keeps(Rule::HideFilter), write: false }
            }
            Register::InUse | Register::Capabilities => no,
        }
    }

    /// Whether RDPMC needs no exit: it reads any counter that the CPU has.
    #[must_use]
    pub const fn passes_rdpmc(&self) -> bool {
        self.resident && self.is_whole()
    }

    /// The guest reads a register, and exits.
    ///
    /// # Errors
    /// [`Gp`] where its PMU has no such register.
    pub fn rdmsr(&mut self, cpu: &mut impl HostCpu, msr: u32) -> Result<u64, Gp> {
        Ok(match self.model.register(msr).ok_or(Gp)? {
            Register::Counter(slot, _) => self.counter(cpu, slot),
            Register::Select(slot) => self.selects[slot],
            Register::FixedControl => self.fixed_control,
            Register::GlobalControl if self.resident && self.is_whole() => {
                self.resident_control(cpu)
            }
            Register::GlobalControl => self.global_control,
            Register::Status if self.resident => {
                cpu.rdmsr(self.model.status_msr()) & self.model.status_bits()
            }
            Register::Status => self.global_status,
            Register::StatusClear | Register::StatusSet => 0,
            Register::InUse => self.model.registers_in_use(self.selects.iter().copied()),
            Register::Capabilities => FW_WRITE,
        })
    }

    /// The guest reads a counter by RDPMC, and exits.
    ///
    /// # Errors
    /// [`Gp`] where its PMU has no such counter.
    pub fn rdpmc(&mut self, cpu: &mut impl HostCpu, counter: CounterIndex) -> Result<u64, Gp> {
        let slot = (0..self.model.slots()).find(|slot| self.model.counter(*slot) == counter);
        slot.map(|slot| self.counter(cpu, slot)).ok_or(Gp)
    }

    fn counter(&mut self, cpu: &mut impl HostCpu, slot: usize) -> u64 {
        if self.resident && self.in_use.has(slot) {
            self.touched.insert(slot);
            cpu.rdpmc(self.model.counter(slot))
        } else {
            self.counters[slot]
        }
    }

    /// The guest writes a register, and exits.
    ///
    /// # Errors
    /// As [`Vpmu::wrmsr`](crate::Vpmu::wrmsr).
    pub fn wrmsr(&mut self, cpu: &mut impl HostCpu, msr: u32, value: u64) -> Result<(), Gp> {
        let register = self.model.register(msr).ok_or(Gp)?;
        let Some(value) = self.model.accepted(register, value)? else { return Ok(()) };
        match register {
            Register::Counter(slot, _) => self.write_counter(cpu, slot, value),
            Register::Select(slot) => {
                self.selects[slot] = value;
                if self.resident {
                    cpu.wrmsr(self.model.select_msr(slot), self.hardware_select(slot));
                }
                self.touch(cpu, slot);
            }
            Register::FixedControl => self.write_fixed_control(cpu, value),
            Register::GlobalControl => self.write_control(cpu, value),
            Register::StatusClear | Register::StatusSet => self.write_status(cpu, register, value),
            Register::Status | Register::InUse | Register::Capabilities => {}
        }
        Ok(())
    }

    fn write_counter(&mut self, cpu: &mut impl HostCpu, slot: usize, value: u64) {
        self.counters[slot] = value;
        if self.resident {
            cpu.wrmsr(self.model.counter_msr(slot), value);
            // It will be written again.
            self.in_use.insert(slot);
        }
        self.touched.insert(slot);
    }

    fn write_fixed_control(&mut self, cpu: &mut impl HostCpu, value: u64) {
        let before = self.selects;
        self.set_fixed_control(value);
        if self.resident {
            cpu.wrmsr(crate::msr::IA32_FIXED_CTR_CTRL, self.hardware_fixed_control());
        }
        for (slot, before) in before.iter().enumerate().take(self.model.slots()) {
            if *before != self.selects[slot] {
                self.touch(cpu, slot);
            }
        }
    }

    fn write_control(&mut self, cpu: &mut impl HostCpu, value: u64) {
        self.global_control = value;
        if !self.resident {
            return;
        }
        if self.model.is_intel() {
            cpu.set_entry_control(value);
        } else {
            cpu.wrmsr(self.model.control_msr(), value);
        }
    }

    fn write_status(&mut self, cpu: &mut impl HostCpu, register: Register, value: u64) {
        let clear = register == Register::StatusClear;
        if self.resident {
            let (clear_msr, set_msr) = (self.model.status_clear_msr(), self.model.status_set_msr());
            cpu.wrmsr(if clear { clear_msr } else { set_msr }, value);
        } else if clear {
            self.global_status &= !value;
        } else {
            self.global_status |= value;
        }
    }

    /// A counter whose event select was written. The first one that counts brings the guest's registers into the CPU.
    fn touch(&mut self, cpu: &mut impl HostCpu, slot: usize) {
        self.touched.insert(slot);
        if !self.is_enabled(slot) {
            return;
        }
        self.in_use.insert(slot);
        if self.loaded && !self.resident {
            self.move_in(cpu);
        }
    }

    /// The hypervisor has emulated an instruction of the guest, in its kernel or user mode. `select` is an event's
    /// number and unit mask: 0xc0 for instructions, for branches 0xc4 (Intel) or 0xc2 (AMD).
    pub fn count_emulated(&mut self, cpu: &mut impl HostCpu, select: u64, kernel: bool) {
        if !self.resident || !self.keeps(Rule::CountEmulated) {
            return;
        }
        let frozen = cpu.rdmsr(self.model.status_msr()) & status::CTR_FRZ != 0;
        let control = if frozen { 0 } else { self.resident_control_of_guest(cpu) };
        let mode = if kernel { evtsel::OS } else { evtsel::USR };
        for slot in 0..self.model.slots() {
            let bit = self.model.status_bit(slot);
            let config = EventConfig::of_select(self.model.counter(slot), self.selects[slot]);
            let counts = config.is_some_and(|config| config.select == select);
            if !counts
                || !self.is_enabled(slot)
                || self.selects[slot] & mode == 0
                || control & bit == 0
            {
                continue;
            }
            let value = (cpu.rdpmc(self.model.counter(slot)) + 1) & self.model.counter_mask();
            cpu.wrmsr(self.model.counter_msr(slot), value);
            self.counters[slot] = value;
            if value == 0 {
                cpu.wrmsr(self.model.status_set_msr(), bit);
                self.pmi_due |= self.selects[slot] & evtsel::INT != 0;
            }
        }
    }

    /// The counters that the guest lets run.
    fn resident_control_of_guest(&self, cpu: &mut impl HostCpu) -> u64 {
        if self.is_whole() { self.resident_control(cpu) } else { self.global_control }
    }
}
