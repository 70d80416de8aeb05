//! Records that were dropped behind the last one of a ring. The kernel reports them in front of the next one, which
//! never comes, or goes into another output.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Instant;

use whit_perfdata::attr::ReadFormat;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_types::{CpuId, TimestampNs};

use super::Session;
use super::drainer::Portion;
use crate::lost_counts;
use crate::reader::RingEnd;
use crate::stack_engine::StackEngine;
use crate::stream::Sink;

/// Records that were dropped from a ring and that no record in it reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residue {
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

impl Residue {
    /// Records may be missing since `time` at the earliest.
    pub(super) fn begin_at_least(&mut self, time: TimestampNs) {
        self.since = self.since.max(time);
    }
}

impl Session<'_> {
    /// A LOST_SAMPLES record for each ring. Until when records are missing nobody knows, so it has no time.
    pub(super) fn write_residue(
        &self,
        portions: &mut [Portion],
        residue: &[Residue],
    ) -> io::Result<()> {
        let encoder = RecordEncoder::new(SampleLayout::new(&self.shared.events[0].event.attr));
        for &Residue { reader, lost, since, id, cpu, .. } in residue {
            let Some(portion) = portions.get_mut(reader) else { continue };
            let id = SampleId { pid_tid: None, time: None, id: Some(id), cpu: Some(cpu) };
            let mut record = Vec::new();
            encoder.lost_samples(&mut record, lost, Some(since), id);
            portion.sink.records(&record).map_err(|error| error.0)?;
        }
        Ok(())
    }

    /// Records that were dropped after the last one that found room, once the recording was `stopped`. The kernel
    /// would count the time from the ring's last record to the next one. A ring that was full was drained afterwards,
    /// so that it ends there at the latest. Rings that are overwritten are never full: they drop records only while
    /// they are being read.
    pub(super) fn residue(&self, portions: &[Portion], stopped: Instant) -> Vec<Residue> {
        let counted = self.counted();
        let residue = |reader: usize, portion: &Portion, end: &RingEnd| {
            let lost = counted.unreported(self, end);
            let until = end.drained.map_or(stopped, |drained| drained.min(stopped));
            let is_known = !end.is_backward && end.last_record.0 > 0;
            let until = portion.clock.time(until).filter(|_| is_known);
            let paused_ns = until.map_or(0, |until| end.paused.clone().add(end.last_record, until));
            (lost > 0).then(|| Residue { lost, paused_ns, ..self.behind(reader, end) })
        };
        each_end(portions)
            .filter_map(|(reader, portion, end)| residue(reader, portion, end))
            .collect()
    }

    /// Where the recording has gone on in another output, a ring may have dropped records while others were
    /// still drained into the old one: that has newer records than what is missing. How many there were, the
    /// new one says.
    pub(super) fn doubtful_ends(&self, portions: &[Portion]) -> Vec<Residue> {
        let counted = self.counted();
        let switches = self.engine.as_ref().map(StackEngine::lost_switches).unwrap_or_default();
        let lost_switches = |end: &RingEnd| {
            let cpu = usize::try_from(end.cpu).ok();
            cpu.and_then(|cpu| switches.get(cpu)).is_some_and(|lost| *lost > end.lost_switches)
        };
        let doubt = |reader: usize, end: &RingEnd| {
            let behind = self.behind(reader, end);
            let ring = (counted.unreported(self, end) > 0).then_some(behind);
            let since = end.last_switch.filter(|_| lost_switches(end));
            [ring, since.map(|since| Residue { since, ..behind })]
        };
        each_end(portions).flat_map(|(reader, _, end)| doubt(reader, end)).flatten().collect()
    }

    /// That nothing was lost.
    pub(super) fn behind(&self, reader: usize, end: &RingEnd) -> Residue {
        let id = |&(event, index): &(usize, usize)| self.shared.events[event].instances[index].id;
        Residue {
            reader,
            lost: 0,
            paused_ns: 0,
            since: end.last_record,
            id: end.members.first().map_or(0, id),
            cpu: CpuId(end.cpu as u32),
        }
    }

    /// Of a CPU that has no ring.
    pub(super) fn nothing_of(&self, cpu: CpuId) -> Residue {
        let first = self.shared.events.iter().flat_map(|event| &event.instances).next();
        let id = first.map_or(0, |instance| instance.id);
        Residue { reader: 0, lost: 0, paused_ns: 0, since: TimestampNs(0), id, cpu }
    }

    /// The kernel's own counts of dropped records.
    fn counted(&self) -> Counted {
        let mut by_id = HashMap::new();
        for (index, event) in self.shared.events.iter().enumerate() {
            let is_group = event.event.attr.read_format.contains(ReadFormat::GROUP);
            if event.event.attr.read_format.contains(ReadFormat::LOST)
                && !(is_group && event.event.spec.is_member(index))
            {
                lost_counts::read(event, &mut by_id);
            }
        }
        Counted {
            by_id,
            bells: self.engine.as_ref().map(StackEngine::lost_bells).unwrap_or_default(),
        }
    }
}

/// The rings of all readers.
pub(super) fn each_end(portions: &[Portion]) -> impl Iterator<Item = (usize, &Portion, &RingEnd)> {
    let portions = portions.iter().enumerate();
    portions
        .flat_map(|(reader, portion)| portion.ends.iter().map(move |end| (reader, portion, end)))
}

/// Counts of the kernel.
struct Counted {
    /// By the id of the event.
    by_id: HashMap<u64, u64>,
    /// By CPU, of records that only wake the reader.
    bells: BTreeMap<u32, u64>,
}

impl Counted {
    /// Dropped records that no record of the ring reports.
    fn unreported(&self, session: &Session<'_>, end: &RingEnd) -> u64 {
        let id =
            |&(event, index): &(usize, usize)| session.shared.events[event].instances[index].id;
        let lost: u64 = end.members.iter().filter_map(|member| self.by_id.get(&id(member))).sum();
        // Some of what was reported may be records that only wake the reader.
        let of_bells = u32::try_from(end.cpu).ok().and_then(|cpu| self.bells.get(&cpu));
        lost.saturating_sub(end.reported.saturating_sub(of_bells.copied().unwrap_or(0)))
    }
}
