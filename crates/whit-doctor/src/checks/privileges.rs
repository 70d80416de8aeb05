//! Capabilities, user namespace, seccomp.

use whit_sys::capability::Capability;

use crate::finding::{Area, Finding, Status};
use crate::machine::Privileges;
use crate::refusal::grant;

pub(super) fn check(privileges: &Privileges) -> Vec<Finding> {
    let user = match privileges.euid {
        0 => "root".to_owned(),
        uid => format!("user id {uid}"),
    };
    let mut findings = vec![Finding::new(Area::Privileges, "user", Status::Ok, user)];
    findings.extend(Capability::ALL.into_iter().map(|capability| one(capability, privileges)));
    if privileges.user_namespace {
        let detail = "in a user namespace: capabilities held here do not count for perf events";
        findings.push(
            Finding::new(Area::Privileges, "user namespace", Status::Degraded, detail)
                .with_remedy("run whit outside the namespace, or allow all users: sudo sysctl kernel.perf_event_paranoid=-1".to_owned()),
        );
    }
    if privileges.seccomp {
        let detail = "a filter decides on system calls, as in containers";
        findings.push(Finding::new(Area::Privileges, "seccomp", Status::Ok, detail));
    }
    findings
}

fn one(capability: Capability, privileges: &Privileges) -> Finding {
    let finding =
        |status, detail: String| Finding::new(Area::Privileges, capability.name(), status, detail);
    let purpose = purpose(capability);
    if privileges.effective.has(capability) {
        return finding(Status::Ok, format!("held: {purpose}"));
    }
    match capability {
        Capability::SysAdmin if privileges.knows_perfmon => {
            finding(Status::Ok, "not held, nor needed: cap_perfmon and cap_bpf do".to_owned())
        }
        Capability::SysResource => finding(Status::Ok, format!("not held: {purpose}")),
        Capability::PerfMon | Capability::Bpf if !privileges.knows_perfmon => {
            finding(Status::Absent, "this kernel has cap_sys_admin for it".to_owned())
        }
        _ => {
            let granted = grant(privileges).filter(|_| privileges.bounding.has(capability));
            let remedy = granted.unwrap_or_else(|| out_of_reach(capability));
            finding(Status::Degraded, format!("not held: {purpose}")).with_remedy(remedy)
        }
    }
}

fn out_of_reach(capability: Capability) -> String {
    let name = capability.name().trim_start_matches("cap_").to_uppercase();
    format!(
        "no program can gain it here; start the container or service with it (docker: --cap-add={name})"
    )
}

fn purpose(capability: Capability) -> &'static str {
    match capability {
        Capability::PerfMon => "any perf event, whatever perf_event_paranoid says",
        Capability::SysAdmin => "the old catch-all for perf events and BPF",
        Capability::SysPtrace => "processes of other users, and their maps",
        Capability::Syslog => "kernel addresses in /proc/kallsyms",
        Capability::Bpf => "BPF programs: the bpf engine",
        Capability::IpcLock => "rings larger than perf_event_mlock_kb",
        Capability::SysResource => "limits above the hard ones",
    }
}
