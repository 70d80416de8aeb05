//! Counting from start to end: runs, intervals, and the order of output.
//!
//! The order matters: the command is forked before limits are raised, events are opened on it, and
//! its exec switches them on. The session then waits for the first of these: the end of the command
//! or of all threads, a signal, a command of the control channel, the next interval, the timeout.

use std::io::Write;
use std::time::{Duration, Instant};

use whit_host::control::ControlChannel;
use whit_host::cpus;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_sys::usage::CpuUsage;
use whit_sys::{ExitStatus, Signal, SignalFd, Workload, WorkloadOptions, system};

use crate::derived_metrics::DerivedMetrics;
use crate::error::StatError;
use crate::note::Note;
use crate::notice::{Listener, Notice};
use crate::options::{Repeats, StatOptions};
use crate::show::{self, Footer, Form, Moment, Printer, View};
use crate::table::{Aggregation, Table};

mod open;
mod pace;
mod results;
mod run;
mod tool;
mod wait;
mod watch;

use results::Results;
use run::{Run, RunEnd};
use wait::Waiter;

/// Signals that end a count.
const SIGNALS: [Signal; 4] = [Signal::Interrupt, Signal::Terminate, Signal::HangUp, Signal::Child];
/// Shells report death by a signal as this plus its number.
const EXIT_SIGNAL_BASE: i32 = 128;

/// Why counting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command exited.
    CommandEnded,
    /// Every counted thread exited.
    TargetEnded,
    /// A signal asked for it.
    Signal(Signal),
    /// The control channel asked for it.
    Stopped,
    /// The time or the number of intervals is over.
    TimeOver,
}

/// The end of a count.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// How the command ended, the last time that it ran.
    pub command: Option<ExitStatus>,
}

impl Outcome {
    /// The command's exit code, unless a signal ended us. A command that we ended has not failed.
    pub fn exit_code(&self) -> i32 {
        match self.end {
            End::Signal(signal) => EXIT_SIGNAL_BASE + signal.number(),
            End::Stopped | End::TimeOver => 0,
            End::CommandEnded | End::TargetEnded => self.command.map_or(0, ExitStatus::shell_code),
        }
    }
}

/// Counts, and prints into `out`.
///
/// # Errors
///
/// Where the target, a cgroup or the command is not there, nothing may be counted, or counts cannot
/// be printed.
pub fn count(
    options: &StatOptions,
    roots: &Roots,
    out: &mut dyn Write,
    listener: &mut dyn Listener,
) -> Result<Outcome, StatError> {
    let control = options.control.as_ref().map(ControlChannel::open).transpose()?;
    let signals = SignalFd::block(&SIGNALS).map_err(StatError::system("block signals"))?;
    let waiter = Waiter::new(signals, control)?;
    let printer = Printer::new(options.style.clone());
    let mut session = Session {
        options,
        roots,
        out,
        listener,
        waiter,
        printer,
        counters: Vec::new(),
        results: Results::default(),
        runs_ns: Vec::new(),
        usage: None,
        is_first_interval: true,
        notes: Vec::new(),
        announced: Vec::new(),
        is_bpf_refused: false,
    };
    session.run_all()
}

/// Counting that goes on.
struct Session<'a> {
    options: &'a StatOptions,
    roots: &'a Roots,
    out: &'a mut dyn Write,
    listener: &'a mut dyn Listener,
    waiter: Waiter,
    printer: Printer,
    /// As they were opened last.
    counters: Vec<crate::counter::Counter>,
    results: Results,
    /// How long each run took.
    runs_ns: Vec<f64>,
    /// CPU usage of the command in its last run.
    usage: Option<CpuUsage>,
    is_first_interval: bool,
    /// How counts were taken last.
    notes: Vec<Note>,
    /// Notices that were printed while events were opened.
    announced: Vec<Notice>,
    /// It is not asked for again.
    is_bpf_refused: bool,
}

impl Session<'_> {
    fn run_all(&mut self) -> Result<Outcome, StatError> {
        let mut number = 0;
        loop {
            let outcome = self.run_once()?;
            number += 1;
            let is_last = match self.options.repeats {
                Repeats::Times(times) => number >= times,
                Repeats::Forever => {
                    self.print_results()?;
                    self.results = Results::default();
                    self.runs_ns.clear();
                    false
                }
            };
            if is_last || matches!(outcome.end, End::Signal(_) | End::Stopped) {
                if self.options.repeats != Repeats::Forever {
                    self.print_results()?;
                }
                return Ok(outcome);
            }
        }
    }

    fn run_once(&mut self) -> Result<Outcome, StatError> {
        let around = &self.options.around;
        if around.sync {
            system::sync();
        }
        self.hook(around.pre.as_ref())?;
        let workload = self.prepare()?;
        let RunEnd { end, command, table, counters, elapsed, usage, notes } =
            Run::open(self, workload)?.count()?;
        self.results.add(&table);
        self.counters = counters;
        self.notes = notes;
        self.runs_ns.push(elapsed.as_nanos() as f64);
        self.usage = usage;
        self.hook(around.post.as_ref())?;
        Ok(Outcome { end, command })
    }

    /// CPUs that are counted as a whole; one where threads are.
    fn counted_cpus(&self) -> usize {
        match &self.options.target {
            Target::SystemWide(Some(cpus)) => cpus.len(),
            Target::SystemWide(None) => cpus::online(self.roots).map_or(1, |online| online.len()),
            _ => 1,
        }
    }

    fn prepare(&self) -> Result<Option<Workload>, StatError> {
        if self.options.command.is_empty() {
            return Ok(None);
        }
        let how = WorkloadOptions::default();
        let signals = Some(self.waiter.signals());
        Ok(Some(Workload::prepare(&self.options.command, how, signals)?))
    }

    /// Runs a command of the user's before or after a run.
    fn hook(&self, command: Option<&std::ffi::OsString>) -> Result<(), StatError> {
        let Some(command) = command else { return Ok(()) };
        let argv = ["sh".into(), "-c".into(), command.clone()];
        let signals = Some(self.waiter.signals());
        let mut workload = Workload::prepare(&argv, WorkloadOptions::default(), signals)?;
        workload.start()?;
        match workload.wait()?.status.shell_code() {
            0 => Ok(()),
            code => Err(StatError::Hook { command: command.to_string_lossy().into_owned(), code }),
        }
    }

    /// Prints the sums over all runs.
    fn print_results(&mut self) -> Result<(), StatError> {
        let moment = match self.options.intervals {
            Some(intervals) if !intervals.summary => return self.print_findings(),
            Some(_) => Moment::Summary,
            None => Moment::Total,
        };
        let table = self.results.table();
        let wall_ns = self.runs_ns.iter().sum::<f64>() / self.runs_ns.len().max(1) as f64;
        let mut text = String::new();
        let is_text = self.printer.style().form == Form::Text;
        if self.options.raw_counts {
            text.push_str(&show::raw_counts(&self.counters, &table));
        }
        if is_text {
            text.push_str(&show::heading(&self.options.title, self.runs_ns.len()));
        }
        text.push_str(&self.lines(&table, moment, wall_ns));
        if is_text {
            text.push_str(&self.footer());
            text.push_str(&show::reasons(&self.counters, &table));
            text.push_str(&show::notes(&self.notes));
        }
        self.print(&text)
    }

    /// Prints failures below intervals that have no summary.
    fn print_findings(&mut self) -> Result<(), StatError> {
        self.notes.retain(Note::is_finding);
        match self.printer.style().form {
            Form::Text => self.print(&show::notes(&self.notes)),
            Form::Csv(_) | Form::Json => Ok(()),
        }
    }

    fn lines(&mut self, table: &Table, moment: Moment, wall_ns: f64) -> String {
        let counters = &self.counters;
        let derived_metrics = DerivedMetrics::of(counters, table, wall_ns);
        let busy = self.is_of_all_threads().then(|| table.clone().of_the_busy(counters));
        let table = busy.as_ref().unwrap_or(table);
        self.printer.table(&View { counters, table, derived_metrics: &derived_metrics, moment })
    }

    fn is_of_all_threads(&self) -> bool {
        let is_system_wide = matches!(self.options.target, Target::SystemWide(_));
        is_system_wide && self.options.aggregation == Aggregation::Thread
    }

    fn footer(&self) -> String {
        let is_of_command = self.options.target == Target::Command && self.runs_ns.len() == 1;
        let usage = self.usage.filter(|_| is_of_command);
        show::elapsed(&Footer {
            runs_ns: &self.runs_ns,
            usage_ns: usage.map(|usage| (usage.user_ns, usage.system_ns)),
            with_table: self.options.with_table,
            has_counts: !self.counters.is_empty(),
        })
    }

    fn print(&mut self, text: &str) -> Result<(), StatError> {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|source| StatError::Output { source })
    }

    /// The table of an interval.
    fn print_interval(
        &mut self,
        table: &Table,
        at: Duration,
        length: Duration,
    ) -> Result<(), StatError> {
        let clears = self.options.intervals.is_some_and(|intervals| intervals.clear);
        let mut text = String::new();
        if clears && self.printer.style().form == Form::Text {
            text.push_str(CLEAR_SCREEN);
            self.printer.repeat_header();
        }
        let is_first = std::mem::take(&mut self.is_first_interval);
        if is_first && self.printer.style().form == Form::Text {
            text.push_str(&show::absences(&self.counters));
            text.push_str(&show::notes(&self.notes));
        }
        if self.options.raw_counts {
            text.push_str(&show::raw_counts(&self.counters, table));
        }
        text.push_str(&self.lines(table, Moment::Interval(at), length.as_nanos() as f64));
        self.print(&text)
    }

    fn notice(&mut self, notice: Notice) {
        self.listener.notice(notice);
    }
}

/// Cursor to the top left, clear the screen, clear the scrollback (ECMA-48, xterm).
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J\x1b[3J";

/// How long ago a moment was, if at all.
fn elapsed(begin: Instant, now: Instant) -> Duration {
    now.saturating_duration_since(begin)
}
