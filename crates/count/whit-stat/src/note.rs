//! Remarks in text beside counts, on how they were taken.

use std::fmt;

/// One remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Note {
    /// Cgroups were counted by BPF.
    ByBpf { cgroups: usize, events: usize, cpus: usize },
    /// Cgroups were counted by the kernel's cgroup events.
    ByKernel { cgroups: usize },
    /// Tasks that are moved while they run are noticed late.
    MovesAtSwitches,
    /// Reads of events that the kernel refused.
    FailedReads(u64),
    /// Switches of tasks that the kernel did not show.
    UnseenSwitches(u64),
    /// Cgroups too deep to be told from uncounted ones.
    TooDeep(u64),
}

/// So many of something.
fn of(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl Note {
    /// Whether it is about something that went wrong while counting.
    pub fn is_finding(&self) -> bool {
        match self {
            Note::ByBpf { .. } | Note::ByKernel { .. } | Note::MovesAtSwitches => false,
            Note::FailedReads(times) | Note::UnseenSwitches(times) | Note::TooDeep(times) => {
                *times > 0
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::ByBpf { cgroups, events, cpus } => write!(
                f,
                "counted by BPF: {}, from {} on each of {}, read at changes of cgroup",
                of(*cgroups, "cgroup"),
                of(*events, "event"),
                of(*cpus, "CPU")
            ),
            Note::ByKernel { cgroups } => write!(
                f,
                "counted by the kernel's cgroup events: {}, from events that are switched at changes \
                 of cgroup",
                of(*cgroups, "cgroup")
            ),
            Note::MovesAtSwitches => write!(
                f,
                "this kernel does not show moves of running tasks to other cgroups: they count \
                 from the next switch or reading on"
            ),
            Note::FailedReads(times) => write!(
                f,
                "the kernel refused {times} reads of events: what they counted went to the cgroups \
                 of later reads"
            ),
            Note::UnseenSwitches(times) => write!(
                f,
                "the kernel did not show {times} switches of tasks: what was counted before each \
                 went to the cgroup that was found running after it"
            ),
            Note::TooDeep(times) => write!(
                f,
                "{times} cgroups ran that are too deep below any counted one to belong to it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_failures() {
        let by_bpf = Note::ByBpf { cgroups: 1, events: 3, cpus: 2 };
        let text =
            "counted by BPF: 1 cgroup, from 3 events on each of 2 CPUs, read at changes of cgroup";
        assert_eq!(by_bpf.to_string(), text);
        assert!(!by_bpf.is_finding() && !Note::TooDeep(0).is_finding());
        assert!(Note::UnseenSwitches(2).is_finding());
    }
}
