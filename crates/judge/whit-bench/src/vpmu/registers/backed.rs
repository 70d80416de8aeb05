//! Counters that are events of the host.

use whit_pmu::bus::Tally;
use whit_pmu::counter::CounterIndex;
use whit_pmu::msr::{IA32_DEBUGCTL, Msr, X2APIC_LVTPC};
use whit_vpmu::{
    Arm, Backing, CounterSource, EventConfig, OpenError, PmuModel, Reading, Simulated,
    SimulatedEvent, SourceError, Vpmu, VpmuConfig,
};

use super::{Below, Cost};
use crate::vpmu::guest::Apic;

/// Register accesses of Linux' x86 driver for one change of an event that runs: control off and on around them.
const CONTROL: Tally = Tally { wrmsr: 2, rdmsr: 0, rdpmc: 0 };
/// The counter and its select.
const START: Tally = Tally { wrmsr: 2, rdmsr: 0, rdpmc: 0 };
/// The select, and the count.
const STOP: Tally = Tally { wrmsr: 1, rdmsr: 0, rdpmc: 1 };
const READ: Tally = Tally { wrmsr: 0, rdmsr: 0, rdpmc: 1 };
/// The host's own handler of an overflow, as `whit bench pmi` counts it: control, counter, LVTPC.
const INTERRUPT: Tally = Tally { wrmsr: 5, rdmsr: 2, rdpmc: 1 };

/// The simulated host with the price of each call.
#[derive(Debug)]
struct Priced {
    host: Simulated,
    tally: Tally,
}

impl CounterSource for Priced {
    type Event = SimulatedEvent;

    fn open(&mut self, config: &EventConfig, arm: Arm) -> Result<SimulatedEvent, OpenError> {
        self.tally += CONTROL + START;
        self.host.open(config, arm)
    }

    fn read(&mut self, event: &mut SimulatedEvent) -> Result<Reading, SourceError> {
        self.tally += READ;
        self.host.read(event)
    }

    fn pause(&mut self, event: &mut SimulatedEvent) -> Result<Reading, SourceError> {
        self.tally += CONTROL + STOP;
        self.host.pause(event)
    }

    fn resume(&mut self, event: &mut SimulatedEvent, arm: Arm) -> Result<(), SourceError> {
        self.tally += CONTROL + START;
        self.host.resume(event, arm)
    }

    fn rearm(&mut self, event: &mut SimulatedEvent, arm: Arm) -> Result<(), SourceError> {
        self.tally += CONTROL + STOP + START;
        self.host.rearm(event, arm)
    }

    fn settle(&mut self, event: &mut SimulatedEvent) -> bool {
        self.host.settle(event)
    }

    fn close(&mut self, event: SimulatedEvent) {
        self.tally += CONTROL + STOP;
        self.host.close(event);
    }
}

pub(super) struct Backed {
    vpmu: Vpmu<Priced, Apic>,
    exits: u64,
    handled: u64,
    interrupts: Tally,
}

impl Backed {
    pub(super) fn new(model: PmuModel, backing: Backing) -> Backed {
        let mut config = VpmuConfig::new(model);
        config.backing = backing;
        let source = Priced { host: Simulated::new(), tally: Tally::default() };
        let vpmu = Vpmu::new(config, source, Apic::new());
        Backed { vpmu, exits: 0, handled: 0, interrupts: Tally::default() }
    }
}

impl Below for Backed {
    fn read(&mut self, msr: Msr, _: Option<CounterIndex>) -> u64 {
        self.exits += 1;
        let value = match msr {
            X2APIC_LVTPC => self.vpmu.interrupt().lvtpc.read().into(),
            _ => self.vpmu.rdmsr(msr.0).unwrap_or_default(),
        };
        self.vpmu.on_vcpu_enter();
        value
    }

    fn write(&mut self, msr: Msr, value: u64) {
        self.exits += 1;
        match msr {
            X2APIC_LVTPC => self.vpmu.interrupt_mut().lvtpc.write(value as u32),
            IA32_DEBUGCTL => {}
            _ => {
                // A #GP would be a missing sample.
                let _ = self.vpmu.wrmsr(msr.0, value);
            }
        }
        self.vpmu.on_vcpu_enter();
    }

    fn occur(&mut self, code: u16, mut count: u64) {
        while count > 0 {
            count = self.vpmu.source_mut().host.occur(code.into(), true, count);
            while let Some(token) = self.vpmu.source_mut().host.take_notice() {
                // The host's NMI ends the guest's run.
                self.exits += 1;
                self.interrupts += INTERRUPT;
                self.vpmu.on_overflow(token);
            }
            self.vpmu.on_vcpu_enter();
        }
    }

    fn take_nmi(&mut self) -> bool {
        let due = self.vpmu.interrupt().nmis > self.handled;
        self.handled += u64::from(due);
        due
    }

    fn other_exit(&mut self) {
        self.vpmu.on_vcpu_enter();
    }

    fn cost(&self) -> Cost {
        let tally = self.vpmu.source().tally + self.interrupts;
        Cost::of(self.exits, tally, self.vpmu.statistics().opens)
    }
}
