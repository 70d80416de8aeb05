//! The capture engine that unwinds in the kernel (`--engine=bpf`).
//!
//! Overflows of sampled events run a BPF program in place of perf's own sample; context switches run
//! another. Both write through a *bpf-output event* on each CPU, into the ring that the other events of
//! that CPU share, so that readers, losses and writers are those of every recording. A `Following`
//! thread keeps mappings and unwind tables up to date, and each ring's [`BpfRecordDecoder`] makes
//! ordinary records of the programs' output.
//!
//! The recorder asks [`BpfEngine::conflict`] whether the engine takes a plan, loads it, and knows it as a
//! [`whit_engine_api::Engine`] from then on.
//!
//! ```
//! use whit_bpf_engine::BpfEngine;
//! use whit_engine_api::event::EventSpec;
//! use whit_engine_api::event_plan::EventPlan;
//! use whit_host::roots::Roots;
//!
//! // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.
//! let plan = EventPlan::for_command(vec![EventSpec::new("cpu-clock", 1, 0)]);
//! let one_ring_per_thread = EventPlan { per_thread: true, ..plan };
//! let why = BpfEngine::conflict(&one_ring_per_thread, false, &Roots::default());
//! assert!(why.is_some_and(|why| why.contains("a ring for each CPU")));
//! ```
#![forbid(unsafe_code)]

mod allowance;
mod arenas;
mod blocked;
mod chosen;
mod decoder;
mod events;
mod fit;
mod follow;
mod ld_cache;
mod model;
mod modules;
mod pace;
mod preload;
mod python;
mod record_layout;
mod rest;
mod schedule;
mod sockets;
mod summary;
mod switch_events;
mod switches;
mod task_state;
mod traced;
mod traces;
pub mod unwind_tables;
mod wakes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::unwind_tables::TableStore;
use whit_bpf::BpfError;
pub use whit_bpf::stacks::FRAMES_MAX;
use whit_bpf::stacks::{ProgramKind, StackOptions, Stacks};
use whit_engine_api::error::EngineError;
use whit_engine_api::event_plan::{EventPlan, ReadCgroups};
use whit_engine_api::open_event::{ConfiguredEvent, OpenEvent};
use whit_engine_api::rings::MappedRing;
use whit_engine_api::settings::{CallGraph, LoaderPaths, RingSize};
use whit_engine_api::{
    Adjustment, Attachment, Capabilities, DecodeCounts, Engine, EngineLosses, EngineSummary,
    OutputEnd, PrivateEvent, ProgramTime, ProgramTimes, RecordDecoder, WaitMode,
};
use whit_perfdata::blocked::Edge;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::sample::SampleLayout;
use whit_perfdata::tracing_data::TraceEvent;
use whit_sys::{Errno, scheduling};
use whit_types::{Pid, Tid};

use blocked::{BlockedCounts, BlockedStacks};
pub use decoder::BpfRecordDecoder;
use decoder::DecoderConfig;
use events::is_sampled;
pub use events::{COMPARED, SWITCHES};
use events::{Described, bpf_output, follow_event};
use fit::{call_graph, channel_bytes, has_few_threads, table_bytes, work_bytes};
pub use follow::FollowCounts;
use follow::{Expected, Following};
pub use modules::{TableCounts, UnopenedBinary};
use python::Named;
use record_layout::Layout;
pub use summary::{PartSummary, StackSummary};
use switch_events::SwitchEvents;
use traced::{Hits, Traced, has_program, hits_of};
use wakes::WakeFormat;
use whit_host::cpus;
use whit_host::memory_limit::MemoryLimit;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_host::target::Target;

/// Pages of the rings that carry mappings, forks and execs to the thread that follows processes.
const FOLLOW_PAGES: usize = 16;

/// How the engine makes call chains, apart from the events.
#[derive(Clone, Debug, Default)]
pub struct StackPlan {
    /// The user's wish for the size of rings.
    pub ring_size: RingSize,
    /// Where unwind tables are kept from one recording to the next; `None` keeps none.
    pub table_cache: Option<PathBuf>,
    /// The recorded command's program, whose tables are made before it begins.
    pub program: Option<OsString>,
    /// Where its binaries are.
    pub loader: LoaderPaths,
}

/// The engine of one recording.
#[derive(Debug)]
pub struct BpfEngine {
    stacks: Arc<Mutex<Stacks>>,
    following: Option<Following>,
    /// The work of the thread that followed processes.
    followed: FollowCounts,
    plan: StackPlan,
    switches: bool,
    /// Whether of a process only some threads are recorded.
    has_few_threads: bool,
    /// The cgroups that the programs read.
    read_cgroups: Option<ReadCgroups>,
    switch_events: SwitchEvents,
    is_attached: bool,
    /// The kernel takes the time of all BPF programs anyway.
    is_timed_anyway: bool,
    /// Tracepoints and probes whose stacks are recorded.
    traced: Vec<Traced>,
    wakes: bool,
    /// Data of servers' sockets is recorded.
    sockets: bool,
    /// Waits are written as samples when recording ends.
    off_cpu: bool,
    /// Waits are sampled by a program, in place of that: nanoseconds of off-CPU time for each sample.
    off_cpu_period_ns: u64,
    /// Waits are sampled beside switches, too.
    adds_samples: bool,
    /// How waits can be recorded, as asked for at first.
    wait_modes: Vec<WaitMode>,
    /// How they are recorded, where that was changed.
    wait_mode: Option<WaitMode>,
    /// The programs walk user stacks, and not perf.
    cuts_stacks: bool,
    /// Threads that are blocked when recording begins or ends, where switches are recorded.
    blocked: Option<BlockedStacks>,
    /// The settings of the decoders.
    given: DecoderConfig,
}

impl BpfEngine {
    /// Why the engine cannot make such a recording. `is_automatic`: the user did not ask for this engine.
    pub fn conflict(plan: &EventPlan, is_automatic: bool, roots: &Roots) -> Option<&'static str> {
        fit::conflict(plan, is_automatic, roots)
    }

    /// Loads the programs. With the format of wake-ups they emit these.
    pub fn load(
        events: &EventPlan,
        plan: &StackPlan,
        waking: Option<&TraceEvent>,
        roots: &Roots,
    ) -> Result<BpfEngine, BpfError> {
        let (switches, wakes) = (events.tracking.switches, waking.map(WakeFormat::new));
        // The kernel's list of symbols takes a while to read, as the verifier takes for the programs.
        let samples_waits = events.tracking.off_cpu_period_ns > 0;
        let of_scheduler = (switches || samples_waits || wakes.is_some()).then(|| {
            let (roots, has_wakes) = (roots.clone(), wakes.is_some());
            std::thread::spawn(move || schedule::find(&roots, has_wakes))
        });
        let read_cgroups = chosen::read_cgroups(events, roots);
        let options = stack_options(events, plan, read_cgroups.as_ref(), roots);
        let (stacks, options) =
            load_stacks(options, switches && events.tracking.off_cpu_period_ns == 0)?;
        let channels = switches.then(|| stacks.channels().clone());
        let scheduler_symbols = of_scheduler.and_then(|thread| thread.join().ok().flatten());
        let scheduler_symbols = scheduler_symbols.unwrap_or_default();
        chosen::choose(&stacks, &events.target)?;
        let cpus = events.target.cpus().map(<[_]>::to_vec);
        let symbols = scheduler_symbols.clone();
        let load_blocked = || BlockedStacks::load(&stacks, &options, symbols, cpus, roots.clone());
        let blocked = switches.then(load_blocked);
        Ok(BpfEngine {
            stacks: Arc::new(Mutex::new(stacks)),
            following: None,
            followed: FollowCounts::default(),
            plan: plan.clone(),
            switches,
            has_few_threads: has_few_threads(events),
            read_cgroups,
            switch_events: SwitchEvents::default(),
            is_attached: false,
            is_timed_anyway: roots.times_bpf_programs(),
            traced: Vec::new(),
            wakes: wakes.is_some(),
            sockets: options.sockets,
            off_cpu: events.tracking.off_cpu,
            off_cpu_period_ns: options.off_cpu_period_ns,
            adds_samples: switches && events.tracking.off_cpu_period_ns > 0,
            wait_modes: wait_modes(switches, &options),
            wait_mode: None,
            cuts_stacks: options.user_stacks && !options.perf_samples,
            blocked,
            given: DecoderConfig {
                named: Arc::default(),
                scheduler_symbols,
                wakes,
                channels,
                wakeup_events: BTreeMap::new(),
                is_cpu_wide: matches!(events.target, Target::SystemWide(_)),
                packs: switches && events.tracking.packs_switches,
            },
        })
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.given.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the threads that follow processes, make tables and read names. These read all functions that were met first.
    fn end_following(&mut self) {
        if let Some(mut following) = self.following.take() {
            self.followed = following.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stacks> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has events run the programs, which write through the bpf-output event.
    fn connect(&mut self, events: &[OpenEvent], roots: &Roots) -> Result<(), EngineError> {
        self.traced = Traced::among(events, roots)?;
        let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        sockets::choose(&stacks, events)?;
        for event in events.iter().filter(|event| event.event.is_bpf_output) {
            for instance in &event.instances {
                let cpu = instance.cpu.map_or(0, |cpu| cpu.0);
                stacks.set_output(cpu, instance.fd.as_fd()).map_err(EngineError::own)?;
            }
            if self.switches {
                self.given.wakeup_events = self.switch_events.open_wakeup_events(event, &stacks)?;
            }
        }
        for event in events.iter().filter(|event| is_sampled(&event.event, self.switches)) {
            for instance in &event.instances {
                let attached = stacks.with_sampler(|program| instance.fd.set_bpf(program));
                attached.map_err(|errno| match errno {
                    Errno::PROTO => {
                        EngineError::Precise { event: event.event.spec.name().to_owned() }
                    }
                    errno => EngineError::system("have an event run a BPF program")(errno),
                })?;
            }
        }
        Ok(())
    }

    /// Has programs record these threads of the processes, if not all.
    fn track(&self, threads: &[Tid]) -> Result<(), EngineError> {
        if !self.has_few_threads {
            return Ok(());
        }
        let stacks = self.lock();
        let mut threads = threads.iter();
        threads.try_for_each(|tid| stacks.add_thread(tid.0 as u32)).map_err(EngineError::own)
    }

    /// Follows processes from here on.
    fn follow(
        &mut self,
        follow: (Vec<OpenEvent>, Vec<MappedRing>),
        pids: &[Pid],
        roots: &Roots,
    ) -> Result<(), EngineError> {
        self.lock().attach_processes().map_err(EngineError::own)?;
        let StackPlan { table_cache, program, loader, .. } = &self.plan;
        let work_bytes = work_bytes(MemoryLimit::of_self(roots).as_ref());
        let store = TableStore::new(table_cache.clone()).with_work_memory(work_bytes);
        let kept = (store, self.given.named.clone());
        let expected = program.as_ref().zip(pids.first()).map(|(program, pid)| Expected {
            pid: pid.0,
            backings: preload::backings(program, loader),
        });
        // Samples of events of CPUs begin with the command's program, as those of its threads do.
        let command = pids.first().filter(|_| program.is_some());
        let following = Following::start(self.stacks.clone(), follow, pids, expected, kept, roots)?;
        let awaited = command.map(|pid| self.lock().await_exec(pid.0 as u32));
        self.following = Some(following);
        awaited.transpose().map(drop).map_err(EngineError::own)
    }

    fn attach_programs(&self) -> Result<(), EngineError> {
        let mut stacks = self.lock();
        if self.following.is_some() {
            // Where it was switched off before.
            stacks.attach_processes().map_err(EngineError::own)?;
        }
        self.traced.iter().try_for_each(|traced| traced.attach(&mut stacks))?;
        if self.wakes && !self.switches {
            stacks.attach_wakes().map_err(EngineError::own)?;
        }
        self.change_waits(&mut stacks, (false, false), self.programs_of(self.waits()))
    }

    /// Whether programs of switches run, and those of samples of waits.
    fn programs_of(&self, mode: WaitMode) -> (bool, bool) {
        match mode {
            WaitMode::Exact => (true, self.adds_samples),
            WaitMode::Sampled => (false, true),
            WaitMode::None => (false, false),
        }
    }

    fn change_waits(
        &self,
        stacks: &mut Stacks,
        before: (bool, bool),
        now: (bool, bool),
    ) -> Result<(), EngineError> {
        match (before.0, now.0) {
            (true, false) => stacks.detach_switches(),
            (false, true) => {
                if self.wakes {
                    stacks.attach_wakes().map_err(EngineError::own)?;
                }
                stacks.attach_switches().map_err(EngineError::own)?;
            }
            _ => {}
        }
        match (before.1, now.1) {
            (true, false) => stacks.detach_off_cpu(),
            (false, true) => stacks.attach_off_cpu().map_err(EngineError::own)?,
            _ => {}
        }
        Ok(())
    }

    fn switch_on(&mut self) -> Result<(), EngineError> {
        if !self.is_attached {
            // Without, the ledger does not say what the programs took.
            let _ = self.lock().time_runs(self.is_timed_anyway);
            self.attach_programs()?;
            self.is_attached = true;
            self.open_comings()?;
        }
        Ok(())
    }

    fn switch_off(&mut self) {
        self.switch_events.close_comings();
        self.lock().detach();
        self.is_attached = false;
    }

    fn set_waits(&mut self, mode: WaitMode) -> Result<(), EngineError> {
        if mode == self.waits() {
            return Ok(());
        }
        let before = self.waits();
        self.wait_mode = Some(mode);
        if !self.is_attached {
            return Ok(());
        }
        if before == WaitMode::Exact {
            self.switch_events.close_comings();
        }
        let (before, now) = (self.programs_of(before), self.programs_of(mode));
        self.change_waits(&mut self.lock(), before, now)?;
        self.open_comings()
    }

    /// How waits are recorded now.
    fn waits(&self) -> WaitMode {
        self.wait_mode.or(self.wait_modes.first().copied()).unwrap_or(WaitMode::None)
    }

    /// Looks whether the kernel shows all switches, once these are recorded.
    fn open_comings(&mut self) -> Result<(), EngineError> {
        if self.waits() != WaitMode::Exact {
            return Ok(());
        }
        let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        self.switch_events.open_comings(&stacks)
    }

    /// Names of functions that no decoder has written yet.
    fn last_records(&self, events: &[OpenEvent], is_last: bool) -> Vec<u8> {
        let Some(bpf_output) = bpf_output_of(events) else { return Vec::new() };
        let encoder = RecordEncoder::new(SampleLayout::new(&bpf_output.event.attr));
        let id = bpf_output.instances.first().map_or(0, |instance| instance.id);
        self.named().write_rest(is_last, (&encoder, id))
    }

    /// The records that only wake the reader, and those of switches that a CPU's full channel dropped, where the kernel
    /// says so.
    fn losses(&self) -> EngineLosses {
        let switches = self.switches.then(|| self.lock().lost_switches().unwrap_or_default());
        EngineLosses {
            private: self.switch_events.lost_wakeup_events(),
            outside_rings: switches.unwrap_or_default(),
        }
    }

    fn summary(&mut self, decoder: DecodeCounts) -> Box<dyn EngineSummary> {
        let follow = std::mem::take(&mut self.followed);
        let blocked = self.blocked.as_ref().map(|blocked| blocked.counts).unwrap_or_default();
        let unread_functions = {
            let named = self.named();
            named.unread + named.beyond
        };
        let stacks = self.lock();
        let part = |part| PartSummary {
            counts: stacks.counts(part).unwrap_or_default(),
            runs: stacks.run_statistics(part).unwrap_or_default(),
        };
        Box::new(StackSummary {
            samples: part(ProgramKind::Samples),
            switches: part(ProgramKind::Switches),
            follow,
            traces: part(ProgramKind::Traces),
            wakes: part(ProgramKind::Wakes),
            probes: part(ProgramKind::Probes),
            waits: part(ProgramKind::Waits),
            sockets: part(ProgramKind::Sockets),
            timed: stacks.timed(),
            decoder,
            blocked,
            unread_functions,
            is_packed: self.given.packs,
        })
    }
}

/// The event by which the programs write.
fn bpf_output_of(events: &[OpenEvent]) -> Option<&OpenEvent> {
    events.iter().find(|event| event.event.is_bpf_output)
}

/// How waits can be recorded by programs that were loaded with these options.
fn wait_modes(switches: bool, options: &StackOptions) -> Vec<WaitMode> {
    let samples = options.off_cpu_period_ns > 0;
    let modes = [(WaitMode::Exact, switches), (WaitMode::Sampled, samples)];
    let mut modes: Vec<_> = modes.iter().filter(|(_, can)| *can).map(|(mode, _)| *mode).collect();
    if !modes.is_empty() {
        modes.push(WaitMode::None);
    }
    modes
}

/// Loads the programs. Where samples of waits are only wanted in place of switches, it goes without them.
fn load_stacks(
    options: StackOptions,
    is_fallback: bool,
) -> Result<(Stacks, StackOptions), BpfError> {
    match Stacks::load(&options) {
        Err(BpfError::Lacking { .. }) if is_fallback => {
            let options = StackOptions { off_cpu_period_ns: 0, ..options };
            Stacks::load(&options).map(|stacks| (stacks, options))
        }
        loaded => loaded.map(|stacks| (stacks, options)),
    }
}

fn stack_options(
    events: &EventPlan,
    plan: &StackPlan,
    read_cgroups: Option<&ReadCgroups>,
    roots: &Roots,
) -> StackOptions {
    // Where the kernel does not say, programs find no event on the CPUs beyond and say nothing.
    let cpus = cpus::present(roots).ok().and_then(|cpus| cpus.last().copied());
    let has = |hits| {
        let mut tracepoints = events.specs.iter().filter(|event| has_program(event));
        tracepoints.any(|event| hits_of(event, roots) == hits)
    };
    let cpus = cpus.map_or(1, |last| last.0 as usize + 1);
    let limit = MemoryLimit::of_self(roots);
    StackOptions {
        is_system_wide: matches!(events.target, Target::SystemWide(_)),
        by_thread: has_few_threads(events),
        chosen: chosen::chosen_by(&events.target),
        sampled_cgroups: read_cgroups
            .and_then(|read| chosen::hierarchy(&read.mounted))
            .unwrap_or_default(),
        pid_namespace: processes::namespace(roots),
        kernel_stacks: !events.chains.user_only,
        user_stacks: !events.chains.kernel_only,
        memo: true,
        perf_samples: matches!(call_graph(events), CallGraph::Dwarf { .. }),
        traces: has(Hits::Tracepoint),
        probes: has(Hits::Probe),
        wakes: events.tracking.wakeups,
        sockets: events.specs.iter().any(|event| event.socket.is_some()),
        times_sends: true,
        off_cpu_period_ns: match events.tracking.off_cpu_period_ns {
            0 if events.tracking.switches => events.tracking.fallback_off_cpu_period_ns,
            period_ns => period_ns,
        },
        cpus,
        table_bytes: table_bytes(limit.as_ref()),
        channel_bytes: match events.tracking.switches {
            true => channel_bytes(plan.ring_size, limit.as_ref(), cpus),
            false => 0,
        },
    }
}

impl Engine for BpfEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            packs_switches: self.given.packs,
            needs_cpus: true,
            chooses_targets: true,
            shares_periods: true,
            can_cut_stacks: self.cuts_stacks,
            wait_modes: self.wait_modes.clone(),
        }
    }

    fn adapt(&self, plan: &mut EventPlan, ring_size: &mut RingSize) {
        fit::adapt(plan, ring_size);
        plan.read_cgroups = self.read_cgroups.clone();
    }

    fn configure(
        &self,
        plan: &EventPlan,
        inherit: bool,
        events: &mut Vec<ConfiguredEvent>,
    ) -> Option<PrivateEvent> {
        events.iter_mut().for_each(|event| events::configure(plan, event));
        events.push(bpf_output(plan));
        Some(PrivateEvent { event: follow_event(inherit), pages: FOLLOW_PAGES })
    }

    fn describe(&self, descriptions: &mut Vec<EventDesc>, events: &[OpenEvent]) {
        let DecoderConfig { packs, wakes, .. } = &self.given;
        let described = Described {
            switches: self.switches,
            off_cpu: self.off_cpu,
            off_cpu_period_ns: self.off_cpu_period_ns,
            packs: *packs,
            wakes: wakes.as_ref(),
        };
        events::describe(descriptions, events, described);
    }

    fn attach(&mut self, to: Attachment<'_>) -> Result<(), EngineError> {
        self.connect(to.events, to.roots)?;
        self.track(to.threads)?;
        match to.private {
            Some(follow) => self.follow(follow, to.processes, to.roots),
            None => Ok(()),
        }
    }

    fn adjust(&mut self, adjustment: Adjustment) -> Result<(), EngineError> {
        match adjustment {
            Adjustment::On => self.switch_on()?,
            Adjustment::Off => self.switch_off(),
            Adjustment::Requests(true) if self.sockets => {
                self.lock().attach_sockets().map_err(EngineError::own)?;
            }
            Adjustment::Requests(_) => self.lock().detach_sockets(),
            Adjustment::Waits(mode) => self.set_waits(mode)?,
            Adjustment::StackDivisor(divisor) => {
                self.lock().set_stack_divisor(divisor).map_err(EngineError::own)?;
            }
            Adjustment::ThreadShare(share) => {
                self.following.iter().for_each(|following| following.set_share(share));
            }
        }
        Ok(())
    }

    fn decoder(&self, events: &[OpenEvent], ring: &MappedRing) -> Option<Box<dyn RecordDecoder>> {
        let decoder = events::decoder(events, ring, self.given.clone())?;
        Some(Box::new(decoder))
    }

    /// Samples of the threads that are on no CPU now, and the accounts of CPUs through the channels; none unless switches are recorded now.
    fn edge_records(&mut self, edge: Edge, events: &[OpenEvent]) -> Result<Vec<u8>, String> {
        let is_exact = self.is_attached && self.waits() == WaitMode::Exact;
        if is_exact {
            self.lock().settle_accounts(edge == Edge::Begin);
        }
        let Some(blocked) = &mut self.blocked else { return Ok(Vec::new()) };
        let bpf_output = bpf_output_of(events).filter(|_| is_exact);
        let records = bpf_output.map(|event| blocked.records(edge, Layout::new(&event.event.attr)));
        blocked.take_refusal().map_or(Ok(records.unwrap_or_default()), Err)
    }

    fn program_times(&self) -> Option<ProgramTimes> {
        let stacks = self.lock();
        let part = |part| {
            let statistics = stacks.run_statistics(part).unwrap_or_default();
            ProgramTime { runs: statistics.runs, time_ns: statistics.run_time_ns }
        };
        let mut switches = part(ProgramKind::Switches);
        let wakes = part(ProgramKind::Wakes).time_ns;
        let others = [ProgramKind::Traces, ProgramKind::Probes, ProgramKind::Sockets];
        let mut other_ns = others.map(|kind| part(kind).time_ns).iter().sum::<u64>();
        if self.switches {
            switches.time_ns += wakes;
        } else {
            other_ns += wakes;
        }
        Some(ProgramTimes {
            timed_ns: stacks.timed().as_nanos() as u64,
            samples: part(ProgramKind::Samples),
            switches,
            waits: part(ProgramKind::Waits),
            other_ns,
        })
    }

    fn end_output(&mut self, events: &[OpenEvent], decoded: Option<DecodeCounts>) -> OutputEnd {
        if decoded.is_some() {
            self.end_following();
        }
        let records = self.last_records(events, decoded.is_some());
        let interpreted = self.named().processes();
        let losses = self.losses();
        let summary = decoded.map(|decoded| self.summary(decoded));
        OutputEnd { records, interpreted, losses, summary }
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

/// A refusal with its cause, in one line: the verifier's log is for those who change the program.
pub fn refusal(error: &BpfError) -> String {
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let said = first_line(error.to_string());
    let source = std::error::Error::source(error).map(|cause| first_line(cause.to_string()));
    source.map_or_else(|| said.clone(), |cause| format!("{said}: {cause}"))
}
