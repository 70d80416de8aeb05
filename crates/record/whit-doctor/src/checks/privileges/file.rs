//! The capabilities that the program's file lends, and to which users (`whit setup`).

use whit_sys::capability::{Capability, CapabilitySet};
use whit_sys::file_capability::FileCapabilities;

use crate::finding::{Area, Finding, Status};
use crate::machine::{Privileges, ProgramFile};
use crate::refusal::grant;

/// Whit makes use of it, but is not given it: it pins any amount of memory.
const HARMLESS_EXTRA: CapabilitySet = CapabilitySet::of(&[Capability::IpcLock]);

pub(super) fn check(privileges: &Privileges) -> Finding {
    let finding =
        |status, detail: String| Finding::new(Area::Privileges, "program's file", status, detail);
    let Some(file) = &privileges.program_file else {
        return finding(Status::Absent, "cannot be looked at".to_owned());
    };
    match file.capabilities {
        None if privileges.may_profile() => {
            finding(Status::Ok, "lends no capabilities, nor are they needed here".to_owned())
        }
        None => finding(Status::Degraded, "lends no capabilities".to_owned())
            .with_remedy(grant(privileges)),
        Some(lent) => {
            let (status, detail) = judge(lent, file, privileges);
            let remedy = match status {
                Status::Degraded => grant(privileges),
                Status::Refused => Some(way_out(file, privileges)),
                Status::Ok | Status::Absent => None,
            };
            finding(status, detail).with_remedy(remedy)
        }
    }
}

fn judge(lent: FileCapabilities, file: &ProgramFile, privileges: &Privileges) -> (Status, String) {
    let permitted = lent.permitted;
    let needed = CapabilitySet::for_profiling(privileges.knows_perfmon);
    let beyond = permitted.without(needed).without(HARMLESS_EXTRA);
    let lacking = needed.without(permitted);
    if let Some(why) = not_in_force(file, privileges) {
        return (Status::Refused, format!("lends {permitted}, but they do not count: {why}"));
    }
    if file.is_open_to_all() {
        return (Status::Degraded, format!("lends {permitted} to everybody on this machine"));
    }
    let group = &file.group;
    if !beyond.is_empty() {
        let detail = format!("lends group {group} {beyond}, which profiling does not need");
        return (Status::Degraded, detail);
    }
    if !lacking.is_empty() {
        return (Status::Degraded, format!("lends group {group} {permitted}, but not {lacking}"));
    }
    (Status::Ok, format!("lends group {group} {permitted}"))
}

/// Why the process of an ordinary user has no capability from the file.
fn not_in_force(file: &ProgramFile, privileges: &Privileges) -> Option<&'static str> {
    if privileges.euid == 0 || !privileges.borrowed.is_empty() {
        return None;
    }
    Some(if file.nosuid {
        "its file system is mounted nosuid"
    } else if privileges.no_new_privs {
        "no_new_privs is set, as services and containers do"
    } else if privileges.user_namespace {
        "this is a user namespace"
    } else {
        "the process is traced, or a security module forbids it"
    })
}

fn way_out(file: &ProgramFile, privileges: &Privileges) -> String {
    if file.nosuid {
        "put whit on a file system that is mounted without nosuid, and set it up there".to_owned()
    } else if privileges.no_new_privs {
        "start whit outside of what set it (systemd: NoNewPrivileges=no; docker: without \
         --security-opt no-new-privileges)"
            .to_owned()
    } else {
        "start whit outside of the namespace, the container and the debugger".to_owned()
    }
}
