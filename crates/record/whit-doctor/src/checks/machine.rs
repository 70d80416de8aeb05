//! Kernel, processor, hypervisor.

use std::fs;

use crate::checks::several;
use crate::finding::{Area, Finding, Status};
use crate::machine::Machine;

pub(super) fn check(machine: &Machine) -> Vec<Finding> {
    let finding = |what, detail| Finding::new(Area::Machine, what, Status::Ok, detail);
    let cpuinfo = fs::read_to_string(machine.proc("cpuinfo")).unwrap_or_default();
    let online = several(machine.cpus().len(), "CPU");
    let processor = field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "CPU part"));
    let processor = processor.unwrap_or("unknown processor");
    let mut findings = vec![
        finding("kernel", format!("Linux {} on {}", machine.release, machine.machine)),
        finding("processor", format!("{processor}, {online} online")),
    ];
    if is_virtual(&cpuinfo) {
        let detail = "this is a virtual machine: counters are the host's to give, and reading one may \
                      trap";
        findings.push(finding("hypervisor", detail.to_owned()));
    }
    findings
}

/// Whether the processor's flags say that a hypervisor runs it (x86).
pub(super) fn is_virtual(cpuinfo: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

fn field<'t>(cpuinfo: &'t str, name: &str) -> Option<&'t str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}
