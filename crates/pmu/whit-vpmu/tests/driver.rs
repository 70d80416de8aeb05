//! A guest's driver on the device: `whit-pmu`, in this process. Every access must be one that hardware
//! answers without #GP.

mod support;

use support::{Device, Line, models};
use whit_pmu::bus::PmuBus;
use whit_pmu::counter::{CounterIndex, CounterMask};
use whit_pmu::driver::{Driver, Event, EventConfig};
use whit_pmu::model::{AckOrder, FreezeGate, PmuKind, PmuModel as DriverModel};
use whit_pmu::msr::{IA32_DEBUGCTL, Msr, X2APIC_LVTPC};
use whit_pmu::pmi::{Overflow, PmiOutcome, Verdict};
use whit_vpmu::{Backing, PmuModel, Simulated, Vpmu, VpmuConfig};

/// Instructions that a handler takes per register access, in the guest's kernel.
const INSTRUCTIONS_PER_ACCESS: u64 = 3;
const INSTRUCTIONS: u64 = 0xc0;

/// The guest's CPU.
struct Cpu {
    vpmu: Device,
    exits: u64,
    handled: u64,
}

impl Cpu {
    fn new(model: PmuModel, backing: Backing, lingers: bool) -> Cpu {
        let mut config = VpmuConfig::new(model);
        config.backing = backing;
        let host = if lingers { Simulated::lingering() } else { Simulated::new() };
        Cpu { vpmu: Vpmu::new(config, host, Line::default()), exits: 0, handled: 0 }
    }

    fn exit(&mut self) {
        self.exits += 1;
        self.vpmu.on_vcpu_enter();
        // The guest's own work on its PMU is in its kernel, and counted while it counts.
        let mut left = INSTRUCTIONS_PER_ACCESS;
        while left > 0 {
            left = self.vpmu.source_mut().occur(INSTRUCTIONS, true, left);
            while let Some(token) = self.vpmu.source_mut().take_notice() {
                self.vpmu.on_overflow(token);
            }
        }
    }

    /// User code runs, and each NMI is handled when it comes.
    fn run(&mut self, driver: &mut Driver, count: u64, samples: &mut Vec<u64>) {
        let mut left = count;
        while left > 0 {
            left = self.vpmu.source_mut().occur(INSTRUCTIONS, false, left);
            while let Some(token) = self.vpmu.source_mut().take_notice() {
                self.vpmu.on_overflow(token);
            }
            self.vpmu.on_vcpu_enter();
            while self.vpmu.interrupt().nmis > self.handled {
                self.handled += 1;
                let at = count - left;
                let outcome = driver.handle_pmi(self, at, &mut |overflow: &Overflow<'_>| {
                    samples.push(overflow.count);
                    Verdict::Sampled
                });
                assert_ne!(outcome, PmiOutcome::NotOurs);
            }
        }
    }
}

impl PmuBus for Cpu {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        let value = match msr {
            X2APIC_LVTPC => self.vpmu.interrupt().lvtpc.read().into(),
            _ => self.vpmu.rdmsr(msr.0).unwrap_or_else(|_| panic!("#GP on RDMSR {msr:x}")),
        };
        self.exit();
        value
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        match msr {
            X2APIC_LVTPC => self.vpmu.interrupt_mut().lvtpc.write(value as u32),
            // KVM's, which takes a 0.
            IA32_DEBUGCTL => assert_eq!(value, 0),
            _ => {
                let written = self.vpmu.wrmsr(msr.0, value);
                written.unwrap_or_else(|_| panic!("#GP on WRMSR {msr:x}, {value:#x}"));
            }
        }
        self.exit();
    }
}

fn driver_model(model: &PmuModel) -> DriverModel {
    let kind = match model.kind() {
        whit_vpmu::PmuKind::Intel { .. } => PmuKind::Intel,
        whit_vpmu::PmuKind::AmdV2 => PmuKind::AmdV2,
        whit_vpmu::PmuKind::AmdCore => PmuKind::AmdCore,
        _ => PmuKind::AmdK7,
    };
    let version =
        if let whit_vpmu::PmuKind::Intel { version } = model.kind() { version } else { 2 };
    DriverModel {
        kind,
        version,
        general: CounterMask::first_general(model.general()),
        general_width: model.width_bits(),
        fixed: CounterMask::first_fixed(model.fixed()),
        fixed_width: model.width_bits(),
        full_width_writes: model.full_width_writes(),
        pebs: false,
        ack: AckOrder::Mid,
        verify_after_late_ack: false,
        freeze: FreezeGate::VersionBelow4,
        lbr: None,
    }
}

/// In user mode alone, so that the handler itself is not counted.
fn user(event: EventConfig) -> Event {
    Event::new(EventConfig { select: event.select & !(1 << 17), ..event })
}

#[test]
fn a_driver_samples_and_counts_on_every_model() {
    for model in models() {
        let mut results = Vec::new();
        for (backing, lingers) in
            [(Backing::Recreate, false), (Backing::Reuse, false), (Backing::Reuse, true)]
        {
            let mut cpu = Cpu::new(model, backing, lingers);
            let mut driver = Driver::new(driver_model(&model));
            driver.init(&mut cpu);
            let sampling = CounterIndex::general(0);
            let event = user(EventConfig::sampling(INSTRUCTIONS, 1000));
            driver.start(&mut cpu, sampling, event).expect("start");
            let counting = (model.general() > 1).then(|| CounterIndex::general(1));
            if let Some(counting) = counting {
                let event = user(EventConfig::counting(INSTRUCTIONS));
                driver.start(&mut cpu, counting, event).expect("start");
            }
            driver.enable(&mut cpu);
            let mut samples = Vec::new();
            cpu.run(&mut driver, 100_500, &mut samples);
            assert_eq!(samples, (1..=100).map(|n| n * 1000).collect::<Vec<_>>(), "{model:?}");
            assert_eq!(driver.read(&mut cpu, sampling), Some(100_500));
            let counted = counting.map(|counting| driver.read(&mut cpu, counting));
            assert_eq!(counted.flatten(), counting.map(|_| 100_500), "{model:?}");
            driver.stop(&mut cpu, sampling);
            let statistics = *cpu.vpmu.statistics();
            assert_eq!((statistics.faults, statistics.storms), (0, 0));
            results.push((cpu.exits, samples, statistics.overflows, statistics.pmis));
            if backing == Backing::Reuse {
                assert!(statistics.opens <= 2, "{statistics:?}");
            }
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "the guest sees no difference");
    }
}

/// With the handler's own events counted, as an operating system has it.
#[test]
fn samples_are_as_many_as_periods_in_both_modes() {
    let mut cpu = Cpu::new(models()[1], Backing::Reuse, true);
    let mut driver = Driver::new(driver_model(&models()[1]));
    driver.init(&mut cpu);
    let event = Event::new(EventConfig::sampling(INSTRUCTIONS, 5000));
    let counter = CounterIndex::general(2);
    driver.start(&mut cpu, counter, event).expect("start");
    driver.enable(&mut cpu);
    let mut samples = Vec::new();
    cpu.run(&mut driver, 1_000_000, &mut samples);
    driver.disable(&mut cpu);
    let counted = driver.read(&mut cpu, counter).expect("an event");
    assert!(counted >= 1_000_000);
    assert_eq!(samples.len() as u64, counted / 5000);
}
