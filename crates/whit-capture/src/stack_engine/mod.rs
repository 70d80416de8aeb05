//! The capture engine that unwinds in the kernel (`--engine=bpf`).
//!
//! Overflows of sampled events run a BPF program in place of perf's own sample; context switches run
//! another. Both write through a *bpf-output event* on each CPU, into the
//! ring that the other events of that CPU share, so that readers, losses and writers are those of every
//! recording. A `Following` thread keeps mappings and unwind tables up to date, and each ring's
//! [`BpfRecordDecoder`] makes ordinary records of what comes out.

mod blocked;
mod decoder;
mod events;
mod follow;
mod ld_cache;
mod model;
mod modules;
mod options;
mod preload;
mod schedule;
mod summary;
mod switch_events;
mod switches;
mod task_state;
mod traced;
mod traces;
mod wakes;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whit_bpf::BpfError;
pub use whit_bpf::stacks::FRAMES_MAX;
use whit_bpf::stacks::{ProgramKind, StackOptions, Stacks};
use whit_perfdata::blocked::Edge;
use whit_sys::scheduling;
use whit_types::{Pid, Tid};
use whit_unwind_tables::TableStore;

use crate::error::CaptureError;
use crate::open::OpenEvent;
use crate::options::{CallGraph, RecordOptions};
use crate::ring_set::MappedRing;
pub(crate) use blocked::BlockedCounts;
use blocked::BlockedStacks;
pub use decoder::BpfRecordDecoder;
pub use decoder::DecodeCounts;
pub(crate) use decoder::{DecoderConfig, Layout};
use events::is_sampled;
pub use events::{COMPARED, SWITCHES};
pub(crate) use events::{bpf_output, decoder, describe, follow_event};
pub use follow::FollowCounts;
use follow::{Expected, Following};
pub use modules::{TableCounts, UnopenedBinary};
use options::{call_graph, channel_bytes, has_few_threads};
pub(crate) use options::{conflict, leave_to_perf, samples_cpus};
pub use summary::{PartSummary, StackSummary};
use switch_events::SwitchEvents;
use traced::{Hits, Traced, hits_of};
pub(crate) use wakes::WakeFormat;
use whit_host::cpus;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_host::target::Target;

/// Pages of the rings that carry mappings, forks and execs to the thread that follows processes.
pub(crate) const FOLLOW_PAGES: usize = 16;

/// The engine of one recording.
#[derive(Debug)]
pub(crate) struct StackEngine {
    stacks: Arc<Mutex<Stacks>>,
    following: Option<Following>,
    switches: bool,
    switch_events: SwitchEvents,
    is_attached: bool,
    /// The kernel takes the time of all BPF programs anyway.
    is_timed_anyway: bool,
    /// Tracepoints and probes whose stacks are told.
    traced: Vec<Traced>,
    wakes: bool,
    /// Threads that are blocked when recording begins or ends, where switches are recorded.
    blocked: Option<BlockedStacks>,
    /// The settings of the decoders.
    given: DecoderConfig,
}

impl StackEngine {
    /// Loads the programs. With `wakes` they tell of wake-ups, which are written so.
    pub(crate) fn load(
        options: &RecordOptions,
        wakes: Option<WakeFormat>,
        roots: &Roots,
    ) -> Result<StackEngine, BpfError> {
        // Where the kernel does not say, programs find no event on the CPUs beyond and say nothing.
        let cpus = cpus::present(roots).ok().and_then(|cpus| cpus.last().copied());
        let cpus = cpus.map_or(1, |last| last.0 as usize + 1);
        // The kernel's list of symbols takes a while to read, as the verifier takes for the programs.
        let of_scheduler = (options.switch_events || wakes.is_some()).then(|| {
            let (roots, has_wakes) = (roots.clone(), wakes.is_some());
            std::thread::spawn(move || schedule::find(&roots, has_wakes))
        });
        let has = |hits| {
            let mut tracepoints = options.events.iter().filter(|event| event.is_tracepoint());
            tracepoints.any(|event| hits_of(event, roots) == hits)
        };
        let stack_options = StackOptions {
            is_system_wide: matches!(options.target, Target::SystemWide(_)),
            by_thread: has_few_threads(options),
            pid_namespace: processes::namespace(roots),
            kernel_stacks: !options.user_callchains_only,
            user_stacks: !options.kernel_callchains_only,
            memo: true,
            perf_samples: matches!(call_graph(options), CallGraph::Dwarf { .. }),
            traces: has(Hits::Tracepoint),
            probes: has(Hits::Probe),
            wakes: wakes.is_some(),
            cpus,
            channel_bytes: if options.switch_events { channel_bytes(options.ring_size) } else { 0 },
        };
        let stacks = Stacks::load(&stack_options)?;
        let channels = options.switch_events.then(|| stacks.channels().clone());
        let scheduler_symbols = of_scheduler.and_then(|thread| thread.join().ok().flatten());
        let scheduler_symbols = scheduler_symbols.unwrap_or_default();
        let cpus = match &options.target {
            Target::SystemWide(cpus) => cpus.clone(),
            _ => None,
        };
        let symbols = scheduler_symbols.clone();
        let load_blocked = || BlockedStacks::load(&stacks, &stack_options, symbols, cpus);
        let blocked = options.switch_events.then(load_blocked);
        Ok(StackEngine {
            stacks: Arc::new(Mutex::new(stacks)),
            following: None,
            switches: options.switch_events,
            switch_events: SwitchEvents::default(),
            is_attached: false,
            is_timed_anyway: roots.times_bpf_programs(),
            traced: Vec::new(),
            wakes: wakes.is_some(),
            blocked,
            given: DecoderConfig {
                scheduler_symbols,
                wakes,
                channels,
                wakeup_events: BTreeMap::new(),
                is_cpu_wide: matches!(options.target, Target::SystemWide(_)),
                packs: options.packs(),
            },
        })
    }

    /// The settings of the decoders.
    pub(crate) fn given(&self) -> DecoderConfig {
        self.given.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Stacks> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has events run the programs, which write through the bpf-output event.
    pub(crate) fn connect(
        &mut self,
        events: &[OpenEvent],
        roots: &Roots,
    ) -> Result<(), CaptureError> {
        self.traced = Traced::among(events, roots)?;
        let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events.iter().filter(|event| event.event.is_bpf_output) {
            for instance in &event.instances {
                let cpu = instance.cpu.map_or(0, |cpu| cpu.0);
                stacks.set_output(cpu, instance.fd.as_fd()).map_err(CaptureError::Bpf)?;
            }
            if self.switches {
                self.given.wakeup_events = self.switch_events.open_wakeup_events(event, &stacks)?;
            }
        }
        for event in events.iter().filter(|event| is_sampled(&event.event, self.switches)) {
            for instance in &event.instances {
                let attached = stacks.with_sampler(|program| instance.fd.set_bpf(program));
                attached.map_err(CaptureError::system("have an event run a BPF program"))?;
            }
        }
        Ok(())
    }

    /// Has programs tell of these threads of the processes, where not of all.
    pub(crate) fn track(
        &self,
        threads: &[Tid],
        options: &RecordOptions,
    ) -> Result<(), CaptureError> {
        if !has_few_threads(options) {
            return Ok(());
        }
        let stacks = self.lock();
        let mut threads = threads.iter();
        threads.try_for_each(|tid| stacks.add_thread(tid.0 as u32)).map_err(CaptureError::Bpf)
    }

    /// Follows processes from here on.
    pub(crate) fn follow(
        &mut self,
        follow: (Vec<OpenEvent>, Vec<MappedRing>),
        pids: &[Pid],
        options: &RecordOptions,
        roots: &Roots,
    ) -> Result<(), CaptureError> {
        self.lock().attach_processes().map_err(CaptureError::Bpf)?;
        let store = TableStore::new(options.table_cache.clone());
        let command = options.command.first().filter(|_| options.target == Target::Command);
        let expected = command.zip(pids.first()).map(|(command, pid)| Expected {
            pid: pid.0,
            backings: preload::backings(command, &options.loader),
        });
        let following =
            Following::start(self.stacks.clone(), follow, pids, expected, store, roots)?;
        self.following = Some(following);
        // Samples of events of CPUs begin with the command's program, as those of its threads do.
        let command = pids.first().filter(|_| options.target == Target::Command);
        let awaited = command.map(|pid| self.lock().await_exec(pid.0 as u32));
        awaited.transpose().map(drop).map_err(CaptureError::Bpf)
    }

    /// Tells of switches and tracepoints from here on, where that was asked for.
    pub(crate) fn switch_on(&mut self) -> Result<(), CaptureError> {
        if !self.is_attached {
            // Without, the ledger does not say what the programs took.
            let _ = self.lock().time_runs(self.is_timed_anyway);
            self.attach()?;
            self.is_attached = true;
            if self.switches {
                let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
                self.switch_events.open_comings(&stacks)?;
            }
        }
        Ok(())
    }

    fn attach(&self) -> Result<(), CaptureError> {
        let mut stacks = self.lock();
        self.traced.iter().try_for_each(|traced| traced.attach(&mut stacks))?;
        if self.wakes {
            stacks.attach_wakes().map_err(CaptureError::Bpf)?;
        }
        if self.switches {
            stacks.attach_switches().map_err(CaptureError::Bpf)?;
        }
        Ok(())
    }

    /// Samples of the threads that are on no CPU now; none unless switches are recorded now.
    pub(crate) fn blocked(&mut self, edge: Edge, layout: Layout) -> Vec<u8> {
        let blocked = self.blocked.as_mut().filter(|_| self.is_attached);
        blocked.map(|blocked| blocked.records(edge, layout)).unwrap_or_default()
    }

    /// Why there are no such samples, where that has not been said.
    pub(crate) fn take_blocked_refusal(&mut self) -> Option<String> {
        self.blocked.as_mut().and_then(BlockedStacks::take_refusal)
    }

    /// How many such threads were read.
    pub(crate) fn blocked_counts(&self) -> BlockedCounts {
        self.blocked.as_ref().map(|blocked| blocked.counts).unwrap_or_default()
    }

    /// Tells of nothing any more.
    pub(crate) fn switch_off(&mut self) {
        self.switch_events.close_comings();
        self.lock().detach();
        self.is_attached = false;
    }

    /// By CPU, how many of the records that only wake readers were lost.
    pub(crate) fn lost_wakeup_events(&self) -> BTreeMap<u32, u64> {
        self.switch_events.lost_wakeup_events()
    }

    /// By CPU, the records of switches that its full channel dropped; empty where the kernel refuses to say.
    pub(crate) fn lost_switches(&self) -> Vec<u64> {
        if self.switches { self.lock().lost_switches().unwrap_or_default() } else { Vec::new() }
    }

    /// The engine's summary, after it has ended.
    pub(crate) fn summary(&mut self, decoder: DecodeCounts) -> StackSummary {
        let follow = self.following.take().map(|mut following| following.stop());
        let stacks = self.lock();
        let part = |part| PartSummary {
            counts: stacks.counts(part).unwrap_or_default(),
            runs: stacks.run_statistics(part).unwrap_or_default(),
        };
        StackSummary {
            samples: part(ProgramKind::Samples),
            switches: part(ProgramKind::Switches),
            follow: follow.unwrap_or_default(),
            traces: part(ProgramKind::Traces),
            wakes: part(ProgramKind::Wakes),
            probes: part(ProgramKind::Probes),
            timed: stacks.timed(),
            decoder,
            is_packed: self.given.packs,
        }
    }
}

/// The nice value of threads that stacks wait for.
const HURRIED_NICE: i32 = -20;

/// Has the calling thread run before others, which are not stopped by that: their stacks are cut until it has done its
/// work. It has as much to do as without.
fn hurry() {
    // Without the right to, it comes later.
    let _ = scheduling::set_nice(HURRIED_NICE);
}

/// A refusal with its cause.
pub(crate) fn refusal(error: &BpfError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
