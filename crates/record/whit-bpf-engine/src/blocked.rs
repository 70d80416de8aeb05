//! Threads that are blocked when recording begins or ends: their stacks as samples of an event of their own.

use std::time::{Duration, Instant};

use whit_bpf::BpfError;
use whit_bpf::stacks::{
    BLOCKED_THREADS_MAX, BlockedThread as Found, BlockedThreads, StackOptions, Stacks,
};
use whit_host::futex_wait::{self, FutexWait};
use whit_host::roots::Roots;
use whit_perfdata::blocked::{BLOCKED_ID, BlockedThread, Edge};
use whit_perfdata::encode::push_record;
use whit_perfdata::ledger::Ledger;
use whit_perfdata::record::{misc, record_type};
use whit_perfdata::sample::context;
use whit_types::{CpuId, Pid, Tid};

use super::record_layout::Layout;
use super::refusal;
use super::schedule::{SchedulerSymbol, SchedulerSymbols};

/// `prev_state` of `sched:sched_switch` of a thread that a signal may wake.
const TASK_INTERRUPTIBLE: u32 = 1;

/// How many threads were read, each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockedCounts {
    is_read: bool,
    at_begin: u64,
    at_end: u64,
    left_out: u64,
}

impl BlockedCounts {
    /// Puts them into the ledger.
    pub(crate) fn enter(self, ledger: &mut Ledger) {
        ledger.reads_blocked = self.is_read.into();
        ledger.blocked_at_begin = self.at_begin;
        ledger.blocked_at_end = self.at_end;
        ledger.blocked_left_out = self.left_out;
    }
}

/// For so long futexes of blocked threads are looked up at one end: a machine may have very many threads.
const FUTEXES_TIME_MAX: Duration = Duration::from_millis(50);

/// Reads them, where the kernel allows it.
#[derive(Debug)]
pub(super) struct BlockedStacks {
    roots: Roots,
    threads: Option<BlockedThreads>,
    scheduler_symbols: SchedulerSymbols,
    /// Only threads that were last on these CPUs, where not all are recorded.
    cpus: Option<Vec<CpuId>>,
    /// Threads so far.
    pub(super) counts: BlockedCounts,
    /// A refusal that the user has not heard of yet.
    refusal: Option<String>,
}

impl BlockedStacks {
    /// The options are those of `stacks`.
    pub(super) fn load(
        stacks: &Stacks,
        options: &StackOptions,
        scheduler_symbols: SchedulerSymbols,
        cpus: Option<Vec<CpuId>>,
        roots: Roots,
    ) -> BlockedStacks {
        let mut blocked = BlockedStacks {
            roots,
            threads: None,
            scheduler_symbols,
            cpus,
            counts: BlockedCounts::default(),
            refusal: None,
        };
        match stacks.load_blocked(options, BLOCKED_THREADS_MAX) {
            Ok(threads) => {
                blocked.threads = Some(threads);
                blocked.counts.is_read = true;
            }
            Err(error) => blocked.refuse(&error),
        }
        blocked
    }

    fn refuse(&mut self, error: &BpfError) {
        self.refusal = Some(refusal(error));
        self.threads = None;
    }

    /// The refusal, the first time.
    pub(super) fn take_refusal(&mut self) -> Option<String> {
        self.refusal.take()
    }

    /// One sample of each recorded thread that is on no CPU.
    pub(super) fn records(&mut self, edge: Edge, layout: Layout) -> Vec<u8> {
        let mut read = match self.threads.as_mut().map(BlockedThreads::read) {
            None => return Vec::new(),
            Some(Ok(read)) => read,
            Some(Err(error)) => {
                self.refuse(&error);
                return Vec::new();
            }
        };
        if let Some(cpus) = &self.cpus {
            read.threads.retain(|thread| cpus.contains(&CpuId(thread.cpu)));
        }
        let recorded = match edge {
            Edge::Begin => &mut self.counts.at_begin,
            Edge::End => &mut self.counts.at_end,
        };
        *recorded += read.threads.len() as u64;
        self.counts.left_out += read.left_out;
        let mut out = Vec::new();
        let mut body = Vec::new();
        let begun = Instant::now();
        for thread in &read.threads {
            let has_time = begun.elapsed() < FUTEXES_TIME_MAX;
            let futex = has_time.then(|| self.futex_of(thread)).flatten();
            let state = BlockedThread {
                state: thread.state,
                edge,
                switches: thread.switches,
                futex: futex.map_or(0, |wait| wait.address),
                owner: futex.map_or(0, |wait| wait.owner),
            };
            push_sample(thread, state, layout, &self.scheduler_symbols, &mut body);
            push_record(&mut out, record_type::SAMPLE, misc::KERNEL, &body);
        }
        out
    }

    /// Threads of the kernel wait at no futex, and a wait at one can be interrupted.
    fn futex_of(&self, thread: &Found) -> Option<FutexWait> {
        if thread.state & TASK_INTERRUPTIBLE == 0 || thread.user.is_empty() {
            return None;
        }
        let (pid, tid) = (Pid(thread.pid as i32), Tid(thread.tid as i32));
        futex_wait::of_blocked(&self.roots, pid, tid, thread.switches)
    }
}

/// Puts the fields of a thread's sample into `body`.
fn push_sample(
    thread: &Found,
    state: BlockedThread,
    layout: Layout,
    scheduler_symbols: &SchedulerSymbols,
    body: &mut Vec<u8>,
) {
    body.clear();
    let kernel = scheduler_symbols.trim(&thread.kernel, Some(SchedulerSymbol::Switch));
    let stacks = [(context::KERNEL, kernel), (context::USER, &thread.user[..])];
    let recorded = || stacks.iter().filter(|(_, frames)| !frames.is_empty());
    let ip = recorded().find_map(|(_, frames)| frames.first()).copied().unwrap_or(0);
    let mut put = |word: u64| body.extend_from_slice(&word.to_le_bytes());
    put(BLOCKED_ID);
    put(ip);
    put(u64::from(thread.tid) << 32 | u64::from(thread.pid));
    put(thread.time_ns);
    if layout.has_cpu() {
        put(thread.cpu.into());
    }
    put(1);
    put(recorded().map(|(_, frames)| 1 + frames.len() as u64).sum());
    for (marker, frames) in recorded() {
        put(*marker);
        frames.iter().copied().for_each(&mut put);
    }
    state.push(body);
}
