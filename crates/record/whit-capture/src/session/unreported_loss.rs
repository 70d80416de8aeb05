//! Records that were dropped behind the last one of a ring. The kernel reports them in front of the next one, which
//! never comes, or goes into another output.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::num::NonZeroU64;
use std::time::Instant;

use whit_engine_api::open_event::OpenEvent;
use whit_engine_api::{EngineLosses, lost_counts};
use whit_perfdata::attr::ReadFormat;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_types::{CpuId, TimestampNs};

use super::reader_share::{ReaderShare, each_end};
use crate::ring_drainer::{ANY_CPU, RingEnd};
use crate::stream::Sink;

/// Records that were dropped from a ring and that no record in it reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnreportedLoss {
    /// Index of its reader.
    ring_drainer: usize,
    pub(super) lost: u64,
    pub(super) paused_ns: u64,
    /// Time of the ring's last record; 0 without any.
    since: TimestampNs,
    /// The event that owns the ring, and the CPU.
    id: u64,
    cpu: CpuId,
}

impl UnreportedLoss {
    /// Records may be missing since `time` at the earliest.
    pub(super) fn begin_at_least(&mut self, time: TimestampNs) {
        self.since = self.since.max(time);
    }
}

/// Compares rings with the counts of the kernel and of the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses<'a> {
    pub(super) events: &'a [OpenEvent],
    pub(super) of_engine: &'a EngineLosses,
}

impl<'a> Losses<'a> {
    /// A LOST_SAMPLES record for each ring. Nobody knows until when records are missing, so it has no time.
    pub(super) fn write(
        self,
        shares: &mut [ReaderShare],
        unreported_loss: &[UnreportedLoss],
    ) -> io::Result<()> {
        let encoder = RecordEncoder::new(SampleLayout::new(&self.events[0].event.attr));
        for &UnreportedLoss { ring_drainer, lost, since, id, cpu, .. } in unreported_loss {
            let Some(share) = shares.get_mut(ring_drainer) else { continue };
            let id = SampleId { pid_tid: None, time: None, id: Some(id), cpu: Some(cpu) };
            let mut record = Vec::new();
            encoder.lost_samples(&mut record, lost, Some(since), id);
            share.sink.records(&record).map_err(|error| error.0)?;
        }
        Ok(())
    }

    /// Records that were dropped behind the last record of each ring, once the recording was `stopped`. The kernel
    /// would count the time from the ring's last record to the next one. A ring that was full was drained afterwards,
    /// so that it ends there at the latest. Rings that are overwritten are never full: they drop records only while
    /// they are being read.
    pub(super) fn unreported(
        self,
        shares: &[ReaderShare],
        stopped: Instant,
    ) -> Vec<UnreportedLoss> {
        let counted = self.counted();
        let unreported_loss = |(ring_drainer, share, end): (usize, &ReaderShare, &RingEnd)| {
            let lost = NonZeroU64::new(counted.unreported(self.ids(end), end))?;
            let until = end.drained.map_or(stopped, |drained| drained.min(stopped));
            let is_known = !end.is_backward && end.last_record != TimestampNs(0);
            let until = share.clock.time(until).filter(|_| is_known);
            let paused_ns = until.map_or(0, |until| end.paused.clone().add(end.last_record, until));
            Some(UnreportedLoss { lost: lost.get(), paused_ns, ..self.behind(ring_drainer, end) })
        };
        each_end(shares).filter_map(unreported_loss).collect()
    }

    /// Where the recording has gone on in another output, a ring may have dropped records while others were
    /// still drained into the old one: that has newer records than the missing ones. How many there were, the
    /// new one says.
    pub(super) fn doubtful(self, shares: &[ReaderShare]) -> Vec<UnreportedLoss> {
        let counted = self.counted();
        let switches = &self.of_engine.outside_rings;
        let lost_switches = |end: &RingEnd| {
            let counted = end.cpu.and_then(|cpu| switches.get(cpu.0 as usize));
            counted.is_some_and(|lost| *lost > end.lost_switches)
        };
        let doubt = |ring_drainer: usize, end: &RingEnd| {
            let behind = self.behind(ring_drainer, end);
            let ring = NonZeroU64::new(counted.unreported(self.ids(end), end)).map(|_| behind);
            let since = end.last_switch.filter(|_| lost_switches(end));
            [ring, since.map(|since| UnreportedLoss { since, ..behind })]
        };
        each_end(shares)
            .flat_map(|(ring_drainer, _, end)| doubt(ring_drainer, end))
            .flatten()
            .collect()
    }

    /// That nothing was lost.
    pub(super) fn behind(self, ring_drainer: usize, end: &RingEnd) -> UnreportedLoss {
        UnreportedLoss {
            ring_drainer,
            lost: 0,
            paused_ns: 0,
            since: end.last_record,
            id: self.ids(end).next().unwrap_or(0),
            cpu: end.cpu.unwrap_or(ANY_CPU),
        }
    }

    /// A loss of no record, for a CPU that has no ring.
    pub(super) fn nothing_of(self, cpu: CpuId) -> UnreportedLoss {
        let first = self.events.iter().flat_map(|event| &event.instances).next();
        let id = first.map_or(0, |instance| instance.id);
        UnreportedLoss { ring_drainer: 0, lost: 0, paused_ns: 0, since: TimestampNs(0), id, cpu }
    }

    /// Ids of the events that write into a ring.
    fn ids(self, end: &RingEnd) -> impl Iterator<Item = u64> {
        end.members.iter().map(move |member| member.of(self.events).id)
    }

    fn counted(self) -> Counted<'a> {
        let mut by_id = HashMap::new();
        for (index, event) in self.events.iter().enumerate() {
            let is_group = event.event.attr.read_format.contains(ReadFormat::GROUP);
            if event.event.attr.read_format.contains(ReadFormat::LOST)
                && !(is_group && event.event.spec.is_member(index))
            {
                lost_counts::read(event, &mut by_id);
            }
        }
        Counted { by_id, wakeup_events: &self.of_engine.private }
    }
}

/// Counts of the kernel.
struct Counted<'a> {
    /// By the id of the event.
    by_id: HashMap<u64, u64>,
    /// By CPU, of records that only wake the reader.
    wakeup_events: &'a BTreeMap<u32, u64>,
}

impl Counted<'_> {
    /// Records that were dropped from a ring, by the ids of its events, and that none of its records reports.
    fn unreported(&self, ids: impl Iterator<Item = u64>, end: &RingEnd) -> u64 {
        let lost: u64 = ids.filter_map(|id| self.by_id.get(&id)).sum();
        // The reported losses may include records that only wake the reader.
        let of_wakeup_events = end.cpu.and_then(|cpu| self.wakeup_events.get(&cpu.0));
        lost.saturating_sub(end.reported.saturating_sub(of_wakeup_events.copied().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests;
