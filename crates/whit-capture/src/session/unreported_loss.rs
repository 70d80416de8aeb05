//! Records that were dropped behind the last one of a ring. The kernel reports them in front of the next one, which
//! never comes, or goes into another output.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use whit_engine::open_event::{InstanceIndex, OpenEvent};
use whit_engine::{Engine, lost_counts};
use whit_perfdata::attr::ReadFormat;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_types::{CpuId, TimestampNs};

use super::reader_share::{ReaderShare, each_end};
use crate::ring_drainer::{ANY_CPU, RingEnd};

/// Records that were dropped from a ring and that no record in it reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnreportedLoss {
    /// Index of its reader.
    reader: usize,
    pub(super) lost: u64,
    pub(super) paused_ns: u64,
    /// Time of the ring's last record; 0 without any.
    since: TimestampNs,
    /// The event that owns the ring, and the CPU.
    id: u64,
    cpu: CpuId,
}

impl UnreportedLoss {
    /// The index of the ring's reader.
    pub(super) fn reader(&self) -> usize {
        self.reader
    }

    /// Records may be missing since `time` at the earliest.
    pub(super) fn begin_at_least(&mut self, time: TimestampNs) {
        self.since = self.since.max(time);
    }

    /// A LOST_SAMPLES record. Nobody knows until when records are missing, so it has no time.
    pub(super) fn record(&self, encoder: &RecordEncoder) -> Vec<u8> {
        let &UnreportedLoss { lost, since, id, cpu, .. } = self;
        let id = SampleId { pid_tid: None, time: None, id: Some(id), cpu: Some(cpu) };
        let mut record = Vec::new();
        encoder.lost_samples(&mut record, lost, Some(since), id);
        record
    }
}

/// Finds records that are missing at the ends of rings.
#[derive(Clone, Copy)]
pub(super) struct LossFinder<'a> {
    pub(super) events: &'a [OpenEvent],
    pub(super) engine: &'a dyn Engine,
}

impl LossFinder<'_> {
    /// The encoder of the records about losses.
    pub(super) fn encoder(&self) -> RecordEncoder {
        RecordEncoder::new(SampleLayout::new(&self.events[0].event.attr))
    }

    /// Records that were dropped after the last one that found room, once the recording was `stopped`. The kernel
    /// would count the time from the ring's last record to the next one. A ring that was full was drained afterwards,
    /// so that it ends there at the latest. Rings that are overwritten are never full: they drop records only while
    /// they are being read.
    pub(super) fn unreported(
        &self,
        shares: &[ReaderShare],
        stopped: Instant,
    ) -> Vec<UnreportedLoss> {
        let counted = self.counted();
        let unreported_loss = |reader: usize, share: &ReaderShare, end: &RingEnd| {
            let lost = counted.unreported(self.events, end);
            let until = end.drained.map_or(stopped, |drained| drained.min(stopped));
            let is_known = !end.is_backward && end.last_record.0 > 0;
            let until = share.clock.time(until).filter(|_| is_known);
            let paused_ns = until.map_or(0, |until| end.paused.clone().add(end.last_record, until));
            (lost > 0).then(|| UnreportedLoss { lost, paused_ns, ..self.behind(reader, end) })
        };
        each_end(shares)
            .filter_map(|(reader, share, end)| unreported_loss(reader, share, end))
            .collect()
    }

    /// Where the recording has gone on in another output, a ring may have dropped records while others were
    /// still drained into the old one: that has newer records than what is missing. How many there were, the
    /// new one says.
    pub(super) fn doubtful_ends(&self, shares: &[ReaderShare]) -> Vec<UnreportedLoss> {
        let counted = self.counted();
        let switches = self.engine.lost_beside_rings();
        let lost_switches = |end: &RingEnd| {
            let counted = end.cpu.and_then(|cpu| switches.get(cpu.0 as usize));
            counted.is_some_and(|lost| *lost > end.lost_switches)
        };
        let doubt = |reader: usize, end: &RingEnd| {
            let behind = self.behind(reader, end);
            let ring = (counted.unreported(self.events, end) > 0).then_some(behind);
            let since = end.last_switch.filter(|_| lost_switches(end));
            [ring, since.map(|since| UnreportedLoss { since, ..behind })]
        };
        each_end(shares).flat_map(|(reader, _, end)| doubt(reader, end)).flatten().collect()
    }

    /// That nothing was lost.
    pub(super) fn behind(&self, reader: usize, end: &RingEnd) -> UnreportedLoss {
        let id = |member: &InstanceIndex| member.of(self.events).id;
        UnreportedLoss {
            reader,
            lost: 0,
            paused_ns: 0,
            since: end.last_record,
            id: end.members.first().map_or(0, id),
            cpu: end.cpu.unwrap_or(ANY_CPU),
        }
    }

    /// Of a CPU that has no ring.
    pub(super) fn nothing_of(&self, cpu: CpuId) -> UnreportedLoss {
        let first = self.events.iter().flat_map(|event| &event.instances).next();
        let id = first.map_or(0, |instance| instance.id);
        UnreportedLoss { reader: 0, lost: 0, paused_ns: 0, since: TimestampNs(0), id, cpu }
    }

    /// The kernel's own counts of dropped records.
    fn counted(&self) -> Counted {
        let mut by_id = HashMap::new();
        for (index, event) in self.events.iter().enumerate() {
            let is_group = event.event.attr.read_format.contains(ReadFormat::GROUP);
            if event.event.attr.read_format.contains(ReadFormat::LOST)
                && !(is_group && event.event.spec.is_member(index))
            {
                lost_counts::read(event, &mut by_id);
            }
        }
        Counted { by_id, wakeup_events: self.engine.lost_private_records() }
    }
}

/// Counts of the kernel.
struct Counted {
    /// By the id of the event.
    by_id: HashMap<u64, u64>,
    /// By CPU, of records that only wake the reader.
    wakeup_events: BTreeMap<u32, u64>,
}

impl Counted {
    /// Dropped records that no record of the ring reports.
    fn unreported(&self, events: &[OpenEvent], end: &RingEnd) -> u64 {
        let id = |member: &InstanceIndex| member.of(events).id;
        let lost: u64 = end.members.iter().filter_map(|member| self.by_id.get(&id(member))).sum();
        // Some of what was reported may be records that only wake the reader.
        let of_wakeup_events = end.cpu.and_then(|cpu| self.wakeup_events.get(&cpu.0));
        lost.saturating_sub(end.reported.saturating_sub(of_wakeup_events.copied().unwrap_or(0)))
    }
}
