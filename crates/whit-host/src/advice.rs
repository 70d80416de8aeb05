//! What would lift a refusal of `perf_event_open`.

use whit_perfdata::attr::pmu_type;
use whit_sys::Errno;

/// The command that gives whit the rights that profiling needs.
const GRANT: &str = "sudo \"$(command -v whit)\" setup --group perf_users";

/// A refusal and its circumstances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was to be done, as a gerund: `recording`.
    pub activity: &'static str,
    /// What the kernel said.
    pub errno: Errno,
    /// `perf_event_paranoid`.
    pub paranoid: i64,
    /// The event was for a whole CPU.
    pub is_system_wide: bool,
    /// The event covers kernel mode.
    pub wants_kernel: bool,
    /// The event wants branch records.
    pub wants_branches: bool,
    /// `perf_event_attr.type`.
    pub pmu_type: u32,
}

/// What an errno says of an event, with its name.
pub fn meaning(errno: Errno) -> String {
    match errno {
        Errno::NOENT => "not supported here (ENOENT)".to_owned(),
        Errno::OPNOTSUPP => "not supported here (EOPNOTSUPP)".to_owned(),
        Errno::NODEV => "no such device (ENODEV)".to_owned(),
        Errno::NXIO => "no such device (ENXIO)".to_owned(),
        Errno::ACCESS => "permission denied (EACCES)".to_owned(),
        Errno::PERM => "not permitted (EPERM)".to_owned(),
        Errno::INVAL => "not a valid combination (EINVAL)".to_owned(),
        Errno::NOSPC => "no counter left (ENOSPC)".to_owned(),
        Errno::BUSY => "in use (EBUSY)".to_owned(),
        Errno::MFILE => "too many open files (EMFILE)".to_owned(),
        Errno::NOMEM => "out of memory (ENOMEM)".to_owned(),
        other => other.to_string(),
    }
}

/// What the refusal means, and the command that would allow what was refused.
pub fn advice(refusal: &Refusal) -> String {
    match refusal.errno {
        Errno::ACCESS | Errno::PERM => permission(refusal),
        Errno::NOENT if refusal.pmu_type == pmu_type::TRACEPOINT => {
            "the kernel has no such tracepoint: see /sys/kernel/tracing/events".to_owned()
        }
        Errno::NOENT | Errno::OPNOTSUPP | Errno::INVAL if refusal.wants_branches => {
            "branch records (-b, -j, --call-graph lbr) need a hardware event and a CPU that keeps \
             them (Intel LBR, AMD BRS or LbrExtV2, Arm BRBE), which virtual machines rarely show: \
             leave them out, or take call chains with --call-graph dwarf; see whit doctor"
                .to_owned()
        }
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NXIO => {
            "this machine's PMU has no such event (virtual machines often have none): try \
             cpu-clock, or see whit doctor for what counts here"
                .to_owned()
        }
        Errno::BUSY => "another profiler holds the PMU for itself: find it with \
                        ls -l /proc/*/fd 2>/dev/null | grep perf_event"
            .to_owned(),
        Errno::NOSYS => {
            "this kernel was built without perf events (CONFIG_PERF_EVENTS), or a container's \
             seccomp filter hides them"
                .to_owned()
        }
        Errno::NOSPC => "the PMU has no counter left for it: ask for fewer events, or take it out \
                         of its group"
            .to_owned(),
        Errno::MFILE | Errno::NFILE => {
            "out of open files: raise the limit with ulimit -n, or ask for fewer threads".to_owned()
        }
        Errno::INVAL => "the kernel does not take this combination of event, modifiers and \
                         options: try it without modifiers (:p, :D, :e), then without -g or -d"
            .to_owned(),
        Errno::TOOBIG => "this kernel is too old for this event's extensions (config3)".to_owned(),
        _ => "see whit doctor for what can be recorded here".to_owned(),
    }
}

fn permission(refusal: &Refusal) -> String {
    // Levels of Documentation/admin-guide/sysctl/kernel.rst; 3 and above are distributions'.
    let (level, what) = match (refusal.is_system_wide, refusal.wants_kernel) {
        (true, _) => (0, "whole CPUs"),
        (false, true) => (1, "kernel mode"),
        (false, false) => (2, "at all"),
    };
    if refusal.pmu_type == pmu_type::TRACEPOINT {
        return format!(
            "tracepoints need kernel.perf_event_paranoid -1 (it is {}) or cap_perfmon: sysctl \
             kernel.perf_event_paranoid=-1, or {GRANT}",
            refusal.paranoid
        );
    }
    if refusal.paranoid > level {
        return format!(
            "{} {what} needs kernel.perf_event_paranoid {level} or lower (it is {}) or \
             cap_perfmon: sysctl kernel.perf_event_paranoid={level}, or {GRANT}",
            refusal.activity, refusal.paranoid
        );
    }
    format!(
        "the process belongs to another user, or a security module or container forbids it: \
         be its owner, or {GRANT}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Refusal = Refusal {
        activity: "recording",
        errno: Errno::ACCESS,
        paranoid: 2,
        is_system_wide: false,
        wants_kernel: false,
        wants_branches: false,
        pmu_type: pmu_type::SOFTWARE,
    };

    #[test]
    fn each_refusal_names_the_command_that_lifts_it() {
        let all = Refusal { is_system_wide: true, ..BASE };
        assert!(advice(&all).contains("sysctl kernel.perf_event_paranoid=0,"));
        let kernel = Refusal { wants_kernel: true, ..BASE };
        assert!(advice(&kernel).contains("sysctl kernel.perf_event_paranoid=1,"));
        let debian = Refusal { paranoid: 3, ..BASE };
        assert!(advice(&debian).contains("sysctl kernel.perf_event_paranoid=2,"));
        let others = Refusal { paranoid: 2, ..BASE };
        assert!(advice(&others).contains("another user"));
        let tracepoint = Refusal { pmu_type: pmu_type::TRACEPOINT, ..BASE };
        assert!(advice(&tracepoint).contains("kernel.perf_event_paranoid=-1,"));
        assert!(advice(&all).contains("setup --group perf_users"));
    }
}
