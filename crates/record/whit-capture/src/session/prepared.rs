//! The first stage: events are open, rings are mapped, the output stands; nothing is recorded yet.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use whit_engine_api::rings::MappedRing;
use whit_engine_api::{Attachment, Engine};
use whit_host::control::ControlChannel;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_sys::{Signal, SignalFd, Workload, WorkloadOptions};
use whit_types::{Pid, Tid};

use super::budget::BudgetKeeper;
use super::choose::choose_engine;
use super::context::SessionContext;
use super::cost_baseline::CostBaseline;
use super::drained::Drained;
use super::event_control::EventControl;
use super::file_watch::FileWatch;
use super::filters::leave_recorder_out;
use super::header::KnownHeader;
use super::ledger::Meters;
use super::mapping_watch::{MappingRings, MappingWatch};
use super::metering::Metering;
use super::outcome::End;
use super::output_file::NewOutput;
use super::outputs::Outputs;
use super::parts::SessionParts;
use super::quota::Quota;
use super::reader_event::{ReaderEvent, SessionNotifier};
use super::reader_thread::{Reader, Shared};
use super::readers::ReaderBuilder;
use super::recorded_time::RecordedTime;
use super::running::Running;
use super::running_readers::RunningReaders;
use super::set_up::{Ready, SetUp};
use super::set_up_watch::SetUpWatch;
use super::stretches::Stretches;
use super::wait::SessionWaiter;
use crate::error::CaptureError;
use crate::file_cache::FileCache;
use crate::notice::{Listener, Notice};
use crate::output;
use crate::plan::{CommandPlan, RecordPlan};
use crate::stream::SinkError;

/// Signals that a recording listens to.
const SIGNALS: [Signal; 5] =
    [Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::Child, Signal::User2];

/// A recording that could start now.
pub(super) struct Prepared<'a> {
    /// Dropped first: signals are the session's then.
    watch: SetUpWatch,
    parts: SessionParts<'a>,
    output: NewOutput,
    readers: Vec<Reader>,
    shared: Shared,
    news: Receiver<ReaderEvent>,
    mappings: Option<MappingRings>,
}

/// The command and the signals, before events are opened.
struct Beginning {
    /// Dropped first: signals are the caller's then.
    watch: SetUpWatch,
    cost_baseline: CostBaseline,
    workload: Option<Workload>,
    signals: SignalFd,
    control: Option<ControlChannel>,
}

/// The next stage.
pub(super) enum Started<'a> {
    /// It records.
    Running(Running<'a>),
    /// The output could not be written: nothing is recorded, and the command runs all the same.
    Unwritable(Drained<'a>),
}

impl<'a> Prepared<'a> {
    /// Forks the command, opens events, maps rings, and creates the output.
    pub(super) fn new(
        mut plan: RecordPlan,
        roots: &'a Roots,
        listener: &'a mut dyn Listener,
    ) -> Result<Prepared<'a>, CaptureError> {
        let beginning = Beginning::of(&plan, listener.when_set_up_is_slow())?;
        let pid = beginning.workload.as_ref().map(|workload| Pid(workload.pid()));
        let mut engine = choose_engine(&mut plan, roots, listener)?;
        let (events, rings) = (&plan.events, plan.rings);
        let watches_mappings = plan.output.kept_files.is_some();
        let engine_now = engine.as_ref();
        let set_up = SetUp { events, engine: engine_now, rings, watches_mappings, roots, listener };
        let mut ready = set_up.run(pid)?;
        attach(engine.as_mut(), &mut ready, pid, &plan.events.target, roots)?;
        let Ready { plan: targets, events, rings, cpu_watch, mappings, .. } = ready;
        let metering = Metering::start(&events, roots);
        let meters = Meters::new(metering, cpu_watch, &rings);
        let recorded = RecordedTime::new(plan.events.clock);
        let stretches = plan.budget_ppm.map(|_| Stretches::new(plan.events.clock));
        let control = EventControl::new(events, engine, recorded, stretches);
        let known_files = match &plan.output.kept_files {
            Some(_) => FileCache::for_copies(),
            None => FileCache::default(),
        };
        let context = SessionContext { plan, roots, targets, known_files: Arc::new(known_files) };
        let prepared = beginning.create_output(context, control, meters, rings, listener)?;
        Ok(Prepared { mappings, ..prepared })
    }

    /// Writes existing processes and code, starts the readers, the events and the command.
    pub(super) fn start(self) -> Result<Started<'a>, CaptureError> {
        // The watch is dropped first.
        let Prepared { mut parts, mut output, readers, mut shared, news, watch, mappings } = self;
        let written = parts.synthesize_first(&mut output);
        let (mut file, streams) = output.into_parts();
        let readers = readers.into_iter().zip(streams);
        let readers: Vec<_> = readers.map(|(reader, sink)| reader.with_stream(sink)).collect();
        if let Err(SinkError(error)) = written {
            drop(watch);
            parts.start_workload().inspect_err(|_| file.undo())?;
            let end = (End::WriteFailed(error), Instant::now());
            let drained = Drained::new(parts, file, end, || (readers, None));
            return Ok(Started::Unwritable(drained));
        }
        if parts.context.plan.output.kept_files.is_some() {
            let SessionContext { known_files, roots, .. } = &parts.context;
            shared.file_watch = FileWatch::start(known_files.clone(), (*roots).clone())?;
        }
        let start = |mappings| MappingWatch::start(mappings, shared.file_watch.clone());
        let mapping_watch = mappings.map(start).transpose()?;
        let priority = parts.context.plan.streams.realtime_priority;
        let readers = RunningReaders::start(readers, shared, news, priority)?;
        leave_recorder_out(parts.control.events(), parts.context.roots)?;
        drop(watch);
        if !parts.context.plan.events.rate.keeps_periods {
            parts.control.start_redraws()?;
        }
        file.is_set_up();
        if parts.workload.is_none() {
            parts.listener.notice(Notice::Recording);
        }
        let mut running = Running::new(parts, file, readers, mapping_watch, Instant::now());
        running.begin()?;
        Ok(Started::Running(running))
    }
}

impl Beginning {
    fn of(plan: &RecordPlan, slow: Box<dyn FnOnce() + Send>) -> Result<Beginning, CaptureError> {
        output::check(&plan.output.output, plan.output.makes_directory, &plan.output.files)?;
        let control = plan.schedule.control.as_ref().map(ControlChannel::open).transpose()?;
        let cost_baseline = CostBaseline::open()?;
        let signals = SignalFd::block(&SIGNALS).map_err(CaptureError::system("block signals"))?;
        let workload = prepare(&plan.command, &signals)?;
        let watch = SetUpWatch::start(slow)?;
        Ok(Beginning { cost_baseline, workload, watch, signals, control })
    }

    /// Creates the output, and the readers for its streams.
    fn create_output<'a>(
        self,
        context: SessionContext<'a>,
        mut control: EventControl,
        meters: Meters,
        rings: Vec<MappedRing>,
        listener: &'a mut dyn Listener,
    ) -> Result<Prepared<'a>, CaptureError> {
        let (notifier, news) = SessionNotifier::open()?;
        let waiter = SessionWaiter::new(self.signals, notifier.waker(), self.control)?;
        let SessionContext { plan, roots, .. } = &context;
        let (events, engine) = control.events_and_engine();
        let header = KnownHeader::new(&plan.header, roots, events, engine)?;
        let stretches = control.stretches();
        let describes_code = plan.output.choices.build_ids;
        let builder =
            ReaderBuilder { plan: &plan.streams, roots, events, engine, stretches, describes_code };
        let shares = builder.shares(rings)?;
        let rings_per_reader = shares.iter().map(|share| share.rings.len()).collect();
        let outputs = Outputs::new(header, rings_per_reader);
        let output = outputs.create(plan, self.cost_baseline, listener)?;
        output.say_engine(listener);
        let readers = builder.build(shares, output.is_directory());
        let readers = readers.inspect_err(|_| output.file().undo())?;
        self.watch.has_created(output.file().name());
        let budget = BudgetKeeper::of(&context, &mut control)?;
        let shared = Shared {
            meter: budget.as_ref().map(BudgetKeeper::reader_meter),
            events: control.shared_events(),
            notifier,
            quota: Arc::new(Quota::new(&plan.output.files)),
            keeps_journal: Arc::new(AtomicBool::new(false)),
            file_watch: FileWatch::default(),
        };
        let workload = self.workload;
        let parts =
            SessionParts { context, listener, control, outputs, meters, waiter, budget, workload };
        let watch = self.watch;
        Ok(Prepared { watch, parts, output, readers, shared, news, mappings: None })
    }
}

impl SessionParts<'_> {
    /// Writes records for existing processes and code, before anything is recorded.
    fn synthesize_first(&mut self, output: &mut NewOutput) -> Result<(), SinkError> {
        let is_command = self.context.plan.events.target == Target::Command;
        let command = self.workload.as_ref().filter(|_| is_command).map(Workload::pid);
        let synthesis = self.context.synthesis_before(self.control.events(), command.map(Pid));
        output.synthesize(&synthesis, self.listener)
    }
}

fn prepare(plan: &CommandPlan, signals: &SignalFd) -> Result<Option<Workload>, CaptureError> {
    if plan.arguments.is_empty() {
        return Ok(None);
    }
    let how = WorkloadOptions { stdout_to_stderr: plan.stdout_to_stderr };
    Ok(Some(Workload::prepare(&plan.arguments, how, Some(signals))?))
}

/// Connects the engine with the open events and the processes that there are.
fn attach(
    engine: &mut dyn Engine,
    ready: &mut Ready,
    command_pid: Option<Pid>,
    target: &Target,
    roots: &Roots,
) -> Result<(), CaptureError> {
    let threads = ready.plan.threads.named();
    let process = |tid: &Tid| Some(processes::Status::of_thread(roots, *tid)?.tgid);
    let mut existing: Vec<Pid> = match target {
        // Only an engine with events of its own follows processes.
        _ if ready.private.is_none() => Vec::new(),
        Target::Command => command_pid.into_iter().collect(),
        target if target.covers_cpus() => processes::all(roots).unwrap_or_default(),
        _ => threads.iter().filter_map(process).collect(),
    };
    existing.sort_unstable();
    existing.dedup();
    let private = ready.private.take();
    let to = Attachment { events: &ready.events, private, threads, processes: &existing, roots };
    Ok(engine.attach(to)?)
}
