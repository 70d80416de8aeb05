//! The expected values are those of `perf record -vv` 6.1 for the same options, less the
//! differences that the module's documentation names.

use super::*;
use crate::options::ExtraFields;
use whit_engine_api::event_plan::{BeginPlan, ChainPlan, CountPlan, FieldPlan, TrackingPlan};
use whit_events::{CallGraph as OwnCallGraph, ResolvedEvent};
use whit_perfdata::attr::pmu_type;
use whit_types::{CpuId, Pid};

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

fn with_event(mut spec: EventSpec, change: impl FnOnce(&mut ResolvedEvent)) -> EventSpec {
    change(&mut spec.event);
    spec
}

fn plan(events: Vec<EventSpec>) -> EventPlan {
    EventPlan::for_command(events)
}

fn chains(call_graph: CallGraph) -> ChainPlan {
    ChainPlan { call_graph, ..ChainPlan::default() }
}

fn with_switches() -> TrackingPlan {
    TrackingPlan { switches: true, ..plan(Vec::new()).tracking }
}

fn attrs(plan: &EventPlan) -> Vec<Attr> {
    configured(plan).into_iter().map(|event| event.attr).collect()
}

/// An engine that leaves everything to the kernel.
#[derive(Debug)]
struct Plain;
impl Engine for Plain {}

/// An engine that has events opened in its own way.
#[derive(Debug)]
struct Other;

impl Engine for Other {
    fn configure(
        &self,
        _: &EventPlan,
        _: bool,
        events: &mut Vec<ConfiguredEvent>,
    ) -> Option<PrivateEvent> {
        events.iter_mut().for_each(|event| event.attr.set_precise_ip(0));
        events.push(ConfiguredEvent {
            is_side_band: true,
            is_bpf_output: true,
            ..ConfiguredEvent::new(event(10), Attr::default())
        });
        None
    }
}

fn configured(plan: &EventPlan) -> Vec<ConfiguredEvent> {
    configured_by(&Plain, plan, &mut |_| ())
}

fn configured_by(
    engine: &dyn Engine,
    plan: &EventPlan,
    listener: &mut dyn Listener,
) -> Vec<ConfiguredEvent> {
    let by_user = plan.rate.by_user;
    let events = configure(
        Planned { plan, engine },
        &plan.specs,
        plan.inherit,
        (by_user.unwrap_or(Sampling::FrequencyHz(4000)), by_user.is_some()),
        &KernelFeatures::ALL,
        Some(Arch::X86_64),
        listener,
    );
    events.unwrap().0
}

#[test]
fn one_event_of_a_command() {
    let attr = &attrs(&plan(vec![event(0)]))[0];
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
    let all = attrs(&plan(vec![event(0), event(2)]));
    assert!(all.iter().all(|a| a.sample_type.contains(SampleType::ID)));
    assert!(all.iter().all(|a| !a.sample_type.contains(SampleType::IDENTIFIER)));
    assert!(all[0].has(AttrFlags::MMAP) && !all[1].has(AttrFlags::MMAP));
    assert!(all[1].has(AttrFlags::ENABLE_ON_EXEC | AttrFlags::DISABLED));
}

#[test]
fn members_of_a_group_follow_their_leader() {
    let member = |config| EventSpec { leader: Some(0), ..event(config) };
    let all = attrs(&plan(vec![member(0), member(2)]));
    assert!(all[0].has(AttrFlags::ENABLE_ON_EXEC | AttrFlags::DISABLED | AttrFlags::FREQ));
    assert!(!all[1].has(AttrFlags::ENABLE_ON_EXEC) && !all[1].has(AttrFlags::DISABLED));
    assert_eq!(all[1].sample_period_or_freq, 4000);
    let leader = with_event(member(0), |event| event.sample_read = true);
    let all = attrs(&plan(vec![leader, member(2)]));
    for attr in &all {
        assert!(attr.sample_type.contains(SampleType::READ));
        assert!(attr.read_format.contains(ReadFormat::GROUP));
        assert!(!attr.has(AttrFlags::INHERIT));
    }
    assert_eq!((all[0].sample_period_or_freq, all[1].sample_period_or_freq), (4000, 0));
}

#[test]
fn system_wide_has_a_side_band_event_that_runs_at_once() {
    let all = attrs(&EventPlan {
        target: Target::SystemWide(None),
        tracking: with_switches(),
        ..plan(vec![event(0)])
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
fn outside_the_recorded_cpus_there_are_no_switches_and_small_rings() {
    let plan = EventPlan {
        target: Target::SystemWide(Some(vec![CpuId(0)])),
        tracking: with_switches(),
        ..plan(vec![event(0)])
    };
    let mut all = configured(&plan);
    all.iter_mut().for_each(|event| set_wakeup(&mut event.attr, 1 << 20, Choices::default()));
    let [event, side_band] = &all[..] else { panic!("{all:?}") };
    assert!(!event.is_sideband() && side_band.is_sideband());
    let outside = side_band.attr_of_sideband_ring();
    assert!(outside.has(TRACKING) && !outside.has(AttrFlags::CONTEXT_SWITCH));
    assert_eq!((side_band.attr.wakeup, outside.wakeup), (256 << 10, 32 << 10));
    assert_eq!((outside.sample_type, outside.config), (side_band.attr.sample_type, 9));
}

#[test]
fn a_delay_leaves_only_the_side_band_to_the_exec() {
    let all = attrs(&EventPlan {
        begin: BeginPlan { at_once: false, is_controlled: false },
        ..plan(vec![event(0)])
    });
    assert!(all[0].has(AttrFlags::DISABLED) && !all[0].has(AttrFlags::ENABLE_ON_EXEC));
    assert!(all[1].has(AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC));
}

#[test]
fn dwarf_takes_registers_stack_and_data_mappings() {
    let dwarf = EventPlan {
        chains: chains(CallGraph::Dwarf { stack_dump_bytes: 8192 }),
        ..plan(vec![event(0)])
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
    let few = EventPlan { fields: FieldPlan { user_registers: 1 << 8, ..dwarf.fields }, ..dwarf };
    assert_eq!(attrs(&few)[0].sample_regs_user, 0x1c0);
}

#[test]
fn rates_tracepoints_and_the_fields_that_options_add() {
    let tracepoint = EventSpec::new("sched:sched_switch", pmu_type::TRACEPOINT, 314);
    let tracepoint = with_event(tracepoint, |event| event.default_period = Some(1));
    let all = attrs(&plan(vec![tracepoint, event(0)]));
    assert_eq!((all[0].sample_period_or_freq, all[0].has(AttrFlags::FREQ)), (1, false));
    let fields = SampleType::RAW | SampleType::CPU | SampleType::PERIOD;
    assert!(all[0].sample_type.contains(fields));
    assert!(all[1].sample_type.contains(SampleType::CPU | SampleType::IDENTIFIER));
    let counted = EventPlan {
        rate: RatePlan {
            by_user: Some(Sampling::Period(1_000_000)),
            is_strict: false,
            keeps_periods: false,
        },
        inherit: false,
        clock: Some(whit_sys::clock::ClockId::MONOTONIC_RAW),
        ..plan(vec![event(0)])
    };
    let attr = &attrs(&counted)[0];
    assert!(!attr.sample_type.contains(SampleType::PERIOD) && !attr.has(AttrFlags::INHERIT));
    assert_eq!((attr.sample_period_or_freq, attr.clockid), (1_000_000, 4));
    assert!(attr.has(AttrFlags::USE_CLOCKID));
}

/// Each term and modifier of an event reaches the kernel.
#[test]
fn terms_and_modifiers_of_events_are_in_their_attributes() {
    let of_text = |text: &str| {
        let mut tracepoints = whit_events::TracefsIds::new("/nonexistent");
        let list = whit_events::parse(text).unwrap();
        let groups = whit_events::resolve(&list, &Default::default(), &mut tracepoints).unwrap();
        let plan = EventPlan {
            chains: ChainPlan { max_frames: Some(9), ..chains(CallGraph::FramePointer) },
            ..plan(crate::event::from_groups(groups).unwrap())
        };
        attrs(&plan).swap_remove(0)
    };
    let attr = of_text("cycles/period=1000,call-graph=dwarf,stack-size=4096/upp");
    assert_eq!((attr.sample_period_or_freq, attr.has(AttrFlags::FREQ)), (1000, false));
    assert_eq!((attr.sample_stack_user_bytes, attr.precise_ip()), (4096, 2));
    assert!(attr.sample_type.contains(SampleType::CALLCHAIN | SampleType::STACK_USER));
    assert!(attr.has(AttrFlags::EXCLUDE_KERNEL) && !attr.has(AttrFlags::EXCLUDE_USER));
    let attr = of_text("cycles/freq=7,max-stack=5,no-inherit,overwrite,branch_type=any/I");
    assert_eq!((attr.sample_period_or_freq, attr.has(AttrFlags::FREQ)), (7, true));
    assert_eq!((attr.sample_max_stack, attr.branch_sample_type), (5, BranchFilter::ANY.0));
    assert!(attr.has(AttrFlags::EXCLUDE_IDLE | AttrFlags::WRITE_BACKWARD));
    assert!(!attr.has(AttrFlags::INHERIT));
    let attr = of_text("cycles/call-graph=no/De");
    assert!(!attr.sample_type.contains(SampleType::CALLCHAIN));
    assert!(attr.has(AttrFlags::PINNED | AttrFlags::EXCLUSIVE));
    let attr = of_text("mem:0x1000/8:rw");
    assert_eq!((attr.config1, attr.config2, attr.bp_type), (0x1000, 8, 3));
    assert_eq!((attr.sample_period_or_freq, attr.sample_max_stack), (1, 9));
}

#[test]
fn frequencies_are_held_against_the_kernels_limit() {
    let dir = tempfile::tempdir().unwrap();
    let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
    std::fs::create_dir_all(dir.path().join("sys/kernel")).unwrap();
    std::fs::write(dir.path().join("sys/kernel/perf_event_max_sample_rate"), "1000\n").unwrap();
    let mut notices = Vec::new();
    let asked = |by_user, is_strict| RatePlan { by_user, is_strict, keeps_periods: false };
    let mut check = |plan: RatePlan| checked_rate(plan, &roots, &mut |n| notices.push(n));
    assert_eq!(check(asked(None, false)).unwrap(), (Sampling::FrequencyHz(1000), false));
    let high = Some(Sampling::FrequencyHz(5000));
    assert_eq!(check(asked(high, false)).unwrap(), (Sampling::FrequencyHz(1000), true));
    assert!(matches!(
        check(asked(high, true)),
        Err(CaptureError::FrequencyTooHigh { asked_hz: 5000, limit_hz: 1000 })
    ));
    let zero = Some(Sampling::Period(0));
    assert!(matches!(check(asked(zero, false)), Err(CaptureError::ZeroRate(_))));
    assert_eq!(notices.len(), 2);
}

#[test]
fn clocks_leave_idle_cpus_out_and_hardware_does_not() {
    let cycles = EventSpec::new("cycles", pmu_type::HARDWARE, 0);
    let specs = vec![event(0), cycles];
    let without_idle = |spec: &EventSpec| EventSpec { exclude_idle: true, ..spec.clone() };
    let all = attrs(&plan(specs.iter().map(without_idle).collect()));
    let flags: Vec<_> = all.iter().map(|attr| attr.has(AttrFlags::EXCLUDE_IDLE)).collect();
    assert_eq!(flags[..2], [true, false]);
    assert!(attrs(&plan(specs)).iter().all(|attr| !attr.has(AttrFlags::EXCLUDE_IDLE)));
}

#[test]
fn overwritten_samples_leave_the_side_band_alone() {
    let all = attrs(&EventPlan { overwrite: true, ..plan(vec![event(0), event(2)]) });
    let [first, second, side_band] = &all[..] else { panic!("{all:?}") };
    assert!(first.has(AttrFlags::WRITE_BACKWARD) && second.has(AttrFlags::WRITE_BACKWARD));
    assert!(!first.has(AttrFlags::MMAP));
    assert!(!side_band.has(AttrFlags::WRITE_BACKWARD) && side_band.has(TRACKING));
    let one = with_event(event(0), |event| event.terms.overwrite = Some(true));
    let all = attrs(&plan(vec![one, event(2)]));
    let backward: Vec<_> = all.iter().map(|attr| attr.has(AttrFlags::WRITE_BACKWARD)).collect();
    assert_eq!(backward, [true, false, false]);
}

#[test]
fn branch_records_are_those_of_perf() {
    let branches = |filter: &str| EventPlan {
        fields: FieldPlan { branches: Some(filter.parse().unwrap()), ..FieldPlan::default() },
        ..plan(vec![event(2)])
    };
    let attr = &attrs(&branches("any,u"))[0];
    let fields = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD;
    assert_eq!(attr.sample_type, fields | SampleType::BRANCH_STACK);
    assert_eq!(attr.branch_sample_type, 0b1001);
    let augmented = EventPlan {
        chains: chains(CallGraph::Dwarf { stack_dump_bytes: 8192 }),
        ..branches("stack,u")
    };
    let attr = &attrs(&augmented)[0];
    assert!(attr.sample_type.contains(SampleType::STACK_USER | SampleType::BRANCH_STACK));
    assert_eq!(attr.branch_sample_type, 1 << 11 | 1);
    let lbr = EventPlan { chains: chains(CallGraph::Lbr), ..plan(vec![event(2)]) };
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
    let mut configured = |plan: &EventPlan| {
        let rate = (Sampling::FrequencyHz(4000), false);
        let all = &KernelFeatures::ALL;
        configure(Planned { plan, engine: &Plain }, &plan.specs, true, rate, all, None, &mut |n| {
            notices.push(n)
        })
        .unwrap()
        .0
        .remove(0)
        .attr
    };
    let both = EventPlan {
        chains: chains(CallGraph::Lbr),
        fields: FieldPlan { branches: Some(BranchFilter::ANY), ..FieldPlan::default() },
        ..plan(vec![event(0)])
    };
    assert_eq!(configured(&both).branch_sample_type, BranchFilter::ANY.0);
    let kernel = with_event(event(0), |event| event.exclude.user = true);
    let attr = configured(&EventPlan { fields: FieldPlan::default(), specs: vec![kernel], ..both });
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
        data_sources: true,
        weights: true,
        transactions: true,
        identifier: true,
    };
    let base = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD;
    let attr = &attrs(&EventPlan {
        fields: FieldPlan { extra: fields, ..FieldPlan::default() },
        ..plan(vec![event(2)])
    })[0];
    let extra = SampleType::IDENTIFIER
        | SampleType::PHYS_ADDR
        | SampleType::DATA_PAGE_SIZE
        | SampleType::CODE_PAGE_SIZE
        | SampleType::DATA_SRC
        | SampleType::WEIGHT_STRUCT
        | SampleType::TRANSACTION;
    assert_eq!(attr.sample_type, base | extra);
    assert!(!attr.has(AttrFlags::MMAP_DATA));

    let counted = EventPlan {
        counts: CountPlan { by_thread: true, ..CountPlan::default() },
        ..plan(vec![event(2)])
    };
    let attr = &attrs(&counted)[0];
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    assert_eq!(attr.read_format, times | ReadFormat::ID | ReadFormat::LOST);
    assert!(attr.has(AttrFlags::INHERIT_STAT));

    let attr = &attrs(&EventPlan {
        counts: CountPlan { alone: true, ..CountPlan::default() },
        ..plan(vec![event(2)])
    })[0];
    assert_eq!((attr.sample_period_or_freq, attr.has(AttrFlags::FREQ)), (0, true));

    let attr = &attrs(&EventPlan {
        tracking: TrackingPlan { cgroups: true, namespaces: true, ..TrackingPlan::default() },
        chains: ChainPlan { max_frames: Some(32), ..chains(CallGraph::FramePointer) },
        ..plan(vec![event(2)])
    })[0];
    assert!(attr.has(AttrFlags::CGROUP | AttrFlags::NAMESPACES));
    assert!(attr.sample_type.contains(SampleType::CGROUP));
    assert_eq!(attr.sample_max_stack, 32);
}

#[test]
fn the_engine_changes_events_and_adds_its_own() {
    let precise = |level, config| with_event(event(config), |event| event.precise_ip = level);
    let mut plan = plan(vec![precise(PreciseIp::Level(2), 0), precise(PreciseIp::Max, 1)]);
    let levels = |events: &[ConfiguredEvent]| -> Vec<_> {
        events.iter().map(|event| event.attr.precise_ip()).collect()
    };
    assert_eq!(levels(&configured(&plan)), [2, 3]);
    plan.specs[0].is_of_cpus = true;
    let mut notices = Vec::new();
    let events = configured_by(&Other, &plan, &mut |notice| notices.push(notice));
    assert_eq!(levels(&events), [0; 4]);
    assert!(matches!(&notices[..], [Notice::PrecisionLowered { level: 0, .. }]), "{notices:?}");
    // One event is of CPUs: it does not see all mappings. The sideband follows, and the engine's event.
    assert!(!events[0].attr.has(AttrFlags::MMAP) && events[2].attr.has(AttrFlags::MMAP));
    assert!(events[3].is_bpf_output);
    assert!(events.iter().all(|event| event.attr.sample_type.contains(SampleType::IDENTIFIER)));
}

#[test]
fn user_call_chains_are_deferred_with_frame_pointers_alone() {
    let deferred = |call_graph| ChainPlan { is_deferred: true, ..chains(call_graph) };
    let flags = |chains: ChainPlan, specs: Vec<EventSpec>| -> Vec<_> {
        let of =
            |attr: &Attr| (attr.has(AttrFlags::DEFER_CALLCHAIN), attr.has(AttrFlags::DEFER_OUTPUT));
        attrs(&EventPlan { chains, ..plan(specs) }).iter().map(of).collect()
    };
    let two = || vec![event(0), event(1)];
    // The first event tracks: it alone takes the records, or each would come twice.
    let by_frame_pointers = deferred(CallGraph::FramePointer);
    assert_eq!(flags(by_frame_pointers, two()), [(true, true), (true, false)]);
    assert_eq!(flags(chains(CallGraph::FramePointer), two()), [(false, false); 2]);
    let kernel_only = ChainPlan { kernel_only: true, ..by_frame_pointers };
    assert_eq!(flags(kernel_only, two()), [(false, false); 2]);
    let by = |own, config| with_event(event(config), |event| event.terms.call_graph = Some(own));
    let mixed = || vec![by(OwnCallGraph::Dwarf, 0), by(OwnCallGraph::FramePointer, 1)];
    assert_eq!(flags(by_frame_pointers, mixed()), [(false, true), (true, false)]);

    // The sideband has an event of its own.
    let of_all = EventPlan {
        chains: by_frame_pointers,
        target: Target::SystemWide(None),
        ..plan(vec![event(0)])
    };
    let attrs = attrs(&of_all);
    assert!(attrs[0].has(AttrFlags::DEFER_CALLCHAIN) && !attrs[0].has(AttrFlags::DEFER_OUTPUT));
    assert!(!attrs[1].has(AttrFlags::DEFER_CALLCHAIN) && attrs[1].has(AttrFlags::DEFER_OUTPUT));
}

#[test]
fn an_event_of_each_process_keeps_its_probes_apart() {
    let probe = |config| EventSpec { is_user_probe: true, ..event(config) };
    let have_counts = |plan: &EventPlan| -> Vec<bool> {
        attrs(plan).iter().map(|attr| attr.sample_type.contains(SampleType::READ)).collect()
    };
    let command = plan(vec![event(0), probe(1), probe(2)]);
    assert_eq!(have_counts(&command), [false, true, false]);
    let target = Target::Processes(vec![Pid(7)]);
    let process = EventPlan { target, ..plan(vec![event(0), probe(1)]) };
    assert_eq!(have_counts(&process), [false, false, true], "the sideband has no samples");
    assert_eq!(have_counts(&plan(vec![event(0), event(1)])), [false, false]);
    let own = with_event(probe(1), |event| event.terms.inherit = Some(false));
    assert_eq!(have_counts(&plan(vec![own, probe(2)])), [false, true]);
    let alone = EventPlan { inherit: false, ..plan(vec![event(0), probe(1)]) };
    assert_eq!(have_counts(&alone), [false, false]);
}
