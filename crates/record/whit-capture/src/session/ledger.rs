//! The cost of an output, added up for its ledger.

use std::time::{Duration, Instant};

use whit_engine_api::rings::MappedRing;
use whit_host::roots::Roots;
use whit_perfdata::ledger::{Ledger, ReaderLedger};
use whit_sys::usage::CpuUsage;

use super::cpu_watch::CpuWatch;
use super::metering::{MeterSnapshot, Metering};
use super::reader_share::ReaderShare;
use super::unreported_loss::{Losses, UnreportedLoss};
use crate::loss::RingCounts;
use crate::machine::own_peak_memory_bytes;
use crate::notice::Listener;
use crate::stream::WriteCounts;

/// Measurements beside the streams.
pub(super) struct Meters {
    pub(super) metering: Metering,
    pub(super) cpu_watch: CpuWatch,
    ring_size_bytes: usize,
    /// Rings that samples may be in: others pause nothing.
    nr_sample_rings: usize,
}

impl Meters {
    /// For a recording with these rings.
    pub(super) fn new(metering: Metering, cpu_watch: CpuWatch, rings: &[MappedRing]) -> Meters {
        Meters {
            metering,
            cpu_watch,
            ring_size_bytes: rings.first().map_or(0, |ring| ring.ring.data_size_bytes()),
            nr_sample_rings: rings.iter().filter(|ring| !ring.is_sideband).count(),
        }
    }

    /// Looks which CPUs have gone and come, and gives their losses.
    pub(super) fn unrecorded(
        &mut self,
        roots: &Roots,
        losses: Losses<'_>,
        shares: &[ReaderShare],
        listener: &mut dyn Listener,
    ) -> Vec<UnreportedLoss> {
        self.cpu_watch.look(roots, listener);
        self.cpu_watch.unrecorded(losses, shares)
    }
}

/// When an output ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// When its target ended, or it was switched away from.
    pub(super) stopped: Instant,
    /// The recorder's CPU time at the moment when the rings were empty.
    pub(super) used_ns: u64,
    /// For how long events were on.
    pub(super) enabled: Duration,
}

/// The figures of one output that are added up.
pub(super) struct OutputCosts<'a> {
    pub(super) shares: &'a [ReaderShare],
    /// The stream behind the header, where no reader has it.
    pub(super) main: Option<&'a WriteCounts>,
    pub(super) unreported: &'a [UnreportedLoss],
    pub(super) ending: &'a Ending,
    pub(super) now: Instant,
    pub(super) wall_ns: u64,
    /// The recorder's CPU time since the output began.
    pub(super) used: CpuUsage,
}

impl OutputCosts<'_> {
    fn sum(&self, field: fn(&RingCounts) -> u64) -> u64 {
        self.shares.iter().flat_map(|share| &share.rings).map(field).sum()
    }

    fn written(&self, field: fn(&WriteCounts) -> u64) -> u64 {
        let streams = self.shares.iter().map(|share| share.sink.counts());
        self.main.into_iter().chain(streams).map(field).sum()
    }

    /// The ledger, without the figures of the output itself. Threads that ran are known of the whole recording, not
    /// of one output of several; the engine enters its own figures once it has ended.
    pub(super) fn ledger(&self, meters: &Meters, begin: &MeterSnapshot, roots: &Roots) -> Ledger {
        let &Ending { stopped, used_ns, enabled } = self.ending;
        let nr_rings = meters.nr_sample_rings as u64;
        let unwritten_records = self.written(|w| w.unwritten.records);
        let unreported = self.unreported.iter();
        let (lost_cpus, late_cpus) = meters.cpu_watch.counts();
        let (pmi, bpf) = meters.metering.since(begin, stopped);
        Ledger {
            wall_ns: self.wall_ns,
            teardown_ns: self.now.saturating_duration_since(stopped).as_nanos() as u64,
            user_cpu_ns: self.used.user_ns,
            system_cpu_ns: self.used.system_ns,
            ring_bytes: self.sum(|c| c.bytes),
            written_bytes: self.written(|w| w.bytes),
            writes: self.written(|w| w.writes),
            write_ns: self.written(|w| w.write_ns),
            wakeups: self.shares.iter().map(|share| share.wakeups).sum(),
            samples: self.sum(|c| c.samples).saturating_sub(self.written(|w| w.unwritten.samples)),
            lost_records: self.sum(|c| c.lost_records + c.lost_samples)
                + unreported.clone().map(|ring| ring.lost).sum::<u64>()
                + unwritten_records,
            paused_ns: self.sum(|c| c.paused_ns)
                + unreported.map(|ring| ring.paused_ns).sum::<u64>(),
            // A command's own exec starts its events; it follows within microseconds.
            elapsed_ns: enabled.as_nanos() as u64 * nr_rings,
            rings: nr_rings,
            ring_size_bytes: meters.ring_size_bytes as u64,
            compressed_from_bytes: self.written(|w| w.compressed_from_bytes),
            compressed_to_bytes: self.written(|w| w.compressed_to_bytes),
            stalls: self.written(|w| w.stalls),
            stall_ns: self.written(|w| w.stall_ns),
            unwritten_records,
            lost_cpus,
            late_cpus,
            peak_memory_bytes: own_peak_memory_bytes(roots),
            teardown_cpu_ns: self.used.total_ns().saturating_sub(used_ns),
            pmi,
            bpf,
            readers: self.shares.iter().map(reader_ledger).collect(),
            ..Ledger::default()
        }
    }
}

fn reader_ledger(share: &ReaderShare) -> ReaderLedger {
    let counts = share.sink.counts();
    ReaderLedger {
        user_cpu_ns: share.usage.user_ns,
        system_cpu_ns: share.usage.system_ns,
        wakeups: share.wakeups,
        rings: share.rings.len() as u64,
        ring_bytes: share.rings.iter().map(|counts| counts.bytes).sum(),
        written_bytes: counts.bytes,
        writes: counts.writes,
        write_ns: counts.write_ns,
        stalls: counts.stalls,
        stall_ns: counts.stall_ns,
    }
}
