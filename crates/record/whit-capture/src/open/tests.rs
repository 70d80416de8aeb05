use super::*;
use crate::event::EventSpec;
use crate::features::KernelFeatures;
use whit_engine_api::event_plan::EventPlan;
use whit_events::{Exclude, Sampling};
use whit_host::target::{CpuScope, ThreadScope};
use whit_types::Tid;

#[derive(Debug)]
struct Plain;
impl whit_engine_api::Engine for Plain {}

fn configured(specs: Vec<EventSpec>) -> Vec<ConfiguredEvent> {
    let plan = EventPlan::for_command(specs);
    let rate = (Sampling::FrequencyHz(100), false);
    let kernel = KernelFeatures::probe(&mut |_| ()).unwrap();
    crate::configure::configure(
        crate::configure::Planned { plan: &plan, engine: &Plain },
        &plan.specs,
        true,
        rate,
        &kernel,
        None,
        &mut |_| (),
    )
    .unwrap()
    .0
}

fn own_plan() -> Plan {
    let roots = Roots::default();
    let online = whit_host::cpus::online(&roots).unwrap();
    let own = Tid(whit_sys::system::pid());
    Plan { cpus: CpuScope::Each(online), threads: ThreadScope::Each(vec![own]), inherit: true }
}

fn open(
    plan: &Plan,
    events: Vec<ConfiguredEvent>,
) -> (Result<Vec<OpenEvent>, CaptureError>, Vec<Notice>) {
    let roots = Roots::default();
    let mut notices = Vec::new();
    let result = Opener {
        plan,
        outside: &[],
        rights: Rights::of_process(&roots),
        roots: &roots,
        cgroups: &HashMap::new(),
        chosen: &[],
        listener: &mut |n| notices.push(n),
    }
    .open_all(events);
    (result, notices)
}

fn software(name: &str, config: u64) -> EventSpec {
    let mut spec = EventSpec::new(name, pmu_type::SOFTWARE, config);
    spec.event.exclude = Exclude { kernel: true, hypervisor: true, ..Exclude::default() };
    spec
}

#[test]
fn groups_are_open_on_every_cpu_with_ids_of_their_own() {
    let member = |name, config| EventSpec { leader: Some(0), ..software(name, config) };
    let plan = own_plan();
    let events = configured(vec![member("cpu-clock:u", 0), member("page-faults:u", 2)]);
    let open = open(&plan, events).0.unwrap();
    let mut ids: Vec<_> = open.iter().flat_map(|event| &event.instances).map(|i| i.id).collect();
    assert_eq!(ids.len(), 2 * plan.cpus.named().len());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2 * plan.cpus.named().len());
}

#[test]
fn threads_that_are_gone_are_left_out_and_none_left_is_an_error() {
    let mut plan = own_plan();
    let missing = Tid(i32::MAX);
    plan.threads = ThreadScope::Each([plan.threads.named(), &[missing]].concat());
    let (result, notices) = open(&plan, configured(vec![software("cpu-clock:u", 0)]));
    assert_eq!(result.unwrap()[0].instances.len(), plan.cpus.named().len());
    assert!(notices.contains(&Notice::ThreadGone { tid: missing }));
    plan.threads = ThreadScope::Each(vec![missing]);
    let (result, _) = open(&plan, configured(vec![software("cpu-clock:u", 0)]));
    assert!(matches!(result, Err(CaptureError::TargetGone)));
}

#[test]
fn an_unknown_software_event_is_refused_with_its_name() {
    let (result, _) = open(&own_plan(), configured(vec![software("nonsense", 12_345)]));
    let CaptureError::Unsupported { index: 0, refusal } = result.unwrap_err() else { panic!() };
    assert!(matches!(&*refusal, CaptureError::Open { event, .. } if event == "nonsense"));
    assert_eq!(refusal.short(), "not supported here (ENOENT)");
}

#[test]
fn cycles_give_samples_or_become_the_cpu_clock() {
    let mut cycles = EventSpec { exclude_idle: true, ..software("cycles:P", 0) };
    cycles.event.pmu_type = pmu_type::HARDWARE;
    cycles.event.precise_ip = PreciseIp::Max;
    let events = configured(vec![cycles]);
    let (result, notices) = open(&own_plan(), events);
    let event = &result.unwrap()[0].event;
    let replaced = notices.iter().any(|n| matches!(n, Notice::CyclesReplaced { .. }));
    if replaced {
        assert_eq!((event.spec.name(), event.attr.pmu_type), ("cpu-clock:u", 1));
        assert_eq!(event.attr.precise_ip(), 0);
        assert!(event.attr.has(AttrFlags::EXCLUDE_IDLE));
    } else {
        assert_eq!(event.spec.name(), "cycles:P");
        assert!(!event.attr.has(AttrFlags::EXCLUDE_IDLE));
    }
}

#[test]
fn a_broken_group_starts_as_its_leader_would() {
    let member = |name, config| EventSpec { leader: Some(1), ..software(name, config) };
    let mut events = configured(vec![software("a", 0), member("b", 2), member("c", 3)]);
    assert_eq!(break_group(&mut events, 2), 1);
    assert!(events.iter().all(|event| event.spec.leader.is_none()));
    assert!(events[2].attr.has(AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC));
}

#[test]
fn few_descriptors_mean_fewer_events_per_thread() {
    let plan = Plan {
        cpus: CpuScope::Each([0, 1].map(CpuId).to_vec()),
        threads: ThreadScope::Each([1, 2, 3].map(Tid).to_vec()),
        inherit: true,
    };
    assert_eq!(fit_descriptors(plan.clone(), 2, &mut |_| ()).unwrap(), plan);
    let hard = Limit::OpenFiles.get().hard;
    if let Some(limit) = hard.filter(|limit| *limit < 1 << 22) {
        let cpus = CpuScope::Each((0..limit as u32).map(CpuId).collect());
        let huge = Plan { cpus, threads: ThreadScope::Each(vec![Tid(1)]), inherit: true };
        let mut notices = Vec::new();
        let fewer = fit_descriptors(huge.clone(), 1, &mut |n| notices.push(n)).unwrap();
        assert_eq!((fewer.cpus, fewer.inherit), (CpuScope::Any, false));
        assert!(notices.iter().any(|n| matches!(n, Notice::PerThreadRings { .. })));
        let all = Plan { threads: ThreadScope::All, ..huge };
        assert!(matches!(
            fit_descriptors(all, 1, &mut |_| ()),
            Err(CaptureError::OpenFiles { .. })
        ));
    }
}
