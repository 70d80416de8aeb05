//! What an errno of `perf_event_open(2)` means here, and the way out.

use whit_sys::Errno;
use whit_sys::capability::CapabilitySet;

use crate::finding::Status;
use crate::machine::{Privileges, ProgramFile};

/// The highest `perf_event_paranoid` that allows each thing to a user without capabilities
/// (`perf_allow_kernel`, `perf_allow_cpu`, `perf_allow_tracepoint` in
/// `include/linux/perf_event.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    /// Own processes in user space. Upstream kernels always allow it; those of Debian, Ubuntu and
    /// Android know levels above 2 that do not.
    OwnUser = 2,
    /// The kernel on behalf of own processes.
    Kernel = 1,
    /// Whole CPUs.
    SystemWide = 0,
    /// The contents of tracepoints.
    RawTracepoints = -1,
}

/// What a refusal comes to.
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) detail: String,
    pub(crate) remedy: Option<String>,
}

/// Explains why opening an event failed.
pub(crate) fn explain(error: Errno, needs: Needs, privileges: &Privileges) -> Refusal {
    let absent =
        |detail: &str| Refusal { status: Status::Absent, detail: detail.into(), remedy: None };
    match error {
        Errno::NOENT => absent("no PMU here has it (ENOENT)"),
        Errno::NODEV | Errno::NXIO => absent("the PMU is not there (ENODEV)"),
        Errno::OPNOTSUPP => absent("the hardware cannot do it (EOPNOTSUPP)"),
        Errno::INVAL => absent("this kernel does not know it (EINVAL)"),
        Errno::NOSYS => Refusal {
            status: if privileges.seccomp { Status::Refused } else { Status::Absent },
            detail: "there is no perf_event_open here (ENOSYS)".into(),
            remedy: Some(no_system_call(privileges)),
        },
        Errno::ACCESS | Errno::PERM => permission(error, needs, privileges),
        Errno::MFILE => Refusal {
            status: Status::Refused,
            detail: "too many open files (EMFILE)".into(),
            remedy: Some("ulimit -n \"$(ulimit -Hn)\"".into()),
        },
        Errno::BUSY => Refusal {
            status: Status::Degraded,
            detail: "somebody else holds the counters exclusively (EBUSY)".into(),
            remedy: Some("sudo sysctl kernel.nmi_watchdog=0".into()),
        },
        other => Refusal {
            status: Status::Refused,
            detail: format!("perf_event_open says: {other}"),
            remedy: None,
        },
    }
}

fn no_system_call(privileges: &Privileges) -> String {
    if privileges.seccomp {
        CONTAINER.to_owned()
    } else {
        "run a kernel that was built with CONFIG_PERF_EVENTS".to_owned()
    }
}

/// How a container is started so that perf events work in it.
const CONTAINER: &str = "start the container with --cap-add=PERFMON and a seccomp profile that allows perf_event_open \
     (docker: --security-opt seccomp=unconfined)";

fn permission(error: Errno, needs: Needs, privileges: &Privileges) -> Refusal {
    let name = if error == Errno::PERM { "EPERM" } else { "EACCES" };
    let level = needs as i64;
    let allowed_by_level = privileges.paranoid.is_some_and(|paranoid| paranoid <= level);
    let (reason, remedy) = if privileges.may_profile() || allowed_by_level {
        match privileges.seccomp {
            true => {
                ("the container's seccomp filter forbids it".to_owned(), Some(CONTAINER.into()))
            }
            false => (
                "a security module or kernel lockdown forbids it".to_owned(),
                Some("sudo dmesg | grep -iE 'lockdown|selinux|apparmor|avc'".to_owned()),
            ),
        }
    } else {
        let paranoid = privileges.paranoid.map_or("unknown".into(), |value| value.to_string());
        (format!("perf_event_paranoid is {paranoid}"), Some(allow(needs, privileges)))
    };
    Refusal { status: Status::Refused, detail: format!("{reason} ({name})"), remedy }
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

/// Who may use whit where nobody was asked yet.
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
