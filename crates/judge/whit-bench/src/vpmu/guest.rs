//! A guest in this process: its driver, its PMU, and the thread that it runs on.

use std::time::{Duration, Instant};

use whit_pmu::bus::PmuBus;
use whit_pmu::counter::{CounterIndex, CounterMask};
use whit_pmu::driver::{Driver, Event, EventConfig};
use whit_pmu::model::{AckOrder, FreezeGate, PmuKind, PmuModel as DriverModel};
use whit_pmu::msr::{IA32_DEBUGCTL, Msr, X2APIC_LVTPC};
use whit_pmu::pmi::{Overflow, Verdict};
use whit_vpmu::host::{HostPerf, OverflowSignal};
use whit_vpmu::{Delivery, DeliveryMode, IntelPmu, Interrupt, Lvtpc, PmuModel, Vpmu, VpmuConfig};

use super::ways::{COUNTED, Events, Way};
use crate::error::Error;

/// How often the set of events changes where there are more than counters
/// (`perf_event_mux_interval_ms` of Linux).
const ROTATION: Duration = Duration::from_millis(4);
/// A session without its interrupts is ended.
const SESSION_MAX: Duration = Duration::from_secs(60);
/// Rounds of the guest's work between two looks at the signal.
const WORK: u64 = 4000;
/// Rounds of work between a stop and a start.
const SHORT_WORK: u64 = 200;

/// Result of a session.
pub(super) struct Session {
    pub(super) start_ns: f64,
    pub(super) lengths_ns: Vec<f64>,
    pub(super) calls: u64,
    pub(super) opens: u64,
    pub(super) opens_avoided: u64,
    pub(super) rotations: u64,
    pub(super) failures: u64,
}

/// The guest's local APIC.
pub(super) struct Apic {
    pub(super) lvtpc: Lvtpc,
    pub(super) nmis: u64,
}

impl Apic {
    pub(super) const fn new() -> Apic {
        Apic { lvtpc: Lvtpc::new(), nmis: 0 }
    }
}

impl Interrupt for Apic {
    fn pmi(&mut self, mask: bool) -> Delivery {
        match self.lvtpc.take(mask) {
            Some(mode) => {
                self.nmis += u64::from(mode == DeliveryMode::Nmi);
                Delivery::Delivered
            }
            None => Delivery::Masked,
        }
    }
}

/// The guest's registers.
struct Registers {
    vpmu: Vpmu<HostPerf, Apic>,
}

impl PmuBus for Registers {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        let value = match msr {
            X2APIC_LVTPC => self.vpmu.interrupt().lvtpc.read().into(),
            _ => self.vpmu.rdmsr(msr.0).unwrap_or_default(),
        };
        self.vpmu.on_vcpu_enter();
        value
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        match msr {
            X2APIC_LVTPC => self.vpmu.interrupt_mut().lvtpc.write(value as u32),
            // The hypervisor's, which takes the 0 that the driver writes.
            IA32_DEBUGCTL => {}
            _ => {
                // A #GP is in the device's statistics, and in the row as a failure.
                let _ = self.vpmu.wrmsr(msr.0, value);
            }
        }
        self.vpmu.on_vcpu_enter();
    }
}

/// A guest whose driver runs on the virtual PMU under test.
pub(super) struct Guest {
    registers: Registers,
    driver: Driver,
    events: usize,
    handled: u64,
    started: Instant,
}

impl Guest {
    pub(super) fn new(way: Way, events: &Events) -> Result<Guest, Error> {
        let pmu = IntelPmu::default();
        let model = PmuModel::intel(pmu).map_err(super::no_events)?;
        let mut config = VpmuConfig::new(model);
        config.backing = way.backing();
        let host = super::host(events, way.options())?;
        let mut registers = Registers { vpmu: Vpmu::new(config, host, Apic::new()) };
        let mut driver = Driver::new(driver_model(&pmu));
        driver.init(&mut registers);
        Ok(Guest { registers, driver, events: events.len(), handled: 0, started: Instant::now() })
    }

    /// Samples all events in turn, as many at once as there are counters.
    pub(super) fn sample(
        &mut self,
        interrupts: u64,
        period: u64,
        signal: &OverflowSignal,
    ) -> Session {
        let counters = self.driver.model().general.len() as usize;
        self.run(interrupts, period, signal, counters)
    }

    /// Samples one event.
    pub(super) fn sample_one(
        &mut self,
        interrupts: u64,
        period: u64,
        signal: &OverflowSignal,
    ) -> Session {
        self.run(interrupts, period, signal, 1)
    }

    fn run(
        &mut self,
        interrupts: u64,
        period: u64,
        signal: &OverflowSignal,
        at_once: usize,
    ) -> Session {
        let mut next = 0;
        let start = Instant::now();
        self.driver.disable(&mut self.registers);
        self.start(&mut next, at_once, period);
        self.driver.enable(&mut self.registers);
        let mut session = self.session(start);
        let mut rotated = Instant::now();
        while (session.lengths_ns.len() as u64) < interrupts {
            if start.elapsed() > SESSION_MAX {
                session.failures += 1;
                break;
            }
            work(WORK);
            self.registers.vpmu.on_tick(self.started.elapsed().as_nanos() as u64);
            if signal.take().unwrap_or(false) {
                self.look(&mut session);
            }
            self.handle(&mut session, interrupts);
            if at_once < self.events && at_once > 1 && rotated.elapsed() >= ROTATION {
                self.rotate(&mut next, at_once, period);
                rotated = Instant::now();
                session.rotations += 1;
            }
        }
        self.finish(session)
    }

    /// The signal came: the VMM looks which counters overflowed.
    fn look(&mut self, session: &mut Session) {
        let Registers { vpmu } = &mut self.registers;
        let before = vpmu.source().calls().total();
        vpmu.poll_overflows();
        vpmu.on_vcpu_enter();
        // And the read that took the signal.
        session.calls += 1 + vpmu.source().calls().total() - before;
    }

    /// The guest handles the NMIs that have come, by the signal or with an access of its own.
    /// They may follow each other without an end where a handler takes longer than a period.
    fn handle(&mut self, session: &mut Session, interrupts: u64) {
        while self.registers.vpmu.interrupt().nmis > self.handled
            && (session.lengths_ns.len() as u64) < interrupts
        {
            self.handled += 1;
            let before = self.registers.vpmu.source().calls().total();
            let now_ns = self.started.elapsed().as_nanos() as u64;
            let start = Instant::now();
            self.driver
                .handle_pmi(&mut self.registers, now_ns, &mut |_: &Overflow<'_>| Verdict::Sampled);
            session.lengths_ns.push(start.elapsed().as_nanos() as f64);
            session.calls += self.registers.vpmu.source().calls().total() - before;
        }
    }

    fn start(&mut self, next: &mut usize, at_once: usize, period: u64) {
        for counter in 0..at_once {
            let select = Events::select(*next % self.events.max(1));
            let config = EventConfig { select, ..EventConfig::sampling(0, period) };
            let counter = CounterIndex::general(counter as u8);
            // A counter that is busy or a period that is none cannot be here.
            let _ = self.driver.start(&mut self.registers, counter, Event::new(config));
            *next += 1;
        }
    }

    fn rotate(&mut self, next: &mut usize, at_once: usize, period: u64) {
        self.driver.disable(&mut self.registers);
        for counter in 0..at_once {
            self.driver.stop(&mut self.registers, CounterIndex::general(counter as u8));
        }
        self.start(next, at_once, period);
        self.driver.enable(&mut self.registers);
    }

    /// Counts one event, which stops and starts with the guest's context switches.
    pub(super) fn count(&mut self, switches: u64) -> Session {
        let counter = CounterIndex::general(0);
        let config = EventConfig { select: Events::select(COUNTED), ..EventConfig::counting(0) };
        let start = Instant::now();
        let _ = self.driver.start(&mut self.registers, counter, Event::new(config));
        self.driver.enable(&mut self.registers);
        let mut session = self.session(start);
        for _ in 0..switches {
            work(SHORT_WORK);
            let before = self.registers.vpmu.source().calls().total();
            let start = Instant::now();
            self.driver.disable(&mut self.registers);
            let stopped = self.driver.stop(&mut self.registers, counter);
            let off = start.elapsed();
            work(SHORT_WORK);
            let start = Instant::now();
            if let Some(event) = stopped {
                let _ = self.driver.start(&mut self.registers, counter, event);
            }
            self.driver.enable(&mut self.registers);
            session.lengths_ns.push((off + start.elapsed()).as_nanos() as f64);
            session.calls += self.registers.vpmu.source().calls().total() - before;
            self.registers.vpmu.on_tick(self.started.elapsed().as_nanos() as u64);
        }
        self.finish(session)
    }

    fn session(&self, start: Instant) -> Session {
        let statistics = self.registers.vpmu.statistics();
        Session {
            start_ns: start.elapsed().as_nanos() as f64,
            lengths_ns: Vec::new(),
            calls: 0,
            opens: statistics.opens,
            opens_avoided: statistics.opens_avoided,
            rotations: 0,
            failures: 0,
        }
    }

    fn finish(&self, mut session: Session) -> Session {
        let statistics = self.registers.vpmu.statistics();
        session.opens = statistics.opens - session.opens;
        session.opens_avoided = statistics.opens_avoided - session.opens_avoided;
        session.failures +=
            statistics.open_failures + statistics.source_failures + statistics.faults;
        session
    }
}

/// The guest's PMU for its driver.
pub(super) fn driver_model(pmu: &IntelPmu) -> DriverModel {
    DriverModel {
        kind: PmuKind::Intel,
        version: pmu.version,
        general: CounterMask::first_general(pmu.general),
        general_width: pmu.width_bits,
        fixed: CounterMask::first_fixed(pmu.fixed),
        fixed_width: pmu.width_bits,
        full_width_writes: pmu.full_width_writes,
        pebs: false,
        ack: AckOrder::Mid,
        verify_after_late_ack: false,
        freeze: FreezeGate::VersionBelow4,
        lbr: None,
    }
}

/// The guest's other work.
fn work(rounds: u64) {
    let sum = (0..rounds).fold(1, |sum: u64, number| std::hint::black_box(sum ^ number));
    std::hint::black_box(sum);
}
