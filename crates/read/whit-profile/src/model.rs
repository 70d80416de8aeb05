//! The finished profile: what every view draws from.
//!
//! It is a set of flat tables joined by index. Nothing in it refers back to the recording, so a
//! view never needs the file. Names are already symbolized; call chains are paths in one shared
//! call tree.
//!
//! Invariants:
//! - `nodes[i].parent < i` or is [`NodeId::NONE`]; walking parents always ends at a root.
//! - A root is the outermost frame (`_start`, `clone3`, the kernel's entry); children are callees.
//! - Inlined frames stand *below* the physical frame that they were inlined into, outermost first;
//!   the physical frame of any node is found by walking up while `frames[..].inlined`.
//! - `rows` are unique in (event, thread, comm, facets, node) and in no particular order.
//! - `facets` are distinct. Where it is empty, rows have the default.
//! - Names are [`OutsideText`], since others chose them: a view that prints one escapes it.

use crate::facets::Facets;
pub use crate::header_facts::{HeaderEvent, HeaderFacts};
pub use crate::ids::*;
use crate::loss_window::LossWindow;
use crate::parallelism::ParallelismInfo;
use crate::precision::Precision;
use crate::sums::examples::ExampleSample;
use crate::warning::Warning;
use whit_perfdata::ledger::Ledger;
use whit_perfdata::loss::DataLoss;
use whit_types::{BuildId, CpuId, OutsideText, Pid, Svma, Tid, TimestampNs};
pub use whit_unwind::StopReason;

/// A whole profile.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The description of the file, the tool and the machine.
    pub recording: RecordingInfo,
    /// The recorded events, in the order of the recording.
    pub events: Vec<EventInfo>,
    /// Groups in which events were recorded, of those with more than one.
    pub groups: Vec<RecordedGroup>,
    /// Command names.
    pub comms: Vec<OutsideText>,
    /// Cgroups of samples, where rows are told apart by them.
    pub cgroups: Vec<CgroupInfo>,
    /// Further parts of samples that rows are told apart by.
    pub facets: Vec<Facets>,
    /// Texts of tracepoints and names of data that facets refer to.
    pub texts: Vec<OutsideText>,
    /// Threads that have samples, or switches where these were loaded too.
    pub threads: Vec<ThreadInfo>,
    /// Binaries, and entries for other code (kernel, vdso, JIT code, unknown).
    pub dsos: Vec<DsoInfo>,
    /// Functions, physical and inlined.
    pub functions: Vec<FunctionInfo>,
    /// Size of the code of each function, where the symbol table says it; of several with one name, that of one of them.
    pub function_sizes_bytes: Vec<Option<u64>>,
    /// The first address of each function whose size is known.
    pub function_starts: Vec<Option<Svma>>,
    /// Size of the largest mapping of code of each binary, where one was recorded.
    pub mapped_bytes: Vec<Option<u64>>,
    /// The lowest loaded address of each binary whose file named code: other tools count addresses from there.
    pub base_addresses: Vec<Option<Svma>>,
    /// Source file names.
    pub files: Vec<OutsideText>,
    /// Distinct code locations.
    pub frames: Vec<Frame>,
    /// The call tree.
    pub nodes: Vec<CallNode>,
    /// Sample weights.
    pub rows: Vec<SampleRow>,
    /// Single samples of each row, in the order of `rows`; empty where none were asked for.
    pub examples: Vec<Vec<ExampleSample>>,
    /// The weights of the rows by blocks of time, where they were asked for.
    pub blocks: Option<Blocks>,
    /// The time of samples, where it was asked for.
    pub singles: Option<Singles>,
    /// For how long the number of running threads is known, where it was asked for and the recording tells.
    pub parallelism: Option<ParallelismInfo>,
    /// Options chose processes, threads, CPUs, cgroups or a part of the time.
    pub is_part: bool,
    /// Everything that is known to be missing.
    pub losses: LossReport,
    /// The cost of recording, where the recorder was whit.
    pub ledger: Option<Ledger>,
    /// Records by type.
    pub stats: RecordStats,
    /// Problems that did not stop the report: a missing binary, a cut file, a build id that
    /// differs.
    pub warnings: Vec<Warning>,
}

impl Profile {
    /// Functions whose names are as the linker has them: those that cannot be read, or all C++ and Rust ones where
    /// none were to be read.
    pub fn mangled_functions(&self) -> usize {
        let is_mangled = |name: &str| name.starts_with("_Z") || name.starts_with("_R");
        self.functions.iter().filter(|function| is_mangled(function.name.exact())).count()
    }

    /// The parts of samples that a row is told apart by; `None` where no row is.
    pub fn facets_of(&self, row: &SampleRow) -> Option<&Facets> {
        self.facets.get(row.facets.index())
    }
}

/// The description of a recording; strings are empty where the recording does not have them.
#[derive(Clone, Debug, Default)]
pub struct RecordingInfo {
    /// Path that was opened.
    pub path: OutsideText,
    /// Size on disk, of all files of a directory.
    pub size_bytes: u64,
    /// Host name.
    pub hostname: OutsideText,
    /// Kernel release.
    pub os_release: OutsideText,
    /// Version of the tool that recorded.
    pub version: OutsideText,
    /// Machine, as `uname -m`.
    pub arch: OutsideText,
    /// CPUs online and available.
    pub nr_cpus: Option<(u32, u32)>,
    /// Socket of each CPU, by the CPU's number; empty where the recording does not say.
    pub sockets: Vec<Option<u32>>,
    /// CPU description.
    pub cpu_desc: OutsideText,
    /// CPU id (`GenuineIntel,6,143,8`).
    pub cpuid: OutsideText,
    /// Memory of the machine in KiB.
    pub total_mem_kib: Option<u64>,
    /// The command line that recorded.
    pub cmdline: Vec<OutsideText>,
    /// Time stamp of the first sample that was counted.
    pub first_sample: Option<TimestampNs>,
    /// Time stamp of the last one.
    pub last_sample: Option<TimestampNs>,
    /// Wall-clock time of the recording in seconds since the epoch, where known.
    pub captured_on_s: Option<u64>,
    /// True where samples carry call chains, dumped stacks or branch stacks.
    pub has_callchains: bool,
    /// Events, PMUs and features as the recording's header has them.
    pub header: HeaderFacts,
}

/// One recorded event.
#[derive(Clone, Debug, Default)]
pub struct EventInfo {
    /// The name as the recording has it.
    pub name: OutsideText,
    /// Samples counted.
    pub samples: u64,
    /// Sum of the samples' periods: the approximate event count.
    pub period: u64,
    /// Samples that the kernel says it lost for this event.
    pub lost_samples: u64,
    /// The distance between samples and counted events.
    pub precision: Precision,
    /// Its samples are the stacks of threads that were on no CPU when recording began or ended.
    pub is_blocked: bool,
}

/// Events that were counted and sampled together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedGroup {
    /// As the user named it; `None` for most.
    pub name: Option<OutsideText>,
    /// The leader first.
    pub events: Vec<EventId>,
}

/// One thread.
#[derive(Clone, Debug)]
pub struct ThreadInfo {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// The thread's last command name.
    pub comm: CommId,
}

/// One cgroup.
#[derive(Clone, Debug)]
pub struct CgroupInfo {
    /// Path from the root of its hierarchy; where none was recorded, its number: `[cgroup 4711]`.
    pub path: OutsideText,
    /// False where no path was recorded.
    pub known: bool,
}

/// The kind of code that a [`DsoInfo`] stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DsoKind {
    /// An ELF file.
    Elf,
    /// The kernel image.
    Kernel,
    /// Code that the kernel loaded (`.ko`).
    KernelModule,
    /// The code that the kernel maps into each process.
    Vdso,
    /// Code that a JIT compiler wrote, named by a perf-map or jitdump file.
    Jit,
    /// Anonymous or unmapped memory.
    Unknown,
}

/// One binary.
#[derive(Clone, Debug)]
pub struct DsoInfo {
    /// Full path, or a bracketed name such as `[kernel.kallsyms]`, `[vdso]`, `[unknown]`.
    pub path: OutsideText,
    /// The bracketed name, `[MODULE]` of a kernel module, `[JIT] tid PID` of code without a file, or else the last
    /// component of the path.
    pub short_name: OutsideText,
    /// Its build id, where known.
    pub build_id: Option<BuildId>,
    /// Decides where symbols come from.
    pub kind: DsoKind,
}

/// One function.
#[derive(Clone, Debug)]
pub struct FunctionInfo {
    /// Name as shown: demangled unless that was switched off. For an address without a symbol,
    /// the address in hexadecimal.
    pub name: OutsideText,
    /// Binary that it belongs to.
    pub dso: DsoId,
    /// False where no symbol was found and the name is an address.
    pub known: bool,
}

/// One code location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Function at this location.
    pub function: FunctionId,
    /// Address as the binary states it (of the call site for an outer frame: return address).
    pub address: Svma,
    /// Source file and line, where known: of the location inside the function.
    pub source: Option<(FileId, u32)>,
    /// True where this frame was inlined into the one above.
    pub inlined: bool,
    /// True for code of the kernel.
    pub kernel: bool,
}

/// One node of the call tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallNode {
    /// Caller, or [`NodeId::NONE`].
    pub parent: NodeId,
    /// Code location.
    pub frame: FrameId,
}

/// Samples that share event, thread, command name, facets and call chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleRow {
    /// Index into [`Profile::events`].
    pub event: EventId,
    /// Index into [`Profile::threads`].
    pub thread: ThreadId,
    /// Command name at the time of the samples.
    pub comm: CommId,
    /// Further parts that the report was asked to tell apart.
    pub facets: FacetsId,
    /// Leaf of the call chain: the (innermost inlined) frame that was executing.
    pub node: NodeId,
    /// Number of samples.
    pub samples: u64,
    /// Sum of periods.
    pub period: u64,
}

/// Weights in equal blocks of the recorded time, those with samples alone, in order of time. All together they are the
/// [`Profile::rows`].
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// Length of a block.
    pub length_ns: u64,
    /// Properties that tell weights of one call chain apart.
    pub contexts: Vec<BlockContext>,
    /// The weights of each block; each call chain is in a block once for each of its contexts.
    pub weights: Vec<Vec<BlockWeight>>,
}

/// Event, thread, command name and facets, as in [`SampleRow`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockContext {
    /// Index into the profile's events.
    pub event: EventId,
    /// The one that was sampled.
    pub thread: ThreadId,
    /// Command name at the time of the samples.
    pub comm: CommId,
    /// Further parts that the report was asked to tell apart.
    pub facets: FacetsId,
}

/// Samples that share context and call chain, in one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockWeight {
    /// Index into [`Blocks::contexts`].
    pub context: u32,
    /// Leaf of the call chain.
    pub node: NodeId,
    /// Sum of periods.
    pub period: u64,
}

/// The samples in order of time, or the stretches of time that they lie in.
#[derive(Clone, Debug, Default)]
pub struct Singles {
    /// Samples; empty where only stretches were kept.
    pub samples: Vec<SingleSample>,
    /// Length of the stretches of time by which rows are told apart (their facets have its beginning); `None` where
    /// each sample was kept.
    pub slice_ns: Option<u64>,
    /// When records were lost, on any CPU.
    pub loss_windows: Vec<LossWindow>,
}

/// One sample.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SingleSample {
    /// By the clock of the recording; its position in the recording where it has none.
    pub time: TimestampNs,
    /// Index into [`Profile::rows`].
    pub row: u32,
    /// Where the sample was taken, where the recording says so.
    pub cpu: Option<CpuId>,
    /// Sum of the event's counts that it stands for.
    pub period: u64,
}

/// Everything that is known to be missing from the recording.
#[derive(Clone, Debug, Default)]
pub struct LossReport {
    /// Sum over `PERF_RECORD_LOST`: records of any type that did not fit a ring.
    pub lost_records: u64,
    /// Number of `PERF_RECORD_LOST` records.
    pub lost_chunks: u64,
    /// Sum over `PERF_RECORD_LOST_SAMPLES`.
    pub lost_samples: u64,
    /// Time during which rings were full, summed over rings.
    pub paused_ns: u64,
    /// Recorded time, summed over rings; `paused_ns / elapsed_ns` is the data loss. Zero where
    /// the rings of a foreign recording cannot be told apart, so that neither is known.
    pub elapsed_ns: u64,
    /// Bytes of the recording that hold no whole record: at its end, and where a recorder that was killed
    /// had not written yet, but behind it.
    pub truncated_bytes: u64,
}

impl LossReport {
    /// Data loss = paused time / elapsed time.
    pub fn data_loss(&self) -> DataLoss {
        let lost = self.lost_records.saturating_add(self.lost_samples);
        DataLoss { lost, paused_ns: self.paused_ns, elapsed_ns: self.elapsed_ns }
    }

    /// True where nothing is known to be missing.
    pub fn is_empty(&self) -> bool {
        self.lost_records == 0 && self.lost_samples == 0 && self.truncated_bytes == 0
    }
}

/// Records of the recording by type, as `--stats` shows them.
#[derive(Clone, Debug, Default)]
pub struct RecordStats {
    /// Type name as perf prints it (`MMAP2`, `SAMPLE`, `FINISHED_ROUND`) and number of records,
    /// in the order of the type's number; types without records are absent.
    pub by_type: Vec<(String, u64)>,
    /// Samples per event, in the order of [`Profile::events`].
    pub samples_by_event: Vec<u64>,
    /// Why the unwinding of user stacks ended: reason and number of samples.
    pub unwind_stops: Vec<(StopReason, u64)>,
    /// Samples whose user stack was cut and whose chain goes on with branch records.
    pub continued_chains: u64,
}
