//! Targets by name: which cgroups and names the programs look for.

use whit_bpf::BpfError;
use whit_bpf::stacks::{CgroupHierarchy, ChosenBy, NAME_BYTES, Stacks, cgroup_subsystem};
use whit_host::named::{ChosenCgroups, NAME_MAX_BYTES};
use whit_host::target::Target;

const _: () = assert!(NAME_MAX_BYTES < NAME_BYTES);

/// How the programs choose.
pub(super) fn chosen_by(target: &Target) -> ChosenBy {
    let Some(chosen) = target.chosen() else { return ChosenBy::default() };
    ChosenBy {
        cgroups: chosen.cgroups.as_ref().and_then(hierarchy),
        names: !chosen.comms.is_empty(),
    }
}

/// `None` where the kernel does not describe its controllers.
fn hierarchy(cgroups: &ChosenCgroups) -> Option<CgroupHierarchy> {
    match &cgroups.mounted.controllers {
        None => Some(CgroupHierarchy::V2),
        Some(names) => {
            names.iter().find_map(|name| cgroup_subsystem(name)).map(CgroupHierarchy::V1)
        }
    }
}

/// Why the programs cannot choose such a target.
pub(super) fn conflict(target: &Target) -> Option<&'static str> {
    let cgroups = target.chosen()?.cgroups.as_ref()?;
    hierarchy(cgroups).is_none().then_some(
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
