//! The first pass over a recording: counts, losses, and the sideband.
//!
//! Samples are stepped over here. Memory grows with the number of processes, mappings and command
//! names, not with the number of samples.

use crate::blocks::deferred::{AwaitedChains, defers};
use crate::blocks::split_reads::SplitStream;
use crate::blocks::stated_time::stated_time;
use crate::blocks::stream_plan::{BlockTimes, PlannedBlock, StreamPlan};
use crate::error::LoadError;
use crate::first_pass::census::Census;
use crate::first_pass::counts::{Skipped, TypeCounts};
use crate::first_pass::cut_maps::CutMaps;
use crate::first_pass::first_seen::FirstSeen;
use crate::first_pass::leaf_sums::LeafSums;
use crate::first_pass::leaf_thread::LeafCounter;
use crate::first_pass::recorded_parts::RecordedParts;
use crate::first_pass::ring_full::{RingIdentification, RingTimes};
use crate::first_pass::ring_losses::{RecordedCpus, RingLosses};
use crate::loss_window::RingLoss;
use crate::machine_model::change::{Change, TimedChange};
use crate::progress::Progress;
use crate::warning::Warning;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::budget_history::HistoryBuilder;
use whit_perfdata::clocks::ClockReading;
use whit_perfdata::deferred::DeferredChain;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::read_split::{ReadSplit, SplitCounts};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{MappedFileId, Mmap, RawRecord, SideBand, misc, record_type};
use whit_perfdata::stream::{BlockInfo, RecordCounts, Stream, StreamError, StreamReader};
use whit_types::{FileId, TimestampNs};

/// Readings of clocks that are taken from a stream: those of a week.
const MAX_READINGS: usize = 1 << 16;

/// Sums of the losses that LOST and LOST_SAMPLES records report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScannedLoss {
    pub(crate) lost_records: u64,
    pub(crate) lost_chunks: u64,
    pub(crate) lost_samples: u64,
    pub(crate) paused_ns: u64,
    /// Rings that paused time was worked out for.
    pub(crate) rings: u64,
    pub(crate) truncated_bytes: u64,
}

/// The result of the first pass: of one stream while it is read, and of all streams in the end.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) changes: Vec<TimedChange>,
    pub(crate) plans: Vec<StreamPlan>,
    pub(crate) loss: ScannedLoss,
    pub(crate) samples_by_event: Vec<u64>,
    pub(crate) lost_samples_by_event: Vec<u64>,
    pub(crate) counts: TypeCounts,
    pub(crate) wrapped: RecordCounts,
    pub(crate) orphan_samples: Skipped,
    pub(crate) unsplit_samples: Skipped,
    pub(crate) malformed: Skipped,
    /// Where call chains come in records of their own.
    pub(crate) awaited_chains: Option<AwaitedChains>,
    /// Processes whose mappings the recorder did not read to the end.
    pub(crate) cut_maps: CutMaps,
    /// When rings lost records, where switches are looked for.
    pub(crate) ring_losses: Vec<RingLoss>,
    /// The CPUs whose running threads are recorded.
    pub(crate) recorded_cpus: RecordedCpus,
    /// The first record of each CPU, where it was asked for.
    pub(crate) first_seen: Option<FirstSeen>,
    /// The threads, CPUs and cgroups of records, where they were asked for.
    pub(crate) census: Option<Census>,
    /// The samples by the code that was executing, where nothing else is wanted of them.
    pub(crate) leaves: Option<LeafSums>,
    /// The settings by which a budget was kept.
    pub(crate) budget: HistoryBuilder,
    /// Readings of the recording's clock and of others.
    pub(crate) clocks: Vec<ClockReading>,
    /// The parts of CPU time that accounts of CPUs have.
    pub(crate) recorded_parts: RecordedParts,
    pub(crate) warnings: Vec<Warning>,
}

impl Scan {
    /// The result before anything is read, of a recording with that number of events.
    fn new(events: usize) -> Scan {
        Scan {
            changes: Vec::new(),
            plans: Vec::new(),
            loss: ScannedLoss::default(),
            samples_by_event: vec![0; events],
            lost_samples_by_event: vec![0; events],
            counts: TypeCounts::default(),
            wrapped: RecordCounts::default(),
            orphan_samples: Skipped::default(),
            unsplit_samples: Skipped::default(),
            malformed: Skipped::default(),
            awaited_chains: None,
            cut_maps: CutMaps::default(),
            ring_losses: Vec::new(),
            recorded_cpus: RecordedCpus::Only(FxHashSet::default()),
            first_seen: None,
            census: None,
            leaves: None,
            budget: HistoryBuilder::default(),
            clocks: Vec::new(),
            recorded_parts: RecordedParts::default(),
            warnings: Vec::new(),
        }
    }

    /// Adds the scan of another stream.
    fn add(&mut self, part: Scan) {
        self.changes.extend(part.changes);
        self.plans.extend(part.plans);
        self.counts.add(&part.counts);
        self.warnings.extend(part.warnings);
        self.budget.merge(part.budget);
        self.clocks.extend(part.clocks);
        self.recorded_parts.merge(part.recorded_parts);
        self.orphan_samples.add(part.orphan_samples);
        self.unsplit_samples.add(part.unsplit_samples);
        self.malformed.add(part.malformed);
        add_all(&mut self.samples_by_event, &part.samples_by_event);
        add_all(&mut self.lost_samples_by_event, &part.lost_samples_by_event);
        let (loss, new) = (&mut self.loss, part.loss);
        loss.lost_records = loss.lost_records.saturating_add(new.lost_records);
        loss.lost_chunks += new.lost_chunks;
        loss.lost_samples = loss.lost_samples.saturating_add(new.lost_samples);
        loss.paused_ns = loss.paused_ns.saturating_add(new.paused_ns);
        loss.rings += new.rings;
        loss.truncated_bytes += new.truncated_bytes;
        self.cut_maps.add(part.cut_maps);
        self.wrapped.add(part.wrapped);
        self.ring_losses.extend(part.ring_losses);
        self.recorded_cpus.add(part.recorded_cpus);
        match (&mut self.first_seen, part.first_seen) {
            (Some(seen), Some(more)) => seen.add(more),
            (seen @ None, more) => *seen = more,
            (Some(_), None) => {}
        }
        if let Some(census) = part.census {
            self.census.get_or_insert_default().merge(census);
        }
        match (&mut self.leaves, part.leaves) {
            (Some(all), Some(new)) => all.merge(new),
            (all, new) => *all = all.take().or(new),
        }
        match (&mut self.awaited_chains, part.awaited_chains) {
            (Some(all), Some(new)) => all.add(new),
            (all, new) => *all = all.take().or(new),
        }
    }

    /// Whether the operating system refused a read.
    pub(crate) fn has_failed(&self) -> bool {
        self.warnings.iter().any(|warning| {
            matches!(warning, Warning::Stream(error) if matches!(**error, StreamError::Io { .. }))
        })
    }
}

/// The parts of the first pass that only some reports need.
#[derive(Clone, Debug)]
pub(crate) struct ScanWanted {
    pub(crate) block_times: BlockTimes,
    /// Filled where it is there.
    pub(crate) first_seen: Option<FirstSeen>,
    pub(crate) census: bool,
    /// Filled where it is there.
    pub(crate) leaves: Option<LeafSums>,
    /// How much of each stack dump the second pass reads at once.
    pub(crate) kept_dump_bytes: usize,
    /// Where samples have counts of other events.
    pub(crate) split: Option<Arc<ReadSplit>>,
}

/// Reads all streams once; several streams in parallel, and several blocks of a stream where there
/// are more threads than streams.
pub(crate) fn scan(
    recording: &Recording,
    events: &EventTable,
    wanted: ScanWanted,
    (threads, max_stack): (usize, usize),
    progress: &Progress<'_>,
) -> Result<Scan, LoadError> {
    let ScanWanted { block_times, first_seen, census, leaves, kept_dump_bytes, split } = wanted;
    let table = Arc::new(events.clone());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let workers = threads.min(recording.streams.len()).max(1);
    let threads_per_stream = threads.div_ceil(workers);
    let identification = RingIdentification::of(recording, events);
    let let_go = recording.features.let_go();
    let overwritten: Vec<bool> =
        recording.events.iter().map(|e| e.attr.has(AttrFlags::WRITE_BACKWARD)).collect();
    let ring_losses = || {
        let wanted = block_times == BlockTimes::NoteSwitches;
        wanted.then(|| RingLosses::new(events, &overwritten))
    };
    let defers = recording.events.iter().any(|event| defers(&event.attr));
    let awaited_chains = || {
        let streams = recording.streams.len();
        defers.then(|| AwaitedChains::new(streams, max_stack))
    };
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(stream) = recording.streams.get(index) else { break done };
            let mut scanner =
                StreamScanner::new(events, stream, block_times, identification, index == 0);
            scanner.ring_losses = ring_losses();
            scanner.ring_times = RingTimes::new(events, identification).apart_from(let_go);
            scanner.scan.first_seen.clone_from(&first_seen);
            scanner.scan.awaited_chains = awaited_chains();
            scanner.scan.census = census.then(Census::default);
            let counter = |sums| LeafCounter::new(sums, &table, threads_per_stream);
            scanner.leaves = leaves.clone().map(counter);
            scanner.is_cut = recording.is_cut;
            scanner.split = split.clone().map(SplitStream::new);
            let (reader, again) = if split.is_some() {
                // Split samples have their dumps elsewhere than the file has them.
                (StreamReader::with_threads(stream.clone(), threads_per_stream), stream.clone())
            } else {
                // Where one reading is all, the file is mapped for it.
                let open = match &leaves {
                    Some(_) => StreamReader::mapped_without_dumps,
                    None => StreamReader::without_dumps,
                };
                let reader = open(stream, &table, threads_per_stream);
                (reader, stream.leaving_out_dumps(&table, kept_dump_bytes))
            };
            done.push((index, scanner.run(reader, again, progress)));
        }
    };
    let mut parts = std::thread::scope(|scope| {
        let handles: Vec<_> = (1..workers).map(|_| scope.spawn(worker)).collect();
        let mut parts = worker();
        for handle in handles {
            parts.extend(handle.join().map_err(|_| LoadError::WorkerDied)?);
        }
        Ok::<_, LoadError>(parts)
    })?;
    parts.sort_by_key(|(index, _)| *index);
    Ok(merge(parts.into_iter().map(|(_, part)| part), events.len()))
}

fn merge(parts: impl Iterator<Item = Scan>, events: usize) -> Scan {
    let mut scan = Scan::new(events);
    parts.for_each(|part| scan.add(part));
    scan.counts.set(record_type::AUXTRACE, scan.wrapped.auxtrace);
    scan.counts.set(record_type::TRACING_DATA, scan.wrapped.tracing_data);
    scan.counts.set(record_type::COMPRESSED, scan.wrapped.compressed);
    scan.counts.set(record_type::COMPRESSED2, scan.wrapped.compressed2);
    // Stable: records of one moment stay in the order in which they were recorded.
    scan.changes.sort_by_key(|change| change.time);
    scan
}

fn add_all(to: &mut [u64], from: &[u64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = to.saturating_add(*from));
}

struct StreamScanner<'e> {
    events: &'e EventTable,
    stream: &'e Stream,
    /// True where samples carry times, to which records without one can be related.
    samples_have_times: bool,
    /// True where all other records of the kernel carry times too.
    others_have_times: bool,
    block_times: BlockTimes,
    /// The findings so far.
    scan: Scan,
    blocks: Vec<PlannedBlock>,
    /// Time of the last record of the blocks before that had one.
    last_time: Option<TimestampNs>,
    ring_times: RingTimes<'e>,
    ring_losses: Option<RingLosses<'e>>,
    leaves: Option<LeafCounter>,
    /// Where samples have counts of other events.
    split: Option<SplitStream>,
    is_first_stream: bool,
    /// The end of the recording is missing, wherever that is.
    is_cut: bool,
}

impl<'e> StreamScanner<'e> {
    fn new(
        events: &'e EventTable,
        stream: &'e Stream,
        block_times: BlockTimes,
        identification: RingIdentification,
        is_first_stream: bool,
    ) -> Self {
        let mut layouts = (0..events.len()).filter_map(|event| events.layout(event));
        let samples_have_times = layouts.clone().any(|l| l.time_offset().is_some());
        StreamScanner {
            events,
            stream,
            samples_have_times,
            others_have_times: layouts.all(|l| l.sample_id_all && l.time_offset().is_some()),
            block_times,
            scan: Scan::new(events.len()),
            blocks: Vec::new(),
            last_time: None,
            ring_times: RingTimes::new(events, identification),
            ring_losses: None,
            leaves: None,
            split: None,
            is_first_stream,
            is_cut: false,
        }
    }

    /// Reads the stream; the second pass reads it as `again`.
    fn run(mut self, mut reader: StreamReader, again: Stream, progress: &Progress<'_>) -> Scan {
        let stream = self.stream;
        let mut block = Vec::new();
        let mut consumed = 0;
        loop {
            match reader.next_block(&mut block) {
                Ok(Some(mut info)) => {
                    let split = self.split.as_mut().map(|split| split.split(&mut info, &mut block));
                    self.scan_block(info, &block);
                    self.count_split(split.unwrap_or_default(), info.position);
                    if let Some(leaves) = &mut self.leaves {
                        block = leaves.add(block);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.scan.loss.truncated_bytes += error.lost_bytes();
                    self.scan.warnings.push(Warning::Stream(Arc::new(error)));
                    break;
                }
            }
            progress.advance(reader.consumed_bytes() - consumed);
            consumed = reader.consumed_bytes();
        }
        if let Some(missing) = reader.truncation() {
            self.scan.loss.truncated_bytes += missing.size_bytes;
            let path = stream.path().to_owned();
            self.scan.warnings.push(Warning::StreamCut { path, missing: Some(missing) });
        }
        if let Some(missing) = reader.holes() {
            self.scan.loss.truncated_bytes += missing.size_bytes;
            self.scan
                .warnings
                .push(Warning::StreamHole { path: stream.path().to_owned(), missing });
        }
        let is_cut = self.is_cut || self.scan.loss.truncated_bytes > 0;
        self.scan.recorded_cpus = match &self.ring_losses {
            Some(losses) => losses.recorded_cpus(),
            None => RecordedCpus::Any,
        };
        self.scan.ring_losses =
            self.ring_losses.map_or_else(Vec::new, |losses| losses.finish(is_cut));
        self.scan.loss.paused_ns = self.ring_times.paused_ns();
        self.scan.loss.rings = self.ring_times.rings();
        self.scan.plans.push(StreamPlan {
            stream: again,
            blocks: self.blocks,
            split: self.split.map(SplitStream::finish),
        });
        self.scan.wrapped = reader.record_counts();
        self.scan.leaves = self.leaves.and_then(LeafCounter::finish);
        self.scan
    }

    /// Records count as they were recorded; of the samples by event, those that were made count.
    fn count_split(&mut self, counts: SplitCounts, position: u64) {
        let SplitCounts { split, made, unknown, left_out } = counts;
        if split > 0 {
            let samples = self.scan.counts.of(record_type::SAMPLE) + split;
            self.scan.counts.set(record_type::SAMPLE, samples.saturating_sub(made));
        }
        (0..unknown).for_each(|_| self.scan.orphan_samples.skip(self.stream, position));
        (0..left_out).for_each(|_| self.scan.unsplit_samples.skip(self.stream, position));
    }

    fn scan_block(&mut self, info: BlockInfo, block: &[u8]) {
        let mut planned = PlannedBlock { info, times: None, has_samples: false };
        if let Some(awaited) = &mut self.scan.awaited_chains {
            awaited.see_block(self.events, block);
        }
        let mut rest = block;
        let mut previous: Option<RawRecord<'_>> = None;
        while let Some((record, tail)) = RawRecord::split(rest) {
            self.scan.counts.count(record.header.kind);
            self.ring_times.see(record);
            if let Some(losses) = &mut self.ring_losses {
                losses.see(record);
            }
            if let Some(first_seen) = &mut self.scan.first_seen {
                first_seen.see(self.events, record);
            }
            if let Some(census) = &mut self.scan.census {
                census.see(self.events, record);
            }
            let position = info.position + (block.len() - rest.len()) as u64;
            match record.header.kind {
                record_type::SAMPLE => self.sample(record, position, &mut planned),
                record_type::CALLCHAIN_DEFERRED => {
                    planned.has_samples |= self.scan.awaited_chains.is_some();
                    if DeferredChain::parse(record.body).is_none() {
                        self.scan.malformed.skip(self.stream, position);
                    }
                }
                kind if self.block_times.takes(kind) => {
                    self.note_time(record, &mut planned);
                    if SideBand::is_decoded(kind) {
                        self.side_band(record, position, previous);
                    }
                }
                kind if SideBand::is_decoded(kind) => {
                    self.side_band(record, position, previous);
                }
                _ => {}
            }
            if self.may_have_time(record.header.kind) {
                previous = Some(record);
            }
            rest = tail;
        }
        self.last_time = self.time_before(previous);
        self.blocks.push(planned);
    }

    #[inline]
    fn sample(&mut self, record: RawRecord<'_>, position: u64, planned: &mut PlannedBlock) {
        planned.has_samples = true;
        let event = self.events.event_of_sample(record.body);
        match event.and_then(|event| self.scan.samples_by_event.get_mut(event)) {
            Some(count) => *count += 1,
            None => self.scan.orphan_samples.skip(self.stream, position),
        }
        if self.block_times != BlockTimes::Skip {
            self.note_time(record, planned);
        }
    }

    #[inline]
    fn note_time(&self, record: RawRecord<'_>, planned: &mut PlannedBlock) {
        planned.has_samples = true;
        if let Some(time) = stated_time(self.events, record) {
            let (first, last) = planned.times.unwrap_or((time, time));
            planned.times = Some((first.min(time), last.max(time)));
        } else if matches!(self.block_times, BlockTimes::NoteRecords(_))
            && record.header.kind != record_type::SAMPLE
        {
            // Records of older processes have no time and stand in front of all others.
            let last = planned.times.map_or(TimestampNs(0), |(_, last)| last);
            planned.times = Some((TimestampNs(0), last));
        }
    }

    fn sample_time(&self, record: RawRecord<'_>) -> Option<TimestampNs> {
        let event = self.events.event_of_sample(record.body)?;
        self.events.layout(event)?.sample_time(record.body)
    }

    fn time_of(&self, record: RawRecord<'_>) -> Option<TimestampNs> {
        if record.header.kind == record_type::SAMPLE {
            self.sample_time(record)
        } else {
            self.events.parse_id_trailer(record).time
        }
    }

    fn may_have_time(&self, kind: u32) -> bool {
        kind == record_type::SAMPLE || (self.others_have_times && kind < record_type::USER_START)
    }

    /// The time of the last record that has one, given the one before.
    fn time_before(&self, previous: Option<RawRecord<'_>>) -> Option<TimestampNs> {
        previous.and_then(|record| self.time_of(record)).or(self.last_time)
    }

    fn side_band(&mut self, record: RawRecord<'_>, position: u64, previous: Option<RawRecord<'_>>) {
        let record = self.events.own(record);
        let Some(side_band) = SideBand::parse(record) else {
            self.scan.malformed.skip(self.stream, position);
            return;
        };
        // Most records are switches, whose trailer says nothing here.
        let id = || self.events.parse_id_trailer(record);
        if let SideBand::Mmap(map) = &side_band {
            self.scan.cut_maps.see(record.header, map.pid);
        }
        match side_band {
            SideBand::Lost { lost, .. } => {
                let loss = &mut self.scan.loss;
                loss.lost_records = loss.lost_records.saturating_add(lost);
                loss.lost_chunks += 1;
            }
            SideBand::LostSamples { lost } => {
                self.scan.loss.lost_samples = self.scan.loss.lost_samples.saturating_add(lost);
                let event = id().id.and_then(|id| self.events.event_of_id(id)).unwrap_or(0);
                if let Some(count) = self.scan.lost_samples_by_event.get_mut(event) {
                    *count = count.saturating_add(lost);
                }
            }
            SideBand::Budget(budget) => {
                self.scan.budget.push(id().time.unwrap_or_default(), &budget)
            }
            SideBand::Clocks(clocks) if self.scan.clocks.len() < MAX_READINGS => {
                self.scan.clocks.push(clocks)
            }
            SideBand::Clocks(_) => {}
            SideBand::CpuAccount(account) => self.scan.recorded_parts.see(&account),
            SideBand::ReadyFile(_) => {}
            _ => {
                let copies_maps = record.header.misc & misc::FORK_EXEC == 0;
                if let Some(change) = to_change(side_band, record, copies_maps) {
                    let stated = id().time.or_else(|| self.time_of_task(&change));
                    let time = stated.unwrap_or_else(|| self.time_by_order(position, previous));
                    self.scan.changes.push(TimedChange { time, change });
                }
            }
        }
    }

    /// A FORK record says when it happened, whatever the layout.
    fn time_of_task(&self, change: &Change) -> Option<TimestampNs> {
        match change {
            Change::Fork { task, .. } if self.samples_have_times && task.time > 0 => {
                Some(TimestampNs(task.time))
            }
            _ => None,
        }
    }

    /// For a record without a time, as before Linux 2.6.38: the order of the file is the order of
    /// events, so it belongs behind the record before.
    fn time_by_order(&self, position: u64, previous: Option<RawRecord<'_>>) -> TimestampNs {
        if self.samples_have_times {
            let before = self.time_before(previous).map_or(0, |time| time.0.saturating_add(1));
            return TimestampNs(before);
        }
        TimestampNs(if self.is_first_stream { position } else { u64::MAX })
    }
}

fn to_change(side_band: SideBand<'_>, record: RawRecord<'_>, copies_maps: bool) -> Option<Change> {
    Some(match side_band {
        SideBand::Mmap(map) => map_change(&map, record),
        SideBand::Comm { pid, tid, name, exec } => {
            Change::Comm { pid, tid, exec, name: name.into() }
        }
        SideBand::Fork(task) => Change::Fork { task, copies_maps },
        SideBand::Cgroup { id, path } => Change::Cgroup { number: id, path: path.into() },
        SideBand::Function(function) => Change::Function(Box::new(function.function())),
        SideBand::Ksymbol { start, len_bytes, flags, name, .. } if flags & 1 == 0 => {
            Change::KernelSymbol { start, len_bytes, name: name.into() }
        }
        _ => return None,
    })
}

fn map_change(map: &Mmap<'_>, record: RawRecord<'_>) -> Change {
    Change::Map {
        pid: map.pid,
        start: map.start,
        len_bytes: map.len_bytes,
        file_offset: map.page_offset,
        build_id: match map.file_id {
            MappedFileId::BuildId(id) => Some(id),
            _ => None,
        },
        file: match map.file_id {
            MappedFileId::Inode { major, minor, inode, .. } if inode != 0 => {
                Some(FileId { device: (major, minor), inode })
            }
            _ => None,
        },
        kernel: record.header.cpu_mode() == misc::KERNEL || map.pid.0 == -1,
        executable: map.executable,
        path: map.path.into(),
    }
}
