//! What to load and how.

use crate::chain::DEFAULT_MAX_STACK;
use crate::machine::ThisMachine;
use crate::time_filter::TimeFilter;
use whit_symbolize::SymbolizerConfig;
use whit_types::{Pid, Tid};

/// What to load and how.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Decoding threads; at least one.
    pub threads: usize,
    /// Tell samples on different CPUs apart.
    pub by_cpu: bool,
    /// Part of the time.
    pub time: Option<TimeFilter>,
    /// Only these processes; all where empty.
    pub pids: Vec<Pid>,
    /// Only these threads; all where empty.
    pub tids: Vec<Tid>,
    /// Longest call chain.
    pub max_stack: usize,
    /// Where symbols come from.
    pub symbols: SymbolizerConfig,
    /// This machine: where it made the recording, files are told from others at their paths by their numbers,
    /// and opened through processes that still run. `None` takes files by their paths.
    pub machine: Option<ThisMachine>,
}

impl LoadOptions {
    /// Everything, with perf's bounds.
    pub fn new(threads: usize, symbols: SymbolizerConfig) -> LoadOptions {
        LoadOptions {
            threads: threads.max(1),
            by_cpu: false,
            time: None,
            pids: Vec::new(),
            tids: Vec::new(),
            max_stack: DEFAULT_MAX_STACK,
            symbols,
            machine: None,
        }
    }

    pub(crate) fn wants(&self, pid: Pid, tid: Tid) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && (self.tids.is_empty() || self.tids.contains(&tid))
    }
}
