//! The open events and the engine, switched on and off together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use whit_engine::open_event::OpenEvent;
use whit_engine::{Engine, WaitMode};
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::blocked::Edge;
use whit_perfdata::feature::RecordedSpan;

use super::context::SessionContext;
use super::recorded_time::RecordedTime;
use super::redraw::Redraws;
use super::schedule::Stopwatch;
use super::stretches::Stretches;
use super::unreported_loss::Losses;
use super::watched::Watched;
use crate::error::CaptureError;

/// The events and the engine, and when they were on.
pub(super) struct EventControl {
    events: Arc<Vec<OpenEvent>>,
    engine: Box<dyn Engine>,
    enabled: Stopwatch,
    recorded: RecordedTime,
    /// The recorded threads, as they were when recording began.
    watched: Option<Watched>,
    redraws: Option<Redraws>,
    /// Where a budget changes the distance between samples.
    stretches: Option<Arc<Stretches>>,
    /// Switches were asked for, and are left out for the sake of a budget.
    lacks_switches: bool,
}

/// Records of threads that write none themselves.
pub(super) struct EdgeRecords {
    pub(super) records: Vec<u8>,
    /// Why there are none, for the user.
    pub(super) refusal: Option<String>,
}

impl EventControl {
    /// Everything is off but the sideband.
    pub(super) fn new(
        events: Vec<OpenEvent>,
        engine: Box<dyn Engine>,
        recorded: RecordedTime,
        stretches: Option<Arc<Stretches>>,
    ) -> EventControl {
        let events = Arc::new(events);
        let (enabled, watched, redraws) = (Stopwatch::default(), None, None);
        EventControl {
            events,
            engine,
            enabled,
            recorded,
            watched,
            redraws,
            stretches,
            lacks_switches: false,
        }
    }

    /// Where a budget changes the distance between samples.
    pub(super) fn stretches(&self) -> Option<Arc<Stretches>> {
        self.stretches.clone()
    }

    /// Records waits in another way from here on. The spans of an output are those in which all switches are recorded.
    pub(super) fn set_waits(&mut self, mode: WaitMode) -> Result<(), CaptureError> {
        let lacks =
            self.engine.wait_modes().first() == Some(&WaitMode::Exact) && mode != WaitMode::Exact;
        if lacks {
            self.recorded.stop();
        }
        self.lacks_switches = lacks;
        self.engine.set_waits(mode)?;
        self.start_span();
        Ok(())
    }

    /// Everything is on, unless switches are left out.
    fn start_span(&mut self) {
        if !self.lacks_switches && self.enabled.is_running() {
            self.recorded.start();
        }
    }

    /// Draws the periods of clocks anew from here on.
    pub(super) fn start_redraws(&mut self) -> Result<(), CaptureError> {
        self.redraws = Redraws::start(&self.events, self.stretches.clone())?;
        Ok(())
    }

    /// Ends that. Gives how often periods were drawn.
    pub(super) fn end_redraws(&mut self) -> u64 {
        self.redraws.take().map_or(0, Redraws::end)
    }

    pub(super) fn events(&self) -> &[OpenEvent] {
        &self.events
    }

    /// The events, for readers on other threads.
    pub(super) fn shared_events(&self) -> Arc<Vec<OpenEvent>> {
        self.events.clone()
    }

    pub(super) fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_mut()
    }

    pub(super) fn events_and_engine(&self) -> (&[OpenEvent], &dyn Engine) {
        (&self.events, self.engine.as_ref())
    }

    pub(super) fn losses(&self) -> Losses<'_> {
        Losses { events: &self.events, engine: self.engine.as_ref() }
    }

    /// Switches on all events that do not switch themselves on at the command's exec.
    pub(super) fn begin(
        &mut self,
        context: &SessionContext<'_>,
        now: Instant,
    ) -> Result<(), CaptureError> {
        let (target, threads) = (&context.plan.events.target, context.targets.threads.named());
        self.watched.get_or_insert_with(|| Watched::begin(target, threads, context.roots));
        self.enabled.start(now);
        self.engine.switch_on()?;
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
        self.start_span();
        Ok(())
    }

    /// Switches everything on because another program asks for it. Says whether there was any event.
    pub(super) fn switch_on(&mut self, now: Instant) -> Result<bool, CaptureError> {
        self.enabled.start(now);
        self.engine.switch_on()?;
        let found = self.set_enabled(true, None);
        self.start_span();
        Ok(found)
    }

    /// Switches everything off but the sideband.
    pub(super) fn switch_off(&mut self, now: Instant) {
        self.recorded.stop();
        self.set_enabled(false, None);
        self.engine.switch_off();
        self.enabled.stop(now);
    }

    /// Switches events on or off: those of this name, or all of them but the sideband. Says whether
    /// there were any. Members of groups follow their leader.
    pub(super) fn set_enabled(&self, on: bool, name: Option<&str>) -> bool {
        let mut found = false;
        for (index, event) in self.events.iter().enumerate() {
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

    pub(super) fn disable_side_band(&self) {
        let side_band = self.events.iter().filter(|event| event.event.is_side_band);
        for instance in side_band.flat_map(|event| &event.instances) {
            // A refusal means that the task has exited.
            let _ = instance.fd.disable();
        }
    }

    /// The stacks of blocked threads, for an output that begins or ends.
    pub(super) fn edge_records(&mut self, edge: Edge) -> EdgeRecords {
        let records = self.engine.edge_records(edge, &self.events);
        EdgeRecords { records, refusal: self.engine.take_edge_refusal() }
    }

    /// How many threads were watched, and how many of these ran. To be called when everything is off.
    pub(super) fn ran(&mut self, context: &SessionContext<'_>) -> (u64, u64) {
        self.watched.take().unwrap_or_default().end(context.roots)
    }

    /// For how long everything was on since the last call, and when.
    pub(super) fn lap(&mut self, now: Instant) -> (Duration, Option<Vec<RecordedSpan>>) {
        (self.enabled.lap(now), self.recorded.lap())
    }
}
