//! The second stage: events are recorded, readers drain the rings. The session itself only waits: for signals, for
//! commands, for its schedule, for the command, for news of its readers.

use std::time::{Duration, Instant};

use whit_host::target::Target;
use whit_perfdata::blocked::Edge;

use super::clock_notes::ClockNotes;
use super::drained::Drained;
use super::mapping_watch::MappingWatch;
use super::outcome::End;
use super::output_file::OutputFile;
use super::parts::SessionParts;
use super::reader_event::ReaderEvent;
use super::running_readers::RunningReaders;
use super::schedule::{Schedule, Step};
use super::wait::Woken;
use crate::error::CaptureError;
use crate::notice::Notice;
use crate::options::Start;

mod budget;
mod commands;
mod switch;

/// Between the end of a command's events and its own at most so much time goes by, unless the kernel
/// took the events off.
const EXIT_TIME_MAX: Duration = Duration::from_millis(100);

/// A recording that runs.
pub(super) struct Running<'a> {
    parts: SessionParts<'a>,
    output: OutputFile,
    readers: RunningReaders,
    schedule: Schedule,
    clocks: ClockNotes,
    /// Works until it is dropped.
    _mapping_watch: Option<MappingWatch>,
}

impl<'a> Running<'a> {
    /// Readers are at work from `now` on; events and command wait.
    pub(super) fn new(
        mut parts: SessionParts<'a>,
        output: OutputFile,
        readers: RunningReaders,
        mapping_watch: Option<MappingWatch>,
        now: Instant,
    ) -> Running<'a> {
        parts.meters.cpu_watch.begins(now);
        let plan = &parts.context.plan.schedule;
        let schedule = Schedule::new(&plan.start, plan.switch, now);
        let clocks = ClockNotes::new(parts.context.plan.events.clock, now);
        Running { parts, output, readers, schedule, clocks, _mapping_watch: mapping_watch }
    }

    /// Starts the events, unless that is to happen later, and the command.
    pub(super) fn begin(&mut self) -> Result<(), CaptureError> {
        self.write_clocks();
        let plan = &self.parts.context.plan.schedule;
        match plan.start {
            Start::AtOnce => self.switch_on(Instant::now())?,
            Start::Disabled if plan.control.is_none() => {
                self.parts.listener.notice(Notice::StartsDisabled);
            }
            _ => {}
        }
        // Where it cannot begin, nothing was recorded: the output is as it was before.
        self.parts.start_workload().inspect_err(|_| self.output.undo())
    }

    /// Waits until something ends the recording.
    pub(super) fn wait(&mut self) -> Result<End, CaptureError> {
        let mut gone_since: Option<Instant> = None;
        loop {
            while let Some(step) = self.schedule.due(Instant::now()) {
                if let Some(end) = self.step(step)? {
                    return Ok(end);
                }
            }
            self.keep_budget()?;
            let now = Instant::now();
            self.readers.write_later(self.clocks.due(self.parts.control.events(), now));
            let woken = self.parts.waiter.wait(self.timeout(Instant::now()))?;
            if let Some(end) = self.ended(&woken)? {
                if gone_since.is_some_and(|at| at.elapsed() > EXIT_TIME_MAX) {
                    self.parts.listener.notice(Notice::EventsTakenOff);
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
            if let Some(end) = self.hear_readers()? {
                return Ok(end);
            }
            if self.readers.all_gone() {
                if self.parts.context.plan.events.target != Target::Command {
                    return Ok(End::TargetEnded);
                }
                // It has ended, which SIGCHLD is about to say; or it runs on without events.
                gone_since.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Switches everything off, and has the readers empty the rings.
    pub(super) fn drain(mut self, end: End) -> Drained<'a> {
        let stopped = Instant::now();
        self.write_blocked(Edge::End);
        self.write_settings();
        self.write_clocks();
        let Running { parts, output, readers, .. } = self;
        Drained::new(parts, output, (end, stopped), || readers.drain())
    }

    /// Has the relation of the clocks written, for an output that begins or ends.
    fn write_clocks(&mut self) {
        let record = self.clocks.record(self.parts.control.events(), Instant::now());
        self.readers.write_later(record);
    }

    /// Takes the news of the readers. Switches at most once: the next output may be large enough from the beginning,
    /// and signals and the command's end must be noticed in between.
    fn hear_readers(&mut self) -> Result<Option<End>, CaptureError> {
        let mut is_switch_due = false;
        while let Some(event) = self.readers.next_event() {
            match event {
                ReaderEvent::AllGone => {}
                ReaderEvent::Ended => return Ok(Some(End::ReaderEnded)),
                ReaderEvent::SizeReached => {
                    self.parts.listener.notice(Notice::SizeReached);
                    return Ok(Some(End::SizeReached));
                }
                ReaderEvent::SwitchDue => is_switch_due = true,
            }
        }
        if is_switch_due { self.switch_output() } else { Ok(None) }
    }

    fn step(&mut self, step: Step) -> Result<Option<End>, CaptureError> {
        let now = Instant::now();
        match step {
            Step::Enable { after_ms } => {
                self.switch_on(now)?;
                self.parts.listener.notice(Notice::Enabled { after_ms });
            }
            Step::Disable { after_ms } => {
                self.switch_off(now);
                self.parts.listener.notice(Notice::Disabled { after_ms });
            }
            Step::Switch => return self.switch_output(),
        }
        Ok(None)
    }

    fn ended(&mut self, woken: &Woken) -> Result<Option<End>, CaptureError> {
        if let Some(signal) = woken.stop {
            return Ok(Some(End::Signal(signal)));
        }
        if let Some(workload) = self.parts.workload.as_mut().filter(|_| woken.child)
            && workload.try_wait()?.is_some()
        {
            return Ok(Some(End::CommandEnded));
        }
        Ok(None)
    }

    fn switch_on(&mut self, now: Instant) -> Result<(), CaptureError> {
        if self.wants(true, now) {
            return Ok(());
        }
        self.parts.control.begin(&self.parts.context, now)?;
        self.write_blocked(Edge::Begin);
        Ok(())
    }

    fn switch_off(&mut self, now: Instant) {
        self.wants(false, now);
        self.stop_events(now);
    }

    fn stop_events(&mut self, now: Instant) {
        self.write_blocked(Edge::End);
        self.parts.control.switch_off(now);
    }

    /// Has the stacks of blocked threads written by a reader. Such threads write nothing themselves.
    fn write_blocked(&mut self, edge: Edge) {
        match self.parts.control.edge_records(edge) {
            Ok(records) => self.readers.write(records),
            Err(why) => self.parts.listener.notice(Notice::BlockedNotRead { why }),
        }
    }
}
