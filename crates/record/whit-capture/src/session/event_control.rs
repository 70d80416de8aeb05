//! The open events and the engine, switched on and off together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use whit_engine_api::open_event::OpenEvent;
use whit_engine_api::{Adjustment, DecodeCounts, Engine, OutputEnd, WaitMode};
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::blocked::Edge;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::feature::RecordedSpan;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_sys::clock::ClockId;
use whit_types::TimestampNs;

use super::context::SessionContext;
use super::recorded_time::RecordedTime;
use super::redraw::Redraws;
use super::schedule::Stopwatch;
use super::stretches::Stretches;
use super::watched::Watched;
use crate::error::CaptureError;
use crate::record_clock;
use crate::ring_drainer::ANY_CPU;

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
    /// Since when switches that were asked for are not recorded.
    gap_since: Option<TimestampNs>,
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
            gap_since: None,
        }
    }

    /// Where a budget changes the distance between samples.
    pub(super) fn stretches(&self) -> Option<Arc<Stretches>> {
        self.stretches.clone()
    }

    /// Records waits in another way from here on. The spans of an output are those in which all switches are recorded.
    pub(super) fn set_waits(&mut self, mode: WaitMode) -> Result<(), CaptureError> {
        let asked = self.engine.capabilities().wait_modes.first().copied();
        let lacks = asked == Some(WaitMode::Exact) && mode != WaitMode::Exact;
        if lacks {
            self.recorded.stop();
        }
        self.lacks_switches = lacks;
        self.engine.adjust(Adjustment::Waits(mode))?;
        self.start_span();
        Ok(())
    }

    /// Switches are not recorded from here on, though the recording goes on.
    pub(super) fn begin_gap(&mut self, clock: Option<ClockId>) {
        if self.gap_since.is_none() {
            self.gap_since = record_clock::now(clock).ok();
        }
    }

    /// Switches are recorded again: gives records that say since when they were not, one for each ring. Readers of a stream
    /// have nothing else that tells.
    pub(super) fn end_gap(&mut self, clock: Option<ClockId>) -> Vec<u8> {
        let mut records = Vec::new();
        let (Some(since), Ok(until)) = (self.gap_since.take(), record_clock::now(clock)) else {
            return records;
        };
        let carrier = self.events.iter().find(|event| event.event.is_bpf_output);
        if let Some(event) = carrier.or(self.events.first()) {
            let encoder = RecordEncoder::new(SampleLayout::new(&event.event.attr));
            for instance in &event.instances {
                let id = SampleId {
                    pid_tid: None,
                    time: Some(until),
                    id: Some(instance.id),
                    cpu: Some(instance.cpu.unwrap_or(ANY_CPU)),
                };
                encoder.lost_samples(&mut records, 0, Some(since), id);
            }
        }
        records
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

    /// Switches on all events that do not switch themselves on at the command's exec.
    pub(super) fn begin(
        &mut self,
        context: &SessionContext<'_>,
        now: Instant,
    ) -> Result<(), CaptureError> {
        let (target, threads) = (&context.plan.events.target, context.targets.threads.named());
        self.watched.get_or_insert_with(|| Watched::begin(target, threads, context.roots));
        self.enabled.start(now);
        self.engine.adjust(Adjustment::On)?;
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
        // Last: a request is taken apart by all that was switched on before.
        Ok(self.engine.adjust(Adjustment::Requests(true))?)
    }

    /// Switches everything on because another program asks for it. Says whether there was any event.
    pub(super) fn switch_on(&mut self, now: Instant) -> Result<bool, CaptureError> {
        self.enabled.start(now);
        self.engine.adjust(Adjustment::On)?;
        let found = self.set_enabled(true, None);
        self.start_span();
        self.engine.adjust(Adjustment::Requests(true))?;
        Ok(found)
    }

    /// Switches everything off but the sideband.
    pub(super) fn switch_off(&mut self, now: Instant) {
        // Never refused.
        let _ = self.engine.adjust(Adjustment::Requests(false));
        self.recorded.stop();
        self.set_enabled(false, None);
        let _ = self.engine.adjust(Adjustment::Off);
        self.enabled.stop(now);
    }

    /// Switches events on or off: those of this name, or all of them but the sideband and those of sockets. Says whether
    /// there were any. Members of groups follow their leader.
    pub(super) fn set_enabled(&self, on: bool, name: Option<&str>) -> bool {
        let mut found = false;
        for (index, event) in self.events.iter().enumerate() {
            let spec = &event.event.spec;
            let is_meant = match name {
                Some(name) => spec.name() == name,
                None => {
                    !event.event.is_side_band && spec.socket.is_none() && !spec.is_member(index)
                }
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
    pub(super) fn edge_records(&mut self, edge: Edge) -> Result<Vec<u8>, String> {
        self.engine.edge_records(edge, &self.events)
    }

    /// Has the engine complete an output; `decoded`: for the last one, the work of all decoders.
    pub(super) fn end_output(&mut self, decoded: Option<DecodeCounts>) -> OutputEnd {
        self.engine.end_output(&self.events, decoded)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use whit_engine_api::Capabilities;
    use whit_engine_api::event::EventSpec;
    use whit_engine_api::open_event::{ConfiguredEvent, Instance};
    use whit_perfdata::attr::{Attr, SampleType};
    use whit_perfdata::record::{RawRecord, record_type};
    use whit_sys::PerfEventFd;
    use whit_types::CpuId;

    /// It records every switch until that is changed.
    #[derive(Debug)]
    struct EverySwitch;

    impl Engine for EverySwitch {
        fn capabilities(&self) -> Capabilities {
            let wait_modes = vec![WaitMode::Exact, WaitMode::Sampled, WaitMode::None];
            Capabilities { wait_modes, ..Capabilities::default() }
        }
    }

    fn control() -> EventControl {
        let sample_type = SampleType::TIME | SampleType::IDENTIFIER | SampleType::CPU;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        let attr = Attr { sample_type, flags, ..Attr::default() };
        let instance = |id, cpu| {
            let fd = PerfEventFd::fake(File::open("/dev/null").unwrap().into());
            Some(Instance { fd, id, cpu: Some(CpuId(cpu)), tid: None })
        };
        let event = ConfiguredEvent {
            is_side_band: true,
            is_bpf_output: true,
            ..ConfiguredEvent::new(EventSpec::side_band(), attr)
        };
        let events = vec![OpenEvent::new(event, vec![instance(70, 0), instance(71, 1)])];
        let recorded = RecordedTime::new(Some(ClockId::MONOTONIC));
        EventControl::new(events, Box::new(EverySwitch), recorded, None)
    }

    #[test]
    fn spans_are_those_in_which_every_switch_is_recorded() {
        let mut control = control();
        control.enabled.start(Instant::now());
        control.start_span();
        for mode in [WaitMode::None, WaitMode::Sampled, WaitMode::Exact] {
            control.set_waits(mode).unwrap();
        }
        control.set_waits(WaitMode::None).unwrap();
        // A pause ends, and switches are still left out.
        control.start_span();
        let spans = control.recorded.lap().unwrap();
        assert_eq!(spans.len(), 2, "{spans:?}");
        assert!(spans[0].to <= spans[1].from && spans[1].to.0 < u64::MAX, "{spans:?}");
    }

    #[test]
    fn a_gap_without_switches_is_in_the_stream_for_each_ring() {
        let clock = Some(ClockId::MONOTONIC);
        let mut control = control();
        assert!(control.end_gap(clock).is_empty(), "nothing was left out");
        control.begin_gap(clock);
        let since = control.gap_since.unwrap();
        control.begin_gap(clock);
        let records = control.end_gap(clock);
        let (mut rest, mut ids) = (&records[..], Vec::new());
        let layout = SampleLayout::new(&control.events()[0].event.attr);
        while let Some((record, tail)) = RawRecord::split(rest) {
            assert_eq!(record.header.kind, record_type::LOST_SAMPLES);
            let word = |at: usize| u64::from_le_bytes(record.body[at..at + 8].try_into().unwrap());
            assert_eq!((word(0), word(8)), (0, since.0), "none was lost, since when");
            let id = layout.parse_id_trailer(record.body).unwrap();
            assert!(id.time.unwrap() >= since);
            ids.push((id.id, id.cpu));
            rest = tail;
        }
        assert_eq!(ids, [(Some(70), Some(CpuId(0))), (Some(71), Some(CpuId(1)))]);
        assert!(control.end_gap(clock).is_empty(), "it is told once");
    }
}
