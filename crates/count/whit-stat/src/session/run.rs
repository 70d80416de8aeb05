//! One run: from the opening of events to their last reading.

use std::time::{Duration, Instant};

use whit_host::control::{Command, Received};
use whit_host::target::Target;
use whit_sys::usage::CpuUsage;
use whit_sys::{ExitStatus, Sender, Signal, Workload};

use super::pace::Pace;
use super::wait::Woken;
use super::watch::Watch;
use super::{End, Session, elapsed, tool};
use crate::aggregate::{Aggregator, Rules};
use crate::counter::Counter;
use crate::error::StatError;
use crate::note::Note;
use crate::notice::Notice;
use crate::options::Start;
use crate::reading::Reading;
use crate::source::Source;
use crate::table::Table;

/// A command that used less tells nothing by the time that its events were enabled.
const USED_LEAST_NS: u64 = 2_000_000;
/// Events that were enabled for less than one part in this many of the command's CPU time were
/// taken off it.
const ENABLED_PART_LEAST: u64 = 10;

/// The result of one run.
pub(super) struct RunEnd {
    pub(super) end: End,
    pub(super) command: Option<ExitStatus>,
    pub(super) table: Table,
    pub(super) counters: Vec<Counter>,
    pub(super) elapsed: Duration,
    pub(super) usage: Option<CpuUsage>,
    pub(super) notes: Vec<Note>,
}

/// A run that goes on.
pub(super) struct Run<'s, 'a> {
    session: &'s mut Session<'a>,
    source: Box<dyn Source>,
    workload: Option<Workload>,
    aggregator: Aggregator,
    /// The last readings, and those before the current interval.
    readings: Vec<Reading>,
    before: Vec<Reading>,
    /// When counting began, and the current interval.
    begin: Instant,
    interval_begin: Instant,
    intervals: u64,
    pace: Pace,
    /// whit's own CPU time when the current interval began.
    used_ns: u64,
    /// The time of the last look at the cost.
    paced_at: Instant,
    /// Threads that may still run.
    watch: Watch,
    /// A signal was passed on to the command, whose end is waited for.
    asked_by: Option<Signal>,
    exit: Option<whit_sys::Exit>,
}

impl<'s, 'a> Run<'s, 'a> {
    pub(super) fn open(
        session: &'s mut Session<'a>,
        workload: Option<Workload>,
    ) -> Result<Run<'s, 'a>, StatError> {
        let (source, watch) = session.open(workload.as_ref())?;
        session.counters = source.counters().to_vec();
        session.notes = source.notes();
        let options = session.options;
        let rules =
            Rules { aggregation: options.aggregation, scale: options.scale, merge: options.merge };
        if let Some(thread) = watch.descriptor() {
            session.waiter.watch(thread)?;
        }
        let now = Instant::now();
        let pace = Pace::new(
            options.intervals.and_then(|intervals| intervals.max_overhead_ppm),
            session.counted_cpus(),
            options.intervals.map_or(Duration::ZERO, |intervals| intervals.length),
        );
        Ok(Run {
            aggregator: Aggregator::new(rules, session.roots),
            session,
            source,
            workload,
            readings: Vec::new(),
            before: Vec::new(),
            begin: now,
            interval_begin: now,
            intervals: 0,
            pace,
            used_ns: 0,
            paced_at: now,
            watch,
            asked_by: None,
            exit: None,
        })
    }

    pub(super) fn count(mut self) -> Result<RunEnd, StatError> {
        self.start()?;
        let delay = match self.session.options.start {
            Start::After(delay) => Some(delay),
            Start::AtOnce | Start::Disabled => None,
        };
        let end = match delay {
            Some(delay) => self.wait_out(delay)?,
            None => None,
        };
        let end = match end {
            Some(end) => end,
            None => self.wait_for_the_end()?,
        };
        let ended = Instant::now();
        self.source.stop()?;
        // A command's time ends with it; that of CPUs and threads when they are counted no more.
        let is_command = self.session.options.target == Target::Command;
        self.finish(end, if is_command { ended } else { Instant::now() })
    }

    fn start(&mut self) -> Result<(), StatError> {
        self.began()?;
        match self.session.options.start {
            Start::AtOnce if self.session.switches_on_at_exec() => {}
            Start::AtOnce => self.source.start()?,
            Start::After(_) | Start::Disabled => self.session.notice(Notice::Switched(false)),
        }
        match &mut self.workload {
            Some(workload) => Ok(workload.release()?),
            None => Ok(()),
        }
    }

    /// Counting begins now.
    fn began(&mut self) -> Result<(), StatError> {
        self.begin = Instant::now();
        self.interval_begin = self.begin;
        (self.used_ns, self.paced_at) = (own_ns(), self.begin);
        let length = self.session.options.intervals.map(|intervals| intervals.length);
        self.session.waiter.set_intervals(length)
    }

    /// Waits before counting begins.
    fn wait_out(&mut self, delay: Duration) -> Result<Option<End>, StatError> {
        let until = self.begin + delay;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.session.waiter.wait(Some(left))?;
            if let Some(end) = self.ended(woken)? {
                return Ok(Some(end));
            }
        }
        self.began()?;
        self.source.start()?;
        self.session.notice(Notice::Switched(true));
        Ok(None)
    }

    fn wait_for_the_end(&mut self) -> Result<End, StatError> {
        let timeout = self.session.options.timeout.map(|timeout| self.begin + timeout);
        loop {
            let now = Instant::now();
            if timeout.is_some_and(|timeout| now >= timeout) {
                return Ok(End::TimeOver);
            }
            let left = timeout.map(|timeout| timeout.saturating_duration_since(now));
            let wait = left.into_iter().chain(self.watch.timeout()).min();
            let woken = self.session.waiter.wait(wait)?;
            let tick = woken.tick;
            if let Some(end) = self.ended(woken)? {
                return Ok(end);
            }
            if tick && self.pace.ends() {
                self.print_interval(None)?;
                self.keep_pace();
                let last = self.session.options.intervals.and_then(|intervals| intervals.count);
                if last.is_some_and(|last| self.intervals >= last) {
                    return Ok(End::TimeOver);
                }
            }
        }
    }

    /// Whether a wake-up ends the run.
    fn ended(&mut self, woken: Woken) -> Result<Option<End>, StatError> {
        let Woken { stop, child, received, thread_ended, .. } = woken;
        let asked = stop.and_then(|(signal, sender)| self.asked(signal, sender));
        if let Some(workload) = self.workload.as_mut().filter(|_| child)
            && let Some(exit) = workload.try_wait()?
        {
            self.exit = Some(exit);
            return Ok(Some(self.asked_by.map_or(End::CommandEnded, End::Signal)));
        }
        if asked.is_some() {
            return Ok(asked);
        }
        if let Some(end) = self.obey(received)? {
            return Ok(Some(end));
        }
        if (thread_ended || self.watch.timeout().is_some()) && self.is_over(thread_ended)? {
            return Ok(Some(End::TargetEnded));
        }
        Ok(None)
    }

    /// As in perf, the first signal is the command's, and its end is waited for and counted. The
    /// terminal sends it to both; from a process we pass it on. The second ends both.
    fn asked(&mut self, signal: Signal, sender: Sender) -> Option<End> {
        let is_first = self.asked_by.is_none();
        self.asked_by.get_or_insert(signal);
        let waits = self.workload.as_ref().is_some_and(|workload| {
            is_first && (sender == Sender::Kernel || workload.kill(signal.number()).is_ok())
        });
        (!waits).then_some(End::Signal(signal))
    }

    /// Whether all counted threads have ended; the next one is watched.
    fn is_over(&mut self, first_has_ended: bool) -> Result<bool, StatError> {
        let is_over = self.watch.is_over(self.session.roots, first_has_ended);
        if first_has_ended && let Some(thread) = self.watch.descriptor() {
            self.session.waiter.watch(thread)?;
        }
        Ok(is_over)
    }

    fn obey(&mut self, received: Received) -> Result<Option<End>, StatError> {
        for line in received.unknown {
            self.session.notice(Notice::UnknownCommand { line });
        }
        for command in received.commands {
            let end = self.obey_one(command)?;
            self.session.waiter.acknowledge();
            if end.is_some() {
                return Ok(end);
            }
        }
        Ok(None)
    }

    fn obey_one(&mut self, command: Command) -> Result<Option<End>, StatError> {
        match command {
            Command::Enable(None) => {
                self.source.start()?;
                self.session.notice(Notice::Switched(true));
            }
            Command::Disable(None) => {
                self.source.stop()?;
                self.session.notice(Notice::Switched(false));
            }
            Command::Enable(Some(event)) | Command::Disable(Some(event)) => {
                self.session.notice(Notice::NotSwitchedAlone { event });
            }
            Command::Evlist(_) => {
                let events = self.source.counters().iter().map(|c| c.event.name.clone());
                self.session.listener.notice(Notice::EventList { events: events.collect() });
            }
            Command::Snapshot | Command::Drain(_) => {
                let word = if command == Command::Snapshot { "snapshot" } else { "drain" };
                let line = word.to_owned();
                self.session.notice(Notice::UnknownCommand { line });
            }
            Command::Stop => return Ok(Some(End::Stopped)),
            Command::Ping => {}
        }
        Ok(None)
    }

    /// Reads all counts.
    fn read(&mut self, now: Instant) -> Result<(), StatError> {
        self.source.read(&mut self.readings)?;
        for notice in self.source.take_notices() {
            self.session.notice(notice);
        }
        let (counters, slots) = (self.source.counters(), self.source.slots());
        let usage = self.exit.map(|exit| exit.usage);
        tool::fill(counters, slots, &mut self.readings, elapsed(self.begin, now), usage);
        if self.session.counters.len() != counters.len() {
            self.session.counters = counters.to_vec();
        }
        Ok(())
    }

    /// Reads the counts since the last interval and prints them.
    fn print_interval(&mut self, now: Option<Instant>) -> Result<(), StatError> {
        let now = match now {
            Some(now) => now,
            None => {
                let now = Instant::now();
                self.read(now)?;
                now
            }
        };
        let slots = self.source.slots();
        let counters = self.source.counters();
        self.before.resize(self.readings.len(), Reading::ZERO);
        let since = |((reading, before), slot): ((&Reading, &Reading), &crate::source::Slot)| {
            if counters[slot.counter].event.snapshot { *reading } else { reading.since(*before) }
        };
        let deltas: Vec<Reading> =
            self.readings.iter().zip(&self.before).zip(slots).map(since).collect();
        let table = self.aggregator.add_up(counters, slots, &deltas);
        self.before.clone_from(&self.readings);
        self.intervals += 1;
        let length = elapsed(self.interval_begin, now);
        self.interval_begin = now;
        self.session.print_interval(&table, elapsed(self.begin, now), length)
    }

    /// The next intervals are longer where this one has cost too much.
    fn keep_pace(&mut self) {
        let now = Instant::now();
        let used = own_ns();
        let spent = Duration::from_nanos(used.saturating_sub(self.used_ns));
        self.used_ns = used;
        let length = elapsed(self.paced_at, now);
        self.paced_at = now;
        if let Some(times) = self.pace.spent(spent, length) {
            self.session.notice(Notice::IntervalsStretched { times });
        }
    }

    fn finish(mut self, end: End, ended: Instant) -> Result<RunEnd, StatError> {
        self.read(ended)?;
        let is_whole = end == End::TimeOver && self.session.options.timeout.is_none();
        if self.session.options.intervals.is_some() && !is_whole {
            self.print_interval(Some(ended))?;
        }
        let counters = self.source.counters();
        let table = self.aggregator.add_up(counters, self.source.slots(), &self.readings);
        let counters = counters.to_vec();
        let command = self.end_command(end)?;
        if self.lost_its_events() {
            self.session.notice(Notice::EventsTakenOff);
        }
        Ok(RunEnd {
            end,
            command,
            table,
            counters,
            elapsed: elapsed(self.begin, ended),
            usage: self.exit.map(|exit| exit.usage),
            notes: self.source.notes(),
        })
    }

    /// Whether the command went on without events: they were enabled for a small part of the time
    /// that it used.
    fn lost_its_events(&self) -> bool {
        let Some(exit) = self.exit.filter(|_| self.session.switches_on_at_exec()) else {
            return false;
        };
        let used_ns = exit.usage.user_ns + exit.usage.system_ns;
        let is_of_kernel = |slot: &crate::source::Slot| {
            let counter = &self.source.counters()[slot.counter];
            counter.event.tool.is_none() && counter.absence.is_none()
        };
        let kernels = self.source.slots().iter().zip(&self.readings);
        let enabled = kernels.filter(|(slot, _)| is_of_kernel(slot)).map(|(_, r)| r.enabled_ns);
        let is_switched = self.session.options.control.is_some() || !self.session.options.inherit;
        let most_ns = enabled.max().unwrap_or(u64::MAX);
        !is_switched && used_ns >= USED_LEAST_NS && most_ns < used_ns / ENABLED_PART_LEAST
    }

    /// As perf: who stops counting stops the command. Waits for it, unless asked twice.
    fn end_command(&mut self, end: End) -> Result<Option<ExitStatus>, StatError> {
        let Some(workload) = &mut self.workload else { return Ok(None) };
        if self.exit.is_none() {
            self.exit = workload.try_wait()?;
        }
        if self.exit.is_none() {
            // A refusal means that it has just ended.
            let _ = workload.kill(Signal::Terminate.number());
        }
        while self.exit.is_none() && !matches!(end, End::Signal(_)) {
            let woken = self.session.waiter.wait(None)?;
            if woken.child {
                self.exit = workload.try_wait()?;
            }
            if woken.stop.is_some() {
                break;
            }
        }
        Ok(self.exit.map(|exit| exit.status))
    }
}

/// whit's own CPU time so far.
fn own_ns() -> u64 {
    CpuUsage::of_process().unwrap_or_default().total_ns()
}
