//! The one table of refusals: from the errno of `perf_event_open` and the situation to the cause and the remedy.

use whit_perfdata::attr::pmu_type;
use whit_sys::Errno;

use crate::rights::Rights;

/// The command that gives whit the rights that profiling needs.
const GRANT: &str = "sudo \"$(command -v whit)\" setup --group perf_users";

/// How a container is started so that perf events work in it.
pub const CONTAINER: &str = "start the container with --cap-add=PERFMON and a seccomp profile that allows perf_event_open \
     (docker: --security-opt seccomp=unconfined)";

/// The way out where a seccomp filter refuses `perf_event_open`.
const FILTER: &str = "a seccomp filter of this process refuses perf_event_open, and root cannot lift it: in a container, \
     start it with --cap-add=PERFMON and a seccomp profile that allows perf_event_open (docker: \
     --security-opt seccomp=unconfined); in a service of systemd, allow it in SystemCallFilter=";

/// The highest `perf_event_paranoid` that allows each thing to a user without capabilities
/// (`perf_allow_kernel`, `perf_allow_cpu`, `perf_allow_tracepoint` in
/// `include/linux/perf_event.h`; levels of `Documentation/admin-guide/sysctl/kernel.rst`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
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

/// A refusal and its circumstances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The refused activity, as a gerund: `recording`.
    pub activity: &'static str,
    /// The kernel's error.
    pub errno: Errno,
    /// `perf_event_paranoid`, where the kernel says it.
    pub paranoid: Option<i64>,
    /// Capabilities lift that level.
    pub may_profile: bool,
    /// A seccomp filter refuses `perf_event_open`, as in most containers.
    pub is_filtered: bool,
    /// The needs of the event.
    pub needs: Needs,
    /// The event wants branch records.
    pub wants_branches: bool,
    /// `perf_event_attr.type`.
    pub pmu_type: u32,
}

impl Refusal {
    /// A refusal of an event of this kind by a machine that grants these rights.
    pub fn new(activity: &'static str, errno: Errno, rights: Rights, pmu_type: u32) -> Refusal {
        Refusal {
            activity,
            errno,
            paranoid: Some(rights.paranoid),
            may_profile: rights.may_profile,
            is_filtered: rights.is_filtered,
            needs: Needs::OwnUser,
            wants_branches: false,
            pmu_type,
        }
    }

    /// The same of an event that covers whole CPUs, or kernel mode.
    #[must_use]
    pub fn covering(self, is_system_wide: bool, wants_kernel: bool) -> Refusal {
        let needs = match (is_system_wide, wants_kernel) {
            _ if self.pmu_type == pmu_type::TRACEPOINT => Needs::RawTracepoints,
            (true, _) => Needs::SystemWide,
            (false, true) => Needs::Kernel,
            (false, false) => Needs::OwnUser,
        };
        Refusal { needs, ..self }
    }

    fn matches(&self, when: When) -> bool {
        match when {
            When::Always => true,
            When::Tracepoint => self.pmu_type == pmu_type::TRACEPOINT,
            When::Branches => self.wants_branches,
            When::Seccomp => self.is_filtered,
            When::AboveLevel => {
                !self.may_profile && self.paranoid.is_none_or(|level| level > self.needs as i64)
            }
        }
    }
}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The machine or its kernel does not have it.
    Absent,
    /// This user may not.
    NotPermitted,
    /// Somebody else has it.
    Taken,
    /// There is no room for it.
    NoRoom,
    /// A refusal of another kind.
    Other,
}

/// The explanation of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The kind of the refusal.
    pub kind: Kind,
    /// The cause in a few words; empty where the level of `perf_event_paranoid` is the cause, or nothing is known.
    pub brief: &'static str,
    /// A command that helps, or finds out more; `None` where none does, or it is one that depends on the user.
    pub command: Option<&'static str>,
    /// A sentence with the way out.
    advice: &'static str,
}

/// Beside the errno, what a row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    Tracepoint,
    Branches,
    Seccomp,
    /// `perf_event_paranoid` forbids it.
    AboveLevel,
}

struct Row {
    errnos: &'static [Errno],
    when: When,
    explanation: Explanation,
}

const fn row(
    errnos: &'static [Errno],
    when: When,
    kind: Kind,
    brief: &'static str,
    command: Option<&'static str>,
    advice: &'static str,
) -> Row {
    Row { errnos, when, explanation: Explanation { kind, brief, command, advice } }
}

/// The first row that fits holds.
const TABLE: [Row; 16] = [
    row(
        &[Errno::ACCESS, Errno::PERM],
        When::Seccomp,
        Kind::NotPermitted,
        "a seccomp filter forbids it",
        Some(CONTAINER),
        FILTER,
    ),
    row(
        &[Errno::ACCESS, Errno::PERM],
        When::AboveLevel,
        Kind::NotPermitted,
        "",
        None,
        "", // Worded by `permission`.
    ),
    row(
        &[Errno::ACCESS, Errno::PERM],
        When::Always,
        Kind::NotPermitted,
        "a security module or kernel lockdown forbids it",
        Some("sudo dmesg | grep -iE 'lockdown|selinux|apparmor|avc'"),
        "the process belongs to another user, or a security module or container forbids it: \
         be its owner, or sudo \"$(command -v whit)\" setup --group perf_users",
    ),
    row(
        &[Errno::NOENT],
        When::Tracepoint,
        Kind::Absent,
        "the kernel has no such tracepoint",
        None,
        "the kernel has no such tracepoint: see /sys/kernel/tracing/events",
    ),
    row(
        &[Errno::NOENT, Errno::OPNOTSUPP, Errno::INVAL],
        When::Branches,
        Kind::Absent,
        "the CPU keeps no branch records, or does not show them",
        None,
        "branch records (-b, -j, --call-graph lbr) need a hardware event and a CPU that keeps \
         them (Intel LBR, AMD BRS or LbrExtV2, Arm BRBE), which virtual machines rarely show: \
         leave them out, or take call chains with --call-graph dwarf; see whit doctor",
    ),
    row(
        &[Errno::NOENT],
        When::Always,
        Kind::Absent,
        "no PMU here has it",
        None,
        "no PMU of this machine has this event (virtual machines often have none): try \
         cpu-clock, or see whit doctor for what counts here",
    ),
    row(
        &[Errno::NODEV, Errno::NXIO],
        When::Always,
        Kind::Absent,
        "the PMU is not there",
        None,
        "this machine does not have the event's PMU, or not on this CPU (virtual machines often \
         have none): try cpu-clock, or see whit doctor for what counts here",
    ),
    row(
        &[Errno::OPNOTSUPP],
        When::Always,
        Kind::Absent,
        "the hardware cannot do it",
        None,
        "this machine's hardware cannot do that with this event (virtual machines often cannot \
         sample hardware events): try it without modifiers (:p), try cpu-clock, or see whit doctor \
         for what counts here",
    ),
    row(
        &[Errno::INVAL],
        When::Always,
        Kind::Absent,
        "the kernel does not know it, or not in this combination",
        None,
        "the kernel does not take this combination of event, modifiers and options: try it \
         without modifiers (:p, :D, :e), then without -g or -d",
    ),
    row(
        &[Errno::NOSYS],
        When::Seccomp,
        Kind::NotPermitted,
        "there is no perf_event_open here",
        Some(CONTAINER),
        FILTER,
    ),
    row(
        &[Errno::NOSYS],
        When::Always,
        Kind::Absent,
        "there is no perf_event_open here",
        Some("run a kernel that was built with CONFIG_PERF_EVENTS"),
        "this kernel was built without perf events (CONFIG_PERF_EVENTS), or a container's \
         seccomp filter hides them",
    ),
    row(
        &[Errno::BUSY],
        When::Always,
        Kind::Taken,
        "another profiler holds the PMU for itself",
        Some("sudo sh -c 'ls -l /proc/[0-9]*/fd' 2>/dev/null | grep perf_event"),
        "another profiler holds the PMU for itself: find it with \
         ls -l /proc/*/fd 2>/dev/null | grep perf_event",
    ),
    row(
        &[Errno::NOSPC],
        When::Always,
        Kind::NoRoom,
        "the PMU has no counter left",
        None,
        "the PMU has no counter left for it: ask for fewer events, or take it out of its group",
    ),
    row(
        &[Errno::MFILE, Errno::NFILE],
        When::Always,
        Kind::NoRoom,
        "too many open files",
        Some("ulimit -n \"$(ulimit -Hn)\""),
        "out of open files: raise the limit with ulimit -n, or ask for fewer threads",
    ),
    row(
        &[Errno::TOOBIG],
        When::Always,
        Kind::Absent,
        "this kernel is too old for it",
        None,
        "this kernel is too old for this event's extensions (config3)",
    ),
    row(&[], When::Always, Kind::Other, "", None, "see whit doctor for what can be recorded here"),
];

/// The explanation of a refusal.
pub fn explain(refusal: &Refusal) -> &'static Explanation {
    let fits = |row: &&Row| {
        (row.errnos.is_empty() || row.errnos.contains(&refusal.errno)) && refusal.matches(row.when)
    };
    &TABLE.iter().find(fits).unwrap_or(&TABLE[TABLE.len() - 1]).explanation
}

/// The meaning of each errno for an event if nothing else is known, with its name.
const MEANINGS: [(Errno, &str, &str); 15] = [
    (Errno::NOENT, "not supported here", "ENOENT"),
    (Errno::OPNOTSUPP, "not supported here", "EOPNOTSUPP"),
    (Errno::NODEV, "no such device", "ENODEV"),
    (Errno::NXIO, "no such device", "ENXIO"),
    (Errno::ACCESS, "permission denied", "EACCES"),
    (Errno::PERM, "not permitted", "EPERM"),
    (Errno::INVAL, "not a valid combination", "EINVAL"),
    (Errno::NOSPC, "no counter left", "ENOSPC"),
    (Errno::BUSY, "in use", "EBUSY"),
    (Errno::MFILE, "too many open files", "EMFILE"),
    (Errno::NFILE, "too many open files on this machine", "ENFILE"),
    (Errno::NOMEM, "out of memory", "ENOMEM"),
    (Errno::NOSYS, "no such system call", "ENOSYS"),
    (Errno::TOOBIG, "unknown to this kernel", "E2BIG"),
    (Errno::SRCH, "no such process", "ESRCH"),
];

/// The meaning of an errno for an event, with its name.
pub fn meaning(errno: Errno) -> String {
    match MEANINGS.iter().find(|(known, ..)| *known == errno) {
        Some((_, meaning, name)) => format!("{meaning} ({name})"),
        None => errno.to_string(),
    }
}

/// The name of an errno.
pub fn name(errno: Errno) -> String {
    let known = MEANINGS.iter().find(|(known, ..)| *known == errno);
    known.map_or_else(|| errno.raw_os_error().to_string(), |(.., name)| (*name).to_owned())
}

/// The meaning of the refusal, and the command that lifts it.
pub fn advice(refusal: &Refusal) -> String {
    match explain(refusal) {
        Explanation { kind: Kind::NotPermitted, advice: "", .. } => permission(refusal),
        explanation => explanation.advice.to_owned(),
    }
}

/// The restriction of a level of `perf_event_paranoid`, and the command that lifts it.
fn permission(refusal: &Refusal) -> String {
    let level = refusal.needs as i64;
    let paranoid = refusal.paranoid.map_or("unknown".to_owned(), |level| level.to_string());
    let what = match refusal.needs {
        Needs::SystemWide => "whole CPUs",
        Needs::Kernel => "kernel mode",
        Needs::OwnUser => "at all",
        Needs::RawTracepoints => {
            return format!(
                "tracepoints need kernel.perf_event_paranoid -1 (it is {paranoid}) or \
                 cap_perfmon: sysctl kernel.perf_event_paranoid=-1, or {GRANT}"
            );
        }
    };
    format!(
        "{} {what} needs kernel.perf_event_paranoid {level} or lower (it is {paranoid}) or \
         cap_perfmon: sysctl kernel.perf_event_paranoid={level}, or {GRANT}",
        refusal.activity
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(errno: Errno) -> Refusal {
        let rights = Rights { paranoid: 2, may_profile: false, is_filtered: false };
        Refusal::new("recording", errno, rights, pmu_type::SOFTWARE)
    }

    #[test]
    fn each_refusal_names_the_command_that_lifts_it() {
        let base = base(Errno::ACCESS);
        let all = base.covering(true, false);
        assert!(advice(&all).contains("sysctl kernel.perf_event_paranoid=0,"));
        let kernel = base.covering(false, true);
        assert!(advice(&kernel).contains("sysctl kernel.perf_event_paranoid=1,"));
        let debian = Refusal { paranoid: Some(3), ..base };
        assert!(advice(&debian).contains("sysctl kernel.perf_event_paranoid=2,"));
        assert!(advice(&base).contains("another user"));
        let tracepoint = Refusal { pmu_type: pmu_type::TRACEPOINT, ..base }.covering(false, false);
        assert!(advice(&tracepoint).contains("kernel.perf_event_paranoid=-1,"));
        assert!(advice(&all).contains("setup --group perf_users"));
        let root = Refusal { may_profile: true, ..all };
        assert!(advice(&root).contains("security module"));
        assert!(advice(&Refusal { is_filtered: true, ..root }).contains("seccomp=unconfined"));
        let confined = advice(&Refusal { is_filtered: true, ..all });
        assert!(
            confined.contains("seccomp=unconfined") && !confined.contains("sysctl"),
            "{confined}"
        );
        let unknown = Refusal { paranoid: None, ..all };
        assert!(advice(&unknown).contains("(it is unknown)"));
    }

    #[test]
    fn every_row_is_reached_and_gives_its_meaning() {
        use Errno as E;
        let plain = base;
        let branches = |errno| Refusal { wants_branches: true, ..base(errno) };
        let confined = |errno| Refusal { is_filtered: true, ..base(errno) };
        let tracepoint = Refusal { pmu_type: pmu_type::TRACEPOINT, ..base(E::NOENT) };
        let level = base(E::PERM).covering(true, true);
        let cases = [
            (vec![confined(E::PERM), confined(E::ACCESS)], Kind::NotPermitted, "seccomp", "docker"),
            (vec![level], Kind::NotPermitted, "", "whole CPUs needs"),
            (vec![plain(E::PERM), plain(E::ACCESS)], Kind::NotPermitted, "lockdown", "its owner"),
            (vec![tracepoint], Kind::Absent, "no such tracepoint", "/sys/kernel/tracing/events"),
            (
                vec![branches(E::NOENT), branches(E::OPNOTSUPP), branches(E::INVAL)],
                Kind::Absent,
                "no branch records",
                "--call-graph dwarf",
            ),
            (vec![plain(E::NOENT)], Kind::Absent, "no PMU here has it", "cpu-clock"),
            (vec![plain(E::NODEV), plain(E::NXIO)], Kind::Absent, "PMU is not there", "cpu-clock"),
            (vec![plain(E::OPNOTSUPP)], Kind::Absent, "hardware cannot do it", "without modifiers"),
            (vec![plain(E::INVAL)], Kind::Absent, "not in this combination", "without modifiers"),
            (vec![confined(E::NOSYS)], Kind::NotPermitted, "no perf_event_open", "--cap-add"),
            (vec![plain(E::NOSYS)], Kind::Absent, "no perf_event_open", "CONFIG_PERF_EVENTS"),
            (vec![plain(E::BUSY)], Kind::Taken, "holds the PMU", "grep perf_event"),
            (vec![plain(E::NOSPC)], Kind::NoRoom, "no counter left", "fewer events"),
            (vec![plain(E::MFILE), plain(E::NFILE)], Kind::NoRoom, "open files", "ulimit -n"),
            (vec![plain(E::TOOBIG)], Kind::Absent, "too old", "config3"),
            (vec![plain(E::IO), plain(E::NOMEM)], Kind::Other, "", "whit doctor"),
        ];
        assert_eq!(cases.len(), TABLE.len());
        for ((refusals, kind, brief, way_out), row) in cases.iter().zip(&TABLE) {
            for refusal in refusals {
                let found = explain(refusal);
                assert_eq!(*found, row.explanation, "{refusal:?}");
                assert!(found.kind == *kind && found.brief.contains(brief), "{found:?}");
                assert!(advice(refusal).contains(way_out), "{}", advice(refusal));
            }
            let covered = refusals.iter().map(|refusal| refusal.errno).collect::<Vec<_>>();
            let is_level = row.when == When::AboveLevel;
            assert!(is_level || row.errnos.iter().all(|errno| covered.contains(errno)));
        }
    }
}
