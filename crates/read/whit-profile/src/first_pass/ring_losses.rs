//! Finding the losses of one stream, in the first pass.

use crate::blocks::stated_time::stated_time;
use crate::loss_window::{LossWindow, RingLoss};
use rustc_hash::{FxHashMap, FxHashSet};
use whit_perfdata::attr::SampleType;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::record_type::{SWITCH, SWITCH_CPU_WIDE};
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{CpuId, Tid, TimestampNs};

/// Losses that are kept of one stream; beyond, the last one goes on to the end of the recording.
const MAX_LOSSES: usize = 1 << 20;

/// Rings that are told apart; a corrupt recording may claim more CPUs than that.
const MAX_RINGS: usize = 1 << 16;

const START: TimestampNs = TimestampNs(0);
const END: TimestampNs = TimestampNs(u64::MAX);

/// CPUs whose running threads are recorded. Names, forks and exits are recorded on others, too: on all
/// CPUs, if some were selected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RecordedCpus {
    /// They are not told apart.
    Any,
    /// These CPUs alone.
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

/// The key by which records of a ring are recognized.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum RingKey {
    Cpu(CpuId),
    /// The id of an event. It writes into one ring, which others may write into as well.
    Event(u64),
}

/// The state of a ring so far.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Its last record.
    last: TimestampNs,
    /// It has samples or switches: the CPU is recorded.
    is_recorded: bool,
}

/// A loss behind the last record of a ring.
#[derive(Clone, Copy, Debug)]
struct LossAtEnd {
    /// Since when, where that is said.
    since: Option<TimestampNs>,
    /// The ring; without one it may be any.
    ring: Option<RingKey>,
    records: u64,
}

/// Follows the rings of one stream: by the CPU that each record names, or else by its event.
#[derive(Debug)]
pub(crate) struct RingLosses<'e> {
    events: &'e EventTable,
    by_cpu: bool,
    /// By event, whether only the newest samples were kept. Other records are in rings of their own then.
    overwritten: &'e [bool],
    /// The first of these samples.
    begins: FxHashMap<Option<RingKey>, TimestampNs>,
    seen: FxHashMap<RingKey, Seen>,
    newest: TimestampNs,
    /// The newest record at the end of the rounds before: all records of a ring at that time have
    /// been read, so that no record behind the next round's end is older.
    rounds: [TimestampNs; 2],
    /// Losses that no record of their ring followed.
    at_end: Vec<LossAtEnd>,
    losses: Vec<RingLoss>,
}

impl<'e> RingLosses<'e> {
    /// `overwritten` says by event whether only the newest samples were kept (`whit record --overwrite`).
    pub(crate) fn new(events: &'e EventTable, overwritten: &'e [bool]) -> RingLosses<'e> {
        let needed = SampleType::TIME | SampleType::CPU;
        let mut layouts = (0..events.len()).filter_map(|event| events.layout(event));
        RingLosses {
            events,
            by_cpu: layouts.all(|l| l.sample_id_all && l.sample_type.contains(needed)),
            overwritten: if overwritten.contains(&true) { overwritten } else { &[] },
            begins: FxHashMap::default(),
            seen: FxHashMap::default(),
            newest: START,
            rounds: [START; 2],
            at_end: Vec::new(),
            losses: Vec::new(),
        }
    }

    /// Notes a record, in the order in which its ring holds it.
    #[inline]
    pub(crate) fn see(&mut self, record: RawRecord<'_>) {
        match record.header.kind {
            record_type::FINISHED_ROUND => self.rounds = [self.rounds[1], self.newest],
            kind if kind >= record_type::USER_START => {}
            _ if record.states_no_loss() => {}
            record_type::LOST | record_type::LOST_SAMPLES => self.loss(record),
            _ => {
                if let Some(time) = stated_time(self.events, record)
                    && time > START
                {
                    let kinds = [record_type::SAMPLE, SWITCH, SWITCH_CPU_WIDE];
                    let ring = self.ring(record);
                    self.note(ring, time, kinds.contains(&record.header.kind));
                    if !self.overwritten.is_empty() {
                        self.note_beginning(record, ring, time);
                    }
                }
            }
        }
    }

    fn note(&mut self, ring: Option<RingKey>, time: TimestampNs, is_recorded: bool) {
        self.newest = self.newest.max(time);
        let Some(ring) = ring else { return };
        if self.seen.len() < MAX_RINGS || self.seen.contains_key(&ring) {
            let seen = self.seen.entry(ring).or_insert(Seen { last: time, is_recorded });
            seen.last = time.max(seen.last);
            seen.is_recorded |= is_recorded;
        }
    }

    fn note_beginning(&mut self, record: RawRecord<'_>, ring: Option<RingKey>, time: TimestampNs) {
        let event = self.events.event_of_sample(record.body);
        let is_sample = record.header.kind == record_type::SAMPLE;
        let event = event.filter(|event| is_sample && self.overwritten.get(*event) == Some(&true));
        if event.is_none() || (self.begins.len() >= MAX_RINGS && !self.begins.contains_key(&ring)) {
            return;
        }
        let first = self.begins.entry(ring).or_insert(time);
        *first = time.min(*first);
    }

    #[inline]
    fn ring(&self, record: RawRecord<'_>) -> Option<RingKey> {
        if record.header.kind == record_type::SAMPLE {
            let layout = self.events.layout(self.events.event_of_sample(record.body)?)?;
            return match self.by_cpu {
                true => layout.sample_cpu(record.body).map(RingKey::Cpu),
                false => layout.sample_id(record.body).map(RingKey::Event),
            };
        }
        match self.by_cpu {
            // Rings of threads have none.
            true => {
                let cpu = self.events.trailer_cpu(record);
                cpu.filter(|cpu| cpu.0 != u32::MAX).map(RingKey::Cpu)
            }
            false => self.events.parse_id_trailer(record).id.map(RingKey::Event),
        }
    }

    /// Records are missing since the time that the loss says, or else since the ring's record before. A ring
    /// may have been full long ago: the kernel says so in front of the next record, whenever that comes.
    fn loss(&mut self, record: RawRecord<'_>) {
        let (ring, since) = (self.ring(record), self.events.loss_since(record));
        let Some(to) = stated_time(self.events, record) else {
            return self.loss_at_end(record, ring, since);
        };
        let before = || Some(self.seen.get(&ring?)?.last);
        let from = since.or_else(before).unwrap_or(START);
        let window = LossWindow { from: from.min(to), to };
        let (cpu, thread) = (cpu_of(ring), self.late_thread(record, since));
        self.push(RingLoss { cpu, thread, window, records: lost_in(record) });
        self.note(ring, to, false);
    }

    /// The thread that a record of no lost sample names: only the time of its switch-in is uncertain.
    fn late_thread(&self, record: RawRecord<'_>, since: Option<TimestampNs>) -> Option<Tid> {
        let is_late = matches!(SideBand::parse(record), Some(SideBand::LostSamples { lost: 0 }));
        let (_, tid) = self.events.parse_id_trailer(record).pid_tid?;
        (is_late && since.is_some() && tid.0 > 0).then_some(tid)
    }

    /// A recorder's own count, at the end.
    fn loss_at_end(
        &mut self,
        record: RawRecord<'_>,
        ring: Option<RingKey>,
        since: Option<TimestampNs>,
    ) {
        let records = lost_in(record);
        let is_none = SideBand::parse(record).is_some() && records == 0;
        if is_none && since.is_none() {
            return;
        }
        // In perf's counts the id is right and the CPU is always 0.
        let ring = ring.filter(|_| since.is_some() || !self.by_cpu);
        let since = since.filter(|since| *since > START);
        match self.at_end.get_mut(MAX_RINGS - 1) {
            None => self.at_end.push(LossAtEnd { since, ring, records }),
            Some(last) => {
                let records = last.records.saturating_add(records);
                *last = LossAtEnd { since: Some(START), ring: None, records };
            }
        }
    }

    fn push(&mut self, loss: RingLoss) {
        if self.losses.len() < MAX_LOSSES {
            self.losses.push(loss);
        } else if let Some(last) = self.losses.last_mut() {
            let window = LossWindow { from: last.window.from.min(loss.window.from), to: END };
            let records = last.records.saturating_add(loss.records);
            *last = RingLoss { cpu: None, thread: None, window, records };
        }
    }

    /// The CPUs with samples or switches, and not with sideband alone.
    pub(crate) fn recorded_cpus(&self) -> RecordedCpus {
        if !self.by_cpu {
            return RecordedCpus::Any;
        }
        let recorded = self.seen.iter().filter(|(_, seen)| seen.is_recorded);
        RecordedCpus::Only(recorded.filter_map(|(ring, _)| cpu_of(Some(*ring))).collect())
    }

    /// All losses. With `is_cut`, the end of the stream is missing.
    pub(crate) fn finish(mut self, is_cut: bool) -> Vec<RingLoss> {
        let seen = std::mem::take(&mut self.seen);
        for (ring, first) in std::mem::take(&mut self.begins) {
            self.push(RingLoss::of_ring(cpu_of(ring), START, first, 0));
        }
        let first_end = seen.values().map(|seen| seen.last).min().unwrap_or(START);
        for LossAtEnd { since, ring, records } in std::mem::take(&mut self.at_end) {
            let before = match ring {
                Some(ring) => seen.get(&ring).map_or(START, |seen| seen.last),
                None => first_end,
            };
            self.push(RingLoss::of_ring(cpu_of(ring), since.unwrap_or(before), END, records));
        }
        if is_cut {
            // Nothing behind the last record of any ring is sure. Some events write seldom; but what a ring
            // held at the end of a round has been read.
            let from = if self.by_cpu { first_end } else { first_end.max(self.rounds[0]) };
            self.push(RingLoss::of_ring(None, from, END, 0));
        }
        self.losses
    }
}

/// The number of missing records that a record states.
fn lost_in(record: RawRecord<'_>) -> u64 {
    match SideBand::parse(record) {
        Some(SideBand::Lost { lost, .. } | SideBand::LostSamples { lost }) => lost,
        _ => 0,
    }
}

/// The CPU of a ring; without one, it may be any CPU's.
fn cpu_of(ring: Option<RingKey>) -> Option<CpuId> {
    match ring? {
        RingKey::Cpu(cpu) => Some(cpu),
        RingKey::Event(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::{Attr, AttrFlags};
    use whit_perfdata::budget::BudgetRecord;
    use whit_perfdata::encode::{RecordEncoder, finished_round, push_record};
    use whit_perfdata::feature::EventDesc;
    use whit_perfdata::sample::SampleId;

    fn events(cpu: bool) -> EventTable {
        let mut sample_type =
            SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME;
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
        fn new(cpu: bool) -> Bytes {
            Bytes { cpu, bytes: Vec::new() }
        }

        fn push(&mut self, kind: u32, body: &[u64], time: u64, cpu: u64, id: u64) {
            let is_sample = kind == record_type::SAMPLE;
            let mut words = if is_sample { vec![id] } else { Vec::new() };
            words.extend(body);
            words.extend([1, time]);
            words.extend(self.cpu.then_some(cpu));
            words.extend((!is_sample).then_some(id));
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            push_record(&mut self.bytes, kind, 0, &bytes);
        }

        fn sample(&mut self, time: u64, cpu: u64) {
            self.sample_of(time, cpu, 1);
        }

        fn sample_of(&mut self, time: u64, cpu: u64, id: u64) {
            self.push(record_type::SAMPLE, &[0x1000], time, cpu, id);
        }

        fn lost(&mut self, time: u64, cpu: u64) {
            self.push(record_type::LOST, &[1, 5], time, cpu, 1);
        }

        /// The loss says itself since when.
        fn lost_since(&mut self, since: u64, time: u64, cpu: u64) {
            self.push(record_type::LOST, &[1, 5, since], time, cpu, 1);
        }

        fn lost_samples(&mut self, body: &[u64], cpu: u64, id: u64) {
            self.push(record_type::LOST_SAMPLES, body, 0, cpu, id);
        }

        fn round(&mut self) {
            self.bytes.extend(finished_round());
        }

        fn losses(&self, is_cut: bool, overwritten: bool) -> Vec<(Option<u32>, u64, u64)> {
            let (events, overwritten) = (events(self.cpu), [overwritten]);
            let mut losses = RingLosses::new(&events, &overwritten);
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
        let mut bytes = Bytes::new(true);
        bytes.sample(100, 0);
        bytes.sample(390, 1);
        bytes.lost(400, 0);
        bytes.lost(395, 1);
        bytes.lost(500, 2);
        let all = [(Some(0), 100, 400), (Some(1), 390, 395), (Some(2), 0, 500)];
        assert_eq!(bytes.losses(false, false), all);
        let end = bytes.losses(true, false);
        assert_eq!(end.last(), Some(&(None, 395, u64::MAX)));
    }

    /// Names and mappings are in a ring of their own, which keeps them all.
    #[test]
    fn overwritten_time_lies_in_front_of_the_first_sample() {
        let mut bytes = Bytes::new(true);
        bytes.push(record_type::COMM, &[1, 2], 50, 0, 1);
        bytes.sample(100, 0);
        bytes.sample(390, 1);
        bytes.sample(400, 0);
        assert_eq!(bytes.losses(false, false), []);
        let mut losses = bytes.losses(false, true);
        losses.sort_unstable();
        assert_eq!(losses, [(Some(0), 0, 100), (Some(1), 0, 390)]);
    }

    #[test]
    fn a_loss_that_says_since_when_is_taken_at_its_word() {
        for has_cpu in [true, false] {
            let mut bytes = Bytes::new(has_cpu);
            bytes.sample(100, 0);
            bytes.sample(390, 0);
            bytes.lost_since(150, 400, 0);
            // Damaged.
            bytes.lost_since(450, 420, 0);
            let cpu = has_cpu.then_some(0);
            assert_eq!(bytes.losses(false, false), [(cpu, 150, 400), (cpu, 420, 420)]);
        }
    }

    #[test]
    fn settings_of_a_budget_are_no_loss() {
        let events = events(true);
        let mut bytes = Vec::new();
        let id = SampleId {
            pid_tid: None,
            time: Some(TimestampNs(300)),
            id: Some(1),
            cpu: Some(CpuId(0)),
        };
        let layout = events.layout(0).expect("a layout");
        RecordEncoder::new(*layout).budget(&mut bytes, &BudgetRecord::default(), id);
        let mut losses = RingLosses::new(&events, &[false]);
        let record = RawRecord::split(&bytes).expect("a record").0;
        assert_eq!(record.header.kind, record_type::LOST_SAMPLES);
        losses.see(record);
        assert_eq!(losses.finish(false), []);
    }

    #[test]
    fn a_record_of_no_loss_concerns_the_thread_that_it_names() {
        let of = |lost: u64, pid_tid: u64| {
            let body: Vec<u8> = [lost, 150, pid_tid, 200, 3, 1]
                .iter()
                .flat_map(|w: &u64| w.to_le_bytes())
                .collect();
            let mut bytes = Vec::new();
            push_record(&mut bytes, record_type::LOST_SAMPLES, 0, &body);
            let events = events(true);
            let mut losses = RingLosses::new(&events, &[false]);
            losses.see(RawRecord::split(&bytes).expect("a record").0);
            losses.finish(false)
        };
        let window = LossWindow { from: TimestampNs(150), to: TimestampNs(200) };
        let cpu = Some(CpuId(3));
        let loss = |thread, records| vec![RingLoss { cpu, thread, window, records }];
        assert_eq!(of(0, 7 << 32 | 5), loss(Some(Tid(7)), 0));
        assert_eq!(of(0, 0), loss(None, 0));
        assert_eq!(of(1, 7 << 32 | 5), loss(None, 1));
    }

    /// However long ago the ring was full, and however many rounds others were read in meanwhile.
    #[test]
    fn rings_without_a_cpu_are_distinguished_by_their_events() {
        let mut bytes = Bytes::new(false);
        bytes.sample_of(100, 0, 1);
        for time in [200, 300, 400] {
            bytes.sample_of(time, 0, 2);
            bytes.round();
        }
        bytes.lost(420, 0);
        bytes.sample_of(425, 0, 2);
        assert_eq!(bytes.losses(false, false), [(None, 100, 420)]);
        // Behind the cut anything may be missing, except records of two rounds ago.
        bytes.round();
        assert_eq!(bytes.losses(true, false)[1..], [(None, 420, u64::MAX)]);
        bytes.sample_of(500, 0, 1);
        assert_eq!(bytes.losses(true, false)[1..], [(None, 425, u64::MAX)]);
        bytes.push(record_type::LOST, &[2, 5], 600, 0, 7);
        assert_eq!(bytes.losses(false, false)[1..], [(None, 0, 600)]);
    }

    #[test]
    fn a_count_without_a_time_leaves_the_end_uncertain() {
        let mut bytes = Bytes::new(true);
        bytes.sample(100, 1);
        bytes.sample(390, 0);
        bytes.lost_samples(&[0], 0, 1);
        assert_eq!(bytes.losses(false, false), []);
        // perf's: whatever the CPU says, it may be any.
        bytes.lost_samples(&[7], 0, 1);
        assert_eq!(bytes.losses(false, false), [(None, 100, u64::MAX)]);
        // whit's: that of a ring, and since when, if that is known.
        bytes.lost_samples(&[7, 0], 0, 1);
        bytes.lost_samples(&[0, 50], 1, 1);
        let ends = [(Some(0), 390, u64::MAX), (Some(1), 50, u64::MAX)];
        assert_eq!(bytes.losses(false, false)[1..], ends);
        // Without a CPU it is the event's ring.
        let mut bytes = Bytes::new(false);
        bytes.sample_of(100, 0, 1);
        bytes.sample_of(390, 0, 2);
        bytes.lost_samples(&[7], 0, 2);
        assert_eq!(bytes.losses(false, false), [(None, 390, u64::MAX)]);
    }
}
