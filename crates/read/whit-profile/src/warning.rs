//! Defects of a recording, and of the results that are drawn from it, as facts. Views word them.

use std::path::PathBuf;
use std::sync::Arc;
pub use whit_perfdata::budget_history::Reduction;
use whit_perfdata::dump_cause::DumpCause;
use whit_perfdata::let_go::LetGo;
pub use whit_perfdata::names::NamesDefect;
use whit_perfdata::reader::RecordingDefect;
use whit_perfdata::stream::{Missing, StreamError};
use whit_perfdata::tracing_data::TracingDataError;
pub use whit_symbolize::{GivenUp, Reason};
use whit_types::{OutsideText, Pid, Runtime, TimestampNs};

/// A value of an option that chooses nothing.
#[derive(Clone, Debug)]
pub struct NoMatch {
    /// The long option, with its dashes.
    pub option: &'static str,
    /// As the user wrote it; empty where the option has one value.
    pub value: OutsideText,
    /// Why it chooses nothing.
    pub why: WhyNoMatch,
}

/// Why a value chooses nothing.
#[derive(Clone, Debug)]
pub enum WhyNoMatch {
    /// The recording has no such name, but these, which are near or all there are.
    OtherNames(Vec<OutsideText>),
    /// No record names the process or thread.
    UnknownTask,
    /// The recording has no samples and no switches of it.
    NothingRecorded,
    /// The recording is of another time.
    OtherTime {
        /// Its first time stamp.
        first: TimestampNs,
        /// Its last time stamp.
        last: TimestampNs,
    },
}

/// A problem that did not stop the reading.
#[derive(Clone, Debug)]
pub enum Warning {
    /// That of one recording, in the profile of several.
    OfRecording {
        /// The recording's path.
        path: OutsideText,
        /// Its problem.
        warning: Box<Warning>,
    },
    /// The recording's files are not as they should be.
    Recording(RecordingDefect),
    /// A stream cannot be read on.
    Stream(Arc<StreamError>),
    /// A stream ends before its last record does.
    StreamCut {
        /// The stream's file.
        path: PathBuf,
        /// Bytes without a whole record, where they were counted.
        missing: Option<Missing>,
    },
    /// A part of a stream was never written, but records behind it were.
    StreamHole {
        /// The stream's file.
        path: PathBuf,
        /// Bytes without a record.
        missing: Missing,
    },
    /// Parts of the formats of tracepoints cannot be read.
    TraceFormats(TracingDataError),
    /// The recorder kept its cost within a budget, and recorded less than was asked for.
    Reduced(Reduction),
    /// The recording is the last while of a longer one, written for an event.
    DumpOf(DumpCause),
    /// A bound of memory took records before they were written.
    LetGo(LetGo),
    /// No recorded thread ran while it was recorded.
    NoThreadRan {
        /// Recorded threads.
        threads: u64,
        /// The recording says where they waited.
        has_stacks: bool,
    },
    /// An option chooses a part of the recording that has nothing.
    NoMatch(NoMatch),
    /// Samples of no event of the recording were left out.
    OrphanSamples(LeftOut),
    /// Samples with counts of several events were left out: a sample for each count would take too much memory.
    UnsplitSamples(LeftOut),
    /// Records that are shorter than their fields say were left out.
    MalformedRecords(LeftOut),
    /// Samples that are shorter than their fields say were left out.
    UnreadableSamples {
        /// Their number.
        samples: u64,
    },
    /// Stacks of processes that whit does not unwind.
    ForeignStacks {
        /// Their number.
        stacks: u64,
    },
    /// Samples were given out behind later ones.
    DisorderedSamples {
        /// Their number.
        samples: u64,
    },
    /// Samples whose deferred call chain the recording does not have.
    ChainsMissing {
        /// Their number.
        without_chain: u64,
        /// All samples with a deferred call chain.
        samples: u64,
    },
    /// Deferred call chains that no sample awaits.
    ChainsUnclaimed {
        /// Their number.
        chains: u64,
    },
    /// Samples and deferred call chains that were not joined.
    ChainsBeyondBound {
        /// Their number.
        left_apart: u64,
        /// Memory for those that stand apart.
        bound_bytes: usize,
    },
    /// The trace of a hardware tracer (Intel PT, Arm SPE, CoreSight) is not decoded.
    HardwareTrace {
        /// Blocks of it (AUXTRACE records).
        blocks: u64,
    },
    /// Most user call chains by frame pointers have one frame.
    OneFrameChains {
        /// User call chains.
        chains: u64,
        /// Those of one frame.
        of_one_frame: u64,
    },
    /// Call chains were cut since the call tree was full.
    ChainsCut {
        /// Their number.
        chains: u64,
        /// Nodes of the tree.
        max_nodes: usize,
    },
    /// Call chains were cut since the table of call sites was full.
    ChainsCutAtCallsites {
        /// Their number.
        chains: u64,
        /// Call sites of the table.
        max_callsites: usize,
    },
    /// Samples stand in rows that some sort keys do not tell apart.
    FacetsMerged {
        /// Their number.
        samples: u64,
        /// Distinct values that are told apart.
        max_facets: usize,
    },
    /// Processes whose mappings the recorder did not read to the end.
    MapsCut {
        /// The first such process.
        first: Pid,
        /// Their number.
        processes: u64,
    },
    /// Changes of address spaces were not told apart by time.
    EpochsCut {
        /// Their number.
        changes: u64,
        /// Changes of one process that are told apart.
        max_epochs: usize,
    },
    /// Events were only read with the samples of their group's leader.
    UnsplitGroups {
        /// Their names.
        events: Vec<OutsideText>,
    },
    /// A binary has samples and no symbols.
    NoSymbols {
        /// Its name.
        binary: OutsideText,
        /// Why there are none.
        reason: Reason,
    },
    /// Further such binaries.
    MoreWithoutSymbols {
        /// Their number.
        binaries: usize,
    },
    /// Files with debug information of a binary (split DWARF) are missing.
    MissingUnits {
        /// The binary's name.
        binary: OutsideText,
        /// One of the files.
        file: OutsideText,
        /// Their number.
        files: usize,
    },
    /// Some parts of a binary's names are not read.
    NamesGivenUp {
        /// The binary's name.
        binary: OutsideText,
        /// The parts.
        given_up: GivenUp,
    },
    /// Servers were not asked for names, which they may have.
    NamesOffered {
        /// The binary with the most samples.
        first: OutsideText,
        /// Their number.
        binaries: usize,
    },
    /// The debug information of a binary was not fetched.
    NotFetched {
        /// Its name.
        binary: OutsideText,
        /// Its share of the samples.
        share: f64,
        /// The cause.
        reason: NotFetched,
    },
    /// Further such binaries.
    MoreNotFetched {
        /// Their number.
        binaries: usize,
    },
    /// Binaries have too few samples for a fetch.
    BelowFetchLimit {
        /// Their number.
        binaries: usize,
        /// Between 0 and 1.
        least_share: f64,
    },
    /// Inlined functions and lines of a binary were not fetched: chains only begin in it.
    NamesAloneFetched {
        /// Its name.
        binary: OutsideText,
    },
    /// Functions of a language runtime have no names.
    RuntimeWithoutNames {
        /// Java, Python and others.
        runtime: Runtime,
        /// The process with the smallest number.
        first: Pid,
        /// Their number, as far as they are known.
        processes: usize,
    },
    /// The periods of an event add up to more than 64 bits hold.
    PeriodOverflow,
    /// Those of several recordings do.
    MergedPeriodOverflow,
    /// Samples keep step with the threads that they are of.
    SamplesInStep {
        /// The share of the samples that is in wrong places.
        misplaced: f64,
    },
    /// Only samples of a tracepoint of switches or wake-ups were recorded.
    SampledTracepoint {
        /// The event's name.
        event: OutsideText,
    },
    /// A tracepoint was left out, since the places of its fields are unknown.
    UnknownFields {
        /// The tracepoint's name.
        tracepoint: OutsideText,
    },
    /// All samples are in the root of the hierarchy that perf events count by.
    RootCgroupAlone,
    /// Threads were left out whose cgroup is unknown.
    UnknownCgroups {
        /// Their number.
        threads: usize,
    },
    /// No wait was for an object of such a name.
    NoSuchWaitObject {
        /// The parts of names that were asked for.
        parts: Vec<String>,
        /// The recording names objects at all.
        recorded: bool,
        /// Names of objects that threads waited for longest.
        longest: Vec<String>,
    },
    /// The names that the recording carries itself were not used.
    OwnNames(NamesDefect),
    /// Threads took more CPU time than there was.
    ImpossibleCpuTime {
        /// The time that they took.
        taken_ns: u64,
        /// CPUs of the machine.
        nr_cpus: u64,
        /// The time that these CPUs had.
        available_ns: u64,
    },
}

/// Why debug information was not fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotFetched {
    /// The program that fetches is not there.
    NoProgram {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The user ended the fetch.
    Stopped,
    /// Servers gave nothing, or nothing that was right.
    Failed {
        /// As the program says it.
        reason: OutsideText,
    },
    /// The parts that servers gave are of another build than the binary.
    OtherBuild {
        /// Where they lie.
        folder: PathBuf,
    },
}

/// Records that could not be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Their number.
    pub records: u64,
    /// File of the first of them.
    pub path: PathBuf,
    /// Its position in its stream (which of uncompressed streams is the offset).
    pub offset: u64,
}
