//! The meaning of an errno of `perf_event_open(2)` on this machine, and the remedy.

use whit_host::advice::{self, Kind};
use whit_perfdata::attr::pmu_type;
use whit_sys::Errno;
use whit_sys::capability::CapabilitySet;

pub(crate) use whit_host::advice::Needs;

use crate::finding::Status;
use crate::machine::{Privileges, ProgramFile};

/// The cause and the remedy of a refusal.
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) detail: String,
    pub(crate) remedy: Option<String>,
}

/// Explains why opening an event failed.
pub(crate) fn explain(error: Errno, needs: Needs, privileges: &Privileges) -> Refusal {
    explain_event(error, needs, privileges, false)
}

/// The same of an event with branch records.
pub(crate) fn explain_branches(error: Errno, privileges: &Privileges) -> Refusal {
    explain_event(error, Needs::OwnUser, privileges, true)
}

fn explain_event(
    error: Errno,
    needs: Needs,
    privileges: &Privileges,
    wants_branches: bool,
) -> Refusal {
    let explanation = advice::explain(&advice::Refusal {
        activity: "recording",
        errno: error,
        paranoid: privileges.paranoid,
        may_profile: privileges.may_profile(),
        is_filtered: privileges.is_filtered,
        needs,
        wants_branches,
        pmu_type: pmu_type::SOFTWARE,
    });
    let status = match explanation.kind {
        Kind::Absent => Status::Absent,
        Kind::Taken => Status::Degraded,
        Kind::NotPermitted | Kind::NoRoom | Kind::Other => Status::Refused,
    };
    let remedy = explanation.command.map(str::to_owned);
    let (cause, remedy) = match (explanation.kind, explanation.brief) {
        (Kind::NotPermitted, "") => {
            let paranoid = privileges.paranoid.map_or("unknown".into(), |level| level.to_string());
            (format!("perf_event_paranoid is {paranoid}"), Some(allow(needs, privileges)))
        }
        (_, "") => {
            let detail = format!("perf_event_open says: {error}");
            return Refusal { status, detail, remedy };
        }
        (_, brief) => (brief.to_owned(), remedy),
    };
    Refusal { status, detail: format!("{cause} ({})", advice::name(error)), remedy }
}

/// The commands that allow it: for everybody, and for this program alone.
pub(crate) fn allow(needs: Needs, privileges: &Privileges) -> String {
    let for_all = format!("sudo sysctl kernel.perf_event_paranoid={}", needs as i64);
    or_for_one(for_all, privileges)
}

/// Adds the command that serves this program alone, where there is one.
pub(crate) fn or_for_one(for_all: String, privileges: &Privileges) -> String {
    match grant(privileges) {
        Some(for_one) => format!("{for_all}, or for this program alone: {for_one}"),
        None => for_all,
    }
}

/// Suggested name for the group of users who may run whit.
const GROUP: &str = "perf_users";

/// The command that gives this program every capability that recording makes use of, for the
/// members of a group. `None` where the one that perf events need is out of reach or would mean
/// nothing.
pub(crate) fn grant(privileges: &Privileges) -> Option<String> {
    let needed = CapabilitySet::for_profiling(privileges.knows_perfmon);
    let out_of_reach = !needed.without(privileges.bounding).is_empty();
    if out_of_reach || privileges.user_namespace || privileges.no_new_privs {
        return None;
    }
    let is_set_up = |file: &&ProgramFile| file.capabilities.is_some() && !file.is_open_to_all();
    let file = privileges.program_file.as_ref().filter(is_set_up);
    let group = file.map_or(GROUP, |file| &file.group);
    Some(format!("sudo {} setup --group {group}", shell_word(&privileges.program)))
}

/// A path as a shell takes it.
fn shell_word(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
