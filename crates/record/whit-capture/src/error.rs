//! Reasons why a recording could not be made, with the remedies.

use std::io;
use std::path::{Path, PathBuf};

use whit_engine_api::error::EngineError;
use whit_host::advice::meaning;
use whit_host::error::HostError;
use whit_sys::{Errno, WorkloadError};

/// Why the BPF engine is not taken; `None` where nobody tried it.
fn bpf_hint(why: &Option<String>) -> String {
    match why {
        None => " (take --engine=bpf, or --engine=auto)".to_owned(),
        Some(why) => format!(", and the BPF engine cannot take its place: {why}"),
    }
}

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CaptureError {
    /// The target cannot be found.
    #[error(transparent)]
    Host(#[from] HostError),
    /// No event was asked for.
    #[error("no events to record")]
    NoEvents,
    /// Every thread ended before events could be opened.
    #[error("every thread to record ended before its events were open")]
    TargetGone,
    /// `-G` without CPUs.
    #[error("cgroups are recorded on CPUs: add -a, or -C with a list of CPUs, to -G")]
    CgroupNeedsCpus,
    /// A group of events in several cgroups.
    #[error("all events of the group of '{event}' must be recorded in the same cgroup")]
    GroupAcrossCgroups { event: String },
    /// All events were left out.
    #[error("none of the events can be recorded on this machine")]
    NothingSupported,
    /// Files cannot be switched.
    #[error(
        "a pipe cannot be switched to another file, and its name gets no time: leave \
         --switch-output and --timestamp-filename out, or name a file with -o"
    )]
    PipeHasNoFiles,
    /// A failure of the engine that makes call chains.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Options that the engine that unwinds in the kernel does not have.
    #[error("--engine=bpf {why} (leave it out, or take --engine=ring)")]
    EngineConflict { why: &'static str },
    /// A target by name or a request that the ring engine cannot have.
    #[error("the ring engine {why}{}", bpf_hint(.bpf))]
    RingConflict { why: String, bpf: Option<String> },
    /// The control channel.
    #[error(transparent)]
    Control(#[from] whit_host::control::ControlOpenError),
    /// Real-time priority.
    #[error(
        "cannot run the readers as SCHED_FIFO with priority {priority} (allow it: ulimit -r \
         {priority}, or grant cap_sys_nice)"
    )]
    Realtime { priority: i32, source: Errno },
    /// A frequency above the limit with `--strict-freq`.
    #[error(
        "frequency {asked_hz} Hz is above the kernel's limit of {limit_hz} Hz (raise it: sysctl \
         kernel.perf_event_max_sample_rate={asked_hz})"
    )]
    FrequencyTooHigh { asked_hz: u64, limit_hz: u64 },
    /// Frequency or period of zero.
    #[error("a sampling {0} of zero records nothing")]
    ZeroRate(&'static str),
    /// The kernel does not let events be stamped with that clock.
    #[error("the kernel takes no time stamps from clock {clock} for this event")]
    Clock { clock: String, source: Errno },
    /// An event was refused.
    #[error("cannot open event '{event}' {place}: {}\n  {advice}", meaning(*.errno))]
    Open { event: String, place: String, errno: Errno, advice: String },
    /// An event that this machine does not have, by its place in the list.
    #[error("{refusal}")]
    Unsupported { index: usize, refusal: Box<CaptureError> },
    /// A filter was refused.
    #[error("cannot set the filter '{filter}' on event '{event}': {source}{advice}")]
    Filter { event: String, filter: String, advice: String, source: Errno },
    /// A ring was refused.
    #[error(
        "cannot map a ring of {size_bytes} bytes for event '{event}': {}\n  locked memory is \
         used up or forbidden: allow more with sysctl kernel.perf_event_mlock_kb={mlock_kb}, \
         ulimit -l unlimited, or grant cap_ipc_lock; or ask for less with -m",
        meaning(*.errno)
    )]
    Ring { event: String, size_bytes: usize, errno: Errno, mlock_kb: usize },
    /// Too many descriptors.
    #[error(
        "{needed} open files are needed, {limit} are allowed (raise it: ulimit -n {needed}; or \
         record fewer threads or events, or everything with -a)"
    )]
    OpenFiles { needed: usize, limit: u64 },
    /// A step in setting up that should never fail.
    #[error("cannot {attempt}")]
    System { attempt: &'static str, source: Errno },
    /// A reader's thread.
    #[error("cannot start a reader's thread (allow more with ulimit -u)")]
    Thread { source: io::Error },
    /// A defect of ours.
    #[error("a reader's thread ended in panic; the recording is cut where it stood")]
    ReaderPanicked,
    /// The command.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The file, directory or pipe, for the message.
    #[error("cannot {attempt} {output}{}", elsewhere(.source))]
    Output { attempt: &'static str, output: String, source: io::Error },
    /// Something else than a recording stands where one is to be made.
    #[error(
        "cannot record to {}, which is {what}: name a place that is free, such as -o {}",
        output.display(), free_place(output).display()
    )]
    InTheWay { output: PathBuf, what: String },
    /// Something else than a recording stands where the old one is to be kept.
    #[error(
        "cannot keep the existing {} as {}, which is no recording: move that away, or name another \
         place with -o", output.display(), old.display()
    )]
    OldInTheWay { output: PathBuf, old: PathBuf },
    /// Standard output is a terminal.
    #[error("refusing to write a recording to a terminal: redirect it, or name a file with -o")]
    OutputIsTerminal,
    /// A tracepoint's format cannot be read.
    #[error("cannot read the format of tracepoint '{tracepoint}'{}", tracefs_advice(source))]
    Tracepoint { tracepoint: String, source: io::Error },
}

fn tracefs_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => " (mount tracefs: mount -t tracefs tracefs /sys/kernel/tracing)",
        io::ErrorKind::PermissionDenied => {
            " (let this user read it: chmod -R a+rX /sys/kernel/tracing)"
        }
        _ => "",
    }
}

/// Advice for a file that cannot be created at its path.
fn elsewhere(error: &io::Error) -> &'static str {
    use io::ErrorKind as K;
    match error.kind() {
        K::NotFound => " (make its directory, or name another place with -o)",
        K::PermissionDenied | K::ReadOnlyFilesystem | K::NotADirectory => {
            " (name another place with -o)"
        }
        K::StorageFull | K::QuotaExceeded => " (make room, or name another place with -o)",
        _ => "",
    }
}

/// A place near the one that is taken.
fn free_place(output: &Path) -> PathBuf {
    if output.is_dir() {
        return output.join("perf.data");
    }
    if output.file_name().is_some_and(|name| name == "stdout") {
        "-".into()
    } else {
        "perf.data".into()
    }
}

impl CaptureError {
    /// Says which event it is whose refusal means that this machine does not have it.
    pub(crate) fn at(self, index: usize) -> CaptureError {
        use Errno as E;
        match self {
            CaptureError::Open {
                errno: E::NOENT | E::OPNOTSUPP | E::NODEV | E::NXIO | E::INVAL,
                ..
            } => CaptureError::Unsupported { index, refusal: Box::new(self) },
            other => other,
        }
    }

    /// Whether the command line is at fault, whatever the machine.
    pub fn is_wrong_usage(&self) -> bool {
        match self {
            CaptureError::Host(error) => error.is_wrong_usage(),
            CaptureError::NoEvents
            | CaptureError::CgroupNeedsCpus
            | CaptureError::GroupAcrossCgroups { .. }
            | CaptureError::PipeHasNoFiles
            | CaptureError::EngineConflict { .. }
            | CaptureError::ZeroRate(_)
            | CaptureError::OutputIsTerminal => true,
            _ => false,
        }
    }

    /// The error number with which the kernel refused to open an event.
    pub(crate) fn errno(&self) -> Option<Errno> {
        match self {
            CaptureError::Open { errno, .. } => Some(*errno),
            CaptureError::Unsupported { refusal, .. } => refusal.errno(),
            _ => None,
        }
    }

    /// A refusal without advice.
    pub fn short(&self) -> String {
        match self {
            CaptureError::Open { errno, .. } => meaning(*errno),
            other => other.to_string(),
        }
    }

    /// For `map_err` on steps that have no better story.
    pub(crate) fn system(attempt: &'static str) -> impl FnOnce(Errno) -> CaptureError {
        move |source| CaptureError::System { attempt, source }
    }
}
