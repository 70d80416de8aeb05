//! The PMUs that sysfs lists.

use std::fs;

use whit_events::{Pmu, PmuTable, TYPE_BREAKPOINT, TYPE_SOFTWARE, TYPE_TRACEPOINT};

use crate::checks::machine::is_virtual;
use crate::checks::{no_pmus, several};
use crate::finding::{Area, Finding, Status};
use crate::machine::Machine;

/// Reads the table and adds findings about it.
pub(super) fn read(machine: &Machine, findings: &mut Vec<Finding>) -> PmuTable {
    let table = match PmuTable::from_sysfs(&machine.sys("bus/event_source/devices")) {
        Ok(table) => table,
        Err(error) => {
            let finding = Finding::new(Area::Pmus, "PMUs", Status::Absent, error.to_string());
            findings.push(finding.with_remedy("sudo mount -t sysfs sysfs /sys".to_owned()));
            return no_pmus();
        }
    };
    findings.extend(core_pmu(machine, &table));
    let hardware = table
        .pmus
        .iter()
        .filter(|pmu| ![TYPE_SOFTWARE, TYPE_TRACEPOINT, TYPE_BREAKPOINT].contains(&pmu.pmu_type));
    findings
        .extend(hardware.map(|pmu| Finding::new(Area::Pmus, &pmu.name, Status::Ok, describe(pmu))));
    findings.extend(table.problems.iter().map(|problem| {
        Finding::new(Area::Pmus, &problem.path, Status::Degraded, problem.why.clone())
    }));
    table
}

fn core_pmu(machine: &Machine, table: &PmuTable) -> Option<Finding> {
    if table.core_pmus().next().is_some() {
        return None;
    }
    let cpuinfo = fs::read_to_string(machine.proc("cpuinfo")).unwrap_or_default();
    let (detail, remedy) = if is_virtual(&cpuinfo) {
        (
            "the hypervisor shows no hardware counters to this virtual machine",
            "on the host, give the machine a PMU (QEMU/KVM: -cpu host,pmu=on)",
        )
    } else {
        (
            "the kernel drives no hardware counters of this processor",
            "look for the PMU driver: sudo dmesg | grep -i 'performance events'",
        )
    };
    let finding = Finding::new(Area::Pmus, "core PMU", Status::Absent, detail);
    Some(finding.with_remedy(remedy.to_owned()))
}

fn describe(pmu: &Pmu) -> String {
    let cpus = match &pmu.cpus {
        Some(cpus) => format!(", opened on {}", several(cpus.len(), "CPU")),
        None => String::new(),
    };
    let precise = match pmu.max_precise {
        Some(level) if level > 0 => format!(", precise_ip up to {level}"),
        _ => String::new(),
    };
    let fields = several(pmu.formats.len(), "field");
    let events = several(pmu.events.len(), "named event");
    format!("type {}, {fields}, {events}{cpus}{precise}", pmu.pmu_type)
}
