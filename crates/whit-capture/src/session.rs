//! A recording from start to end.
//!
//! The order matters: the command is forked before limits are raised; events are opened and
//! rings mapped before the output is touched; what exists already is synthesized while the
//! side-band event runs; then the readers start on threads of their own, and the samples. The
//! session itself only waits: for signals, for commands, for its schedule, for the command, for news
//! of its readers. At the end the events stop, the readers empty the rings, losses are added up, and
//! the header is completed. The same happens to each output that is switched away from, except that
//! nothing stops.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use whit_engine::{Attachment, Engine, EngineSummary};
use whit_host::control::ControlChannel;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_host::target::{Plan, Target};
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::blocked::Edge;
use whit_perfdata::feature::{EventDesc, Features};
use whit_sys::usage::CpuUsage;
use whit_sys::{ExitStatus, Signal, SignalFd, Workload, WorkloadOptions, scheduling};
use whit_types::{Pid, Tid};

use crate::error::CaptureError;
use crate::file_cache::FileCache;
use crate::notice::{Listener, Notice};
use crate::options::{RecordOptions, Start};
use crate::output::{self, OutputName};
use crate::plan::{CommandPlan, RecordPlan};
use crate::stream::{Sink, SinkError, StreamSink};
use crate::summary::Summary;

mod choose;
mod code;
mod commands;
mod cpu_watch;
mod filters;
mod finish;
mod header;
mod listing;
mod metering;
mod names;
mod output_file;
mod quota;
mod reader_thread;
mod readers;
mod recorded_time;
mod redraw;
mod schedule;
mod set_up;
mod set_up_watch;
mod switch;
mod synthesis;
mod target_time;
mod unreported_loss;
mod wait;
mod watched;

use choose::choose_engine;
use cpu_watch::CpuWatch;
use metering::Metering;
use output_file::OutputFile;
use quota::Quota;
use reader_thread::{Order, ReaderEvent, ReaderThread, RunningDrainer, SessionNotifier, Shared};
use recorded_time::RecordedTime;
use redraw::Redraws;
use schedule::{Schedule, Step, Stopwatch};
use set_up::{Ready, SetUp};
use set_up_watch::SetUpWatch;
use synthesis::SynthesisContext;
use wait::SessionWaiter;
use watched::Watched;

/// What a recording listens to.
const SIGNALS: [Signal; 5] =
    [Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::Child, Signal::User2];
/// Between the end of a command's events and its own at most so much time goes by, unless the kernel
/// took the events off.
const EXIT_TIME_MAX: Duration = Duration::from_millis(100);
/// Exit code where recording failed but the command did not.
const EXIT_WRITE_FAILED: i32 = 1;
/// Shells report death by a signal as this plus its number.
const EXIT_SIGNAL_BASE: i32 = 128;

/// Why recording ended.
#[derive(Debug)]
pub enum End {
    /// The command exited.
    CommandEnded,
    /// Every recorded thread exited.
    TargetEnded,
    /// A signal asked for it.
    Signal(Signal),
    /// The control channel asked for it.
    Stopped,
    /// The recording has the size that it may have.
    SizeReached,
    /// The recording could not be written.
    WriteFailed(io::Error),
    /// A reader ended by itself; it knows why.
    ReaderEnded,
}

/// A finished recording.
#[derive(Debug)]
pub struct Outcome {
    /// The recording in numbers; of one that was switched, the last output.
    pub summary: Summary,
    /// Why it ended.
    pub end: End,
    /// How the command ended.
    pub command: Option<ExitStatus>,
    /// The work of the engine, where it says more than the ledger.
    pub stacks: Option<Box<dyn EngineSummary>>,
}

impl Outcome {
    /// The recorder's own exit code: the command's, unless a signal ended the recording or
    /// writing failed under a command that did not. A command that we ended because the recording
    /// was complete has not failed.
    pub fn exit_code(&self) -> i32 {
        let of_command = self.command.map_or(0, ExitStatus::shell_code);
        match &self.end {
            End::Signal(signal) => EXIT_SIGNAL_BASE + signal.number(),
            End::Stopped | End::SizeReached => 0,
            End::WriteFailed(_) | End::ReaderEnded if of_command == 0 => EXIT_WRITE_FAILED,
            _ => of_command,
        }
    }
}

/// Records.
pub fn record(
    options: &RecordOptions,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Result<Outcome, CaptureError> {
    let mut plan = RecordPlan::new(options);
    output::check(&plan.output.output, plan.output.makes_directory, &plan.output.files)?;
    let control = plan.schedule.control.as_ref().map(ControlChannel::open).transpose()?;
    let cost_baseline = CostBaseline::open()?;
    let signals = SignalFd::block(&SIGNALS).map_err(CaptureError::system("block signals"))?;
    let workload = prepare(&plan.command, &signals)?;
    let watch = SetUpWatch::start()?;
    let pid = workload.as_ref().map(|workload| Pid(workload.pid()));
    let mut engine = choose_engine(&mut plan, roots, listener)?;
    let (events, rings) = (&plan.events, plan.rings);
    let mut set_up = SetUp { events, engine: engine.as_ref(), rings, roots, listener }.run(pid)?;
    attach(engine.as_mut(), &mut set_up, pid, &plan.events.target, roots)?;
    let metering = Metering::start(&set_up.events, roots);
    let (notifier, news) = SessionNotifier::open()?;
    let waiter = SessionWaiter::new(signals, notifier.wake.clone(), control)?;
    let parts = SessionParts {
        plan,
        roots,
        listener,
        waiter,
        workload,
        cost_baseline,
        notifier,
        news,
        metering,
        engine,
    };
    let mut session = Session::create(parts, set_up)?;
    watch.has_created(&session.output_file.output);
    let end = session.run(watch)?;
    session.finish(end)
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

fn prepare(plan: &CommandPlan, signals: &SignalFd) -> Result<Option<Workload>, CaptureError> {
    if plan.arguments.is_empty() {
        return Ok(None);
    }
    let how = WorkloadOptions { stdout_to_stderr: plan.stdout_to_stderr };
    Ok(Some(Workload::prepare(&plan.arguments, how, Some(signals))?))
}

/// What the recording has cost so far.
#[derive(Clone, Copy, Debug)]
struct CostBaseline {
    begin: Instant,
    usage: CpuUsage,
}

impl CostBaseline {
    fn open() -> Result<CostBaseline, CaptureError> {
        let usage = CpuUsage::of_process().map_err(CaptureError::system("read own CPU time"))?;
        Ok(CostBaseline { begin: Instant::now(), usage })
    }

    /// CPU time since it was opened.
    fn used(&self) -> CpuUsage {
        CpuUsage::of_process().map(|now| now.since(&self.usage)).unwrap_or_default()
    }
}

/// What a session is given.
struct SessionParts<'a> {
    plan: RecordPlan,
    roots: &'a Roots,
    listener: &'a mut dyn Listener,
    waiter: SessionWaiter,
    workload: Option<Workload>,
    cost_baseline: CostBaseline,
    notifier: SessionNotifier,
    news: Receiver<ReaderEvent>,
    metering: Metering,
    engine: Box<dyn Engine>,
}

/// A recording that runs.
struct Session<'a> {
    plan: RecordPlan,
    roots: &'a Roots,
    listener: &'a mut dyn Listener,
    /// CPUs and threads.
    targets: Plan,
    shared: Shared,
    ring_size_bytes: usize,
    /// Rings that samples may be in.
    nr_sample_rings: usize,
    /// Rings of each reader.
    rings_per_reader: Vec<usize>,
    /// Readers, until they start.
    reader_threads: Vec<ReaderThread>,
    running: Vec<RunningDrainer>,
    news: Receiver<ReaderEvent>,
    waiter: SessionWaiter,
    workload: Option<Workload>,
    schedule: Schedule,
    enabled: Stopwatch,
    recorded: RecordedTime,
    /// Those that are recorded, as they were when recording began.
    watched: Option<Watched>,
    descriptions: Vec<EventDesc>,
    /// What is known of every output before it begins.
    features: Features,
    known_files: FileCache,
    cpu_watch: CpuWatch,
    metering: Metering,
    engine: Box<dyn Engine>,
    /// Draws the periods of clocks, while it records.
    redraws: Option<Redraws>,
    output_file: OutputFile,
    /// Outputs that are complete, the oldest first, as long as they must be counted.
    complete: VecDeque<OutputName>,
}

impl<'a> Session<'a> {
    fn create(parts: SessionParts<'a>, ready: Ready) -> Result<Session<'a>, CaptureError> {
        let SessionParts {
            plan,
            roots,
            listener,
            waiter,
            workload,
            cost_baseline,
            notifier,
            news,
            metering,
            engine,
        } = parts;
        let Ready { plan: targets, events, rings, cpu_watch, .. } = ready;
        let descriptions = header::descriptions(&events, engine.as_ref());
        let features = header::known_beforehand(&plan.header, roots, &events, &descriptions)?;
        let mut output_file =
            OutputFile::create(&plan.output, &descriptions, &features, cost_baseline, listener)?;
        let ring_size_bytes = rings.first().map_or(0, |ring| ring.ring.data_size_bytes());
        let nr_sample_rings = rings.iter().filter(|ring| !ring.is_sideband).count();
        let builder = readers::ReaderBuilder {
            plan: &plan.streams,
            roots,
            events: &events,
            engine: engine.as_ref(),
        };
        let reader_threads = builder
            .build_readers(rings, &mut output_file.recording, &output_file.output, listener)
            .inspect_err(|_| output_file.output.undo())?;
        let shared = Shared {
            events: Arc::new(events),
            notifier,
            quota: Arc::new(Quota::new(&plan.output.files)),
            keeps_journal: Arc::new(AtomicBool::new(false)),
        };
        let mut session = Session {
            recorded: RecordedTime::new(plan.events.clock),
            plan,
            roots,
            listener,
            targets,
            shared,
            ring_size_bytes,
            nr_sample_rings,
            rings_per_reader: reader_threads
                .iter()
                .map(|d| d.ring_drainer.ring_ends().len())
                .collect(),
            reader_threads,
            running: Vec::new(),
            news,
            waiter,
            workload,
            schedule: Schedule::new(&Start::AtOnce, None, Instant::now()),
            enabled: Stopwatch::default(),
            watched: None,
            descriptions,
            features,
            known_files: FileCache::default(),
            cpu_watch,
            metering,
            engine,
            redraws: None,
            output_file,
            complete: VecDeque::new(),
        };
        session.name_events()?;
        Ok(session)
    }

    /// Tells readers of pipes what events are called.
    fn name_events(&mut self) -> Result<(), CaptureError> {
        if !self.output_file.recording.is_pipe() {
            return Ok(());
        }
        let names = header::names(&self.descriptions);
        let written = self.main_sink().records(&names);
        written.map_err(|SinkError(source)| CaptureError::Output {
            attempt: "write",
            output: self.output_file.output.to_string(),
            source,
        })
    }

    /// Synthesizes, starts, and waits until something ends the recording.
    fn run(&mut self, watch: SetUpWatch) -> Result<End, CaptureError> {
        if let Err(SinkError(error)) = self.synthesize_first() {
            drop(watch);
            // The command has not begun: let it run all the same.
            self.start_workload()?;
            return Ok(End::WriteFailed(error));
        }
        self.start_readers()?;
        self.leave_recorder_out()?;
        drop(watch);
        if !self.plan.events.rate.keeps_periods {
            self.redraws = Redraws::start(&self.shared.events)?;
        }
        self.output_file.is_set_up();
        let now = Instant::now();
        self.cpu_watch.begins(now);
        self.schedule = Schedule::new(&self.plan.schedule.start, self.plan.schedule.switch, now);
        match self.plan.schedule.start {
            Start::AtOnce => self.switch_on(now)?,
            Start::Disabled if self.plan.schedule.control.is_none() => {
                self.listener.notice(Notice::StartsDisabled);
            }
            _ => {}
        }
        self.start_workload()?;
        self.wait_for_the_end()
    }

    fn wait_for_the_end(&mut self) -> Result<End, CaptureError> {
        let mut alive = self.running.len();
        let mut gone_since: Option<Instant> = None;
        loop {
            while let Some(step) = self.schedule.due(Instant::now()) {
                if let Some(end) = self.step(step)? {
                    return Ok(end);
                }
            }
            let woken = self.waiter.wait(self.schedule.timeout(Instant::now()))?;
            if let Some(end) = self.ended(&woken)? {
                if gone_since.is_some_and(|at| at.elapsed() > EXIT_TIME_MAX) {
                    self.listener.notice(Notice::EventsTakenOff);
                }
                return Ok(end);
            }
            if woken.snapshot
                && let Some(end) = self.snapshot()?
            {
                return Ok(end);
            }
            if let Some(end) = self.obey(woken.received)? {
                return Ok(end);
            }
            while let Ok(news) = self.news.try_recv() {
                let end = match news {
                    ReaderEvent::AllGone => {
                        alive -= 1;
                        None
                    }
                    ReaderEvent::Ended => Some(End::ReaderEnded),
                    ReaderEvent::SizeReached => {
                        self.listener.notice(Notice::SizeReached);
                        Some(End::SizeReached)
                    }
                    ReaderEvent::SwitchDue => self.switch_output()?,
                };
                if let Some(end) = end {
                    return Ok(end);
                }
            }
            if alive == 0 && self.plan.events.target != Target::Command {
                return Ok(End::TargetEnded);
            }
            if alive == 0 {
                // It has ended, which SIGCHLD is about to say; or it runs on without events.
                gone_since.get_or_insert_with(Instant::now);
            }
        }
    }

    fn step(&mut self, step: Step) -> Result<Option<End>, CaptureError> {
        let now = Instant::now();
        match step {
            Step::Enable { after_ms } => {
                self.switch_on(now)?;
                self.listener.notice(Notice::Enabled { after_ms });
            }
            Step::Disable { after_ms } => {
                self.switch_off(now);
                self.listener.notice(Notice::Disabled { after_ms });
            }
            Step::Switch => return self.switch_output(),
        }
        Ok(None)
    }

    fn ended(&mut self, woken: &wait::Woken) -> Result<Option<End>, CaptureError> {
        if let Some(signal) = woken.stop {
            return Ok(Some(End::Signal(signal)));
        }
        if let Some(workload) = self.workload.as_mut().filter(|_| woken.child)
            && workload.try_wait()?.is_some()
        {
            return Ok(Some(End::CommandEnded));
        }
        Ok(None)
    }

    /// The stream behind the header, while no reader runs.
    fn main_sink(&mut self) -> &mut StreamSink {
        match &mut self.output_file.main {
            Some(sink) => sink,
            None => &mut self.reader_threads[0].sink,
        }
    }

    fn start_readers(&mut self) -> Result<(), CaptureError> {
        let realtime = self.plan.streams.realtime_priority;
        if let Some(priority) = realtime {
            // Threads inherit it; the session itself is in no hurry.
            scheduling::set_fifo(priority)
                .map_err(|source| CaptureError::Realtime { priority, source })?;
        }
        for (number, reader_thread) in
            std::mem::take(&mut self.reader_threads).into_iter().enumerate()
        {
            self.running.push(reader_thread.start(number, self.shared.clone())?);
        }
        if realtime.is_some() {
            scheduling::set_normal().map_err(CaptureError::system("leave real-time priority"))?;
        }
        Ok(())
    }

    /// Switches on what does not switch itself on at the command's exec.
    fn switch_on(&mut self, now: Instant) -> Result<(), CaptureError> {
        let (target, threads, roots) =
            (&self.plan.events.target, self.targets.threads.named(), self.roots);
        self.watched.get_or_insert_with(|| Watched::begin(target, threads, roots));
        self.enabled.start(now);
        self.engine.switch_on()?;
        for event in self.shared.events.iter() {
            let attr = &event.event.attr;
            let by_exec = attr.has(AttrFlags::ENABLE_ON_EXEC);
            if attr.has(AttrFlags::DISABLED) && !by_exec {
                for instance in &event.instances {
                    // A refusal means that the event's task has exited.
                    let _ = instance.fd.enable();
                }
            }
        }
        self.recorded.start();
        self.write_blocked(Edge::Begin);
        Ok(())
    }

    /// Has the stacks of blocked threads written by a reader. Such threads write nothing themselves.
    fn write_blocked(&mut self, edge: Edge) {
        let records = self.engine.edge_records(edge, &self.shared.events);
        if let Some(reader) = self.running.first().filter(|_| !records.is_empty()) {
            reader.order(Order::Write(records));
        }
        if let Some(why) = self.engine.take_edge_refusal() {
            self.listener.notice(Notice::BlockedNotRead { why });
        }
    }

    /// Switches everything off but the sideband.
    fn switch_off(&mut self, now: Instant) {
        self.write_blocked(Edge::End);
        self.recorded.stop();
        self.set_enabled(false, None);
        self.engine.switch_off();
        self.enabled.stop(now);
    }

    /// Switches events on or off: those of this name, or all of them but the side band. Says whether
    /// there were any. Members of groups follow their leader.
    fn set_enabled(&self, on: bool, name: Option<&str>) -> bool {
        let mut found = false;
        for (index, event) in self.shared.events.iter().enumerate() {
            let spec = &event.event.spec;
            let is_meant = match name {
                Some(name) => spec.name == name,
                None => !event.event.is_side_band && !spec.is_member(index),
            };
            found |= is_meant;
            for instance in event.instances.iter().filter(|_| is_meant) {
                // A refusal means that the event's task has exited.
                let _ = if on { instance.fd.enable() } else { instance.fd.disable() };
            }
        }
        found
    }

    fn start_workload(&mut self) -> Result<(), CaptureError> {
        match &mut self.workload {
            Some(workload) => workload.start().map_err(|error| {
                // Nothing was recorded: the output is as it was before.
                self.output_file.output.undo();
                error.into()
            }),
            None => Ok(()),
        }
    }

    /// Writes records for what exists already, before anything is recorded.
    fn synthesize_first(&mut self) -> Result<(), SinkError> {
        if self.plan.synthesis.what.at_end {
            return Ok(());
        }
        let is_command = self.plan.events.target == Target::Command;
        let command = self.workload.as_ref().filter(|_| is_command).map(Workload::pid);
        let synthesis_context = SynthesisContext {
            wanted: &self.plan.synthesis,
            roots: self.roots,
            plan: &self.targets,
            events: &self.shared.events,
            files: &self.known_files,
            waiting_command: command.map(Pid),
            has_run: false,
        };
        // Not through `main_sink`, which borrows more than the sink.
        let sink = match &mut self.output_file.main {
            Some(sink) => sink,
            None => &mut self.reader_threads[0].sink,
        };
        self.output_file.cut_processes = synthesis_context.write(sink, self.listener)?;
        Ok(())
    }
}
