//! Counters backed by this machine's events: software events everywhere, hardware events where there are
//! any.
#![cfg(target_os = "linux")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use whit_vpmu::host::{EventMap, HostCalls, HostEvent, HostOptions, HostPerf, OverflowSignal};
use whit_vpmu::{
    Backing, Delivery, FaultReason, IntelPmu, Interrupt, OpenError, PmuModel, Vpmu, VpmuConfig,
};

const SELECT: u32 = 0x186;
const COUNTER: u32 = 0x4c1;
const GLOBAL_CONTROL: u32 = 0x38f;
/// The guest's event that the host's task clock stands for; user and kernel, interrupting, enabled.
const CLOCK: u64 = 0xc0;
const SAMPLED: u64 = CLOCK | 0x53_0000;
const MASK: u64 = (1 << 48) - 1;
/// Nanoseconds of CPU time.
const PERIOD: u64 = 500_000;

/// Descriptors are the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Nmis(u64);

impl Interrupt for Nmis {
    fn pmi(&mut self, _: bool) -> Delivery {
        self.0 += 1;
        Delivery::Delivered
    }
}

fn device(backing: Backing, options: HostOptions, map: EventMap) -> Vpmu<HostPerf, Nmis> {
    let model = PmuModel::intel(IntelPmu::default()).expect("a model");
    let mut config = VpmuConfig::new(model);
    config.backing = backing;
    let host = HostPerf::for_this_thread(map, options).expect("the anchor");
    Vpmu::new(config, host, Nmis::default())
}

fn software() -> EventMap {
    EventMap::Table(vec![
        (CLOCK, HostEvent::TASK_CLOCK),
        (0x3c, HostEvent::CPU_CLOCK),
        (0xc4, HostEvent::CONTEXT_SWITCHES),
    ])
}

fn options() -> HostOptions {
    let mut options = HostOptions::default();
    // Software events count the same in host and guest.
    options.guest_only = false;
    options
}

fn write(vpmu: &mut Vpmu<HostPerf, Nmis>, msr: u32, value: u64) {
    vpmu.wrmsr(msr, value).expect("no #GP");
    vpmu.on_vcpu_enter();
}

fn read(vpmu: &mut Vpmu<HostPerf, Nmis>, msr: u32) -> u64 {
    vpmu.rdmsr(msr).expect("no #GP")
}

fn burn() -> u64 {
    (0..20_000_u64).fold(1, |sum, number| std::hint::black_box(sum ^ number.wrapping_mul(sum)))
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

#[test]
fn counters_count_stop_and_continue() {
    let _alone = alone();
    let _signal = OverflowSignal::block().expect("block the signal");
    for linger in [true, false] {
        let mut options = options();
        options.linger = linger;
        let mut vpmu = device(Backing::Reuse, options, software());
        write(&mut vpmu, SELECT, CLOCK | 0x43_0000);
        let mut last = 0;
        for round in 1..=3_u64 {
            while read(&mut vpmu, COUNTER) < last + PERIOD {
                burn();
            }
            write(&mut vpmu, GLOBAL_CONTROL, 0);
            last = read(&mut vpmu, COUNTER);
            burn();
            if round == 2 {
                // A tick stops what lingers.
                vpmu.on_tick(0);
                vpmu.on_tick(1 << 40);
            }
            assert_eq!(read(&mut vpmu, COUNTER), last, "it stands still");
            write(&mut vpmu, GLOBAL_CONTROL, 0xf);
        }
        let statistics = vpmu.statistics();
        assert_eq!((statistics.opens, statistics.opens_avoided), (1, 3));
        assert_eq!((statistics.source_failures, vpmu.fault()), (0, None));
        let calls = *vpmu.source().calls();
        let disables = if linger { 1 } else { 3 };
        assert_eq!((calls.disable, calls.enable, calls.period), (disables, disables, 0));
    }
}

/// Runs until so many interrupts have been handled as a driver does it; calls of the host for them.
fn sample(vpmu: &mut Vpmu<HostPerf, Nmis>, signal: &OverflowSignal, interrupts: u64) -> HostCalls {
    write(vpmu, COUNTER, MASK + 1 - PERIOD);
    write(vpmu, SELECT, SAMPLED);
    let before = *vpmu.source().calls();
    let mut handled = 0;
    while handled < interrupts {
        burn();
        if !signal.take().expect("read the signal") {
            continue;
        }
        vpmu.poll_overflows();
        vpmu.on_vcpu_enter();
        if vpmu.interrupt().0 > handled {
            handled += 1;
            write(vpmu, GLOBAL_CONTROL, 0);
            assert_eq!(read(vpmu, 0x38e), 1);
            write(vpmu, 0x390, 1);
            assert!(read(vpmu, COUNTER) < MASK >> 1, "it has passed its last value");
            write(vpmu, COUNTER, MASK + 1 - PERIOD);
            write(vpmu, GLOBAL_CONTROL, 0xf);
        }
    }
    let after = *vpmu.source().calls();
    write(vpmu, SELECT, 0);
    let mut difference = HostCalls::default();
    difference.open = after.open - before.open;
    difference.read = after.read - before.read;
    difference.enable = after.enable - before.enable;
    difference.disable = after.disable - before.disable;
    difference.period = after.period - before.period;
    difference
}

#[test]
fn each_period_interrupts_with_few_calls() {
    const INTERRUPTS: u64 = 20;
    let _alone = alone();
    let signal = OverflowSignal::block().expect("block the signal");
    let mut vpmu = device(Backing::Reuse, options(), software());
    let calls = sample(&mut vpmu, &signal, INTERRUPTS);
    assert_eq!((calls.open, calls.enable, calls.disable), (0, 0, 0), "{calls:?}");
    assert!(calls.period <= INTERRUPTS + vpmu.statistics().early_notices, "{calls:?}");
    // One to see the overflow, one in the pause, one in the resume.
    assert!(calls.read <= 3 * INTERRUPTS + 2 * vpmu.statistics().early_notices, "{calls:?}");
    assert_eq!(vpmu.statistics().overflows, INTERRUPTS);
    drop(vpmu);
    let mut options = options();
    options.page = false;
    let mut vpmu = device(Backing::Recreate, options, software());
    let calls = sample(&mut vpmu, &signal, INTERRUPTS);
    assert_eq!(calls.open, INTERRUPTS, "one for each");
}

#[test]
fn descriptors_are_bounded_and_given_back() {
    let _alone = alone();
    let _signal = OverflowSignal::block().expect("block the signal");
    let before = open_files();
    let mut vpmu = device(Backing::Reuse, options(), software());
    assert!(vpmu.source().has_anchor());
    assert_eq!(open_files(), before + 1, "the anchor");
    for round in 0..50_u64 {
        for counter in 0..4 {
            let event = [CLOCK, 0x3c, 0xc4][(round % 3) as usize];
            write(&mut vpmu, SELECT + counter, event | 0x43_0000);
        }
        assert_eq!(open_files(), before + 5);
    }
    for counter in 0..4 {
        write(&mut vpmu, SELECT + counter, 0);
    }
    assert_eq!(vpmu.release_idle(), 4);
    assert_eq!(open_files(), before + 1);
    drop(vpmu);
    assert_eq!(open_files(), before);
}

#[test]
fn unserved_counters_stop_and_are_reported() {
    let _alone = alone();
    let _signal = OverflowSignal::block().expect("block the signal");
    let mut vpmu = device(Backing::Reuse, options(), software());
    write(&mut vpmu, SELECT, 0x53_02c0);
    let fault = vpmu.fault().expect("a fault");
    assert_eq!(fault.reason, FaultReason::Open(OpenError::Unsupported));
    assert_eq!(read(&mut vpmu, COUNTER), 0);
    assert_eq!(vpmu.statistics().open_failures, 1);
}

/// A guest that wants an interrupt for each event gets as many as the bound lets it have.
#[test]
fn short_periods_are_bounded() {
    let _alone = alone();
    let signal = OverflowSignal::block().expect("block the signal");
    let mut vpmu = device(Backing::Reuse, options(), software());
    let mut written = 0;
    write(&mut vpmu, SELECT, SAMPLED);
    while vpmu.statistics().overflows < 20 {
        write(&mut vpmu, COUNTER, MASK);
        written += 1;
        while !signal.take().expect("read the signal") {
            burn();
        }
        vpmu.poll_overflows();
        vpmu.on_vcpu_enter();
    }
    let total = read(&mut vpmu, COUNTER);
    assert!(total < MASK && written >= 20);
}

/// Features that only hardware shows: counts of the guest alone (none here: no guest runs), a page
/// that can be read, and a pinned event that finds no counter.
#[test]
fn hardware_events() {
    let _alone = alone();
    if let Err(whit_testing::Skip(reason)) = whit_testing::probe::hardware_events() {
        whit_testing::skip("whit-vpmu hardware_events", &reason);
        return;
    }
    let _signal = OverflowSignal::block().expect("block the signal");
    let mut vpmu = device(Backing::Reuse, HostOptions::default(), EventMap::Raw);
    write(&mut vpmu, SELECT, 0x43_00c0);
    assert!(vpmu.fault().is_none(), "{:?}", vpmu.fault());
    (0..100).for_each(|_| {
        burn();
    });
    assert_eq!(read(&mut vpmu, COUNTER), 0, "the host is not counted");
    write(&mut vpmu, SELECT, 0);
    vpmu.release_idle();
    // More pinned events than any machine has counters: some must fail, and say so.
    let mut options = HostOptions::default();
    options.guest_only = false;
    let mut devices: Vec<_> =
        (0..5).map(|_| device(Backing::Reuse, options, EventMap::Raw)).collect();
    for vpmu in &mut devices {
        (0..4).for_each(|counter| write(vpmu, SELECT + counter, 0x41_00c0));
    }
    (0..100).for_each(|_| {
        burn();
    });
    for vpmu in &mut devices {
        (0..4).for_each(|counter| {
            read(vpmu, COUNTER + counter);
        });
    }
    assert!(devices.iter().any(|vpmu| vpmu.statistics().source_failures > 0));
}

#[test]
fn the_permanent_event_is_there_where_it_is_wanted() {
    let _alone = alone();
    for anchor in [true, false] {
        let mut options = options();
        options.anchor = anchor;
        let host = HostPerf::for_this_thread(software(), options).expect("the anchor");
        assert_eq!(host.has_anchor(), anchor);
        assert_eq!(host.calls().open, u64::from(anchor));
    }
}
