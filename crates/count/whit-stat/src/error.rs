//! Reasons why nothing could be counted, each with its remedy.

use whit_host::advice::meaning;
use whit_host::error::HostError;
use whit_sys::{Errno, WorkloadError};

use crate::bpf_refusal::BpfRefusal;

/// Why nothing could be counted.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum StatError {
    /// A target or cgroup that cannot be counted, with the same message as in `whit record`.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Every thread ended before events could be opened.
    #[error("every thread to count ended before its events were open")]
    TargetGone,
    /// `-G` without CPUs.
    #[error("cgroups are counted on CPUs: add -a, or -C with a list of CPUs, to -G")]
    CgroupNeedsCpus,
    /// A pattern that matches nothing.
    #[error("no cgroup matches '{pattern}' (systemd-cgls or ls under the cgroup mount lists them)")]
    NoSuchCgroups { pattern: String },
    /// A pattern that is none.
    #[error("'{pattern}' is no regular expression")]
    CgroupPattern { pattern: String, source: regex_lite::Error },
    /// Too many counters.
    #[error(
        "{events} events in each of {cgroups} cgroups are more than {most} counters: name fewer \
         cgroups or events"
    )]
    TooManyCgroups { cgroups: usize, events: usize, most: usize },
    /// Counts cannot be printed.
    #[error("cannot write counts")]
    Output { source: std::io::Error },
    /// The control channel.
    #[error(transparent)]
    Control(#[from] whit_host::control::ControlOpenError),
    /// A command before or after a run.
    #[error("'{command}' failed with exit code {code}: nothing was counted after it")]
    Hook { command: String, code: i32 },
    /// A group of events in several cgroups.
    #[error("all events of the group of '{event}' must be counted in the same cgroup")]
    GroupAcrossCgroups { event: String },
    /// An event was refused.
    #[error("cannot count '{event}' {place}: {}\n  {advice}", meaning(*.errno))]
    Open { event: String, place: String, errno: Errno, advice: String },
    /// A filter was refused.
    #[error("cannot set the filter '{filter}' on event '{event}': {source}{advice}")]
    Filter { event: String, filter: String, advice: String, source: Errno },
    /// BPF was asked for, and refused.
    #[error(
        "cgroups cannot be counted by BPF: {0}\n  --bpf-counters=auto counts them by the kernel's \
         cgroup events where BPF is refused, --bpf-counters=off always"
    )]
    Bpf(BpfRefusal),
    /// Too many descriptors.
    #[error(
        "{needed} open files are needed, one for each event on each CPU or thread, and {limit} are \
         allowed (raise it: ulimit -n {needed}; or count fewer events, threads or cgroups)"
    )]
    OpenFiles { needed: usize, limit: u64 },
    /// A count cannot be read.
    #[error("cannot read the count of '{event}'")]
    Read { event: String, source: Errno },
    /// A step that should never fail.
    #[error("cannot {attempt}")]
    System { attempt: &'static str, source: Errno },
    /// The command.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

impl StatError {
    /// For `map_err` on steps that have no better story.
    pub(crate) fn system(attempt: &'static str) -> impl FnOnce(Errno) -> StatError {
        move |source| StatError::System { attempt, source }
    }

    /// Whether the command line is at fault, whatever the machine.
    pub fn is_wrong_usage(&self) -> bool {
        match self {
            StatError::Host(error) => error.is_wrong_usage(),
            StatError::CgroupNeedsCpus
            | StatError::CgroupPattern { .. }
            | StatError::GroupAcrossCgroups { .. } => true,
            _ => false,
        }
    }

    /// A cgroup is not there, or not any more.
    pub(crate) fn is_missing_cgroup(&self) -> bool {
        let StatError::Host(HostError::Cgroup { source, .. }) = self else { return false };
        source.kind() == std::io::ErrorKind::NotFound
    }
}
