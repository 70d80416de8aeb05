//! The options of a recording as values: the command line without its spelling. The recorder makes its plan of
//! them once (`plan.rs`); nothing below reads them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use whit_host::control::ControlSpec;

use crate::affinity::{Affinity, ThreadSpec};
pub use crate::kept_files::{KEPT_FILES_MAX_BYTES, KeptFilesPlan};

pub use whit_engine_api::event_plan::{
    ChainPlan, CountPlan, EventPlan, FieldPlan, RatePlan, TrackingPlan,
};
pub use whit_engine_api::settings::{
    CallGraph, DEFAULT_STACK_DUMP_BYTES, ExtraFields, LoaderPaths, MAX_STACK_DUMP_BYTES, RingSize,
};

/// Default frequency of samples.
pub const DEFAULT_FREQUENCY_HZ: u64 = 4000;
/// The engine that makes call chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The kernel writes chains by frame pointers, or dumps of stacks, as it does for perf.
    Ring,
    /// BPF programs unwind in the kernel.
    Bpf,
    /// The latter where the kernel allows it.
    Auto,
    /// The user names none: [`Engine::Auto`], unless other options ask for something that the ring engine alone records,
    /// or for tracepoints or counts without call chains.
    Unset,
}

/// When measuring starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At once; with a command, at its exec.
    #[default]
    AtOnce,
    /// After this many milliseconds.
    AfterMs(u64),
    /// Only within these times, in milliseconds: from, to; ascending.
    Ranges(Vec<(u64, u64)>),
    /// Not before it is asked for.
    Disabled,
}

/// When the output is switched to a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOutput {
    /// When SIGUSR2 comes, or the command `snapshot`.
    OnSignal,
    /// And when a file has this size.
    AtBytes(u64),
    /// And whenever this time has passed.
    Every(Duration),
}

/// Which files the recording becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Several, one after the other.
    pub switch: Option<SwitchOutput>,
    /// Keep only so many of them, the newest.
    pub max_files: Option<usize>,
    /// The name gets the time at which the file was completed. Files that are switched always do.
    pub timestamp: bool,
    /// End the recording when all files together have this size.
    pub max_bytes: Option<u64>,
}

impl Files {
    /// Whether names of files get the time.
    pub fn are_stamped(&self) -> bool {
        self.timestamp || self.switch.is_some()
    }
}

/// Time for reading the mappings of one process. A hundred thousand take some 0.1 s on a quiet machine. Events
/// are off meanwhile, so the time costs the recorded programs nothing; perf's 500 ms cut them on busy machines.
pub const MAPS_TIMEOUT: Duration = Duration::from_secs(10);

/// Records for processes and cgroups that existed before the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synthesis {
    /// Names and threads of processes.
    pub tasks: bool,
    /// Their mappings.
    pub mappings: bool,
    /// Cgroups, where these are recorded.
    pub cgroups: bool,
    /// At the end instead of at the start.
    pub at_end: bool,
    /// Threads that read `/proc`; `None` for as many as are worth it.
    pub threads: Option<usize>,
    /// Most time for the mappings of one process.
    pub maps_timeout: Duration,
}

impl Default for Synthesis {
    fn default() -> Self {
        Synthesis {
            tasks: true,
            mappings: true,
            cgroups: true,
            at_end: false,
            threads: None,
            maps_timeout: MAPS_TIMEOUT,
        }
    }
}

/// Most blocks per ring that may be written while others are filled.
pub const ASYNC_BLOCKS_MAX: usize = 4;
/// zstd levels.
pub const COMPRESSION_LEVELS: std::ops::RangeInclusive<i32> = 1..=22;

/// How records get from the rings to the disk. All of it goes together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streaming {
    /// Blocks per ring that are written while the ring is drained into others, at most
    /// [`ASYNC_BLOCKS_MAX`]; 0 writes before it reads on.
    pub async_blocks: usize,
    /// Where readers run.
    pub affinity: Affinity,
    /// zstd level; `None` does not compress.
    pub compression_level: Option<i32>,
    /// Least number of bytes that is worth taking from a ring; at most a quarter of it.
    pub flush_bytes: usize,
    /// Several readers, each with its own stream; `None` is one reader.
    pub threads: Option<ThreadSpec>,
    /// Record into a directory even with one reader. Several readers always do, unless into a
    /// pipe.
    pub directory: bool,
}

impl Streaming {
    /// Whether an output that is no pipe becomes a directory.
    pub fn makes_directory(&self) -> bool {
        self.directory || self.threads.is_some()
    }
}

/// Where the recording goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Into a file.
    File(PathBuf),
    /// To standard output, in the format for pipes.
    Stdout,
}

/// Options that are on or off, apart from those of events. The plan gives all of them to each of its parts: one more is
/// a field here, and is read where it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The user chose the kind of call chains: [`Engine::Auto`] keeps it, whichever engine it takes.
    pub is_call_graph_given: bool,
    /// Wake the readers at every record.
    pub unbuffered: bool,
    /// Build ids in mappings and in the header, and descriptions of mapped files.
    pub build_ids: bool,
    /// An empty section in the header, which [`fill`](whit_perfdata::names::fill) gives names later.
    pub room_for_names: bool,
    /// Java virtual machines write the names of their code when recording ends ([`whit_host::java`]).
    pub java_maps: bool,
}

impl Default for Choices {
    fn default() -> Self {
        Choices {
            is_call_graph_given: false,
            unbuffered: false,
            build_ids: true,
            room_for_names: false,
            java_maps: false,
        }
    }
}

/// All options of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordOptions {
    /// The events, whom they count, and how. The plan is made of it with `start`, `control` and `max_overhead_ppm`.
    pub events: EventPlan,
    /// The command to run: recorded itself, or the measure of how long to record.
    pub command: Vec<OsString>,
    /// File, directory or pipe to write to.
    pub output: Output,
    /// The engine that makes call chains.
    pub engine: Engine,
    /// Options that are on or off.
    pub choices: Choices,
    /// Where unwind tables are kept from one recording to the next; `None` keeps none.
    pub table_cache: Option<PathBuf>,
    /// Where the command's binaries are, for their unwind tables to be there before it begins.
    pub loader: LoaderPaths,
    /// When measuring starts.
    pub start: Start,
    /// Data pages or bytes of each ring (`-m`).
    pub ring_size: RingSize,
    /// The largest cost of the recording, in millionths of the recorded CPU time, above 0; `None` sets no limit.
    pub max_overhead_ppm: Option<u32>,
    /// From the rings to the disk.
    pub streaming: Streaming,
    /// The files that the recording becomes.
    pub files: Files,
    /// The control channel, through which another program switches events on and off.
    pub control: Option<ControlSpec>,
    /// Readers run as `SCHED_FIFO` with this priority.
    pub realtime_priority: Option<i32>,
    /// Records for processes and cgroups that existed before the recording.
    pub synthesis: Synthesis,
    /// perf's cache of binaries: copies of those that processes with samples map go there; `None` makes none.
    pub kept_files: Option<KeptFilesPlan>,
    /// The command line, for the header.
    pub command_line: Vec<String>,
    /// whit's version, for the header.
    pub version: String,
    /// Reasons for which goroutines wait, for the header.
    pub wait_reasons: Vec<String>,
}

impl RecordOptions {
    /// A recording of these events with every other default.
    pub fn new(events: EventPlan, command: Vec<OsString>, output: Output) -> Self {
        RecordOptions {
            events,
            command,
            output,
            engine: Engine::Ring,
            choices: Choices::default(),
            table_cache: None,
            loader: LoaderPaths::default(),
            start: Start::AtOnce,
            ring_size: RingSize::Default,
            max_overhead_ppm: None,
            streaming: Streaming::default(),
            files: Files::default(),
            control: None,
            realtime_priority: None,
            synthesis: Synthesis::default(),
            kept_files: None,
            command_line: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            wait_reasons: Vec::new(),
        }
    }
}
