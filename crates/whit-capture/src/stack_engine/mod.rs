//! The capture engine that unwinds in the kernel (`--engine=bpf`).
//!
//! Overflows of sampled events run a BPF program in place of perf's own sample; context switches run
//! another. Both write through the *carrier*, an event of the kind bpf-output on each CPU, into the
//! ring that the other events of that CPU share, so that readers, losses and writers are those of every
//! recording. A `Following` thread keeps mappings and unwind tables up to date, and each ring's
//! [`Expander`] makes ordinary records of what comes out.

mod expand;
mod follow;
mod ld_cache;
mod model;
mod modules;
mod preload;
mod schedule;
mod summary;
mod switch_events;
mod switches;
mod task_state;
mod traces;
mod wakes;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whit_bpf::BpfError;
pub use whit_bpf::stacks::FRAMES_MAX;
use whit_bpf::stacks::{Part, StackOptions, Stacks};
use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::feature::EventDesc;
use whit_sys::clock::ClockId;
use whit_sys::system::page_size;
use whit_unwind_tables::TableStore;

use crate::configure::ConfiguredEvent;
use crate::cpus;
use crate::error::CaptureError;
use crate::event::{EventSpec, software};
use crate::open::OpenEvent;
use crate::options::{CallGraph, Engine, ExtraFields, RecordOptions, RingSize};
use crate::ring_set::MappedRing;
use crate::roots::Roots;
use crate::target::Target;
use crate::tracing_data;
pub use expand::ExpandCounts;
pub use expand::Expander;
pub(crate) use expand::Given;
use expand::Layout;
pub use follow::FollowCounts;
use follow::{Expected, Following};
pub use modules::TableCounts;
pub use summary::{PartSummary, StackSummary};
use switch_events::SwitchEvents;
use switches::{Switches, Whose};
pub(crate) use wakes::WakeFormat;

/// Size of a ring where there is much to tell and nobody asked for another: a tenth of a second of the
/// busiest that were seen.
pub(crate) const RING_BYTES: usize = 4 << 20;
/// Pages of the rings that carry mappings, forks and execs to the thread that follows processes.
pub(crate) const FOLLOW_PAGES: usize = 16;
/// What switches are called in the recording: perf's own event for them.
pub const SWITCHES: &str = "context-switches";
/// What the programs' stacks are called where perf's dumps of the same samples stand beside them. Those of
/// switches are under [`SWITCHES`] as always.
pub const COMPARED: &str = "bpf-stacks";

/// The engine of one recording.
#[derive(Debug)]
pub(crate) struct StackEngine {
    stacks: Arc<Mutex<Stacks>>,
    following: Option<Following>,
    switches: bool,
    switch_events: SwitchEvents,
    is_attached: bool,
    /// Tracepoints whose stacks are told, by number.
    tracepoints: BTreeMap<u32, String>,
    wakes: bool,
    /// What expanders need.
    given: Given,
}

/// Why these options cannot be had with stacks that are unwound in the kernel.
pub(crate) fn conflict(options: &RecordOptions) -> Option<&'static str> {
    let events = || options.events.iter().filter(|event| !event.is_dummy());
    let sampled = events().count();
    let call_graphs = || events().map(|event| event.call_graph.unwrap_or(options.call_graph));
    let dumps = call_graphs().any(|call_graph| matches!(call_graph, CallGraph::Dwarf { .. }));
    let has_branches = options.branches.is_some() || events().any(|event| event.branches.is_some());
    let extra = ExtraFields { identifier: false, ..options.extra };
    let other_clock = options.clock.is_some_and(|clock| clock != ClockId::MONOTONIC);
    let checks: [(bool, &'static str); 14] = [
        (
            other_clock && options.switch_events,
            "stamps switches by CLOCK_MONOTONIC: leave --clockid out",
        ),
        (sampled == 0 && !options.switch_events && !options.wakeups, "takes an event to sample"),
        (events().any(|event| event.reads_group), "takes no counts of groups (:S)"),
        (call_graphs().any(|chains| chains == CallGraph::Lbr), "takes no branch records"),
        (dumps && options.engine == Engine::Auto, "needs no dumps of stacks"),
        (
            dumps && (sampled != 1 || events().any(EventSpec::is_tracepoint)),
            "has dumps of stacks beside one event alone, which is no tracepoint",
        ),
        (
            dumps && options.switch_events && !events().all(counts_switches),
            "has dumps of stacks beside samples, or beside those of context-switches (-e \
             software/config=0x3,period=1,name=dumps/) with --switch-events",
        ),
        (has_branches, "takes no branch records"),
        (extra != ExtraFields::default() || options.cgroups, "takes no further fields of samples"),
        (options.per_thread, "needs a ring for each CPU: leave --per-thread out"),
        (options.overwrite, "cannot overwrite old samples"),
        (options.data_addresses || options.raw, "takes no addresses of data and no raw data"),
        (options.user_registers != 0 || options.interrupt_registers != 0, "takes no registers"),
        (whit_types::Arch::native() != Some(whit_types::Arch::X86_64), "runs on x86-64 alone"),
    ];
    checks.into_iter().find_map(|(is_so, why)| is_so.then_some(why))
}

/// Whether an event counts context switches.
fn counts_switches(event: &EventSpec) -> bool {
    event.pmu_type == pmu_type::SOFTWARE && event.config == software::CONTEXT_SWITCHES
}

/// How the sampled event gets its call chains.
fn call_graph(options: &RecordOptions) -> CallGraph {
    let sampled = options.events.iter().find(|event| !event.is_dummy());
    sampled.and_then(|event| event.call_graph).unwrap_or(options.call_graph)
}

/// What of the call graph is left to perf: dumps of stacks, to be compared with what the programs
/// make of the same samples. Otherwise nothing.
pub(crate) fn leave_to_perf(options: &mut RecordOptions) {
    options.call_graph = match call_graph(options) {
        dumps @ CallGraph::Dwarf { .. } => dumps,
        _ => CallGraph::None,
    };
    options.events.iter_mut().for_each(|event| event.call_graph = None);
    let has_tracepoints = options.events.iter().any(EventSpec::is_tracepoint);
    let is_large = options.switch_events
        || options.wakeups
        || has_tracepoints
        || options.call_graph != CallGraph::None;
    if is_large && options.ring_size == RingSize::Default {
        options.ring_size = RingSize::Bytes(RING_BYTES);
    }
    // The programs have no other clock that perf has too.
    if options.switch_events {
        options.clock = Some(ClockId::MONOTONIC);
    }
}

/// Whether of a process only some threads are recorded: those that are named, or that were there before.
fn has_few_threads(options: &RecordOptions) -> bool {
    matches!(options.target, Target::Threads(_)) || !options.inherit
}

/// Bytes of a channel beside a ring: the same.
fn channel_bytes(ring_size: RingSize) -> usize {
    match ring_size {
        RingSize::Default => RING_BYTES,
        RingSize::Pages(pages) => pages.saturating_mul(page_size()),
        RingSize::Bytes(bytes) => bytes,
    }
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
        let cpus = cpus.map_or(1, |last| last as usize + 1);
        // The kernel's list of symbols takes a while to read, as the verifier takes for the programs.
        let of_scheduler = (options.switch_events || wakes.is_some()).then(|| {
            let (roots, has_wakes) = (roots.clone(), wakes.is_some());
            std::thread::spawn(move || schedule::find(&roots, has_wakes))
        });
        let mut stacks = Stacks::load(&StackOptions {
            is_system_wide: matches!(options.target, Target::SystemWide(_)),
            by_thread: has_few_threads(options),
            kernel_stacks: !options.user_callchains_only,
            user_stacks: !options.kernel_callchains_only,
            memo: true,
            perf_samples: matches!(call_graph(options), CallGraph::Dwarf { .. }),
            traces: options.events.iter().any(EventSpec::is_tracepoint),
            wakes: wakes.is_some(),
            cpus,
            channel_bytes: if options.switch_events { channel_bytes(options.ring_size) } else { 0 },
        })?;
        // Without, the ledger does not say what the programs took.
        let _ = stacks.keep_statistics();
        let channels = options.switch_events.then(|| stacks.channels().clone());
        let landmarks = of_scheduler.and_then(|thread| thread.join().ok().flatten());
        Ok(StackEngine {
            stacks: Arc::new(Mutex::new(stacks)),
            following: None,
            switches: options.switch_events,
            switch_events: SwitchEvents::default(),
            is_attached: false,
            tracepoints: BTreeMap::new(),
            wakes: wakes.is_some(),
            given: Given {
                landmarks: landmarks.unwrap_or_default(),
                wakes,
                channels,
                bells: BTreeMap::new(),
                is_cpu_wide: matches!(options.target, Target::SystemWide(_)),
            },
        })
    }

    /// What expanders need.
    pub(crate) fn given(&self) -> Given {
        self.given.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Stacks> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has events run the programs, which write through the carrier.
    pub(crate) fn connect(
        &mut self,
        events: &[OpenEvent],
        roots: &Roots,
    ) -> Result<(), CaptureError> {
        self.tracepoints = traced_by(events, roots)?;
        let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events.iter().filter(|event| event.event.is_carrier) {
            for instance in &event.instances {
                let cpu = u32::try_from(instance.cpu).unwrap_or(0);
                stacks.set_output(cpu, instance.fd.as_fd()).map_err(CaptureError::Bpf)?;
            }
            if self.switches {
                self.given.bells = self.switch_events.open_bells(event, &stacks)?;
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
    pub(crate) fn tell_of(
        &self,
        threads: &[i32],
        options: &RecordOptions,
    ) -> Result<(), CaptureError> {
        if !has_few_threads(options) {
            return Ok(());
        }
        let stacks = self.lock();
        let mut threads = threads.iter();
        threads.try_for_each(|tid| stacks.add_thread(*tid as u32)).map_err(CaptureError::Bpf)
    }

    /// Follows processes from here on.
    pub(crate) fn follow(
        &mut self,
        follow: (Vec<OpenEvent>, Vec<MappedRing>),
        pids: &[i32],
        options: &RecordOptions,
        roots: &Roots,
    ) -> Result<(), CaptureError> {
        self.lock().attach_processes().map_err(CaptureError::Bpf)?;
        let store = TableStore::new(options.table_cache.clone());
        let command = options.command.first().filter(|_| options.target == Target::Command);
        let expected = command.zip(pids.first()).map(|(command, pid)| Expected {
            pid: *pid,
            backings: preload::backings(command, &options.loader),
        });
        let following =
            Following::start(self.stacks.clone(), follow, pids, expected, store, roots)?;
        self.following = Some(following);
        Ok(())
    }

    /// Tells of switches and tracepoints from here on, where that was asked for.
    pub(crate) fn switch_on(&mut self) -> Result<(), CaptureError> {
        if !self.is_attached {
            self.attach().map_err(CaptureError::Bpf)?;
            self.is_attached = true;
            if self.switches {
                let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
                self.switch_events.open_comings(&stacks)?;
            }
        }
        Ok(())
    }

    fn attach(&self) -> Result<(), BpfError> {
        let mut stacks = self.lock();
        for (number, name) in &self.tracepoints {
            let (category, event) = name.split_once(':').unwrap_or(("", name));
            stacks.attach_tracepoint(category, event, *number)?;
        }
        if self.wakes {
            stacks.attach_wakes()?;
        }
        if self.switches {
            stacks.attach_switches()?;
        }
        Ok(())
    }

    /// Tells of nothing any more.
    pub(crate) fn switch_off(&mut self) {
        self.switch_events.close_comings();
        self.lock().detach();
        self.is_attached = false;
    }

    /// What it did, once it has ended.
    pub(crate) fn summary(&mut self, expand: ExpandCounts) -> StackSummary {
        let follow = self.following.take().map(|mut following| following.stop());
        let stacks = self.lock();
        let counts = |part| stacks.counts(part).unwrap_or_default();
        let part = |part| PartSummary {
            counts: counts(part),
            runs: stacks.run_statistics(part).unwrap_or_default(),
        };
        let runs = |part| {
            let found = stacks.run_statistics(part).unwrap_or_default();
            (found.runs, found.run_time_ns)
        };
        StackSummary {
            samples: counts(Part::Samples),
            switches: counts(Part::Switches),
            follow: follow.unwrap_or_default(),
            traces: part(Part::Traces),
            wakes: part(Part::Wakes),
            expand,
            sample_runs: runs(Part::Samples),
            switch_runs: runs(Part::Switches),
        }
    }
}

/// Whether an event's overflows run the program. Where switches are told of, dumps are perf's of the same
/// switches, to be compared.
fn is_sampled(event: &ConfiguredEvent, switches: bool) -> bool {
    has_stacks(event) && !event.spec.is_tracepoint() && !(switches && has_dumps(event))
}

/// Whether its samples get stacks.
fn has_stacks(event: &ConfiguredEvent) -> bool {
    !event.is_side_band && !event.is_carrier && !event.spec.is_dummy()
}

/// The tracepoints of events, by number: the kernel calls a program once for all events of one.
fn traced_by(events: &[OpenEvent], roots: &Roots) -> Result<BTreeMap<u32, String>, CaptureError> {
    let specs = events.iter().map(|event| &event.event.spec).filter(|spec| spec.is_tracepoint());
    specs.map(|spec| Ok((spec.config as u32, tracing_data::name_in(roots, spec)?))).collect()
}

/// The event by which the programs write.
pub(crate) fn carrier(options: &RecordOptions) -> Option<ConfiguredEvent> {
    (options.engine == Engine::Bpf).then(|| {
        let spec = EventSpec::new("bpf-output", pmu_type::SOFTWARE, software::BPF_OUTPUT);
        let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::RAW;
        let mut attr = Attr {
            pmu_type: spec.pmu_type,
            config: spec.config,
            sample_period_or_freq: 1,
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        if let Some(clock) = options.clock {
            attr.flags |= AttrFlags::USE_CLOCKID;
            attr.clockid = clock.0;
        }
        ConfiguredEvent { spec, attr, is_side_band: true, is_carrier: true }
    })
}

/// The event that tells of mappings, forks and execs alone, at once.
pub(crate) fn follow_event(inherit: bool) -> ConfiguredEvent {
    let spec = EventSpec::side_band();
    let attr = Attr {
        pmu_type: spec.pmu_type,
        config: spec.config,
        sample_period_or_freq: 1,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
        flags: AttrFlags::SAMPLE_ID_ALL
            | AttrFlags::MMAP
            | AttrFlags::MMAP2
            | AttrFlags::COMM
            | AttrFlags::COMM_EXEC
            | AttrFlags::TASK
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV
            | AttrFlags::WATERMARK,
        wakeup: 1,
        ..Attr::default()
    };
    let attr = Attr { flags: attr.flags.with(AttrFlags::INHERIT, inherit), ..attr };
    ConfiguredEvent { spec, attr, is_side_band: true, is_carrier: false }
}

/// Whether perf writes samples of its own, with dumps of stacks.
fn has_dumps(sampled: &ConfiguredEvent) -> bool {
    sampled.attr.sample_type.contains(SampleType::STACK_USER)
}

/// How events are described in the recording: sampled ones with what their samples get, the carrier as
/// the event of switches. With dumps of stacks, the sampled one is perf's, and the carrier stands for
/// the samples that the programs tell of.
pub(crate) fn describe(
    descriptions: &mut Vec<EventDesc>,
    events: &[OpenEvent],
    switches: bool,
    wakes: Option<&WakeFormat>,
) {
    let Some(carrier) = events.iter().find(|event| event.event.is_carrier) else { return };
    let layout = Layout::new(&carrier.event.attr);
    let sample_type = layout.sample_type();
    let mut sampled =
        events.iter().map(|event| &event.event).filter(|event| is_sampled(event, switches));
    let dumped = sampled.find(|event| has_dumps(event));
    for (description, event) in descriptions.iter_mut().zip(events) {
        let attr = &mut description.attr;
        if has_dumps(&event.event) {
            // As perf writes them.
        } else if has_stacks(&event.event) {
            let has_raw = attr.sample_type.contains(SampleType::RAW);
            attr.sample_type = sample_type.with(SampleType::RAW, has_raw);
        } else if let (true, Some(dumped)) = (event.event.is_carrier, dumped) {
            attr.pmu_type = dumped.attr.pmu_type;
            attr.config = dumped.attr.config;
            attr.sample_type = sample_type;
            description.name = COMPARED.to_owned();
        } else if event.event.is_carrier && switches {
            attr.config = software::CONTEXT_SWITCHES;
            attr.sample_type = layout.raw_sample_type();
            attr.flags |= AttrFlags::CONTEXT_SWITCH;
            description.name = SWITCHES.to_owned();
        }
    }
    descriptions.extend(wakes.map(|format| format.describe(layout, &carrier.event.attr)));
}

/// What makes ordinary records of what the programs write into a ring; `None` where they write
/// nothing.
pub(crate) fn expander(events: &[OpenEvent], ring: &MappedRing, given: Given) -> Option<Expander> {
    let mut members = ring.members.iter();
    let (event, instance) = members.find(|(event, _)| events[*event].event.is_carrier)?;
    let carrier = &events[*event];
    let id = carrier.instances[*instance].id;
    let traced = ring.members.iter().filter_map(|(event, instance)| {
        let event = &events[*event];
        let tracepoint = event.event.spec.is_tracepoint().then_some(event.event.spec.config)?;
        Some((event.instances[*instance].id, tracepoint as u32))
    });
    let attr = &carrier.event.attr;
    let switches = || {
        let cpu = u32::try_from(ring.cpu).ok()?;
        let channel = given.channels.as_ref()?.of_cpu(cpu)?;
        let bell = given.bells.get(&cpu).copied();
        let whose = Whose { id, cpu, bell, is_cpu_wide: given.is_cpu_wide };
        Some(Switches::new(channel, attr, whose, given.landmarks.clone()))
    };
    let switches = switches();
    let mut expander = Expander::new(Layout::new(attr), id, traced.collect(), given);
    switches.into_iter().for_each(|switches| expander.add_switches(switches));
    // The sampled event's own id is that of perf's samples.
    let has_switches = expander.has_switches();
    let is_dumped =
        |event: &OpenEvent| is_sampled(&event.event, has_switches) && has_dumps(&event.event);
    if events.iter().any(is_dumped) {
        expander.samples_go_by_carrier();
    }
    Some(expander)
}

/// A refusal with its cause.
pub(crate) fn refusal(error: &BpfError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
