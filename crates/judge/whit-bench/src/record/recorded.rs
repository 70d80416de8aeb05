//! Contents and losses of one recording, read in the same way for every recorder.
//!
//! The kernel writes a LOST record into a ring as soon as there is room again: the ring was
//! *paused* from the record before it to the LOST record, unless that says since when
//! ([`whit_perfdata::loss`]). In a recording the rings stand mixed, so that the record before
//! belongs to another ring as often as not. Records are therefore told apart by their CPU, which
//! each ring has of its own (`--sample-cpu` sees to it that records say it). Data loss is paused
//! time over elapsed time, as in Budankov, "Linux perf advancements for compute intensive and
//! server systems", Linux Piter 2019.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::ledger::{BpfLedger, BpfMeasurement};
use whit_perfdata::loss::PausedTime;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_perfdata::stream::{Stream, StreamReader};
use whit_types::{CpuId, TimestampNs};

use crate::error::Error;

/// Figures of one recording.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Recorded {
    /// Size of all files together.
    pub(crate) size_bytes: u64,
    /// Records that the kernel wrote.
    pub(crate) records: u64,
    /// Samples among them.
    pub(crate) samples: u64,
    /// Records dropped, as LOST records say: of any type, and only where a later record was stored.
    pub(crate) lost_records: u64,
    /// Number of LOST records.
    pub(crate) lost_chunks: u64,
    /// Records dropped, as LOST_SAMPLES records say.
    pub(crate) lost_samples: u64,
    /// Records dropped in all.
    pub(crate) lost: u64,
    /// Time during which rings were full, summed over rings; absent where records do not say
    /// their time and CPU.
    pub(crate) paused_ns: Option<u64>,
    /// From the first to the last sample (or LOST record), times the number of rings.
    pub(crate) elapsed_ns: Option<u64>,
    /// Rings that have records.
    pub(crate) rings: u64,
    /// Bytes inside compressed records.
    pub(crate) compressed_bytes: u64,
    /// Size of these bytes before.
    pub(crate) decompressed_bytes: u64,
    /// Bytes that hold no whole record.
    pub(crate) unreadable_bytes: u64,
    /// The recorder's own measurements, where it is whit.
    pub(crate) ledger: Option<LedgerLoss>,
    /// The recorder's BPF programs, where it has some and the kernel timed them.
    pub(crate) bpf: Option<BpfRuns>,
}

/// Runs of a recorder's BPF programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct BpfRuns {
    /// Times that they ran.
    pub(crate) runs: u64,
    /// Time in them, summed over CPUs.
    pub(crate) run_time_ns: u64,
}

/// The loss that whit's ledger has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct LedgerLoss {
    /// Samples recorded.
    pub(crate) samples: u64,
    /// Records dropped.
    pub(crate) lost: u64,
    /// Time during which rings were full, summed over rings.
    pub(crate) paused_ns: u64,
    /// Recorded time, summed over rings.
    pub(crate) elapsed_ns: u64,
}

impl BpfRuns {
    fn of(ledger: &BpfLedger) -> Option<BpfRuns> {
        let is_timed = ledger.measurement == BpfMeasurement::Statistics && ledger.runs > 0;
        is_timed.then_some(BpfRuns { runs: ledger.runs, run_time_ns: ledger.run_time_ns })
    }
}

impl Recorded {
    /// Reads a whole recording: a file or a directory.
    pub(crate) fn read(path: &Path) -> Result<Recorded, Error> {
        let recording = Recording::open(path)?;
        let events = EventTable::new(&recording.events);
        let mut recorded = Recorded { size_bytes: recording.size_bytes, ..Recorded::default() };
        let mut rings = Rings::default();
        for stream in &recording.streams {
            recorded.add(stream, &events, &mut rings);
        }
        recorded.ledger = recording.features.ledger().map(|ledger| LedgerLoss {
            samples: ledger.samples,
            lost: ledger.lost_records,
            paused_ns: ledger.paused_ns,
            elapsed_ns: ledger.elapsed_ns,
        });
        recorded.bpf = recording.features.ledger().and_then(|ledger| BpfRuns::of(&ledger.bpf));
        recorded.lost = recorded.lost_in_all();
        recorded.rings = rings.by_cpu.len() as u64;
        if rings.all_have_times && !rings.by_cpu.is_empty() {
            recorded.paused_ns = Some(rings.paused_ns());
            recorded.elapsed_ns = Some(rings.elapsed_ns());
        }
        Ok(recorded)
    }

    fn add(&mut self, stream: &Stream, events: &EventTable, rings: &mut Rings) {
        let mut reader = StreamReader::new(stream.clone());
        let mut block = Vec::new();
        loop {
            match reader.next_block(&mut block) {
                Ok(Some(_)) => self.add_block(&block, events, rings),
                Ok(None) => break,
                Err(error) => {
                    self.unreadable_bytes += error.lost_bytes().max(1);
                    break;
                }
            }
        }
        let missing = reader.truncation().into_iter().chain(reader.holes());
        self.unreadable_bytes += missing.map(|missing| missing.size_bytes).sum::<u64>();
        let counts = reader.record_counts();
        self.compressed_bytes += counts.compressed_bytes;
        self.decompressed_bytes += counts.decompressed_bytes;
    }

    fn add_block(&mut self, block: &[u8], events: &EventTable, rings: &mut Rings) {
        let mut rest = block;
        while let Some((record, tail)) = RawRecord::split(rest) {
            rest = tail;
            if record.header.kind >= record_type::USER_START {
                continue;
            }
            let place = RecordOrigin::of(record, events);
            let mut loss = None;
            match record.header.kind {
                record_type::SAMPLE => self.samples += 1,
                record_type::LOST | record_type::LOST_SAMPLES => match SideBand::parse(record) {
                    Some(SideBand::Lost { lost, .. }) => {
                        self.lost_records = self.lost_records.saturating_add(lost);
                        self.lost_chunks += 1;
                        loss = Some(Loss { count: lost, since: events.loss_since(record) });
                    }
                    // The recorder's own summary: no ring had it.
                    Some(SideBand::LostSamples { lost }) => {
                        self.lost_samples = self.lost_samples.saturating_add(lost);
                        continue;
                    }
                    _ => continue,
                },
                _ => {}
            }
            if rings.see(record.header.kind, place, loss) {
                self.records += 1;
            }
        }
    }

    /// LOST records count drops that a later record followed. The lost counts of the events
    /// (`PERF_FORMAT_LOST`) are written as LOST_SAMPLES at the end. perf writes all of them, which
    /// includes the drops in LOST records; whit, which has a ledger, writes only the rest.
    fn lost_in_all(&self) -> u64 {
        match self.ledger {
            Some(_) => self.lost_records.saturating_add(self.lost_samples),
            None => self.lost_records.max(self.lost_samples),
        }
    }

    /// Data loss = paused time / elapsed time, between 0 and 1.
    pub(crate) fn data_loss(&self) -> Option<f64> {
        let (paused_ns, elapsed_ns) = (self.paused_ns?, self.elapsed_ns?);
        Some(if elapsed_ns == 0 { 0.0 } else { paused_ns as f64 / elapsed_ns as f64 })
    }

    /// Dropped records as a share of all that were to be written, between 0 and 1.
    pub(crate) fn lost_share(&self) -> f64 {
        let produced = self.records.saturating_add(self.lost);
        if produced == 0 { 0.0 } else { self.lost as f64 / produced as f64 }
    }

    /// Bytes before compression over bytes after it; 1 without compression.
    pub(crate) fn compression_ratio(&self) -> f64 {
        match self.compressed_bytes {
            0 => 1.0,
            compressed => self.decompressed_bytes as f64 / compressed as f64,
        }
    }
}

/// Where and when a record was written.
#[derive(Clone, Copy)]
struct RecordOrigin {
    cpu: Option<CpuId>,
    time: Option<TimestampNs>,
}

impl RecordOrigin {
    fn of(record: RawRecord<'_>, events: &EventTable) -> RecordOrigin {
        if record.header.kind == record_type::SAMPLE {
            let event = events.event_of_sample(record.body);
            let layout = event.and_then(|event| events.layout(event));
            let sample = layout.and_then(|layout| layout.parse(record.body));
            return match sample {
                Some(sample) => RecordOrigin { cpu: sample.cpu, time: sample.time },
                None => RecordOrigin { cpu: None, time: None },
            };
        }
        let id = events.parse_id_trailer(record);
        RecordOrigin { cpu: id.cpu, time: id.time }
    }
}

struct Rings {
    by_cpu: HashMap<CpuId, Ring>,
    first: Option<TimestampNs>,
    last: Option<TimestampNs>,
    all_have_times: bool,
}

#[derive(Default)]
struct Ring {
    last: Option<TimestampNs>,
    paused: PausedTime,
}

/// The content of a LOST record.
#[derive(Clone, Copy)]
struct Loss {
    count: u64,
    since: Option<TimestampNs>,
}

impl Default for Rings {
    fn default() -> Rings {
        Rings { by_cpu: HashMap::new(), first: None, last: None, all_have_times: true }
    }
}

impl Rings {
    /// Notes a record; false for one that the recorder synthesized for existing processes, which
    /// has no time and was in no ring.
    fn see(&mut self, kind: u32, place: RecordOrigin, loss: Option<Loss>) -> bool {
        let (Some(cpu), Some(time)) = (place.cpu, place.time) else {
            self.all_have_times = false;
            return true;
        };
        if time.0 == 0 {
            return false;
        }
        let ring = self.by_cpu.entry(cpu).or_default();
        if let Some(Loss { count: 1.., since }) = loss
            // Before the first record of a ring nothing can fill it; time 0 says that nobody knows.
            && let Some(from) = since.or(ring.last).filter(|from| from.0 > 0)
        {
            ring.paused.add(from, time);
        }
        ring.last = Some(time);
        // Sideband records may come before the events are enabled.
        if matches!(kind, record_type::SAMPLE | record_type::LOST) {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = self.last.max(Some(time));
        }
        true
    }

    fn paused_ns(&self) -> u64 {
        self.by_cpu.values().map(|ring| ring.paused.total_ns()).sum()
    }

    fn elapsed_ns(&self) -> u64 {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.since(first) * self.by_cpu.len() as u64,
            _ => 0,
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
