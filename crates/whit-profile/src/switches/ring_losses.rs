//! Finding the losses of one stream, in the first pass.

use super::losses::{LossWindow, RingLoss};
use rustc_hash::{FxHashMap, FxHashSet};
use whit_perfdata::attr::SampleType;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::record_type::{SWITCH, SWITCH_CPU_WIDE};
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{CpuId, TimestampNs};

use crate::scan::stated_time;

/// Losses that are kept of one stream; beyond, the last one goes on to the end of the recording.
const MAX_LOSSES: usize = 1 << 20;

/// Rings that are told apart; a corrupt recording may claim more CPUs than that.
const MAX_RINGS: usize = 1 << 16;

const START: TimestampNs = TimestampNs(0);
const END: TimestampNs = TimestampNs(u64::MAX);

/// CPUs of which it is recorded who runs there. Names, forks and exits are recorded of others, too: of all
/// CPUs, where some were asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RecordedCpus {
    /// They are not told apart.
    Any,
    /// These.
    Only(FxHashSet<CpuId>),
}

impl RecordedCpus {
    /// Takes over those of another stream.
    pub(crate) fn add(&mut self, others: RecordedCpus) {
        match (&mut *self, others) {
            (RecordedCpus::Only(cpus), RecordedCpus::Only(more)) => cpus.extend(more),
            _ => *self = RecordedCpus::Any,
        }
    }

    /// Whether a CPU may be one of them.
    pub(crate) fn has(&self, cpu: Option<CpuId>) -> bool {
        match (self, cpu) {
            (RecordedCpus::Only(cpus), Some(cpu)) => cpus.contains(&cpu),
            _ => true,
        }
    }
}

/// What was seen of a ring.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Its first record.
    first: TimestampNs,
    /// Its last.
    last: TimestampNs,
    /// It has samples or switches: the CPU is recorded.
    is_recorded: bool,
}

/// Follows the rings of one stream: by the CPU that each record names, or all as one.
#[derive(Debug)]
pub(crate) struct RingLosses<'e> {
    events: &'e EventTable,
    by_cpu: bool,
    /// Rings kept only their newest records.
    begins_late: bool,
    seen: FxHashMap<Option<CpuId>, Seen>,
    newest: TimestampNs,
    /// The newest record at the end of the rounds before: whatever a ring held then has been read, so
    /// that no record behind the next round's end is older.
    rounds: [TimestampNs; 2],
    /// Samples that the kernel counted as lost and that no record in a ring tells of.
    lost_untold: bool,
    losses: Vec<RingLoss>,
}

impl<'e> RingLosses<'e> {
    /// With `begins_late`, rings kept only their newest records (`whit record --overwrite`).
    pub(crate) fn new(events: &'e EventTable, begins_late: bool) -> RingLosses<'e> {
        let needed = SampleType::TIME | SampleType::CPU;
        let mut layouts = (0..events.len()).filter_map(|event| events.layout(event));
        RingLosses {
            events,
            by_cpu: layouts.all(|l| l.sample_id_all && l.sample_type.contains(needed)),
            begins_late,
            seen: FxHashMap::default(),
            newest: START,
            rounds: [START; 2],
            lost_untold: false,
            losses: Vec::new(),
        }
    }

    /// Notes a record, in the order in which its ring holds it.
    #[inline]
    pub(crate) fn see(&mut self, record: RawRecord<'_>) {
        match record.header.kind {
            record_type::FINISHED_ROUND => self.rounds = [self.rounds[1], self.newest],
            kind if kind >= record_type::USER_START => {}
            record_type::LOST | record_type::LOST_SAMPLES => self.loss(record),
            _ => {
                if let Some(time) = stated_time(self.events, record)
                    && time > START
                {
                    let tells = [record_type::SAMPLE, SWITCH, SWITCH_CPU_WIDE];
                    self.note(self.ring(record), time, tells.contains(&record.header.kind));
                }
            }
        }
    }

    fn note(&mut self, ring: Option<CpuId>, time: TimestampNs, is_recorded: bool) {
        self.newest = self.newest.max(time);
        if self.seen.len() < MAX_RINGS || self.seen.contains_key(&ring) {
            let new = Seen { first: time, last: time, is_recorded };
            let seen = self.seen.entry(ring).or_insert(new);
            (seen.first, seen.last) = (time.min(seen.first), time.max(seen.last));
            seen.is_recorded |= is_recorded;
        }
    }

    fn ring(&self, record: RawRecord<'_>) -> Option<CpuId> {
        if !self.by_cpu {
            return None;
        }
        if record.header.kind == record_type::SAMPLE {
            let event = self.events.event_of_sample(record.body)?;
            return self.events.layout(event)?.sample_cpu(record.body);
        }
        self.events.parse_id_trailer(record.body).cpu
    }

    fn loss(&mut self, record: RawRecord<'_>) {
        let Some(to) = stated_time(self.events, record) else {
            // The recorder's own count, at the end.
            let is_none = matches!(
                SideBand::parse(record),
                Some(SideBand::Lost { lost: 0, .. } | SideBand::LostSamples { lost: 0 })
            );
            self.lost_untold |= !is_none;
            return;
        };
        let ring = self.ring(record);
        let from = match (ring, self.seen.get(&ring)) {
            (Some(_), Some(seen)) => seen.last,
            (Some(_), None) => START,
            // Of which ring the record before was, nobody knows.
            (None, _) => self.rounds[0],
        };
        self.push(ring, from.min(to), to);
        self.note(ring, to, false);
    }

    fn push(&mut self, cpu: Option<CpuId>, from: TimestampNs, to: TimestampNs) {
        if self.losses.len() < MAX_LOSSES {
            self.losses.push(RingLoss { cpu, window: LossWindow { from, to } });
        } else if let Some(last) = self.losses.last_mut() {
            let window = LossWindow { from: last.window.from.min(from), to: END };
            *last = RingLoss { cpu: None, window };
        }
    }

    /// The CPUs of which there are samples or switches, and not their side band alone.
    pub(crate) fn recorded_cpus(&self) -> RecordedCpus {
        if !self.by_cpu {
            return RecordedCpus::Any;
        }
        let recorded = self.seen.iter().filter(|(_, seen)| seen.is_recorded);
        RecordedCpus::Only(recorded.filter_map(|(cpu, _)| *cpu).collect())
    }

    /// All losses. With `is_cut`, the end of the stream is missing.
    pub(crate) fn finish(mut self, is_cut: bool) -> Vec<RingLoss> {
        let seen = std::mem::take(&mut self.seen);
        if self.begins_late {
            seen.iter().for_each(|(ring, seen)| self.push(*ring, START, seen.first));
        }
        if is_cut || self.lost_untold {
            // Whose they were is not said: nothing behind the last record of any ring is sure.
            let last = seen.values().map(|seen| seen.last).min();
            self.push(None, last.unwrap_or(START), END);
        }
        self.losses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::{Attr, AttrFlags};
    use whit_perfdata::encode::{finished_round, push_record};
    use whit_perfdata::feature::EventDesc;

    fn events(cpu: bool) -> EventTable {
        let mut sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
        if cpu {
            sample_type |= SampleType::CPU;
        }
        let attr = Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
        EventTable::new(&[EventDesc { attr, ids: vec![1, 2], name: "e".into() }])
    }

    struct Bytes {
        cpu: bool,
        bytes: Vec<u8>,
    }

    impl Bytes {
        fn push(&mut self, kind: u32, body: &[u64], time: u64, cpu: u64) {
            let mut words = body.to_vec();
            words.extend([1, time]);
            words.extend(self.cpu.then_some(cpu));
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            push_record(&mut self.bytes, kind, 0, &bytes);
        }

        fn sample(&mut self, time: u64, cpu: u64) {
            self.push(record_type::SAMPLE, &[0x1000], time, cpu);
        }

        fn lost(&mut self, time: u64, cpu: u64) {
            self.push(record_type::LOST, &[1, 5], time, cpu);
        }

        fn losses(&self, is_cut: bool, begins_late: bool) -> Vec<(Option<u32>, u64, u64)> {
            let events = events(self.cpu);
            let mut losses = RingLosses::new(&events, begins_late);
            let mut rest = &self.bytes[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                losses.see(record);
                rest = tail;
            }
            let losses = losses.finish(is_cut);
            let of =
                |loss: &RingLoss| (loss.cpu.map(|cpu| cpu.0), loss.window.from.0, loss.window.to.0);
            losses.iter().map(of).collect()
        }
    }

    #[test]
    fn a_loss_begins_at_the_last_record_of_its_ring() {
        let mut bytes = Bytes { cpu: true, bytes: Vec::new() };
        bytes.sample(100, 0);
        bytes.sample(390, 1);
        bytes.lost(400, 0);
        bytes.lost(395, 1);
        bytes.lost(500, 2);
        let all = [(Some(0), 100, 400), (Some(1), 390, 395), (Some(2), 0, 500)];
        assert_eq!(bytes.losses(false, false), all);
        let end = bytes.losses(true, false);
        assert_eq!(end.last(), Some(&(None, 395, u64::MAX)));
        assert_eq!(bytes.losses(false, true).len(), 6);
    }

    #[test]
    fn rings_that_stand_mixed_are_bounded_by_rounds() {
        let mut bytes = Bytes { cpu: false, bytes: Vec::new() };
        for time in [100, 200, 300] {
            bytes.sample(time, 0);
            bytes.bytes.extend(finished_round());
        }
        bytes.sample(350, 0);
        bytes.lost(400, 0);
        assert_eq!(bytes.losses(false, false), [(None, 200, 400)]);
    }

    #[test]
    fn a_count_without_a_time_leaves_the_end_uncertain() {
        let mut bytes = Bytes { cpu: true, bytes: Vec::new() };
        bytes.sample(100, 0);
        bytes.sample(390, 1);
        bytes.push(record_type::LOST_SAMPLES, &[0], 0, 0);
        assert_eq!(bytes.losses(false, false), []);
        bytes.push(record_type::LOST_SAMPLES, &[7], 0, 0);
        assert_eq!(bytes.losses(false, false), [(None, 100, u64::MAX)]);
    }
}
