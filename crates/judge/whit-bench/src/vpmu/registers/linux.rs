//! Counters of the CPU, lent in the order of Linux 7.0: each exit that reaches the hypervisor's own loop puts the
//! guest's registers and loads them again, all of them. Event selects and the fixed counters' control exit.

use whit_pmu::bus::PmuBus;
use whit_pmu::counter::CounterIndex;
use whit_pmu::msr::{
    IA32_A_PMC, IA32_DEBUGCTL, IA32_FIXED_CTR, IA32_FIXED_CTR_CTRL, IA32_PERF_GLOBAL_CTRL,
    IA32_PERF_GLOBAL_STATUS, IA32_PERF_GLOBAL_STATUS_RESET, IA32_PERF_GLOBAL_STATUS_SET,
    IA32_PERFEVTSEL, Msr, X2APIC_LVTPC,
};
use whit_vpmu::mediated::Mediated;
use whit_vpmu::{IntelPmu, Interrupt};

use super::lent::{Cpu, HOST_ENTRY};
use super::{Below, Cost};
use crate::vpmu::guest::Apic;

pub(super) struct Linux {
    cpu: Cpu,
    general: u32,
    fixed: u32,
    counters: Vec<u64>,
    selects: Vec<u64>,
    fixed_control: u64,
    status: u64,
    apic: Apic,
    exits: u64,
    handled: u64,
}

impl Linux {
    pub(super) fn new(pmu: &IntelPmu) -> Linux {
        let (general, fixed) = (u32::from(pmu.general), u32::from(pmu.fixed));
        let mut linux = Linux {
            cpu: Cpu::new(),
            general,
            fixed,
            counters: vec![0; (general + fixed) as usize],
            selects: vec![0; general as usize],
            fixed_control: 0,
            status: 0,
            apic: Apic::new(),
            exits: 0,
            handled: 0,
        };
        linux.load();
        linux
    }

    /// The register of a counter by its place, and its name for RDPMC.
    fn counter(&self, place: u32) -> (Msr, CounterIndex) {
        match place.checked_sub(self.general) {
            None => (IA32_A_PMC.offset(place), CounterIndex::general(place as u8)),
            Some(number) => (IA32_FIXED_CTR.offset(number), CounterIndex::fixed(number as u8)),
        }
    }

    fn load(&mut self) {
        let pmu = &mut self.cpu.pmu;
        pmu.wrmsr(IA32_PERF_GLOBAL_CTRL, 0);
        pmu.wrmsr(X2APIC_LVTPC, Mediated::VECTOR.into());
        for place in 0..self.general + self.fixed {
            let (msr, _) = self.counter(place);
            self.cpu.pmu.wrmsr(msr, self.counters[place as usize]);
            if let Some(select) = self.selects.get(place as usize) {
                self.cpu.pmu.wrmsr(IA32_PERFEVTSEL.offset(place), *select);
            }
        }
        let pmu = &mut self.cpu.pmu;
        let toggle = pmu.rdmsr(IA32_PERF_GLOBAL_STATUS) ^ self.status;
        if toggle & self.status != 0 {
            pmu.wrmsr(IA32_PERF_GLOBAL_STATUS_SET, toggle & self.status);
        }
        pmu.wrmsr(IA32_FIXED_CTR_CTRL, self.fixed_control);
        self.cpu.enter();
    }

    fn put(&mut self) {
        self.cpu.exit();
        self.status = self.cpu.pmu.rdmsr(IA32_PERF_GLOBAL_STATUS);
        if self.status != 0 {
            self.cpu.pmu.wrmsr(IA32_PERF_GLOBAL_STATUS_RESET, self.status);
        }
        if self.fixed_control != 0 {
            self.cpu.pmu.wrmsr(IA32_FIXED_CTR_CTRL, 0);
        }
        for place in 0..self.general + self.fixed {
            let (msr, counter) = self.counter(place);
            let value = self.cpu.pmu.rdpmc(counter, msr);
            self.counters[place as usize] = value;
            if value != 0 {
                self.cpu.pmu.wrmsr(msr, 0);
            }
            if self.selects.get(place as usize).is_some_and(|select| *select != 0) {
                self.cpu.pmu.wrmsr(IA32_PERFEVTSEL.offset(place), 0);
            }
        }
        self.cpu.pmu.wrmsr(X2APIC_LVTPC, HOST_ENTRY);
    }

    fn select(&self, msr: Msr) -> Option<usize> {
        let place = msr.0.checked_sub(IA32_PERFEVTSEL.0)?;
        (place < self.general).then_some(place as usize)
    }

    fn exits(&self, msr: Msr) -> bool {
        self.select(msr).is_some()
            || matches!(msr, IA32_FIXED_CTR_CTRL | X2APIC_LVTPC | IA32_DEBUGCTL)
    }
}

impl Below for Linux {
    fn read(&mut self, msr: Msr, _: Option<CounterIndex>) -> u64 {
        if !self.exits(msr) {
            return self.cpu.pmu.get_mut().rdmsr(msr);
        }
        self.exits += 1;
        self.put();
        let value = match (msr, self.select(msr)) {
            (_, Some(place)) => self.selects[place],
            (X2APIC_LVTPC, _) => self.apic.lvtpc.read().into(),
            (IA32_FIXED_CTR_CTRL, _) => self.fixed_control,
            _ => 0,
        };
        self.load();
        value
    }

    fn write(&mut self, msr: Msr, value: u64) {
        if !self.exits(msr) {
            self.cpu.pmu.get_mut().wrmsr(msr, value);
            return;
        }
        self.exits += 1;
        self.put();
        match (msr, self.select(msr)) {
            (_, Some(place)) => self.selects[place] = value,
            (X2APIC_LVTPC, _) => self.apic.lvtpc.write(value as u32),
            (IA32_FIXED_CTR_CTRL, _) => self.fixed_control = value,
            _ => {}
        }
        self.load();
    }

    fn occur(&mut self, code: u16, mut count: u64) {
        while count > 0 {
            count = self.cpu.pmu.get_mut().occur_until_nmi(code, count);
            if self.cpu.pmu.get_mut().take_nmi() {
                self.exits += 1;
                self.cpu.pmu.get_mut().iret();
                self.put();
                self.apic.pmi(true);
                self.load();
            }
        }
    }

    fn take_nmi(&mut self) -> bool {
        let due = self.apic.nmis > self.handled;
        self.handled += u64::from(due);
        due
    }

    fn other_exit(&mut self) {
        self.put();
        self.load();
    }

    fn cost(&self) -> Cost {
        Cost::of(self.exits, self.cpu.tally(), 0)
    }
}
