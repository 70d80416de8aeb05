//! Capabilities, user namespace, seccomp.

use whit_sys::capability::Capability;

use crate::finding::{Area, Finding, Status};
use crate::machine::{Machine, Privileges};
use crate::refusal::grant;

mod file;

/// `perf_event_mlock_kb` for rings of 4 MiB, beyond which larger ones gain little.
const LARGE_MLOCK_KB: i64 = 4100;

pub(super) fn check(machine: &Machine, privileges: &Privileges) -> Vec<Finding> {
    let user = match privileges.euid {
        0 => "root".to_owned(),
        uid => format!("user id {uid}"),
    };
    let mut findings = vec![Finding::new(Area::Privileges, "user", Status::Ok, user)];
    findings.push(file::check(privileges));
    findings.extend(Capability::ALL.into_iter().map(|capability| match capability {
        Capability::IpcLock => lock_memory(machine, privileges),
        other => one(other, privileges),
    }));
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
    if let Some(held) = held(capability, privileges) {
        return held;
    }
    match capability {
        Capability::SysAdmin if privileges.knows_perfmon => {
            finding(Status::Ok, "not held, nor needed: cap_perfmon and cap_bpf do".to_owned())
        }
        Capability::SysResource => {
            finding(Status::Ok, format!("not held, nor needed: it is for {purpose}"))
        }
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

fn held(capability: Capability, privileges: &Privileges) -> Option<Finding> {
    let purpose = purpose(capability);
    let detail = if privileges.borrowed.has(capability) {
        format!("lent by the program's file: {purpose}")
    } else if privileges.effective.has(capability) {
        format!("held: {purpose}")
    } else {
        return None;
    };
    Some(Finding::new(Area::Privileges, capability.name(), Status::Ok, detail))
}

/// `whit setup` does not grant this capability: it pins any amount of memory, while the setting has
/// a bound.
fn lock_memory(machine: &Machine, privileges: &Privileges) -> Finding {
    let capability = Capability::IpcLock;
    held(capability, privileges).unwrap_or_else(|| {
        let detail = format!("not held: {}", purpose(capability));
        let finding = |status| Finding::new(Area::Privileges, capability.name(), status, &*detail);
        match machine.setting("perf_event_mlock_kb") {
            Some(kb) if kb >= LARGE_MLOCK_KB => {
                let detail = format!("not held, nor needed: perf_event_mlock_kb is {kb}");
                Finding::new(Area::Privileges, capability.name(), Status::Ok, detail)
            }
            _ => finding(Status::Degraded)
                .with_remedy(format!("sudo sysctl kernel.perf_event_mlock_kb={LARGE_MLOCK_KB}")),
        }
    })
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
