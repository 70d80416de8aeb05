//! Targets by name: which cgroups and names the programs look for.

use whit_bpf::BpfError;
use whit_bpf::stacks::{
    CgroupHierarchy, ChosenBy, NAME_BYTES, OF_VERSION_1, Stacks, cgroup_subsystem,
};
use whit_engine_api::event_plan::{EventPlan, ReadCgroups};
use whit_host::cgroup::MountedHierarchy;
use whit_host::named::NAME_MAX_BYTES;
use whit_host::roots::Roots;
use whit_host::target::Target;

const _: () = assert!(NAME_MAX_BYTES < NAME_BYTES);

/// The hierarchy of version 1 whose cgroups samples have, where those of perf events do not tell threads apart.
pub(super) fn read_cgroups(events: &EventPlan, roots: &Roots) -> Option<ReadCgroups> {
    let mounted =
        events.tracking.cgroups.then(|| MountedHierarchy::of_cpu_time(roots)).flatten()?;
    hierarchy(&mounted).map(|_| ReadCgroups { mounted, mark: OF_VERSION_1 })
}

/// How the programs choose.
pub(super) fn chosen_by(target: &Target) -> ChosenBy {
    let Some(chosen) = target.chosen() else { return ChosenBy::default() };
    ChosenBy {
        cgroups: chosen.cgroups.as_ref().and_then(|cgroups| hierarchy(&cgroups.mounted)),
        names: !chosen.comms.is_empty(),
    }
}

/// `None` where the kernel does not describe its controllers.
pub(super) fn hierarchy(mounted: &MountedHierarchy) -> Option<CgroupHierarchy> {
    match &mounted.controllers {
        None => Some(CgroupHierarchy::V2),
        Some(names) => {
            names.iter().find_map(|name| cgroup_subsystem(name)).map(CgroupHierarchy::V1)
        }
    }
}

/// Why the programs cannot choose such a target.
pub(super) fn conflict(target: &Target) -> Option<&'static str> {
    let cgroups = target.chosen()?.cgroups.as_ref()?;
    hierarchy(&cgroups.mounted).is_none().then_some(
        "does not know the number of the hierarchy's controllers, which the kernel does not describe here: name a cgroup \
         of version 2",
    )
}

/// Tells the programs whom they emit.
pub(super) fn choose(stacks: &Stacks, target: &Target) -> Result<(), BpfError> {
    let Some(chosen) = target.chosen() else { return Ok(()) };
    for cgroup in chosen.cgroups.iter().flat_map(|chosen| &chosen.cgroups) {
        stacks.choose_cgroup(cgroup.id)?;
    }
    for comm in &chosen.comms {
        let mut name = [0; NAME_BYTES];
        let bytes = comm.exact().bytes().take(NAME_MAX_BYTES);
        name.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        stacks.choose_name(name)?;
    }
    Ok(())
}
