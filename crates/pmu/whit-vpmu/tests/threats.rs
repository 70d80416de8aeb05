//! One test for each row of the table of threats in the crate's documentation.

mod support;

use support::guest::{Pair, Setting, Step, register, value};
use support::{Line, device, models, read, run, write};
use whit_vpmu::{
    Backing, EventFilter, FaultReason, FilterAction, FilterEntry, OpenError, PmuModel, Simulated,
    SourceError, StateError, Vpmu, VpmuConfig,
};

/// Instructions, in both privileges, interrupting, enabled.
const INSTRUCTIONS: u64 = 0x53_00c0;
const CODE: u64 = 0xc0;
/// IA32_PERFEVTSEL0 and IA32_A_PMC0.
const SELECT: u32 = 0x186;
const COUNTER: u32 = 0x4c1;

fn skylake() -> PmuModel {
    models()[1]
}

/// A reproducible row of numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn any_access_is_answered() {
    for model in models() {
        let mut numbers = Numbers(0x1234_5678_9abc_def1);
        let mut guest = device(model);
        for _ in 0..20_000 {
            let msr = register(&model, numbers.next() as u32);
            let number = numbers.next();
            let number = if number.is_multiple_of(3) { number } else { value(&model, number) };
            let _ = guest.wrmsr(msr, number);
            let _ = guest.rdmsr(msr);
            guest.on_vcpu_enter();
        }
        for msr in 0..0x1000_u32 {
            let _ = guest.rdmsr(msr);
            let _ = guest.wrmsr(msr, u64::MAX);
        }
        let statistics = guest.statistics();
        assert!(statistics.faults > 0 && statistics.faults < statistics.rdmsr + statistics.wrmsr);
    }
}

#[test]
fn memory_does_not_grow() {
    let mut guest = device(skylake());
    let size = |guest: &support::Device| format!("{guest:?}").len();
    let mut sizes = Vec::new();
    for round in 0..200_u64 {
        for umask in 0..64 {
            write(&mut guest, SELECT, INSTRUCTIONS | (umask << 8) | (round % 2) << 18);
        }
        sizes.push(size(&guest));
    }
    // Only numbers in the statistics get longer.
    let growth = sizes.last().unwrap_or(&0) - sizes[10];
    assert!(growth < 64, "{growth} characters more");
}

#[test]
fn events_are_bounded_by_counters() {
    for model in models() {
        let setting =
            Setting { model, backing: Backing::Reuse, lingers: true, pmis_per_tick_max: 5000 };
        let mut pair = Pair::new(setting);
        let mut numbers = Numbers(77);
        for _ in 0..5000 {
            let msr = register(&model, numbers.next() as u32);
            pair.step(&Step::Write(msr, value(&model, numbers.next())));
        }
        let slots = usize::from(model.general() + model.fixed());
        assert!((1..=slots).contains(&pair.device.source().most_open_events()));
    }
}

#[test]
fn nothing_leaks() {
    let mut guest = device(skylake());
    for counter in 0..4 {
        write(&mut guest, SELECT + counter, INSTRUCTIONS);
    }
    assert_eq!(guest.source().open_events(), 4);
    write(&mut guest, SELECT, 0);
    assert_eq!(guest.open_events(), 4, "kept for the next time");
    assert_eq!(guest.release_idle(), 1);
    guest.reset();
    assert_eq!((guest.source().open_events(), guest.open_events()), (0, 0));
    assert_eq!(guest.statistics().opens, guest.statistics().closes);

    struct Counted(std::rc::Rc<std::cell::Cell<i32>>);
    struct Open(std::rc::Rc<std::cell::Cell<i32>>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    impl whit_vpmu::CounterSource for Counted {
        type Event = Open;
        fn open(
            &mut self,
            _: &whit_vpmu::EventConfig,
            _: whit_vpmu::Arm,
        ) -> Result<Open, OpenError> {
            self.0.set(self.0.get() + 1);
            Ok(Open(self.0.clone()))
        }
        fn read(&mut self, _: &mut Open) -> Result<whit_vpmu::Reading, SourceError> {
            Ok(whit_vpmu::Reading::default())
        }
        fn pause(&mut self, _: &mut Open) -> Result<whit_vpmu::Reading, SourceError> {
            Ok(whit_vpmu::Reading::default())
        }
        fn resume(&mut self, _: &mut Open, _: whit_vpmu::Arm) -> Result<(), SourceError> {
            Err(SourceError::Host(22))
        }
        fn rearm(&mut self, _: &mut Open, _: whit_vpmu::Arm) -> Result<(), SourceError> {
            Ok(())
        }
        fn close(&mut self, _: Open) {}
    }
    let open = std::rc::Rc::new(std::cell::Cell::new(0));
    let config = VpmuConfig::new(skylake());
    let mut guest = Vpmu::new(config, Counted(open.clone()), Line::nmi());
    for value in [INSTRUCTIONS, 0, INSTRUCTIONS, INSTRUCTIONS | 0x100] {
        assert!(guest.wrmsr(SELECT, value).is_ok());
        guest.on_vcpu_enter();
        assert_eq!(open.get(), 1, "a refused event is closed before another is opened");
    }
    drop(guest);
    assert_eq!(open.get(), 0);
}

#[test]
fn short_of_descriptors() {
    let mut guest = device(skylake());
    guest.source_mut().set_open_max(2);
    for counter in 0..2 {
        write(&mut guest, SELECT + counter, INSTRUCTIONS);
    }
    write(&mut guest, SELECT, 0);
    write(&mut guest, SELECT + 2, INSTRUCTIONS);
    assert_eq!(guest.fault(), None, "the idle one gave way");
    write(&mut guest, SELECT + 3, INSTRUCTIONS);
    let fault = guest.fault().expect("a fault");
    assert_eq!(fault.reason, FaultReason::Open(OpenError::TooManyOpen));
    assert!(fault.to_string().contains("pmc3") && fault.to_string().contains("ulimit -n"));
    assert_eq!(guest.statistics().open_failures, 1);
    run(&mut guest, CODE, true, 10);
    assert_eq!((read(&mut guest, 0xc4), read(&mut guest, 0xc3)), (0, 10));
    // The next tick tries again.
    write(&mut guest, SELECT + 1, 0);
    guest.on_tick(0);
    guest.on_tick(50_000_000);
    guest.on_tick(100_000_000);
    guest.on_vcpu_enter();
    run(&mut guest, CODE, true, 10);
    assert_eq!(read(&mut guest, 0xc4), 10);
}

#[test]
fn events_that_are_not_allowed_do_not_count() {
    let allowed = vec![FilterEntry::exact(0xc0, 0)];
    let mut config = VpmuConfig::new(skylake());
    config.filter = Some(EventFilter::new(FilterAction::Allow, allowed, 0b10).expect("short"));
    let mut guest = Vpmu::new(config, Simulated::new(), Line::nmi());
    write(&mut guest, SELECT, INSTRUCTIONS);
    write(&mut guest, SELECT + 1, 0x53_003c);
    write(&mut guest, SELECT + 2, INSTRUCTIONS | 0x100);
    write(&mut guest, 0x38d, 0x33);
    write(&mut guest, 0x38f, 0x3_0000_000f);
    for code in [0xc0, 0x1c0, 0x3c] {
        run(&mut guest, code, true, 5);
    }
    let counts = [0xc1, 0xc2, 0xc3, 0x309, 0x30a].map(|msr| read(&mut guest, msr));
    assert_eq!(counts, [5, 0, 0, 0, 5]);
    assert_eq!(read(&mut guest, SELECT + 1), 0x53_003c, "the guest sees what it wrote");
    assert_eq!(guest.source().open_events(), 2);
}

/// The attribute that the host's kernel gets.
#[test]
fn host_events_are_the_guests_alone() {
    use whit_vpmu::host::{HostEvent, HostOptions, attribute};
    let event = HostEvent::raw(CODE);
    let config = whit_vpmu::EventConfig {
        counter: whit_vpmu::CounterIndex::General(0),
        select: CODE,
        user: true,
        kernel: false,
    };
    let attr = attribute(event, &config, 1000, &HostOptions::default());
    let flags = u64::from_ne_bytes(attr[40..48].try_into().expect("8 bytes"));
    let has = |bit: u32| flags & (1 << bit) != 0;
    assert!(has(19), "exclude_host");
    assert!(!has(20), "exclude_guest");
    assert!(has(5) && !has(4), "user mode alone");
    assert!(has(2) && !has(1), "pinned, not inherited");
}

#[test]
fn storms_are_bounded_and_reported() {
    let mut config = VpmuConfig::new(skylake());
    config.pmis_per_tick_max = 10;
    let mut guest = Vpmu::new(config, Simulated::new(), Line::nmi());
    guest.on_tick(0);
    write(&mut guest, SELECT, INSTRUCTIONS);
    for _ in 0..100 {
        write(&mut guest, COUNTER, (1 << 48) - 1);
        run(&mut guest, CODE, true, 1);
        guest.interrupt_mut().lvtpc.write(0x400);
    }
    assert_eq!((guest.interrupt().nmis, guest.statistics().storms), (10, 1));
    assert!(guest.pmi_due(), "it waits");
    assert_eq!(guest.statistics().overflows, 100, "none is lost");
    guest.on_tick(50_000_000);
    guest.on_vcpu_enter();
    assert_eq!(guest.interrupt().nmis, 11);
}

#[test]
fn old_notices_are_dropped() {
    let mut guest = device(skylake());
    write(&mut guest, COUNTER, (1 << 48) - 10);
    write(&mut guest, SELECT, INSTRUCTIONS);
    assert_eq!(guest.source_mut().occur(CODE, true, 10), 0);
    let token = guest.source_mut().take_notice().expect("a notice");
    // The guest is quicker than the notice: it stops the counter, which has overflowed.
    write(&mut guest, 0x38f, 0);
    assert_eq!((read(&mut guest, 0x38e), guest.interrupt().nmis), (1, 1));
    write(&mut guest, 0x390, 1);
    write(&mut guest, 0x38f, 0xf);
    guest.on_overflow(token);
    guest.on_overflow(whit_vpmu::Token::from_bits(u64::MAX));
    guest.on_vcpu_enter();
    assert_eq!((read(&mut guest, 0x38e), guest.interrupt().nmis), (0, 1));
    assert_eq!(guest.statistics().stale_notices, 2);
}

#[test]
fn a_write_opens_nothing_before_the_guest_runs() {
    let mut guest = device(skylake());
    for _ in 0..100 {
        assert!(guest.wrmsr(SELECT, INSTRUCTIONS).is_ok());
        assert!(guest.wrmsr(SELECT, 0).is_ok());
    }
    assert_eq!(guest.source().calls(), 0);
    guest.on_vcpu_enter();
    assert_eq!(guest.source().calls(), 0, "and nothing is opened that would be closed at once");
}

#[test]
fn taken_counters_are_reported() {
    let mut guest = device(skylake());
    write(&mut guest, SELECT, INSTRUCTIONS);
    run(&mut guest, CODE, true, 7);
    assert_eq!(read(&mut guest, COUNTER), 7);
    guest.source_mut().take_counters_away();
    run(&mut guest, CODE, true, 7);
    assert_eq!(read(&mut guest, COUNTER), 7);
    let fault = guest.fault().expect("a fault");
    assert_eq!(fault.reason, FaultReason::Source(SourceError::Unschedulable));
    assert!(fault.to_string().contains("stands still"));
    assert_eq!(guest.statistics().source_failures, 1);
    // It counts again when the counters are free.
    guest.on_tick(0);
    guest.on_tick(50_000_000);
    guest.on_vcpu_enter();
    run(&mut guest, CODE, true, 7);
    assert_eq!(read(&mut guest, COUNTER), 14);
    // A host that refuses says why.
    guest.source_mut().refuse(Some(OpenError::MediatedHost));
    write(&mut guest, SELECT + 1, INSTRUCTIONS);
    assert!(guest.fault().expect("a fault").to_string().contains("mediated vPMU"));
}

#[test]
fn wrong_states_are_refused() {
    let mut guest = device(skylake());
    write(&mut guest, SELECT, INSTRUCTIONS);
    let state = guest.state();
    let refused = |change: &dyn Fn(&mut whit_vpmu::VpmuState)| {
        let mut state = state.clone();
        change(&mut state);
        let config = VpmuConfig::new(skylake());
        Vpmu::from_state(config, Simulated::new(), Line::nmi(), &state).err()
    };
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|state| state.model = models()[2]), Some(StateError::OtherModel));
    assert_eq!(refused(&|state| state.counters.truncate(3)), Some(StateError::Length));
    assert_eq!(refused(&|state| state.selects.push(0)), Some(StateError::Length));
    let reserved = Some(StateError::ReservedBits);
    assert_eq!(refused(&|state| state.counters[0] = 1 << 48), reserved);
    assert_eq!(refused(&|state| state.selects[0] = 1 << 21), reserved);
    assert_eq!(refused(&|state| state.fixed_control = 4), reserved);
    assert_eq!(refused(&|state| state.global_control = 1 << 63), reserved);
    assert_eq!(refused(&|state| state.global_status = 1 << 50), reserved);
    let text = serde_json::to_string(&state).expect("a string");
    let broken = text.replace("\"width_bits\":48", "\"width_bits\":99");
    let broken = serde_json::from_str(&broken).expect("a state of a PMU that there is not");
    let config = VpmuConfig::new(skylake());
    let result = Vpmu::from_state(config, Simulated::new(), Line::nmi(), &broken);
    assert_eq!(result.err(), Some(StateError::NoSuchModel));
}
