//! perf's events as the planner takes them.

use whit_events::{ResolvedEvent, TYPE_HARDWARE, TYPE_HW_CACHE, TYPE_RAW};
use whit_pmu::bits::evtsel;
use whit_pmu::counter::CounterMask;
use whit_pmu::model::{PmuKind, PmuModel};
use whit_pmu::sched::plan::{PlanEvent, PlanGroup, Share, plan};
use whit_types::escape;

use crate::counter::Counter;

/// Event select and unit mask of `PERF_COUNT_HW_*`, in the order of their numbers: the table of Intel's
/// architectural events (`arch/x86/events/intel/core.c`). Reference cycles have Linux's own number.
const HARDWARE: [u64; 10] = [0x3c, 0xc0, 0x4f2e, 0x412e, 0xc4, 0xc5, 0x13c, 0, 0, 0x300];
/// Names of the core's PMU in sysfs; on a hybrid CPU that of its big cores.
pub(super) const CORE_PMUS: [&str; 2] = ["cpu", "cpu_core"];

/// The cgroups in which something is counted, and first of all nowhere.
pub(super) fn cgroups(counters: &[Counter]) -> Vec<Option<String>> {
    let mut all = vec![None];
    for name in counters.iter().filter_map(|counter| counter.cgroup.as_ref()) {
        let name = Some(name.exact().to_owned());
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// The events that count while a task of this cgroup runs: those of the cgroup, of the cgroups
/// above it, and of the whole machine.
pub(super) fn of_cgroup(
    counters: &[Counter],
    cgroup: Option<&str>,
    model: &PmuModel,
) -> Vec<PlanGroup> {
    let mut groups = Vec::new();
    let mut at = 0;
    while at < counters.len() {
        let leader = counters[at].leader;
        let same = |counter: &&Counter| leader.is_some() && counter.leader == leader;
        let members = counters[at..].iter().take_while(same).count().max(1);
        let group = &counters[at..at + members];
        at += members;
        if counts_in(&group[0], cgroup) {
            groups.extend(of_group(group, model));
        }
    }
    groups
}

fn counts_in(counter: &Counter, cgroup: Option<&str>) -> bool {
    let Some(own) = &counter.cgroup else { return true };
    let (Some(task), own) = (cgroup, own.exact().trim_matches('/')) else { return false };
    let below = task.trim_matches('/').strip_prefix(own);
    own.is_empty() || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A group; several where it is weak and does not fit.
fn of_group(counters: &[Counter], model: &PmuModel) -> Vec<PlanGroup> {
    let on_pmu: Vec<_> = counters.iter().filter(|counter| is_of_core(&counter.event)).collect();
    let event = |counter: &&Counter| PlanEvent {
        // The planner prints it.
        name: escape(&counter.event.name).into_owned(),
        allowed: allowed(&counter.event, model),
    };
    let pinned = on_pmu.iter().any(|counter| counter.event.pinned);
    let events: Vec<_> = on_pmu.iter().map(event).collect();
    if events.is_empty() {
        return Vec::new();
    }
    let group = PlanGroup { events, pinned };
    let is_weak = on_pmu.iter().any(|counter| counter.event.weak_group);
    let alone = plan(model.counters(), std::slice::from_ref(&group));
    if is_weak && matches!(alone.groups[0].share, Share::Never(_)) {
        return group
            .events
            .into_iter()
            .map(|event| PlanGroup { events: vec![event], pinned })
            .collect();
    }
    vec![group]
}

fn is_of_core(event: &ResolvedEvent) -> bool {
    let is_generic = matches!(event.pmu_type, TYPE_HARDWARE | TYPE_HW_CACHE | TYPE_RAW);
    event.tool.is_none() && (is_generic || CORE_PMUS.contains(&event.pmu.as_str()))
}

/// The counters that can count it. Narrower constraints of single events are in the vendors' lists and
/// not known here.
fn allowed(event: &ResolvedEvent, model: &PmuModel) -> CounterMask {
    let config = event.config[0];
    let code = match event.pmu_type {
        // The upper half names the PMU of a hybrid CPU.
        TYPE_HARDWARE => HARDWARE.get((config & 0xffff_ffff) as usize).copied().unwrap_or(0),
        TYPE_HW_CACHE => 0,
        // A fixed counter counts the event as it is: no edges, no thresholds.
        _ if config & !(evtsel::EVENT_CODE | evtsel::USR | evtsel::OS) != 0 => 0,
        _ => config & evtsel::EVENT_CODE,
    };
    match model.kind {
        PmuKind::Intel => model.constraint(code),
        // AMD's reference cycles are an event as any other.
        _ => model.general,
    }
}

/// Events that are not on the core's counters.
pub(super) fn elsewhere(counters: &[Counter]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for counter in counters.iter().filter(|counter| !is_of_core(&counter.event)) {
        if !names.contains(&counter.event.name) {
            names.push(counter.event.name.clone());
        }
    }
    names
}
