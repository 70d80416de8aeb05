//! Options for loading a recording.

use crate::call_chain::chain::DEFAULT_MAX_STACK;
use crate::companions::Companions;
use crate::facets::WantedFacets;
use crate::machine_model::machine::ThisMachine;
use crate::parallelism::set::ParallelismOf;
use crate::time_filter::TimeFilter;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use whit_symbolize::{Symbolizer, SymbolizerConfig};
use whit_types::{CpuId, Pid, Tid};

/// Samples up to which [`SinglesWanted::Few`] keeps each.
pub const MAX_SINGLES: u64 = 1_000_000;

/// The unit that the rows of a profile count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counted {
    /// Samples with their periods.
    #[default]
    Samples,
    /// Entries of branch stacks; each entry counts one. The call chain is the branch's target alone.
    Branches,
    /// Samples with their weights: the latencies of accesses to memory.
    Weights,
    /// Blocks of code between two branches, with the cycles that the CPU counted there. The branch of a row's facets has
    /// the end of the block as `from`, and its beginning as `to`.
    Blocks,
}

/// How the time of samples is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SinglesWanted {
    /// Each sample keeps its own, however many there are; memory grows with them.
    Each,
    /// Each sample keeps its own where there are at most [`MAX_SINGLES`], else as `Joined`.
    Few,
    /// Each sample keeps its own where there are at most so many, else as `Joined`.
    UpTo(u64),
    /// Samples of one row in a two-hundredth of the recorded time are joined.
    Joined,
}

/// The parts of a recording to load, and the way to sum them up.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Decoding threads; at least one.
    pub threads: usize,
    /// By which parts of samples rows are told apart, beside thread, command and call chain.
    pub facets: WantedFacets,
    /// The unit of the rows' weights.
    pub count: Counted,
    /// Take of each sample only the place that was executing, which is all that the weights of instructions need: call
    /// chains are neither read nor unwound.
    pub leaves: bool,
    /// Name the kernel's code. Its list of symbols takes longer than reading a small recording; without it, that code
    /// goes by addresses.
    pub names_kernel: bool,
    /// Keep the weights of blocks of time too, from which the errors of shares come.
    pub blocks: bool,
    /// Keep the time of samples, which is that of each one or of a stretch that it lies in.
    pub singles: Option<SinglesWanted>,
    /// Samples to keep of each row.
    pub examples: usize,
    /// Tell how many threads of a set ran at the time of each sample; takes reading in order of time.
    pub parallelism: Option<ParallelismOf>,
    /// Part of the time.
    pub time: Option<TimeFilter>,
    /// Only these processes; all where empty.
    pub pids: Vec<Pid>,
    /// None of these processes.
    pub without_pids: Vec<Pid>,
    /// Only these threads; all where empty.
    pub tids: Vec<Tid>,
    /// Only samples on these CPUs; all where empty.
    pub cpus: Vec<CpuId>,
    /// Only samples in these cgroups and in those below, each named as
    /// [`CgroupPath::is_within`](whit_types::CgroupPath::is_within) takes it; all where empty.
    pub cgroups: Vec<String>,
    /// Longest call chain.
    pub max_stack: usize,
    /// Where symbols come from.
    pub symbols: SymbolizerConfig,
    /// This machine: where it made the recording, files are told from others at their paths by their numbers,
    /// and opened through processes that still run. `None` takes files by their paths.
    pub machine: Option<ThisMachine>,
    /// Binaries and the kernel's symbols that earlier loads opened. For recordings of one kernel alone.
    pub kept_symbols: Option<KeptSymbols>,
    /// Whether debug companions that are not at hand are fetched.
    pub companions: Companions,
}

/// Files that are kept between two loads.
const KEPT_FILES_MAX: usize = 512;

/// Symbols that one load opens and the next ones use.
#[derive(Clone, Default)]
pub struct KeptSymbols(Arc<Mutex<Option<Arc<Symbolizer>>>>);

impl KeptSymbols {
    pub(crate) fn symbolizer(&self, config: SymbolizerConfig) -> Arc<Symbolizer> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert_with(|| Arc::new(Symbolizer::remembering(config))).clone()
    }

    /// Lets symbols go that may have changed, and all files where there are many. Called now and then, it bounds memory.
    pub fn trim(&self) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(symbolizer) = &*kept {
            symbolizer.forget_beyond(KEPT_FILES_MAX);
        }
    }
}

impl fmt::Debug for KeptSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSymbols").finish_non_exhaustive()
    }
}

impl LoadOptions {
    /// Everything, with perf's bounds.
    pub fn new(threads: usize, symbols: SymbolizerConfig) -> LoadOptions {
        LoadOptions {
            threads: threads.max(1),
            facets: WantedFacets::default(),
            count: Counted::Samples,
            leaves: false,
            names_kernel: true,
            blocks: false,
            singles: None,
            examples: 0,
            parallelism: None,
            time: None,
            pids: Vec::new(),
            without_pids: Vec::new(),
            tids: Vec::new(),
            cpus: Vec::new(),
            cgroups: Vec::new(),
            max_stack: DEFAULT_MAX_STACK,
            symbols,
            machine: None,
            kept_symbols: None,
            companions: Companions::Off,
        }
    }

    /// True where samples are kept one by one.
    pub(crate) fn keeps_singles(&self) -> bool {
        self.singles == Some(SinglesWanted::Each)
    }

    /// True where not all samples are wanted.
    pub(crate) fn choose_a_part(&self) -> bool {
        let all = self.pids.is_empty()
            && self.without_pids.is_empty()
            && self.tids.is_empty()
            && self.cpus.is_empty()
            && self.cgroups.is_empty();
        !all || self.time.is_some()
    }

    /// True where a process and thread may be wanted.
    pub(crate) fn wants(&self, pid: Pid, tid: Tid) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && !self.without_pids.contains(&pid)
            && (self.tids.is_empty() || self.tids.contains(&tid))
    }
}
