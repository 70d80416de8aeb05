//! The accesses and their effects, register by register, in addition to the comparison with the
//! reference.

mod support;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use support::{device, models, read, run, write};
use whit_vpmu::{
    Arm, CounterSource, CpuidRegisters, EventConfig, Gp, IntelPmu, ModelError, OpenError, PmuModel,
    Reading, Simulated, SourceError, Vpmu, VpmuConfig,
};

const INSTRUCTIONS: u64 = 0x53_00c0;
const CODE: u64 = 0xc0;

#[test]
fn intel_refuses_reserved_bits_and_read_only_registers() {
    let mut guest = device(models()[1]);
    let refused = [
        (0x186, 1 << 21),
        (0x186, 1 << 32),
        (0x4c1, 1 << 48),
        (0x38d, 4),
        (0x38d, 1 << 12),
        (0x38e, 0),
        (0x38f, 1 << 4),
        (0x38f, 1 << 35),
        (0x390, 1 << 57),
        (0x391, 1 << 63),
        (0x392, 0),
        (0x345, 0),
        (0x18a, 0),
        (0xc5, 0),
        (0x4c5, 0),
        (0x30c, 0),
        (0x3f1, 0),
        (0x1d9, 0),
        (0xc001_0000, 0),
    ];
    for (msr, value) in refused {
        assert_eq!(guest.wrmsr(msr, value), Err(Gp), "{msr:#x} {value:#x}");
    }
    assert_eq!(guest.statistics().faults, refused.len() as u64);
    // Pin control is taken and means nothing; a legacy write has 32 bits; a fixed counter drops the rest.
    write(&mut guest, 0x186, INSTRUCTIONS | 1 << 19);
    write(&mut guest, 0xc1, 0x1_ffff_fff0);
    assert_eq!(read(&mut guest, 0x4c1), 0xffff_ffff_fff0);
    write(&mut guest, 0x309, u64::MAX);
    assert_eq!(read(&mut guest, 0x309), (1 << 48) - 1);
}

#[test]
fn amd_drops_writes_that_intel_refuses() {
    let mut guest = device(models()[6]);
    write(&mut guest, 0xc001_0200, u64::MAX);
    assert_eq!(read(&mut guest, 0xc001_0000), 0xf_ffd7_ffff, "the first four have two addresses");
    write(&mut guest, 0xc001_0007, u64::MAX);
    assert_eq!(read(&mut guest, 0xc001_0207), (1 << 48) - 1);
    write(&mut guest, 0xc000_0300, 3);
    assert_eq!(read(&mut guest, 0xc000_0300), 0, "read-only");
    write(&mut guest, 0xc000_0301, u64::MAX);
    assert_eq!(read(&mut guest, 0xc000_0301), 0x3f);
    write(&mut guest, 0xc000_0303, u64::MAX);
    assert_eq!(read(&mut guest, 0xc000_0300), 0x3f);
    write(&mut guest, 0xc000_0302, 0xf);
    assert_eq!((read(&mut guest, 0xc000_0300), read(&mut guest, 0xc000_0302)), (0x30, 0));
    for msr in [0xc001_020c, 0xc000_0304, 0xc001_0008, 0xc1, 0x38f] {
        assert_eq!((guest.rdmsr(msr), guest.wrmsr(msr, 0)), (Err(Gp), Err(Gp)), "{msr:#x}");
    }
    let mut old = device(PmuModel::amd_k7());
    assert_eq!((old.rdmsr(0xc001_0200), old.rdmsr(0xc000_0300)), (Err(Gp), Err(Gp)));
}

#[test]
fn general_counters_are_globally_enabled_at_power_on() {
    let mut guest = device(models()[1]);
    assert_eq!(read(&mut guest, 0x38f), 0xf);
    write(&mut guest, 0x38f, 0);
    guest.reset();
    assert_eq!(read(&mut guest, 0x38f), 0xf);
    assert_eq!(read(&mut device(models()[6]), 0xc000_0301), 0x3f);
}

#[test]
fn delivery_masks_lvtpc_on_intel_alone() {
    for (model, select, counter, nmis) in
        [(models()[1], 0x186, 0x4c1, 1), (models()[6], 0xc001_0200, 0xc001_0201, 3)]
    {
        let mut guest = device(model);
        write(&mut guest, select, INSTRUCTIONS);
        for _ in 0..3 {
            write(&mut guest, counter, (1 << 48) - 5);
            run(&mut guest, CODE, false, 5);
        }
        assert_eq!(guest.interrupt().nmis, nmis);
        assert_eq!(guest.statistics().pmis_masked, 3 - nmis, "dropped, as in KVM");
    }
}

#[test]
fn at_most_one_interrupt_comes_at_each_entry() {
    let mut guest = device(models()[6]);
    for counter in 0..3 {
        write(&mut guest, 0xc001_0201 + 2 * counter, (1 << 48) - 5);
        write(&mut guest, 0xc001_0200 + 2 * counter, INSTRUCTIONS);
    }
    run(&mut guest, CODE, true, 5);
    assert_eq!((read(&mut guest, 0xc000_0300), guest.interrupt().nmis), (0b111, 1));
    assert_eq!(guest.statistics().pmis_merged, 2);
}

/// An overflow while a counter could interrupt does interrupt, though its notice comes after the
/// interrupt was switched off; and the other way round.
#[test]
fn an_overflow_is_judged_by_the_settings_that_it_came_under() {
    for (first, then, nmis) in
        [(INSTRUCTIONS, 0x43_00c0, 1), (0x43_00c0, INSTRUCTIONS, 0), (INSTRUCTIONS, 0x53_003c, 1)]
    {
        let mut guest = device(models()[6]);
        write(&mut guest, 0xc001_0201, (1 << 48) - 5);
        write(&mut guest, 0xc001_0200, first);
        assert_eq!(guest.source_mut().occur(CODE, true, 5), 0);
        write(&mut guest, 0xc001_0200, then);
        assert_eq!((guest.interrupt().nmis, read(&mut guest, 0xc000_0300)), (nmis, 1));
    }
}

/// The host begins a period again by itself, and the guest's counter has its whole width before it: one
/// notice too early, and no more.
#[test]
fn a_counter_that_continues_after_its_overflow_gives_one_early_notice() {
    let mut guest = device(models()[1]);
    write(&mut guest, 0x4c1, (1 << 48) - 100);
    write(&mut guest, 0x186, INSTRUCTIONS);
    run(&mut guest, CODE, true, 10_000);
    let statistics = guest.statistics();
    assert_eq!((statistics.overflows, statistics.early_notices), (1, 1));
    assert_eq!((guest.interrupt().nmis, read(&mut guest, 0xc1)), (1, 9_900));
}

#[test]
fn frozen_counters_stop_from_version_4_on() {
    let mut guest = device(models()[1]);
    write(&mut guest, 0x186, INSTRUCTIONS);
    run(&mut guest, CODE, true, 5);
    write(&mut guest, 0x391, 1 << 59);
    run(&mut guest, CODE, true, 5);
    assert_eq!(read(&mut guest, 0xc1), 5);
    write(&mut guest, 0x390, 1 << 59);
    run(&mut guest, CODE, true, 5);
    assert_eq!(read(&mut guest, 0xc1), 10);
    let mut old = device(models()[0]);
    assert_eq!((old.wrmsr(0x391, 0), old.wrmsr(0x390, 1 << 59)), (Err(Gp), Err(Gp)));
}

/// The instruction that starts a counter is the first in its count, and the one that stops it is not in it.
#[test]
fn instructions_that_the_vmm_answers_are_counted() {
    let mut guest = device(models()[1]);
    let exit = |guest: &mut support::Device, msr, value| {
        guest.wrmsr(msr, value).expect("a register");
        guest.count_emulated(CODE, true);
        guest.on_vcpu_enter();
    };
    exit(&mut guest, 0x38f, 0);
    exit(&mut guest, 0x186, INSTRUCTIONS);
    exit(&mut guest, 0x187, 0x51_00c0);
    exit(&mut guest, 0x188, 0x53_003c);
    exit(&mut guest, 0x38d, 0xb);
    exit(&mut guest, 0x4c1, (1 << 48) - 8);
    exit(&mut guest, 0x38f, 0x1_0000_0007);
    run(&mut guest, CODE, true, 5);
    guest.count_emulated(CODE, true);
    guest.on_vcpu_enter();
    assert_eq!((guest.interrupt().nmis, guest.source_mut().occur(CODE, true, 1)), (0, 0));
    let notice = guest.source_mut().take_notice().expect("at the eighth instruction");
    guest.on_overflow(notice);
    exit(&mut guest, 0x38f, 0);
    assert_eq!((read(&mut guest, 0x38e), guest.interrupt().nmis), (1, 1));
    // The second counter counts in user mode, the third cycles.
    let counts = [0xc1, 0xc2, 0xc3, 0x309].map(|msr| read(&mut guest, msr));
    assert_eq!(counts, [0, 0, 0, 8]);
    // One alone makes an overflow.
    exit(&mut guest, 0x38f, 1);
    exit(&mut guest, 0x4c1, (1 << 48) - 1);
    assert_eq!((read(&mut guest, 0x38e), read(&mut guest, 0xc1)), (1, 0));
    // A counter that the host refuses stands still.
    guest.source_mut().refuse(Some(OpenError::Unsupported));
    exit(&mut guest, 0x189, 0x52_00c0);
    exit(&mut guest, 0x38f, 8);
    exit(&mut guest, 0x390, 1);
    assert_eq!(read(&mut guest, 0xc4), 1, "the one before the refusal was known");
}

/// A signal without a token comes of an event that a pause left running: it is stopped, and no other notice comes.
#[test]
fn a_paused_event_gives_one_notice() {
    let mut guest =
        Vpmu::new(VpmuConfig::new(models()[1]), Simulated::lingering(), support::Line::nmi());
    for select in [0x186, 0x187, 0x188] {
        write(&mut guest, select, INSTRUCTIONS);
    }
    assert_eq!((guest.poll_overflows(), guest.statistics().early_notices), (0, 0));
    for (select, notices) in [(0x187, 1), (0x186, 2)] {
        write(&mut guest, select, 0);
        for _ in 0..2 {
            assert_eq!((guest.poll_overflows(), guest.statistics().early_notices), (0, notices));
        }
    }
}

#[test]
fn the_work_that_reuse_avoids_is_counted() {
    let mut guest = device(models()[1]);
    write(&mut guest, 0x186, INSTRUCTIONS);
    // Another value, and no interrupt: the host's event goes on.
    write(&mut guest, 0x4c1, 5);
    write(&mut guest, 0x186, 0x43_00c0);
    write(&mut guest, 0x186, 0);
    write(&mut guest, 0x186, INSTRUCTIONS);
    // Cycles: another event.
    write(&mut guest, 0x186, 0x53_003c);
    read(&mut guest, 0x186);
    let statistics = guest.statistics();
    assert_eq!((statistics.kept, statistics.opens_avoided), (2, 1));
    assert_eq!((statistics.opens, statistics.closes, statistics.faults), (2, 1, 0));
    assert_eq!((statistics.wrmsr, statistics.rdmsr), (6, 1));
}

#[test]
fn registers_in_use_are_those_with_an_event_and_one_bit_for_all_interrupts() {
    let mut guest = device(models()[1]);
    assert_eq!(read(&mut guest, 0x392), 0);
    let mut seen = Vec::new();
    for (register, value) in [(0x186, 0x43_00c0), (0x188, INSTRUCTIONS), (0x189, INSTRUCTIONS)] {
        write(&mut guest, register, value);
        seen.push(read(&mut guest, 0x392));
    }
    // Control of the second fixed counter: user mode, interrupting.
    write(&mut guest, 0x38d, 0xa0);
    seen.push(read(&mut guest, 0x392));
    let pmi = 1 << 63;
    assert_eq!(seen, [1, pmi | 0b101, pmi | 0b1101, pmi | 1 << 33 | 0b1101]);
}

#[test]
fn idle_events_are_released_after_a_tick_and_running_ones_never() {
    let mut guest = device(models()[1]);
    write(&mut guest, 0x186, INSTRUCTIONS);
    write(&mut guest, 0x187, INSTRUCTIONS);
    write(&mut guest, 0x188, INSTRUCTIONS);
    write(&mut guest, 0x187, 0);
    // The third is enabled, and stopped by global control alone.
    write(&mut guest, 0x38f, 0b1011);
    let tick = |guest: &mut support::Device, ms: u64| {
        guest.on_tick(ms * 1_000_000);
        guest.on_vcpu_enter();
        guest.source().open_events()
    };
    assert_eq!([tick(&mut guest, 0), tick(&mut guest, 49)], [3, 3]);
    assert_eq!(tick(&mut guest, 50), 3, "the guest was there since the last tick");
    read(&mut guest, 0x187);
    assert_eq!(tick(&mut guest, 100), 3, "a read counts, too");
    assert_eq!(tick(&mut guest, 150), 2);
    assert_eq!(tick(&mut guest, 1000), 2);
    assert_eq!(guest.statistics().lazy_releases, 1);
}

#[test]
fn a_guest_is_frozen_and_thawed_in_the_middle_of_a_period() {
    let model = models()[1];
    let mut before = device(model);
    write(&mut before, 0x4c1, (1 << 48) - 100);
    write(&mut before, 0x186, INSTRUCTIONS);
    write(&mut before, 0x38d, 0xb);
    write(&mut before, 0x38f, 0x1_0000_0001);
    run(&mut before, CODE, true, 60);
    let text = serde_json::to_string(&before.state()).expect("a string");
    drop(before);
    let state = serde_json::from_str(&text).expect("the state again");
    let line = support::Line::nmi();
    let mut after =
        Vpmu::from_state(VpmuConfig::new(model), Simulated::new(), line, &state).expect("restored");
    after.on_vcpu_enter();
    run(&mut after, CODE, true, 39);
    assert_eq!(after.interrupt().nmis, 0);
    run(&mut after, CODE, true, 1);
    assert_eq!((after.interrupt().nmis, read(&mut after, 0x38e)), (1, 1));
    assert_eq!((read(&mut after, 0xc1), read(&mut after, 0x309)), (0, 100));
}

#[test]
fn cpuid_reports_the_model() {
    let driver = |model: PmuModel, vendor: [u32; 3]| {
        let guest = device(model);
        let none = CpuidRegisters::default();
        let leaf = |function: u32| {
            let leaves = guest.cpuid_leaves();
            let leaf = leaves.iter().find(|leaf| leaf.function == function);
            let registers = leaf.map_or(none, |leaf| leaf.applied_to(none));
            let CpuidRegisters { eax, ebx, ecx, edx } = registers;
            whit_pmu::cpuid::Leaf { eax, ebx, ecx, edx }
        };
        let leaves = whit_pmu::cpuid::CpuidLeaves {
            vendor: whit_pmu::cpuid::Leaf {
                eax: 0xa,
                ebx: vendor[0],
                edx: vendor[1],
                ecx: vendor[2],
            },
            signature: leaf(1),
            perfmon: leaf(0xa),
            amd_features: leaf(0x8000_0001),
            amd_perfmon: leaf(0x8000_0022),
            perf_capabilities: if model.full_width_writes() { 1 << 13 } else { 0 },
            ..Default::default()
        };
        whit_pmu::model::PmuModel::from_cpuid(&leaves).expect("a model that can be driven")
    };
    let intel = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
    let amd = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
    for model in models() {
        let vendor = if model.msrs()[0].first == 0xc1 { intel } else { amd };
        let seen = driver(model, vendor);
        assert_eq!(seen.general.len(), u32::from(model.general()), "{model:?}");
        assert_eq!(seen.fixed.len(), u32::from(model.fixed()), "{model:?}");
        assert_eq!(seen.general_width, model.width_bits());
        assert_eq!(seen.full_width_writes, model.full_width_writes());
    }
}

#[test]
fn models_that_there_are_not_are_refused() {
    let refused = |pmu| PmuModel::intel(pmu).unwrap_err();
    let pmu = IntelPmu::default();
    assert_eq!(refused(IntelPmu { version: 1, ..pmu }), ModelError::Version(1));
    assert_eq!(refused(IntelPmu { version: 6, ..pmu }), ModelError::Version(6));
    assert_eq!(refused(IntelPmu { general: 0, ..pmu }), ModelError::General(0));
    assert_eq!(refused(IntelPmu { fixed: 5, ..pmu }), ModelError::Fixed(5));
    assert_eq!(refused(IntelPmu { width_bits: 64, ..pmu }), ModelError::Width(64));
    assert_eq!(PmuModel::amd_v2(3).unwrap_err(), ModelError::General(3));
}

/// Notes the arms of events, and counts those that are open.
#[derive(Default)]
struct Noting {
    inner: Simulated,
    arms: Rc<RefCell<Vec<Arm>>>,
    open: Rc<Cell<usize>>,
}

impl CounterSource for Noting {
    type Event = <Simulated as CounterSource>::Event;

    fn open(&mut self, config: &EventConfig, arm: Arm) -> Result<Self::Event, OpenError> {
        self.arms.borrow_mut().push(arm);
        let event = self.inner.open(config, arm)?;
        self.open.set(self.open.get() + 1);
        Ok(event)
    }

    fn read(&mut self, event: &mut Self::Event) -> Result<Reading, SourceError> {
        self.inner.read(event)
    }

    fn pause(&mut self, event: &mut Self::Event) -> Result<Reading, SourceError> {
        self.inner.pause(event)
    }

    fn resume(&mut self, event: &mut Self::Event, arm: Arm) -> Result<(), SourceError> {
        self.inner.resume(event, arm)
    }

    fn rearm(&mut self, event: &mut Self::Event, arm: Arm) -> Result<(), SourceError> {
        self.inner.rearm(event, arm)
    }

    fn close(&mut self, event: Self::Event) {
        self.inner.close(event);
        self.open.set(self.open.get() - 1);
    }
}

#[test]
fn a_source_gets_the_distance_to_the_overflow_and_its_events_back() {
    let source = Noting::default();
    let (arms, open) = (Rc::clone(&source.arms), Rc::clone(&source.open));
    let mut guest = Vpmu::new(VpmuConfig::new(models()[1]), source, support::Line::default());
    guest.wrmsr(0x4c2, (1 << 48) - 7).unwrap();
    for msr in [0x186, 0x187] {
        guest.wrmsr(msr, INSTRUCTIONS).unwrap();
    }
    guest.wrmsr(0x38f, 0b11).unwrap();
    guest.on_vcpu_enter();
    let lefts: Vec<u64> = arms.borrow().iter().map(|arm| arm.left).collect();
    assert_eq!(lefts, [1 << 48, 7], "a counter at zero overflows after its whole range");
    assert_eq!(open.get(), 2);
    drop(guest);
    assert_eq!(open.get(), 0, "a device that ends closes its events");
}
