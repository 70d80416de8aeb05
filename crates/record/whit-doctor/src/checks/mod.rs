//! The checks, one file for each thing looked at.

mod cgroups;
mod cost;
mod events;
mod limits;
mod machine;
mod mounts;
mod pmus;
mod privileges;
mod recording;
mod runtimes;
mod sampling;
mod settings;
mod symbols;
mod tracing;

pub use runtimes::check_processes;
use whit_events::PmuTable;
use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat};

use crate::finding::{Area, Finding, Report, Status};
use crate::machine::{Machine, Privileges};

/// Runs all checks. A check that cannot run is a finding too.
pub fn run(machine: &mut Machine) -> Report {
    let mut findings = machine::check(machine);
    let privileges = match Privileges::read(machine) {
        Ok(privileges) => privileges,
        Err(error) => {
            let path = machine.proc("self/status");
            let detail = format!("{} cannot be read: {error}", path.display());
            let remedy = "sudo mount -t proc proc /proc".to_owned();
            findings.push(
                Finding::new(Area::Privileges, "process status", Status::Refused, detail)
                    .with_remedy(remedy),
            );
            return Report { findings, costs: Vec::new() };
        }
    };
    let table = pmus::read(machine, &mut findings);
    findings.extend(settings::check(machine, &privileges));
    findings.extend(limits::check(machine));
    findings.extend(privileges::check(machine, &privileges));
    findings.extend(events::check(machine, &privileges));
    findings.extend(sampling::check(machine, &privileges, &table));
    findings.extend(tracing::check(machine, &privileges));
    findings.extend(cgroups::check(machine));
    findings.extend(symbols::check(machine, &privileges));
    findings.extend(recording::check(machine, &privileges));
    let costs = cost::measure(machine, &privileges);
    findings.sort_by_key(|finding| Area::ALL.iter().position(|area| *area == finding.area));
    Report { findings, costs }
}

/// Which of the two sides of a system call an event counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Both,
    UserOnly,
}

/// An attribute that counts, disabled until told, with the times that tell a scheduled event
/// from one that waits.
fn counting(pmu_type: u32, config: u64, side: Side) -> Attr {
    let flags = AttrFlags::DISABLED | AttrFlags::EXCLUDE_GUEST | AttrFlags::EXCLUDE_HV;
    Attr {
        pmu_type,
        config,
        read_format: ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING,
        flags: flags.with(AttrFlags::EXCLUDE_KERNEL, side == Side::UserOnly),
        ..Attr::default()
    }
}

/// The side that this process may count without asking for more.
pub(crate) fn usual_side(privileges: &Privileges) -> Side {
    let kernel_allowed = privileges.may_profile() || privileges.paranoid.is_some_and(|p| p <= 1);
    if kernel_allowed { Side::Both } else { Side::UserOnly }
}

/// An empty table where sysfs could not be read: that is reported on its own.
fn no_pmus() -> PmuTable {
    PmuTable::default()
}

/// `1 CPU`, `2 CPUs`
pub(crate) fn several(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
