//! States in the stream how the clock of the records is related to others.
//!
//! JIT compilers stamp their code by `CLOCK_MONOTONIC`. Each output has a reading at its begin and at its end. There are more
//! in between, since a recorder may be killed, and a part of a stream needs its own.

use std::time::{Duration, Instant};

use whit_engine_api::open_event::OpenEvent;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_sys::clock::ClockId;

use crate::record_clock;
use crate::ring_drainer::ANY_CPU;

/// A reading takes a tenth of a millisecond. Clocks drift apart by 50 µs a second, and evenly for minutes.
const INTERVAL: Duration = Duration::from_secs(10);

/// When the clocks are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockNotes {
    clock: Option<ClockId>,
    /// `None` where records have that clock already.
    next: Option<Instant>,
}

impl ClockNotes {
    /// For records with this clock; `None` is the kernel's default.
    pub(super) fn new(clock: Option<ClockId>, now: Instant) -> ClockNotes {
        let differs = clock != Some(ClockId::MONOTONIC);
        ClockNotes { clock, next: differs.then_some(now + INTERVAL) }
    }

    /// How long until the next reading.
    pub(super) fn timeout(&self, now: Instant) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(now))
    }

    /// A record where it is time for one.
    pub(super) fn due(&mut self, events: &[OpenEvent], now: Instant) -> Vec<u8> {
        match self.next.is_some_and(|next| next <= now) {
            true => self.record(events, now),
            false => Vec::new(),
        }
    }

    /// A record of the clocks, for an output that begins or ends. Where the clock cannot be read, readers say that its
    /// relation is not stated.
    pub(super) fn record(&mut self, events: &[OpenEvent], now: Instant) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(next) = &mut self.next else { return out };
        *next = now + INTERVAL;
        let Ok(reading) = record_clock::read_all(self.clock) else { return out };
        let Some((event, instance)) =
            events.iter().find_map(|event| Some((event, event.instances.first()?)))
        else {
            return out;
        };
        let encoder = RecordEncoder::new(SampleLayout::new(&event.event.attr));
        let cpu = Some(instance.cpu.unwrap_or(ANY_CPU));
        let time = Some(reading.record);
        let id = SampleId { pid_tid: None, time, id: Some(instance.id), cpu };
        encoder.clocks(&mut out, &reading, id);
        out
    }
}
