//! For how long rings were full.
//!
//! The kernel writes a LOST record as soon as a ring has room again, stamped with that moment: the
//! ring was *paused* from the record before it to the LOST record, unless that says since when
//! ([`whit_perfdata::loss`]). In a serial recording the rings stand mixed, so the record before may belong to
//! another ring; records are told apart by their CPU, which each ring has of its own.

use rustc_hash::FxHashMap;
use whit_perfdata::attr::SampleType;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::let_go::LetGo;
use whit_perfdata::loss::PausedTime;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{CpuId, TimestampNs};

/// Rings that are told apart in one stream; a corrupt recording may claim more CPUs than that.
const MAX_RINGS: usize = 1 << 16;

/// How the records of a stream's rings are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RingIdentification {
    /// Each stream holds one ring.
    One,
    /// By the CPU that each record names.
    ByCpu,
    /// Not at all: paused time is not known.
    No,
    /// Not needed: the recorder measured at the rings.
    Measured,
}

impl RingIdentification {
    pub(crate) fn of(recording: &Recording, events: &EventTable) -> RingIdentification {
        if recording.features.ledger().is_some_and(|ledger| ledger.elapsed_ns > 0) {
            return RingIdentification::Measured;
        }
        let mut layouts = (0..events.len()).filter_map(|event| events.layout(event));
        let needed = SampleType::TIME | SampleType::CPU;
        if layouts.all(|l| l.sample_id_all && l.sample_type.contains(needed)) {
            return RingIdentification::ByCpu;
        }
        // A directory of parallel streams has one file more than readers.
        let one_each = recording.streams.len() > rings_opened(recording);
        if one_each || rings_opened(recording) == 1 {
            RingIdentification::One
        } else {
            RingIdentification::No
        }
    }
}

/// Each event has one id in each ring.
fn rings_opened(recording: &Recording) -> usize {
    recording.events.first().map_or(1, |event| event.ids.len().max(1))
}

/// Follows the rings of one stream.
#[derive(Debug)]
pub(crate) struct RingTimes<'e> {
    events: &'e EventTable,
    identification: RingIdentification,
    rings: FxHashMap<CpuId, RingTime>,
    paused_ns: u64,
    /// A LOST record like this stands for records that left no ring full.
    let_go: Option<LetGo>,
}

/// One ring.
#[derive(Debug)]
struct RingTime {
    /// Time of its last record.
    last: TimestampNs,
    paused: PausedTime,
}

impl<'e> RingTimes<'e> {
    pub(crate) fn new(events: &'e EventTable, identification: RingIdentification) -> RingTimes<'e> {
        let rings = FxHashMap::default();
        RingTimes { events, identification, rings, paused_ns: 0, let_go: None }
    }

    /// Takes the LOST record that stands for these records for none of a ring.
    pub(crate) fn apart_from(self, let_go: Option<LetGo>) -> RingTimes<'e> {
        RingTimes { let_go, ..self }
    }

    /// Notes a record, in the order in which its ring holds it.
    #[inline]
    pub(crate) fn see(&mut self, record: RawRecord<'_>) {
        let kind = record.header.kind;
        if !matches!(self.identification, RingIdentification::One | RingIdentification::ByCpu)
            || kind >= record_type::USER_START
            || record.states_no_loss()
        {
            return;
        }
        let Some((cpu, time)) = self.place(record) else { return };
        if kind == record_type::LOST && self.is_let_go(record, time) {
            return;
        }
        // Synthesized records of processes that existed before were in no ring.
        if time.0 == 0 || (self.rings.len() >= MAX_RINGS && !self.rings.contains_key(&cpu)) {
            return;
        }
        // Before the first record of a ring nothing can fill it.
        let new = || RingTime { last: time, paused: PausedTime::default() };
        let ring = self.rings.entry(cpu).or_insert_with(new);
        let before = std::mem::replace(&mut ring.last, time);
        if kind == record_type::LOST
            && let Some(SideBand::Lost { lost: 1.., .. }) = SideBand::parse(record)
        {
            let from = self.events.loss_since(record).unwrap_or(before);
            // Time 0 says that nobody knows.
            let paused_ns = if from.0 > 0 { ring.paused.add(from, time) } else { 0 };
            self.paused_ns = self.paused_ns.saturating_add(paused_ns);
        }
    }

    fn is_let_go(&self, record: RawRecord<'_>, time: TimestampNs) -> bool {
        self.let_go.is_some_and(|let_go| {
            let lost = SideBand::parse(record);
            let_go.until == time
                && matches!(lost, Some(SideBand::Lost { lost, .. }) if lost == let_go.records)
        })
    }

    fn place(&self, record: RawRecord<'_>) -> Option<(CpuId, TimestampNs)> {
        let (cpu, time) = if record.header.kind == record_type::SAMPLE {
            let event = self.events.event_of_sample(record.body)?;
            let layout = self.events.layout(event)?;
            (layout.sample_cpu(record.body), layout.sample_time(record.body)?)
        } else {
            let id = self.events.parse_id_trailer(record);
            (id.cpu, id.time?)
        };
        let ring = if self.identification == RingIdentification::ByCpu { cpu? } else { CpuId(0) };
        Some((ring, time))
    }

    /// Sum over the stream's rings.
    pub(crate) fn paused_ns(&self) -> u64 {
        self.paused_ns
    }

    /// Rings that have records.
    pub(crate) fn rings(&self) -> u64 {
        self.rings.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::{Attr, AttrFlags};
    use whit_perfdata::encode::push_record;
    use whit_perfdata::feature::EventDesc;

    const FIELDS: [u64; 2] = [0x1000, 1];

    fn events() -> EventTable {
        let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::CPU;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        let attr = Attr { sample_type, flags, ..Attr::default() };
        EventTable::new(&[EventDesc { attr, ids: vec![1, 2], name: "e".into() }])
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn sample(out: &mut Vec<u8>, time: u64, cpu: u64) {
        push_record(out, record_type::SAMPLE, 0, &words(&[FIELDS[0], FIELDS[1], time, cpu]));
    }

    fn lost(out: &mut Vec<u8>, time: u64, cpu: u64) {
        push_record(out, record_type::LOST, 0, &words(&[1, 5, FIELDS[1], time, cpu]));
    }

    fn paused(identification: RingIdentification, bytes: &[u8]) -> (u64, u64) {
        paused_apart_from(None, identification, bytes)
    }

    fn paused_apart_from(
        let_go: Option<LetGo>,
        identification: RingIdentification,
        bytes: &[u8],
    ) -> (u64, u64) {
        let events = events();
        let mut times = RingTimes::new(&events, identification).apart_from(let_go);
        let mut rest = bytes;
        while let Some((record, tail)) = RawRecord::split(rest) {
            times.see(record);
            rest = tail;
        }
        (times.paused_ns(), times.rings())
    }

    #[test]
    fn the_record_before_is_the_rings_own() {
        let mut bytes = Vec::new();
        sample(&mut bytes, 100, 0);
        sample(&mut bytes, 390, 1);
        lost(&mut bytes, 400, 0);
        lost(&mut bytes, 395, 1);
        assert_eq!(paused(RingIdentification::ByCpu, &bytes), ((400 - 100) + (395 - 390), 2));
        assert_eq!(paused(RingIdentification::No, &bytes), (0, 0));
        assert_eq!(paused(RingIdentification::Measured, &bytes), (0, 0));
    }

    #[test]
    fn records_that_a_bound_took_left_no_ring_full() {
        let mut bytes = Vec::new();
        sample(&mut bytes, 100, 0);
        lost(&mut bytes, 400, 0);
        sample(&mut bytes, 410, 0);
        lost(&mut bytes, 500, 0);
        let let_go = |records, until| Some(LetGo { records, bytes: 9, until: TimestampNs(until) });
        let by_cpu = |let_go| paused_apart_from(let_go, RingIdentification::ByCpu, &bytes).0;
        assert_eq!(by_cpu(None), (400 - 100) + (500 - 410));
        assert_eq!(by_cpu(let_go(5, 400)), 500 - 410);
        // Another record of losses is the kernel's.
        assert_eq!((by_cpu(let_go(6, 400)), by_cpu(let_go(5, 401))), (390, 390));
    }

    #[test]
    fn no_moment_of_a_ring_counts_twice() {
        let mut bytes = Vec::new();
        let lost_since = |bytes: &mut Vec<u8>, count: u64, since: u64, time: u64| {
            push_record(
                bytes,
                record_type::LOST,
                0,
                &words(&[1, count, since, FIELDS[1], time, 0]),
            );
        };
        sample(&mut bytes, 300, 0);
        lost_since(&mut bytes, 5, 150, 310);
        lost_since(&mut bytes, 5, 250, 350);
        lost_since(&mut bytes, 0, 350, 360);
        lost_since(&mut bytes, 5, 0, 370);
        assert_eq!(paused(RingIdentification::ByCpu, &bytes), (350 - 150, 1));
    }

    #[test]
    fn one_ring_needs_no_cpu() {
        let mut bytes = Vec::new();
        sample(&mut bytes, 100, 0);
        lost(&mut bytes, 130, 1);
        assert_eq!(paused(RingIdentification::One, &bytes), (30, 1));
    }

    #[test]
    fn made_up_records_and_first_ones_pause_nothing() {
        let mut bytes = Vec::new();
        sample(&mut bytes, 0, 0);
        lost(&mut bytes, 130, 0);
        assert_eq!(paused(RingIdentification::ByCpu, &bytes), (0, 1));
    }
}
