//! Targets by name without BPF programs: the kernel's own events are limited to cgroups, and to nothing else.

use std::fs::File;

use whit_engine_api::event_plan::EventPlan;
use whit_host::cgroup::Hierarchy;
use whit_host::error::HostError;
use whit_host::named::ChosenCgroups;
use whit_host::roots::Roots;

/// Why the ring engine cannot record the target.
pub(super) fn obstacle(events: &EventPlan, roots: &Roots) -> Option<String> {
    let chosen = events.target.chosen()?;
    if !chosen.comms.is_empty() {
        return Some(
            "takes no --comm: the kernel limits events to cgroups, not to names".to_owned(),
        );
    }
    if events.tracking.switches {
        return Some(
            "records the switches of all threads of a CPU, whatever their cgroup".to_owned(),
        );
    }
    if events.specs.iter().any(|event| event.cgroup.is_some()) {
        return Some("takes either a target by name, or -G for single events".to_owned());
    }
    let cgroups = chosen.cgroups.as_ref()?;
    match Hierarchy::find(roots) {
        Ok(counting) if counting == cgroups.mounted.hierarchy => {
            counting.check_states(paths(cgroups)).err().map(|error| error.to_string())
        }
        Ok(counting) => Some(format!(
            "is limited to cgroups below {}, where the controller perf_event is, and {} is below {}",
            counting.mount().display(),
            cgroups
                .cgroups
                .first()
                .map(|cgroup| whit_types::escape(&cgroup.path).into_owned())
                .unwrap_or_default(),
            cgroups.mounted.hierarchy.mount().display(),
        )),
        Err(error) => Some(error.to_string()),
    }
}

/// The directories of the chosen cgroups; empty where the engine chooses by itself, or nothing is chosen by cgroup.
pub(super) fn directories(
    events: &EventPlan,
    engine: &dyn whit_engine_api::Engine,
) -> Result<Vec<File>, HostError> {
    let cgroups = events.target.chosen().and_then(|chosen| chosen.cgroups.as_ref());
    match cgroups {
        Some(cgroups) if !engine.capabilities().chooses_targets => {
            paths(cgroups).map(|path| cgroups.mounted.hierarchy.open(path)).collect()
        }
        _ => Ok(Vec::new()),
    }
}

fn paths(cgroups: &ChosenCgroups) -> impl Iterator<Item = &str> {
    cgroups.cgroups.iter().map(|cgroup| cgroup.path.as_str())
}
