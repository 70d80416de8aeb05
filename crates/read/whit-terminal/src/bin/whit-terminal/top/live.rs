//! Pictures of a live recording.

use super::cost::CostMeter;
use super::recorder;
use crate::source::RecordingSource;
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::BufWriter;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use whit_cli::symbol_args::SymbolArgs;
use whit_cli::top::TopArgs;
use whit_cli::{message, output};
use whit_live::recorder::{Ended, LiveStream, Recorder};
use whit_perfdata::reader::Recording;
use whit_profile::companions::Companions;
use whit_profile::model::Profile;
use whit_profile::{KeptSymbols, ReadOptions, Reading, Samples};
use whit_sys::{Signal, SignalFd, system};
use whit_terminal::{
    CodeText, Explain, Feed, Function, News, Progress, RequestsText, Source, Span, Status, Waits,
};
use whit_types::Pid;
use whit_view::hists::{HistsOptions, SortKey};
use whit_view::stdio::StdioOptions;

/// Between two looks at a recorder that sets its recording up.
const BEGIN_INTERVAL: Duration = Duration::from_millis(20);
/// Pictures between two looks for processes and symbols that nobody needs any more.
const TRIM_PICTURES: u64 = 15;
/// In messages, the recording is called so.
const NAME: &str = "whit top";
/// Length of a stretch of time with `--sort time`.
const TIME_QUANTUM_NS: NonZeroU64 = NonZeroU64::new(100_000_000).unwrap();
/// The exit code after a recorder that a signal killed.
const KILLED: u8 = 1;

/// The signals that end the interface. Before any other thread is started.
pub(super) fn block_signals() -> Result<SignalFd> {
    let signals = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
    SignalFd::block(&signals).context("cannot wait for signals")
}

/// Makes recordings and profiles of the window.
#[derive(Clone, Debug)]
pub(super) struct Pictures {
    stream: LiveStream,
    symbols: Arc<SymbolArgs>,
    kept: KeptSymbols,
    hists: HistsOptions,
    /// Processes that are left out: this one and the recorder.
    without: Vec<Pid>,
}

impl Pictures {
    /// The window as a recording, in memory.
    fn recording(&self) -> Result<Recording> {
        let file = system::memory_file("whit-top").context("cannot make a file in memory")?;
        let mut out = BufWriter::with_capacity(1 << 16, File::from(file));
        self.stream.with_window(|window, now_ns| {
            window.forget_old(now_ns);
            window.write_to(&mut out)
        })?;
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok(Recording::from_file(Path::new(NAME), file)?)
    }

    fn read_options(&self, recording: &Recording) -> Result<ReadOptions> {
        let mut options = self.symbols.options(recording)?;
        // A picture waits for no server.
        options.names.companions = Companions::Off;
        // A window is small: more threads cost more than they save.
        options.threads = 1;
        options.names.machine.iter_mut().for_each(|machine| machine.is_live = true);
        options.names.kept_symbols = Some(self.kept.clone());
        options.selection.without_pids = self.without.clone();
        Ok(options)
    }

    /// The rows of the report.
    fn samples(&self) -> Samples {
        let facets = SortKey::wanted_facets(self.hists.sort_keys(), TIME_QUANTUM_NS);
        Samples { facets, blocks: self.hists.intervals, ..Samples::default() }
    }

    pub(super) fn profile(&self) -> Result<Profile> {
        let recording = self.recording()?;
        let options = self.read_options(&recording)?;
        Ok(Reading::open(&recording, &options).answer(self.samples())?)
    }

    /// Lets everything go that belongs to processes which are gone.
    fn trim(&self) {
        self.kept.trim();
        self.stream.with_window(|window, _| window.prune(system::is_running));
    }

    /// How long the window is.
    fn covers(&self) -> Duration {
        self.stream.with_window(|window, now_ns| {
            let begun_ns = window.begun_ns().unwrap_or(now_ns);
            Duration::from_nanos(now_ns.saturating_sub(begun_ns))
        })
    }

    fn with_source<T>(
        &self,
        ask: impl FnOnce(&RecordingSource<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let recording = self.recording().map_err(|error| output::describe(&error))?;
        let options = self.read_options(&recording).map_err(|error| output::describe(&error))?;
        let recordings = [recording];
        ask(&RecordingSource::new(&recordings, Some(options), self.samples()))
    }
}

impl Source for Pictures {
    fn samples_of(&self, span: Span, progress: Progress<'_>) -> Result<Profile, String> {
        self.with_source(|source| source.samples_of(span, progress))
    }

    fn waits(&self, span: Option<Span>, progress: Progress<'_>) -> Result<Waits, String> {
        self.with_source(|source| source.waits(span, progress))
    }

    fn times(&self, progress: Progress<'_>) -> Result<Profile, String> {
        self.with_source(|source| source.times(progress))
    }

    fn code(
        &self,
        function: &Function,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<CodeText, String> {
        self.with_source(|source| source.code(function, span, progress))
    }

    fn requests(&self, progress: Progress<'_>) -> Result<RequestsText, String> {
        self.with_source(|source| source.requests(progress))
    }

    fn why(
        &self,
        what: &Explain,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, String> {
        self.with_source(|source| source.why(what, span, progress))
    }

    fn save(&self, path: &Path, profile: &Profile, options: &StdioOptions) -> Result<(), String> {
        RecordingSource::new(&[], None, Samples::default()).save(path, profile, options)
    }
}

/// A recorder, and pictures of its stream.
#[derive(Debug)]
pub(super) struct LiveRecording {
    recorder: Recorder,
    pictures: Pictures,
    cost: CostMeter,
    signals: Option<SignalFd>,
    delay: Duration,
    zeroes: bool,
    next: Instant,
    made: u64,
    is_over: bool,
    /// The user knows of the end.
    is_end_shown: bool,
}

impl LiveRecording {
    pub(super) fn start(args: &TopArgs, signals: Option<SignalFd>) -> Result<LiveRecording> {
        let arguments = args.recorder_arguments();
        let recorder = recorder::start(&arguments, args.keep(), signals.as_ref())?;
        let pictures = Pictures {
            stream: recorder.stream().clone(),
            symbols: Arc::new(args.symbols().clone()),
            kept: KeptSymbols::default(),
            hists: args.hists()?,
            without: match args.itself {
                true => Vec::new(),
                false => [recorder.pid(), std::process::id()].map(|pid| Pid(pid as i32)).into(),
            },
        };
        Ok(LiveRecording {
            recorder,
            pictures,
            cost: CostMeter::default(),
            signals,
            delay: args.delay(),
            zeroes: args.zero,
            next: Instant::now(),
            made: 0,
            is_over: false,
            is_end_shown: false,
        })
    }

    /// Waits until the recording has begun. Where it does not, prints the recorder's reasons, and gives its exit code.
    pub(super) fn wait_for_begin(&mut self) -> Result<Option<u8>> {
        while !self.recorder.stream().has_begun() {
            if self.has_signal() {
                return Ok(Some(0));
            }
            if self.recorder.stream().is_over() {
                if self.recorder.stream().is_announced() {
                    break;
                }
                let Ended { code, messages, .. } = self.close()?;
                message::answer(messages.trim_end());
                return Ok(Some(exit_code(code)));
            }
            std::thread::sleep(BEGIN_INTERVAL);
        }
        self.next = Instant::now() + self.delay;
        Ok(None)
    }

    /// Ends the recorder where it still runs.
    fn close(&mut self) -> Result<Ended> {
        let mut ended = self.recorder.end();
        match ended.error.take() {
            Some(error) => Err(anyhow!(error).context(ended.messages)),
            None => Ok(ended),
        }
    }

    /// For the other views.
    pub(super) fn source(&self) -> Pictures {
        self.pictures.clone()
    }

    fn has_signal(&self) -> bool {
        self.signals.as_ref().is_some_and(|signals| matches!(signals.next(), Ok(Some(_))))
    }

    /// Waits for the next picture; `None` where the recording has ended and the last one is made.
    pub(super) fn next_picture(&mut self) -> Option<Result<(Profile, Status)>> {
        if self.is_over {
            return None;
        }
        while Instant::now() < self.next && !self.recorder.stream().is_over() {
            std::thread::sleep(
                BEGIN_INTERVAL.min(self.next.saturating_duration_since(Instant::now())),
            );
        }
        Some(self.picture())
    }

    fn picture(&mut self) -> Result<(Profile, Status)> {
        self.is_over = self.recorder.stream().is_over();
        let covers = self.pictures.covers();
        let profile = self.pictures.profile();
        if self.zeroes {
            self.zero();
        }
        self.made += 1;
        if self.made.is_multiple_of(TRIM_PICTURES) {
            self.pictures.trim();
        }
        let cost = self.cost.read(self.recorder.pid());
        self.next = Instant::now() + self.delay;
        let covers = format!("{:.0} s", covers.as_secs_f64());
        Ok((profile?, Status { covers, cost: cost.to_string() }))
    }

    fn reason(&mut self) -> String {
        match self.recorder.exit() {
            Some(exit) if exit.success() => "ended: the target is gone".to_owned(),
            _ => "ended: q shows the recorder's messages".to_owned(),
        }
    }

    /// Ends the recorder, and repeats its warnings; gives the exit code.
    pub(super) fn end(mut self) -> Result<u8> {
        let has_begun = self.recorder.stream().is_announced();
        let was_over = self.recorder.stream().is_over();
        let Ended { code, messages, .. } = self.close()?;
        let is_shown = |line: &&str| !has_begun || line.starts_with("whit: ");
        messages.lines().filter(is_shown).for_each(message::answer);
        // It was ended by us, unless it ended before.
        Ok(if was_over { exit_code(code) } else { 0 })
    }
}

fn exit_code(code: Option<i32>) -> u8 {
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(KILLED)
}

impl Feed for LiveRecording {
    fn news(&mut self, is_paused: bool) -> News {
        if self.has_signal() {
            return News::Quit;
        }
        if self.is_over {
            return match std::mem::replace(&mut self.is_end_shown, true) {
                true => News::None,
                false => News::Ended(self.reason()),
            };
        }
        let is_over = self.recorder.stream().is_over();
        let has_begun = is_over || self.recorder.stream().has_begun();
        if is_over && !self.recorder.stream().is_announced() {
            // The recorder's messages say why.
            return News::Quit;
        }
        let is_due = is_over || Instant::now() >= self.next;
        if is_paused || !has_begun || !is_due {
            return News::None;
        }
        match self.picture() {
            Ok((profile, status)) => News::Picture { profile: Arc::new(profile), status },
            Err(error) => {
                (self.is_over, self.is_end_shown) = (true, true);
                News::Ended(output::describe(&error))
            }
        }
    }

    fn zero(&mut self) {
        self.pictures.stream.with_window(|window, _| window.forget_all());
    }
}
