//! Where control groups are, for events that count one of them.

use crate::checks::mounts::{self, Mount};
use crate::finding::{Area, Finding, Status};
use crate::machine::Machine;

pub(super) fn check(machine: &Machine) -> Vec<Finding> {
    let mounts = mounts::read(machine);
    let unified = mounts.iter().find(|mount| mount.kind == "cgroup2");
    let legacy: Vec<&Mount> = mounts.iter().filter(|mount| mount.kind == "cgroup").collect();
    // The perf_event controller is in one hierarchy: of version 1 where it is mounted there, else
    // of version 2, where it is always on.
    let perf_v1 =
        legacy.iter().find(|mount| mount.options.iter().any(|option| option == "perf_event"));
    let finding = |status, detail: String| {
        Finding::new(Area::Cgroups, "perf_event controller", status, detail)
    };
    vec![match (perf_v1, unified) {
        (Some(mount), _) => finding(
            Status::Ok,
            format!("version 1 at {}; give paths below it to --cgroup", mount.point.display()),
        ),
        (None, Some(mount)) => {
            let hybrid =
                if legacy.is_empty() { "" } else { " (other controllers are on version 1)" };
            let point = mount.point.display();
            finding(
                Status::Ok,
                format!("version 2 at {point}{hybrid}; give paths below it to --cgroup"),
            )
        }
        (None, None) => {
            finding(Status::Absent, "no cgroup file system with it is mounted".to_owned())
                .with_remedy("sudo mount -t cgroup2 none /sys/fs/cgroup".to_owned())
        }
    }]
}
