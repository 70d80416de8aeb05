//! Errors that keep a benchmark from running.

use std::io;
use std::path::PathBuf;

use whit_types::ByteSize;

/// Why a benchmark could not be run. A peer that fails is a result, not an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// The attempted action: `create`, `read`, …
        action: &'static str,
        /// Path of its object.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A program could not be run or waited for.
    #[error("cannot run {program}: {source}")]
    Run {
        /// Program that was to be started.
        program: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The recordings would not fit.
    #[error(
        "{path} has {available} free and the benchmark needs {needed}: free some space, {way_out}"
    )]
    DiskSpace {
        /// The directory for recordings.
        path: PathBuf,
        /// Free bytes.
        available: ByteSize,
        /// Bytes that would be written.
        needed: ByteSize,
        /// Options that help.
        way_out: &'static str,
    },
    /// Recording the workload did not work.
    #[error("cannot record the workload: `{command}` {outcome}\n{stderr}")]
    Recording {
        /// The command line.
        command: String,
        /// How it ended.
        outcome: String,
        /// The end of its output.
        stderr: String,
    },
    /// The recording came out far too small.
    #[error(
        "recording the workload gave {actual} instead of {wanted} (`{command}`): \
         is the sampling rate limited (/proc/sys/kernel/perf_event_max_sample_rate)?"
    )]
    RecordingSize {
        /// The command line.
        command: String,
        /// Size of the file.
        actual: ByteSize,
        /// Size that was asked for.
        wanted: ByteSize,
    },
    /// A workload did not run by itself, without any recorder.
    #[error(
        "the workload does not run: `{command}` {outcome}; build it anew with \
         `make -C bench/workloads`, or name another directory with --workloads"
    )]
    Workload {
        /// The command line.
        command: String,
        /// Its end and its output.
        outcome: String,
    },
    /// Signals could not be watched for.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    /// A signal asked for the end.
    #[error("interrupted; what was made for the benchmark is removed")]
    Interrupted,
    /// The load could not be given a CPU of its own.
    #[error("cannot choose CPUs for the load and for the counters: {0}")]
    Affinity(io::Error),
    /// There are no interrupts to measure.
    #[error(
        "this machine has no hardware PMU (no `cpu` in /sys/bus/event_source/devices), so there are no \
         interrupts to measure: run this on bare metal or in a guest with a virtual PMU, or leave out \
         --host for the simulated hardware"
    )]
    NoHardwarePmu,
    /// Not even a software event can be opened.
    #[error(
        "cannot open events of this thread: {reason}; `whit doctor` says what this user may count"
    )]
    HostEvents {
        /// The message of the failed attempt.
        reason: String,
    },
    /// A guest could not be run.
    #[error("cannot run a guest: {reason}")]
    Guest {
        /// The message of the failed attempt.
        reason: String,
    },
    /// The kernel's tracepoint is not there.
    #[error(
        "cannot trace nmi:nmi_handler: it is not in /sys/kernel/tracing/events; become root, mount tracefs \
         there (`mount -t tracefs tracefs /sys/kernel/tracing`), or use a kernel with event tracing"
    )]
    NoTracepoint,
    /// A simulated recording went wrong.
    #[error("the simulated recording went wrong: {reason}")]
    Simulation {
        /// The message of the failed step.
        reason: String,
    },
    /// A server did not serve.
    #[error("`whit serve` does not answer: {reason}")]
    Server {
        /// Its last message, or the failed step.
        reason: String,
    },
    /// There is nothing to choose ranges from.
    #[error("{path} does not state the times of its samples: record it anew with whit")]
    NoSpan {
        /// The recording.
        path: PathBuf,
    },
    /// Cgroups cannot be found.
    #[error(transparent)]
    Cgroups(#[from] whit_host::error::HostError),
    /// A recorder's file cannot be read.
    #[error("cannot read what the recorder wrote: {0}")]
    Unreadable(#[from] whit_perfdata::reader::OpenError),
    /// It cannot be made a profile.
    #[error(transparent)]
    Load(#[from] whit_profile::LoadError),
    /// Its profile cannot be compared.
    #[error(transparent)]
    Diff(#[from] whit_view::diff::DiffError),
    /// Nor can the records in it.
    #[error("cannot read the records that the recorder wrote: {source}")]
    Stream {
        /// Offset in the stream, and the defect there.
        source: whit_perfdata::stream::StreamError,
    },
}

impl Error {
    /// For `map_err` on a file operation.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { action, path, source }
    }
}
