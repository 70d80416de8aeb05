//! A recording from start to end.
//!
//! The order matters: the command is forked before limits are raised; events are opened and
//! rings mapped before the output is touched; what exists already is synthesized while the
//! side-band event runs; then the readers start on threads of their own, and the samples. The
//! session itself only waits: for signals, for the command, for news of its readers. At the end
//! the events stop, the readers empty the rings, losses are added up, and the header is completed.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use whit_perfdata::attr::AttrFlags;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::feature::{CompressedDesc, EventDesc, Features};
use whit_perfdata::sample::SampleLayout;
use whit_sys::usage::CpuUsage;
use whit_sys::{ExitStatus, Signal, SignalFd, Workload, WorkloadOptions};
use whit_types::Arch;

use crate::build_id::BuildIdCache;
use crate::configure::{self, ConfiguredEvent};
use crate::error::CaptureError;
use crate::features::KernelFeatures;
use crate::kernel;
use crate::notice::{Listener, Notice};
use crate::open::{self, OpenEvent, Opener, Refusal, Rights};
use crate::options::{Output, RecordOptions, Start};
use crate::output::{self, OutputName};
use crate::processes::{self, Status};
use crate::recording::Recording;
use crate::ring_set::{self, MappedRing};
use crate::roots::Roots;
use crate::stream::{DECODED_BYTES_MAX, Sink, SinkError, StreamOptions, StreamSink};
use crate::summary::Summary;
use crate::synthesize::Synthesizer;
use crate::target::{Plan, Target};

mod drainer;
mod finish;
mod header;
mod readers;
mod wait;

use drainer::{Drainer, News, NewsDesk, RunningDrainer};
use wait::SessionWaiter;

/// What stops a recording.
const STOP_SIGNALS: [Signal; 4] =
    [Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::Child];
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
    /// The recording could not be written.
    WriteFailed(io::Error),
    /// A reader ended by itself; it knows why.
    ReaderEnded,
}

/// A finished recording.
#[derive(Debug)]
pub struct Outcome {
    /// The recording in numbers.
    pub summary: Summary,
    /// Why it ended.
    pub end: End,
    /// How the command ended.
    pub command: Option<ExitStatus>,
}

impl Outcome {
    /// The recorder's own exit code: the command's, unless a signal ended the recording or
    /// writing failed under a command that did not.
    pub fn exit_code(&self) -> i32 {
        let of_command = self.command.map_or(0, ExitStatus::shell_code);
        match &self.end {
            End::Signal(signal) => EXIT_SIGNAL_BASE + signal.number(),
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
    output::check(&options.output)?;
    let bill = Bill::open()?;
    let signals = SignalFd::block(&STOP_SIGNALS).map_err(CaptureError::system("block signals"))?;
    let workload = prepare(options, &signals)?;
    let pid = workload.as_ref().map(Workload::pid);
    let set_up = SetUp { options, roots, listener }.run(pid)?;
    let mut session = Session::create(options, roots, listener, set_up, signals, workload, bill)?;
    let end = session.run()?;
    session.finish(end)
}

fn prepare(options: &RecordOptions, signals: &SignalFd) -> Result<Option<Workload>, CaptureError> {
    if options.command.is_empty() {
        return Ok(None);
    }
    let stdout_to_stderr = options.output == Output::Stdout;
    let how = WorkloadOptions { stdout_to_stderr };
    Ok(Some(Workload::prepare(&options.command, how, Some(signals))?))
}

/// What the recording has cost so far.
#[derive(Debug)]
struct Bill {
    begin: Instant,
    usage: CpuUsage,
}

impl Bill {
    fn open() -> Result<Bill, CaptureError> {
        let usage = CpuUsage::of_process().map_err(CaptureError::system("read own CPU time"))?;
        Ok(Bill { begin: Instant::now(), usage })
    }
}

/// Events and rings, ready to run.
struct Ready {
    plan: Plan,
    events: Vec<OpenEvent>,
    rings: Vec<MappedRing>,
}

struct SetUp<'a> {
    options: &'a RecordOptions,
    roots: &'a Roots,
    listener: &'a mut dyn Listener,
}

impl SetUp<'_> {
    fn run(mut self, command_pid: Option<i32>) -> Result<Ready, CaptureError> {
        let (options, roots) = (self.options, self.roots);
        let rights = Rights::of_process(roots);
        let kernel = self.probe(rights)?;
        let plan = Plan::resolve(
            &options.target,
            command_pid,
            options.inherit,
            options.per_thread,
            roots,
        )?;
        let rate = configure::checked_rate(options, roots, self.listener)?;
        let plan = open::fit_descriptors(plan, options.events.len() + 1, self.listener)?;
        let arch = Arch::native();
        let events =
            configure::configure(options, plan.inherit, rate, &kernel, arch, self.listener)?;
        let rings = plan.nr_rings();
        let pages = ring_set::data_pages(options.ring_size, rings, roots, self.listener);
        let (events, rings) = self.open_and_map(&plan, rights, events, pages)?;
        Ok(Ready { plan, events, rings })
    }

    fn probe(&mut self, rights: Rights) -> Result<KernelFeatures, CaptureError> {
        let kernel = KernelFeatures::probe(self.listener).map_err(|errno| CaptureError::Open {
            event: "dummy".to_owned(),
            place: "for this process".to_owned(),
            errno,
            advice: open::advice(&Refusal {
                errno,
                paranoid: rights.paranoid,
                is_system_wide: false,
                wants_kernel: false,
                pmu_type: whit_perfdata::attr::pmu_type::SOFTWARE,
            }),
        })?;
        if let Some(clock) = self.options.clock {
            KernelFeatures::check_clock(clock).map_err(|source| CaptureError::Clock {
                clock: clock.name().map_or_else(|| clock.0.to_string(), str::to_owned),
                source,
            })?;
        }
        Ok(kernel)
    }

    /// The mark at which a ring wakes the reader is part of the event. Where rings came out
    /// smaller than planned, the events are opened again for that size.
    fn open_and_map(
        &mut self,
        plan: &Plan,
        rights: Rights,
        mut events: Vec<ConfiguredEvent>,
        pages: usize,
    ) -> Result<(Vec<OpenEvent>, Vec<MappedRing>), CaptureError> {
        let page = whit_sys::system::page_size();
        let mut pages = pages;
        loop {
            for event in &mut events {
                configure::set_watermark(&mut event.attr, pages * page);
            }
            let mut opener =
                Opener { plan, rights, roots: self.roots, listener: &mut *self.listener };
            let open = opener.open_all(events)?;
            let rings = ring_set::map_rings(&open, pages, self.listener)?;
            let mapped = rings.first().map_or(pages, |r| r.ring.data_size_bytes() / page);
            if mapped == pages {
                return Ok((open, rings));
            }
            pages = mapped;
            events = open.iter().map(|event| event.event.clone()).collect();
        }
    }
}

/// A recording that runs.
struct Session<'a> {
    options: &'a RecordOptions,
    roots: &'a Roots,
    listener: &'a mut dyn Listener,
    plan: Plan,
    events: Arc<Vec<OpenEvent>>,
    ring_size_bytes: usize,
    nr_rings: usize,
    /// Readers, until they start.
    drainers: Vec<Drainer>,
    running: Vec<RunningDrainer>,
    desk: NewsDesk,
    news: Receiver<News>,
    waiter: SessionWaiter,
    workload: Option<Workload>,
    recording: Recording,
    /// The stream behind the header, where no reader has it.
    main: Option<StreamSink>,
    output: OutputName,
    descriptions: Vec<EventDesc>,
    features: Features,
    bill: Bill,
    set_up_ns: u64,
    enabled: Option<Instant>,
}

impl<'a> Session<'a> {
    fn create(
        options: &'a RecordOptions,
        roots: &'a Roots,
        listener: &'a mut dyn Listener,
        ready: Ready,
        signals: SignalFd,
        workload: Option<Workload>,
        bill: Bill,
    ) -> Result<Session<'a>, CaptureError> {
        let Ready { plan, events, rings } = ready;
        let descriptions: Vec<_> = events.iter().map(header::description).collect();
        let mut features = header::known_beforehand(options, roots, &events, &descriptions)?;
        let streaming = &options.streaming;
        if let Some(level) = streaming.compression_level {
            features.set_compressed(&CompressedDesc::zstd(level as u32, 1, DECODED_BYTES_MAX));
        }
        let as_directory = streaming.directory || streaming.threads.is_some();
        let open = output::open(&options.output, as_directory, listener)?;
        let output = open.name.clone();
        let fail = |source| {
            output.undo();
            CaptureError::Output { attempt: "write", output: output.to_string(), source }
        };
        let (mut recording, left_out) =
            Recording::create(open, &descriptions, &mut features).map_err(fail)?;
        for feature in left_out {
            listener.notice(Notice::FeatureLeftOut { feature: feature.0 });
        }
        let (desk, news) = NewsDesk::open()?;
        let waiter = SessionWaiter::new(signals, desk.wake.clone())?;
        let ring_size_bytes = rings.first().map_or(0, |ring| ring.ring.data_size_bytes());
        let nr_rings = rings.len();
        let crew = readers::Crew { options, roots, events: &events };
        let drainers = crew.hire(rings, &mut recording, &output, listener).inspect_err(|_| {
            output.undo();
        })?;
        let main = match recording.is_directory() {
            true => {
                Some(StreamSink::new(recording.main(), &StreamOptions::default()).map_err(fail)?.0)
            }
            false => None,
        };
        let mut session = Session {
            options,
            roots,
            listener,
            plan,
            events: Arc::new(events),
            ring_size_bytes,
            nr_rings,
            drainers,
            running: Vec::new(),
            desk,
            news,
            waiter,
            workload,
            recording,
            main,
            output,
            descriptions,
            features,
            bill,
            set_up_ns: 0,
            enabled: None,
        };
        if session.recording.is_pipe() {
            let names = header::names(&session.descriptions);
            let written = session.main_sink().records(&names);
            written.map_err(|SinkError(source)| CaptureError::Output {
                attempt: "write",
                output: session.output.to_string(),
                source,
            })?;
        }
        Ok(session)
    }

    /// Synthesizes, starts, and waits until something ends the recording.
    fn run(&mut self) -> Result<End, CaptureError> {
        if let Err(SinkError(error)) = self.synthesize() {
            // The command has not begun: let it run all the same.
            self.start_workload()?;
            return Ok(End::WriteFailed(error));
        }
        for (number, drainer) in std::mem::take(&mut self.drainers).into_iter().enumerate() {
            let running = drainer.start(number, self.events.clone(), self.desk.clone())?;
            self.running.push(running);
        }
        self.set_up_ns = self.bill.begin.elapsed().as_nanos() as u64;
        let mut enable_at = None;
        match self.options.start {
            Start::AtOnce => self.enable(),
            Start::AfterMs(ms) => enable_at = Some(Instant::now() + Duration::from_millis(ms)),
            Start::Disabled => self.listener.notice(Notice::StartsDisabled),
        }
        self.start_workload()?;
        let mut alive = self.running.len();
        let mut gone_since: Option<Instant> = None;
        loop {
            if enable_at.is_some_and(|at| at <= Instant::now()) {
                enable_at = None;
                self.enable();
                if let Start::AfterMs(after_ms) = self.options.start {
                    self.listener.notice(Notice::Enabled { after_ms });
                }
            }
            let timeout = enable_at.map(|at| at.saturating_duration_since(Instant::now()));
            let woken = self.waiter.wait(timeout)?;
            if let Some(end) = self.ended(&woken)? {
                if gone_since.is_some_and(|at| at.elapsed() > EXIT_TIME_MAX) {
                    self.listener.notice(Notice::EventsTakenOff);
                }
                return Ok(end);
            }
            for news in self.news.try_iter() {
                match news {
                    News::AllGone => alive -= 1,
                    News::Ended => return Ok(End::ReaderEnded),
                }
            }
            if alive == 0 && self.options.target != Target::Command {
                return Ok(End::TargetEnded);
            }
            if alive == 0 {
                // It has ended, which SIGCHLD is about to say; or it runs on without events.
                gone_since.get_or_insert_with(Instant::now);
            }
        }
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
        match &mut self.main {
            Some(sink) => sink,
            None => &mut self.drainers[0].sink,
        }
    }

    /// Switches on what does not switch itself on at the command's exec.
    fn enable(&mut self) {
        self.enabled = Some(Instant::now());
        for event in self.events.iter() {
            let attr = &event.event.attr;
            let by_exec = attr.has(AttrFlags::ENABLE_ON_EXEC);
            if attr.has(AttrFlags::DISABLED) && !by_exec {
                for instance in &event.instances {
                    // A refusal means that the event's task has exited.
                    let _ = instance.fd.enable();
                }
            }
        }
    }

    fn start_workload(&mut self) -> Result<(), CaptureError> {
        match &mut self.workload {
            Some(workload) => workload.start().map_err(|error| {
                // Nothing was recorded: the output is as it was before.
                self.output.undo();
                error.into()
            }),
            None => Ok(()),
        }
    }

    /// Writes records for what exists already.
    fn synthesize(&mut self) -> Result<(), SinkError> {
        let cache = BuildIdCache::default();
        let synthesizer = Synthesizer {
            roots: self.roots,
            encoder: RecordEncoder::new(SampleLayout::new(&self.events[0].event.attr)),
            build_ids: self.options.build_ids.then_some(&cache),
            data_mappings: self.events.iter().any(|e| e.event.attr.has(AttrFlags::MMAP_DATA)),
        };
        let mut out = Vec::new();
        let wants_kernel = |e: &OpenEvent| {
            !e.event.spec.is_dummy() && !e.event.attr.has(AttrFlags::EXCLUDE_KERNEL)
        };
        if self.events.iter().any(wants_kernel) {
            match kernel::text(self.roots) {
                Ok(Some(text)) => synthesizer.kernel(&mut out, &text),
                Ok(None) => self.listener.notice(Notice::KernelAddressesHidden),
                Err(error) => self.listener.notice(Notice::Skipped {
                    what: "the kernel's mapping".to_owned(),
                    why: error.to_string(),
                }),
            }
            let release = whit_sys::system::uname().release;
            for module in kernel::modules(self.roots, &release) {
                synthesizer.module(&mut out, &module);
            }
        }
        if let (Target::Command, Some(workload)) = (&self.options.target, &self.workload) {
            synthesizer.comm(&mut out, workload.pid(), workload.pid(), COMMAND_BEFORE_EXEC);
        }
        let existing = existing(self.options, self.roots, &self.plan, self.listener);
        // Not through `main_sink`, which borrows more than the sink.
        let sink = match &mut self.main {
            Some(sink) => sink,
            None => &mut self.drainers[0].sink,
        };
        sink.records(&out)?;
        synthesizer.processes(&existing, sink)?;
        sink.flush()
    }
}

/// The processes that ran before the recording.
fn existing(
    options: &RecordOptions,
    roots: &Roots,
    plan: &Plan,
    listener: &mut dyn Listener,
) -> Vec<i32> {
    match &options.target {
        Target::Command => Vec::new(),
        Target::SystemWide(_) => processes::all(roots).unwrap_or_else(|error| {
            let what = "processes that ran before".to_owned();
            listener.notice(Notice::Skipped { what, why: error.to_string() });
            Vec::new()
        }),
        Target::Processes(_) | Target::Threads(_) => {
            let process = |tid: &i32| Some(Status::of_thread(roots, *tid)?.tgid);
            let mut pids: Vec<_> = plan.threads.iter().filter_map(process).collect();
            pids.sort_unstable();
            pids.dedup();
            pids
        }
    }
}

/// The command's name until it execs.
const COMMAND_BEFORE_EXEC: &[u8] = b"whit-exec";
