//! Counters of the CPU, lent by `whit_vpmu::mediated`.

use whit_pmu::bus::{Counting, PmuBus, Tally};
use whit_pmu::counter::CounterIndex;
use whit_pmu::known_models;
use whit_pmu::msr::{IA32_DEBUGCTL, IA32_PERF_GLOBAL_CTRL, Msr, X2APIC_LVTPC};
use whit_pmu::sim::{SimulatedPmu, SimulationParameters};
use whit_vpmu::mediated::{HostCpu, Mediated, MediatedError};
use whit_vpmu::{CounterIndex as Counter, PmuModel};

use super::{Below, Cost};
use crate::vpmu::guest::Apic;

/// The entry of LVTPC that the host has: an NMI.
pub(super) const HOST_ENTRY: u64 = 0x400;

/// The simulated CPU, with the field of the VMCS.
pub(super) struct Cpu {
    pub(super) pmu: Counting<SimulatedPmu>,
    pub(super) field: u64,
}

impl Cpu {
    pub(super) fn new() -> Cpu {
        let parameters = SimulationParameters { skid: 0, ..SimulationParameters::default() };
        let pmu = SimulatedPmu::new(known_models::skylake(), parameters);
        Cpu { pmu: Counting::new(pmu), field: 0 }
    }

    /// The hardware's part of an entry counts as no access.
    pub(super) fn enter(&mut self) {
        self.pmu.get_mut().wrmsr(IA32_PERF_GLOBAL_CTRL, self.field);
    }

    pub(super) fn exit(&mut self) {
        self.field = self.pmu.get_mut().rdmsr(IA32_PERF_GLOBAL_CTRL);
        self.pmu.get_mut().wrmsr(IA32_PERF_GLOBAL_CTRL, 0);
    }

    pub(super) fn tally(&self) -> Tally {
        self.pmu.accesses().total()
    }
}

impl HostCpu for Cpu {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.pmu.rdmsr(Msr(msr))
    }

    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.pmu.wrmsr(Msr(msr), value);
    }

    fn rdpmc(&mut self, counter: Counter) -> u64 {
        let counter = match counter {
            Counter::General(number) => CounterIndex::general(number),
            Counter::Fixed(number) => CounterIndex::fixed(number),
        };
        let msr = self.pmu.get_ref().model().counter_msr(counter);
        self.pmu.rdpmc(counter, msr)
    }

    fn write_lvtpc(&mut self, entry: u32) {
        self.pmu.wrmsr(X2APIC_LVTPC, entry.into());
    }

    fn exit_control(&mut self) -> u64 {
        self.field
    }

    fn set_entry_control(&mut self, value: u64) {
        self.field = value;
    }

    fn host_leaves(&mut self) -> u64 {
        0
    }

    fn host_returns(&mut self) {
        self.pmu.wrmsr(X2APIC_LVTPC, HOST_ENTRY);
    }
}

pub(super) struct Lent {
    cpu: Cpu,
    mediated: Mediated,
    apic: Apic,
    exits: u64,
    handled: u64,
}

impl Lent {
    pub(super) fn new(model: PmuModel) -> Result<Lent, MediatedError> {
        let mut cpu = Cpu::new();
        let mut mediated = Mediated::new(&model, model, None)?;
        mediated.load(&mut cpu);
        cpu.enter();
        Ok(Lent { cpu, mediated, apic: Apic::new(), exits: 0, handled: 0 })
    }
}

impl Below for Lent {
    fn read(&mut self, msr: Msr, counter: Option<CounterIndex>) -> u64 {
        let passes = match counter {
            Some(_) => self.mediated.passes_rdpmc(),
            None => self.mediated.passes(msr.0).read,
        };
        if passes {
            return self.cpu.pmu.get_mut().rdmsr(msr);
        }
        self.exits += 1;
        self.cpu.exit();
        let value = match msr {
            X2APIC_LVTPC => self.apic.lvtpc.read().into(),
            _ => self.mediated.rdmsr(&mut self.cpu, msr.0).unwrap_or_default(),
        };
        self.cpu.enter();
        value
    }

    fn write(&mut self, msr: Msr, value: u64) {
        if self.mediated.passes(msr.0).write {
            self.cpu.pmu.get_mut().wrmsr(msr, value);
            return;
        }
        self.exits += 1;
        self.cpu.exit();
        match msr {
            X2APIC_LVTPC => self.apic.lvtpc.write(value as u32),
            IA32_DEBUGCTL => {}
            _ => {
                // A #GP would be a missing sample.
                let _ = self.mediated.wrmsr(&mut self.cpu, msr.0, value);
            }
        }
        self.cpu.enter();
    }

    fn occur(&mut self, code: u16, mut count: u64) {
        while count > 0 {
            count = self.cpu.pmu.get_mut().occur_until_nmi(code, count);
            if self.cpu.pmu.get_mut().take_nmi() {
                self.exits += 1;
                self.cpu.exit();
                self.cpu.pmu.get_mut().iret();
                self.mediated.on_pmi(&mut self.cpu);
                self.mediated.deliver(&mut self.apic);
                self.cpu.enter();
            }
        }
    }

    fn take_nmi(&mut self) -> bool {
        let due = self.apic.nmis > self.handled;
        self.handled += u64::from(due);
        due
    }

    fn other_exit(&mut self) {
        self.cpu.exit();
        self.mediated.put(&mut self.cpu);
        self.mediated.load(&mut self.cpu);
        self.cpu.enter();
    }

    fn cost(&self) -> Cost {
        Cost::of(self.exits, self.cpu.tally(), 0)
    }
}
