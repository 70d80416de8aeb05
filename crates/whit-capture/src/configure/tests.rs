//! The expected values are those of `perf record -vv` 6.1 for the same options, less the
//! differences that the module's documentation names.

use super::*;
use crate::options::{ExtraFields, Output};
use whit_perfdata::attr::pmu_type;
use whit_types::{CpuId, Pid, Tid};

const TRACKING: AttrFlags = AttrFlags(
    AttrFlags::MMAP.0
        | AttrFlags::MMAP2.0
        | AttrFlags::COMM.0
        | AttrFlags::COMM_EXEC.0
        | AttrFlags::TASK.0
        | AttrFlags::KSYMBOL.0
        | AttrFlags::BPF_EVENT.0,
);

fn event(config: u64) -> EventSpec {
    EventSpec::new("event", pmu_type::SOFTWARE, config)
}

fn options(events: Vec<EventSpec>) -> RecordOptions {
    RecordOptions::for_command(events, vec!["true".into()], Output::Stdout)
}

fn attrs(options: &RecordOptions) -> Vec<Attr> {
    configured(options).into_iter().map(|event| event.attr).collect()
}

fn configured(options: &RecordOptions) -> Vec<ConfiguredEvent> {
    let rate = options.rate.unwrap_or(Rate::FrequencyHz(4000));
    let events = configure(
        options,
        &options.events,
        options.inherit,
        (rate, options.rate.is_some()),
        &KernelFeatures::ALL,
        Some(Arch::X86_64),
        &mut |_| (),
    );
    events.unwrap()
}

#[test]
fn one_event_of_a_command() {
    let attr = &attrs(&options(vec![event(0)]))[0];
    let wanted = AttrFlags::DISABLED
        | AttrFlags::INHERIT
        | AttrFlags::FREQ
        | AttrFlags::ENABLE_ON_EXEC
        | AttrFlags::SAMPLE_ID_ALL
        | AttrFlags::EXCLUDE_GUEST
        | TRACKING;
    assert_eq!(attr.flags, wanted);
    let fields = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD;
    assert_eq!(attr.sample_type, fields);
    assert_eq!(attr.read_format, ReadFormat::ID | ReadFormat::LOST);
    assert_eq!(attr.sample_period_or_freq, 4000);
}

#[test]
fn two_events_carry_ids_and_only_the_first_tracks() {
    let all = attrs(&options(vec![event(0), event(2)]));
    assert!(all.iter().all(|a| a.sample_type.contains(SampleType::ID)));
    assert!(all.iter().all(|a| !a.sample_type.contains(SampleType::IDENTIFIER)));
    assert!(all[0].has(AttrFlags::MMAP) && !all[1].has(AttrFlags::MMAP));
    assert!(all[1].has(AttrFlags::ENABLE_ON_EXEC | AttrFlags::DISABLED));
}

#[test]
fn members_of_a_group_follow_their_leader() {
    let member = |config| EventSpec { leader: Some(0), ..event(config) };
    let all = attrs(&options(vec![member(0), member(2)]));
    assert!(all[0].has(AttrFlags::ENABLE_ON_EXEC | AttrFlags::DISABLED | AttrFlags::FREQ));
    assert!(!all[1].has(AttrFlags::ENABLE_ON_EXEC) && !all[1].has(AttrFlags::DISABLED));
    assert_eq!(all[1].sample_period_or_freq, 4000);
    let leader = EventSpec { reads_group: true, ..member(0) };
    let all = attrs(&options(vec![leader, member(2)]));
    for attr in &all {
        assert!(attr.sample_type.contains(SampleType::READ));
        assert!(attr.read_format.contains(ReadFormat::GROUP));
        assert!(!attr.has(AttrFlags::INHERIT));
    }
    assert_eq!((all[0].sample_period_or_freq, all[1].sample_period_or_freq), (4000, 0));
}

#[test]
fn system_wide_has_a_side_band_event_that_runs_at_once() {
    let all = attrs(&RecordOptions {
        target: Target::SystemWide(None),
        switch_events: true,
        ..options(vec![event(0)])
    });
    let [event, side_band] = &all[..] else { panic!("{all:?}") };
    let common = SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU
        | SampleType::IDENTIFIER;
    assert_eq!(event.sample_type, common | SampleType::PERIOD);
    assert_eq!(side_band.sample_type, common);
    assert!(event.has(AttrFlags::DISABLED) && !event.has(AttrFlags::ENABLE_ON_EXEC));
    assert!(!event.has(AttrFlags::MMAP) && !side_band.has(AttrFlags::DISABLED));
    assert!(side_band.has(TRACKING | AttrFlags::CONTEXT_SWITCH | AttrFlags::EXCLUDE_KERNEL));
    assert_eq!((side_band.config, side_band.sample_period_or_freq), (9, 1));
}

#[test]
fn beside_the_recorded_cpus_there_are_no_switches_and_small_rings() {
    let options = RecordOptions {
        target: Target::SystemWide(Some(vec![CpuId(0)])),
        switch_events: true,
        ..options(vec![event(0)])
    };
    let mut all = configured(&options);
    all.iter_mut().for_each(|event| set_watermark(&mut event.attr, 1 << 20));
    let [event, side_band] = &all[..] else { panic!("{all:?}") };
    assert!(!event.is_sideband() && side_band.is_sideband());
    let beside = side_band.attr_of_sideband_ring();
    assert!(beside.has(TRACKING) && !beside.has(AttrFlags::CONTEXT_SWITCH));
    assert_eq!((side_band.attr.wakeup, beside.wakeup), (256 << 10, 32 << 10));
    assert_eq!((beside.sample_type, beside.config), (side_band.attr.sample_type, 9));
}

#[test]
fn a_delay_leaves_only_the_side_band_to_the_exec() {
    let all = attrs(&RecordOptions { start: Start::AfterMs(10), ..options(vec![event(0)]) });
    assert!(all[0].has(AttrFlags::DISABLED) && !all[0].has(AttrFlags::ENABLE_ON_EXEC));
    assert!(all[1].has(AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC));
}

#[test]
fn dwarf_takes_registers_stack_and_data_mappings() {
    let dwarf = RecordOptions {
        call_graph: CallGraph::Dwarf { stack_dump_bytes: 8192 },
        ..options(vec![event(0)])
    };
    let attr = &attrs(&dwarf)[0];
    let wanted = SampleType::CALLCHAIN
        | SampleType::REGS_USER
        | SampleType::STACK_USER
        | SampleType::ADDR
        | SampleType::DATA_SRC;
    assert!(attr.sample_type.contains(wanted));
    assert!(attr.has(AttrFlags::EXCLUDE_CALLCHAIN_USER | AttrFlags::MMAP_DATA));
    assert_eq!((attr.sample_regs_user, attr.sample_stack_user_bytes), (0xff_0fff, 8192));
    let few = RecordOptions { user_registers: 1 << 8, ..dwarf };
    assert_eq!(attrs(&few)[0].sample_regs_user, 0x1c0);
}

#[test]
fn rates_tracepoints_and_the_fields_that_options_add() {
    let tracepoint = EventSpec {
        tracepoint: Some("sched:sched_switch".into()),
        pmu_type: pmu_type::TRACEPOINT,
        default_period: Some(1),
        ..event(314)
    };
    let all = attrs(&options(vec![tracepoint, event(0)]));
    assert_eq!((all[0].sample_period_or_freq, all[0].has(AttrFlags::FREQ)), (1, false));
    let fields = SampleType::RAW | SampleType::CPU | SampleType::PERIOD;
    assert!(all[0].sample_type.contains(fields));
    assert!(all[1].sample_type.contains(SampleType::CPU | SampleType::IDENTIFIER));
    let counted = RecordOptions {
        rate: Some(Rate::Period(1_000_000)),
        inherit: false,
        clock: Some(whit_sys::clock::ClockId::MONOTONIC_RAW),
        ..options(vec![event(0)])
    };
    let attr = &attrs(&counted)[0];
    assert!(!attr.sample_type.contains(SampleType::PERIOD) && !attr.has(AttrFlags::INHERIT));
    assert_eq!((attr.sample_period_or_freq, attr.clockid), (1_000_000, 4));
    assert!(attr.has(AttrFlags::USE_CLOCKID));
}

#[test]
fn frequencies_are_held_against_the_kernels_limit() {
    let dir = tempfile::tempdir().unwrap();
    let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
    std::fs::create_dir_all(dir.path().join("sys/kernel")).unwrap();
    std::fs::write(dir.path().join("sys/kernel/perf_event_max_sample_rate"), "1000\n").unwrap();
    let mut notices = Vec::new();
    let asked = |rate, strict_frequency| RecordOptions {
        rate,
        strict_frequency,
        ..options(vec![event(0)])
    };
    let mut check = |o: &RecordOptions| checked_rate(o, &roots, &mut |n| notices.push(n));
    assert_eq!(check(&asked(None, false)).unwrap(), (Rate::FrequencyHz(1000), false));
    let high = Some(Rate::FrequencyHz(5000));
    assert_eq!(check(&asked(high, false)).unwrap(), (Rate::FrequencyHz(1000), true));
    assert!(matches!(
        check(&asked(high, true)),
        Err(CaptureError::FrequencyTooHigh { asked_hz: 5000, limit_hz: 1000 })
    ));
    let zero = Some(Rate::Period(0));
    assert!(matches!(check(&asked(zero, false)), Err(CaptureError::ZeroRate(_))));
    assert_eq!(notices.len(), 2);
}

#[test]
fn overwritten_samples_leave_the_side_band_alone() {
    let all = attrs(&RecordOptions { overwrite: true, ..options(vec![event(0), event(2)]) });
    let [first, second, side_band] = &all[..] else { panic!("{all:?}") };
    assert!(first.has(AttrFlags::WRITE_BACKWARD) && second.has(AttrFlags::WRITE_BACKWARD));
    assert!(!first.has(AttrFlags::MMAP));
    assert!(!side_band.has(AttrFlags::WRITE_BACKWARD) && side_band.has(TRACKING));
    let one = EventSpec { overwrite: Some(true), ..event(0) };
    let all = attrs(&options(vec![one, event(2)]));
    let backward: Vec<_> = all.iter().map(|attr| attr.has(AttrFlags::WRITE_BACKWARD)).collect();
    assert_eq!(backward, [true, false, false]);
}

#[test]
fn branch_records_are_those_of_perf() {
    let branches = |filter: &str| RecordOptions {
        branches: Some(filter.parse().unwrap()),
        ..options(vec![event(2)])
    };
    let attr = &attrs(&branches("any,u"))[0];
    let fields = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD;
    assert_eq!(attr.sample_type, fields | SampleType::BRANCH_STACK);
    assert_eq!(attr.branch_sample_type, 0b1001);
    let augmented = RecordOptions {
        call_graph: CallGraph::Dwarf { stack_dump_bytes: 8192 },
        ..branches("stack,u")
    };
    let attr = &attrs(&augmented)[0];
    assert!(attr.sample_type.contains(SampleType::STACK_USER | SampleType::BRANCH_STACK));
    assert_eq!(attr.branch_sample_type, 1 << 11 | 1);
    let lbr = RecordOptions { call_graph: CallGraph::Lbr, ..options(vec![event(2)]) };
    let attr = &attrs(&lbr)[0];
    let chain = SampleType::CALLCHAIN | SampleType::BRANCH_STACK;
    assert_eq!(attr.sample_type, fields | chain);
    // USER|CALL_STACK|NO_FLAGS|NO_CYCLES|HW_INDEX
    assert_eq!(attr.branch_sample_type, 0x2c801);
    assert!(!attr.has(AttrFlags::EXCLUDE_CALLCHAIN_USER));
}

#[test]
fn call_chains_by_branch_records_give_way_and_that_is_said() {
    let mut notices = Vec::new();
    let mut configured = |options: &RecordOptions| {
        let rate = (Rate::FrequencyHz(4000), false);
        let all = &KernelFeatures::ALL;
        configure(options, &options.events, true, rate, all, None, &mut |n| notices.push(n))
            .unwrap()
            .remove(0)
            .attr
    };
    let both = RecordOptions {
        call_graph: CallGraph::Lbr,
        branches: Some(BranchFilter::ANY),
        ..options(vec![event(0)])
    };
    assert_eq!(configured(&both).branch_sample_type, BranchFilter::ANY.0);
    let exclude = crate::event::Exclude { user: true, ..event(0).exclude };
    let kernel = EventSpec { exclude, ..event(0) };
    let attr = configured(&RecordOptions { branches: None, events: vec![kernel], ..both });
    assert!(!attr.sample_type.contains(SampleType::BRANCH_STACK));
    assert!(attr.sample_type.contains(SampleType::CALLCHAIN));
    assert!(matches!(
        notices[..],
        [Notice::BranchesNotCallChain { .. }, Notice::NoKernelLbr { .. }]
    ));
}

#[test]
fn counts_fields_and_records_that_options_add() {
    let fields = ExtraFields {
        physical_addresses: true,
        data_page_sizes: true,
        code_page_sizes: true,
        weights: true,
        transactions: true,
        identifier: true,
    };
    let base = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD;
    let attr = &attrs(&RecordOptions { extra: fields, ..options(vec![event(2)]) })[0];
    let extra = SampleType::IDENTIFIER
        | SampleType::PHYS_ADDR
        | SampleType::DATA_PAGE_SIZE
        | SampleType::CODE_PAGE_SIZE
        | SampleType::WEIGHT_STRUCT
        | SampleType::TRANSACTION;
    assert_eq!(attr.sample_type, base | extra);

    let counted = RecordOptions { thread_counts: true, ..options(vec![event(2)]) };
    let attr = &attrs(&counted)[0];
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    assert_eq!(attr.read_format, times | ReadFormat::ID | ReadFormat::LOST);
    assert!(attr.has(AttrFlags::INHERIT_STAT));

    let attr = &attrs(&RecordOptions { no_samples: true, ..options(vec![event(2)]) })[0];
    assert_eq!((attr.sample_period_or_freq, attr.has(AttrFlags::FREQ)), (0, true));

    let attr = &attrs(&RecordOptions {
        cgroups: true,
        namespaces: true,
        max_stack: Some(32),
        call_graph: CallGraph::FramePointer,
        ..options(vec![event(2)])
    })[0];
    assert!(attr.has(AttrFlags::CGROUP | AttrFlags::NAMESPACES));
    assert!(attr.sample_type.contains(SampleType::CGROUP));
    assert_eq!(attr.sample_max_stack, 32);
}

#[test]
fn programs_get_no_precise_events() {
    let spec = EventSpec { precision: Precision::Level(2), ..event(0) };
    let bpf = RecordOptions {
        engine: Engine::Bpf,
        ..options(vec![spec, EventSpec { precision: Precision::Max, ..event(1) }])
    };
    assert!(attrs(&bpf).iter().all(|attr| attr.precise_ip() == 0));
    let precise = attrs(&RecordOptions { engine: Engine::Ring, ..bpf });
    assert_eq!(precise.iter().map(Attr::precise_ip).collect::<Vec<_>>(), [2, 3]);
}

/// Programs leave out who is not recorded, so that clocks are those of CPUs. Nothing of them waits for the exec or
/// tells of what others map.
#[test]
fn clocks_of_programs_are_of_cpus() {
    let events = |engine, target| {
        let options = RecordOptions { engine, target, ..options(vec![event(0), event(2)]) };
        configured(&options)
    };
    for target in [Target::Command, Target::Processes(vec![Pid(7)]), Target::Threads(vec![Tid(7)])]
    {
        let events = events(Engine::Bpf, target);
        assert_eq!(
            events.iter().map(|e| e.is_of_cpus).collect::<Vec<_>>(),
            [true, false, false, false]
        );
        let clock = &events[0].attr;
        assert!(clock.has(AttrFlags::DISABLED) && clock.has(AttrFlags::EXCLUDE_IDLE));
        assert!(!clock.has(AttrFlags::ENABLE_ON_EXEC) && !clock.has(AttrFlags::MMAP));
        assert!(events[2].is_side_band && events[2].attr.has(AttrFlags::MMAP));
    }
    for (engine, target) in
        [(Engine::Ring, Target::Command), (Engine::Bpf, Target::SystemWide(None))]
    {
        assert!(events(engine, target).iter().all(|event| !event.is_of_cpus));
    }
}
