//! A reader: owns rings and drains them into a stream of its own. It shares nothing, so that any
//! number of them run at the same time.

use std::time::Instant;

use whit_engine_api::open_event::{Instance, InstanceIndex, OpenEvent};
use whit_engine_api::ring_slices::RingSlices;
use whit_engine_api::rings::{AnyRing, MappedRing};
use whit_engine_api::time_layout::TimeLayout;
use whit_engine_api::{DecodeCounts, RecordDecoder};
use whit_perfdata::attr::Attr;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::loss::PausedTime;
use whit_perfdata::record::record_type;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_sys::{Ring, affinity};
use whit_types::{CpuId, TimestampNs};

use crate::loss::{Mappings, RingCounts, RingWatch, ScannedRecords};
use crate::mapped_files::{FreshFile, MappedFiles};
use crate::ring_clock::RecordClock;
use crate::stream::{Sink, SinkError, StreamSink};

/// Bytes of a ring that are decoded at once; the ring has its space back then.
const DECODED_BYTES: usize = 64 << 10;
/// A ring is drained when it holds a quarter of its size at the latest.
const FLUSH_SHARE: usize = 4;
/// Most sideband that is kept for the next output.
const JOURNAL_BYTES_MAX: usize = 64 << 20;

/// Rings that are drained from the same CPUs.
#[derive(Debug)]
struct Group {
    /// The CPUs to run on meanwhile; `None` where that is no matter.
    place: Option<Vec<CpuId>>,
    rings: Vec<Watched>,
}

/// A ring that is drained.
#[derive(Debug)]
struct Watched {
    ring: MappedRing,
    watch: RingWatch,
    /// Makes ordinary records of those that the engine wrote.
    decoder: Option<Box<dyn RecordDecoder>>,
    /// Records that were reported as lost into earlier outputs.
    lost_before: u64,
    /// When something was last taken from it.
    drained: Option<Instant>,
}

impl Watched {
    /// Whether the waiting bytes are worth a drain: enough by the size of the ring, and at least a
    /// minimum for rings of any size.
    fn is_worth(&self, flush_bytes: usize, least_bytes: usize) -> bool {
        let quarter = self.ring.ring.data_size_bytes() / FLUSH_SHARE;
        self.available_bytes() >= flush_bytes.min(quarter).max(least_bytes)
    }

    /// Bytes that wait; a ring that is overwritten never has any.
    fn available_bytes(&self) -> usize {
        let outside = self.decoder.as_ref().map_or(0, |decoder| decoder.available_bytes());
        match &self.ring.ring {
            AnyRing::Forward(ring) => ring.available_bytes() + outside,
            AnyRing::Backward(_) => 0,
        }
    }
}

/// Sideband that was drained while the next output was being prepared: it may be newer than the
/// data from `/proc`, and stands in the old output only.
#[derive(Debug, Default)]
pub struct Journal {
    /// Whole records.
    pub records: Vec<u8>,
    /// Whether there were more than could be kept.
    pub is_cut: bool,
    scratch: Vec<u8>,
}

/// Which rings a pass drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Those that hold at least `--mmap-flush` bytes.
    WorthWhile,
    /// Those that hold at least so much.
    AtLeast(usize),
    /// All that hold something.
    Everything,
}

/// Drains a set of rings.
#[derive(Debug)]
pub struct RingDrainer {
    groups: Vec<Group>,
    /// Where the thread runs now, as far as it was moved.
    here: Option<usize>,
    /// Least that is worth taking from a ring.
    flush_bytes: usize,
    /// Whether passes are marked in the stream, for readers of recordings that sort by them. Only
    /// the one reader of a recording can do that.
    marks_rounds: bool,
    /// Whether sideband is being kept for the next output.
    journal: Option<Journal>,
    clock: RecordClock,
}

/// Options of one reader.
#[derive(Clone, Copy, Debug)]
pub struct RingDrainerOptions {
    /// Least that is worth taking from a ring, `--mmap-flush`; of a small one, a quarter of it.
    pub flush_bytes: usize,
    /// Whether to end each pass that leaves nothing in any ring with a FINISHED_ROUND record.
    pub marks_rounds: bool,
    /// The use of their mapping records.
    pub mappings: Mappings,
}

impl RingDrainer {
    /// A reader of these rings. `place` says on which CPUs to drain a ring.
    pub fn new(
        rings: Vec<MappedRing>,
        layout: TimeLayout,
        options: RingDrainerOptions,
        place: impl Fn(&MappedRing) -> Option<Vec<CpuId>>,
        decoder: impl Fn(&MappedRing) -> Option<Box<dyn RecordDecoder>>,
    ) -> RingDrainer {
        let mut groups: Vec<Group> = Vec::new();
        for ring in rings {
            let place = place(&ring);
            let decoder = decoder(&ring);
            let watch = RingWatch::new(layout, options.mappings);
            let ring = Watched { ring, watch, decoder, lost_before: 0, drained: None };
            match groups.iter_mut().find(|group| group.place == place) {
                Some(group) => group.rings.push(ring),
                None => groups.push(Group { place, rings: vec![ring] }),
            }
        }
        let RingDrainerOptions { flush_bytes, marks_rounds, .. } = options;
        RingDrainer {
            groups,
            here: None,
            flush_bytes,
            marks_rounds,
            journal: None,
            clock: RecordClock::default(),
        }
    }

    /// Drains every ring once. Gives the number of bytes taken.
    pub fn pass(&mut self, sink: &mut StreamSink, which: Pass) -> Result<u64, SinkError> {
        let (flush, least) = match which {
            Pass::WorthWhile => (self.flush_bytes, 1),
            Pass::AtLeast(bytes) => (self.flush_bytes, bytes),
            Pass::Everything => (0, 1),
        };
        let (mut bytes, mut is_whole) = (0, true);
        for index in 0..self.groups.len() {
            let group = &self.groups[index];
            if !group.rings.iter().any(|ring| ring.is_worth(flush, least)) {
                is_whole &= group.rings.iter().all(|ring| ring.available_bytes() == 0);
                continue;
            }
            self.go_to(index);
            for watched in &mut self.groups[index].rings {
                if !watched.is_worth(flush, least) {
                    is_whole &= watched.available_bytes() == 0;
                    continue;
                }
                let AnyRing::Forward(ring) = &mut watched.ring.ring else { continue };
                let (watch, journal) = (&mut watched.watch, self.journal.as_mut());
                bytes += match &mut watched.decoder {
                    None => drain(ring, watch, sink, journal)?,
                    Some(decoder) => drain_decoded(ring, decoder.as_mut(), watch, sink, journal)?,
                };
                let now = Instant::now();
                watched.drained = Some(now);
                if let Some(last) = watched.watch.counts.last_record {
                    self.clock.see(now, last);
                }
            }
        }
        self.end_pass(bytes, is_whole, sink)
    }

    /// Records that are left in a ring may be older than those that were taken from others, so no mark may stand
    /// between them.
    fn end_pass(
        &self,
        bytes: u64,
        is_whole: bool,
        sink: &mut StreamSink,
    ) -> Result<u64, SinkError> {
        if bytes > 0 {
            if self.marks_rounds && is_whole {
                sink.round()?;
            }
            sink.flush()?;
        }
        Ok(bytes)
    }

    /// Takes the new records of the rings that are overwritten. Gives the number of bytes taken.
    pub fn snapshot(
        &mut self,
        sink: &mut StreamSink,
        events: &[OpenEvent],
    ) -> Result<u64, SinkError> {
        let mut bytes = 0;
        for watched in self.groups.iter_mut().flat_map(|group| &mut group.rings) {
            let Watched { ring, watch, .. } = watched;
            let owner = ring.members.first().map(|member| member.of(events));
            let (AnyRing::Backward(backward), Some(owner)) = (&mut ring.ring, owner) else {
                continue;
            };
            // A refusal means that the ring is gone with its task; its records can still be read.
            let _ = owner.fd.pause_output(true);
            let mut newest_first = Vec::new();
            let is_whole = backward.copy_new(&mut newest_first);
            let _ = owner.fd.pause_output(false);
            let records = oldest_first(&newest_first);
            if let (false, Some(since)) = (is_whole, watch.counts.last_record) {
                let first = watch.time_of_first(&records);
                sink.records(&gap(since, first, owner, layout_of(ring, events)))?;
            }
            bytes += take(&records, watch, sink, None)?;
        }
        self.end_pass(bytes, true, sink)
    }

    /// Marks that all records of the rings are in the stream by now, where it has marks.
    pub fn mark(&self, number: u64, sink: &mut StreamSink) -> Result<(), SinkError> {
        if self.marks_rounds { sink.round_of(number) } else { Ok(()) }
    }

    /// Later records go into another stream.
    pub fn start_stream(&mut self) {
        let rings = self.groups.iter_mut().flat_map(|group| &mut group.rings);
        rings
            .filter_map(|watched| watched.decoder.as_mut())
            .for_each(|decoder| decoder.start_stream());
    }

    /// Keeps sideband from now on, or no longer.
    pub fn keep_journal(&mut self, keep: bool) {
        match (keep, &self.journal) {
            (true, None) => self.journal = Some(Journal::default()),
            (true, Some(_)) => {}
            (false, _) => self.journal = None,
        }
    }

    /// The sideband that was kept.
    pub fn take_journal(&mut self) -> Journal {
        self.journal.take().unwrap_or_default()
    }

    /// Takes the counts of each ring since the last call. Reported losses are remembered.
    pub fn take_counts(&mut self) -> Vec<RingCounts> {
        let all = self.groups.iter_mut().flat_map(|group| &mut group.rings);
        all.map(|watched| {
            watched.lost_before += watched.watch.counts.lost_records;
            watched.watch.take_counts()
        })
        .collect()
    }

    /// Moves the thread to the CPUs of a group. A CPU that has gone offline is drained from
    /// wherever the thread is.
    fn go_to(&mut self, index: usize) {
        if self.here == Some(index) {
            return;
        }
        if let Some(cpus) = &self.groups[index].place
            && affinity::set(0, cpus).is_ok()
        {
            self.here = Some(index);
        }
    }

    /// Samples since the counts were taken.
    pub(crate) fn samples(&self) -> u64 {
        let rings = self.groups.iter().flat_map(|group| &group.rings);
        rings.map(|watched| watched.watch.counts.samples).sum()
    }

    /// Files that were mapped as code since the recording began, as far as these rings tell.
    pub fn mapped_files(&self) -> MappedFiles {
        let mut all = MappedFiles::default();
        let rings = self.groups.iter().flat_map(|group| &group.rings);
        rings.for_each(|watched| all.merge(&watched.watch.mapped));
        all
    }

    /// Files that are new in records of the rings since the last call.
    pub(crate) fn take_fresh_files(&mut self) -> impl Iterator<Item = FreshFile> {
        let rings = self.groups.iter_mut().flat_map(|group| &mut group.rings);
        rings.flat_map(|watched| watched.watch.mapped.take_fresh())
    }

    /// Counts of the records that the engine wrote.
    pub fn decode_counts(&self) -> DecodeCounts {
        let rings = self.groups.iter().flat_map(|group| &group.rings);
        let decoders = rings.filter_map(|watched| watched.decoder.as_ref());
        let mut sum = DecodeCounts::default();
        decoders.for_each(|decoder| sum += decoder.counts());
        sum
    }

    /// The clock of the records.
    pub(crate) fn clock(&self) -> RecordClock {
        self.clock
    }

    /// Each ring as its records left it.
    pub fn ring_ends(&self) -> Vec<RingEnd> {
        let rings = self.groups.iter().flat_map(|group| &group.rings);
        let end = |watched: &Watched| {
            let Watched { ring, watch, decoder, lost_before, drained } = watched;
            // The channel's losses are among the reported ones; the kernel does not count them.
            let (lost_switches, last_record) = match decoder {
                Some(decoder) => (decoder.counts().lost_switches, Some(decoder.ring_time())),
                None => (0, watch.counts.last_record),
            };
            let reported = lost_before + watch.counts.lost_records;
            RingEnd {
                members: ring.members.clone(),
                cpu: ring.cpu,
                is_backward: ring.ring.is_backward(),
                reported: reported.saturating_sub(lost_switches),
                last_record: last_record.unwrap_or_default(),
                drained: *drained,
                paused: watch.paused().clone(),
                lost_switches,
                last_switch: decoder.as_ref().and_then(|decoder| decoder.last_outside()),
            }
        };
        rings.map(end).collect()
    }
}

/// How records name the CPU where it can be any.
pub(crate) const ANY_CPU: CpuId = CpuId(u32::MAX);

/// A ring as its records left it when it was drained last.
#[derive(Clone, Debug)]
pub struct RingEnd {
    /// Those of [`MappedRing`].
    pub members: Vec<InstanceIndex>,
    /// The CPU; `None` is any.
    pub cpu: Option<CpuId>,
    /// Whether the kernel overwrites unread records.
    pub is_backward: bool,
    /// Records that its LOST records have reported as lost.
    pub reported: u64,
    /// Time of its last record; 0 without any.
    pub last_record: TimestampNs,
    /// When something was last taken from it.
    pub drained: Option<Instant>,
    /// The time during which it was full, by its records.
    pub paused: PausedTime,
    /// Records that were reported as lost from the channel beside it.
    pub lost_switches: u64,
    /// Time of the channel's last switch, where there is a channel.
    pub last_switch: Option<TimestampNs>,
}

impl Journal {
    fn keep(&mut self, ring_slices: RingSlices<'_>) {
        for seen in ring_slices.records_from(0).filter(|seen| is_side_band(seen.kind)) {
            if self.records.len() + seen.size > JOURNAL_BYTES_MAX {
                self.is_cut = true;
                return;
            }
            self.records.extend_from_slice(ring_slices.bytes_of(seen, &mut self.scratch));
        }
    }
}

/// Records that say which thread runs which code: every output needs them.
fn is_side_band(kind: u32) -> bool {
    matches!(
        kind,
        record_type::MMAP
            | record_type::MMAP2
            | record_type::COMM
            | record_type::FORK
            | record_type::EXIT
            | record_type::KSYMBOL
            | record_type::BPF_EVENT
            | record_type::NAMESPACES
            | record_type::CGROUP
            | record_type::TEXT_POKE
    )
}

/// A record of a window in which records were overwritten since the snapshot before. That is no loss, so the
/// record counts none.
fn gap(
    since: TimestampNs,
    until: Option<TimestampNs>,
    owner: &Instance,
    layout: SampleLayout,
) -> Vec<u8> {
    let mut out = Vec::new();
    let id = SampleId {
        pid_tid: None,
        time: until,
        id: Some(owner.id),
        cpu: Some(owner.cpu.unwrap_or(ANY_CPU)),
    };
    RecordEncoder::new(layout).lost_samples(&mut out, 0, Some(since), id);
    out
}

/// How the records of a ring end.
fn layout_of(ring: &MappedRing, events: &[OpenEvent]) -> SampleLayout {
    let attr = ring.members.first().map(|member| &events[member.event].event.attr);
    SampleLayout::new(attr.unwrap_or(&Attr::default()))
}

/// Records that stand newest first, the last one possibly cut, in the order of time.
fn oldest_first(newest_first: &[u8]) -> Vec<u8> {
    let ring_slices = RingSlices([newest_first, &[]]);
    let records: Vec<_> =
        ring_slices.records_from(0).map(|seen| seen.at..seen.at + seen.size).collect();
    let mut out = Vec::with_capacity(newest_first.len());
    records.into_iter().rev().for_each(|range| out.extend_from_slice(&newest_first[range]));
    out
}

/// Takes records that stand in memory.
fn take(
    records: &[u8],
    watch: &mut RingWatch,
    sink: &mut StreamSink,
    mut journal: Option<&mut Journal>,
) -> Result<u64, SinkError> {
    let mut at = 0;
    while at < records.len() {
        let (size_bytes, result) =
            take_piece([&records[at..], &[]], watch, sink, journal.as_deref_mut());
        at += size_bytes;
        result?;
    }
    Ok(records.len() as u64)
}

/// Takes everything that is in a ring now, in pieces that the sink likes; each gives its space
/// back at once.
fn drain(
    ring: &mut Ring,
    watch: &mut RingWatch,
    sink: &mut StreamSink,
    mut journal: Option<&mut Journal>,
) -> Result<u64, SinkError> {
    let mut read = ring.read();
    let mut bytes = 0;
    while !read.is_empty() {
        let (size_bytes, result) = take_piece(read.slices(), watch, sink, journal.as_deref_mut());
        read.release_bytes(size_bytes);
        bytes += size_bytes as u64;
        result?;
    }
    Ok(bytes)
}

/// Takes as many records as the sink likes at once. Gives their bytes.
fn take_piece(
    slices: [&[u8]; 2],
    watch: &mut RingWatch,
    sink: &mut StreamSink,
    journal: Option<&mut Journal>,
) -> (usize, Result<(), SinkError>) {
    let scanned = watch.observe(slices, sink.chunk_bytes());
    let restored = watch.restored(&scanned);
    let own = restored.as_ref().map_or(scanned, |record| ScannedRecords::of([record, &[]]));
    if let Some(journal) = journal {
        journal.keep(own.ring_slices());
    }
    (scanned.size_bytes(), sink.take(own))
}

/// The same for a ring that the engine writes into: the stream gets the decoded records.
fn drain_decoded(
    ring: &mut Ring,
    decoder: &mut dyn RecordDecoder,
    watch: &mut RingWatch,
    sink: &mut StreamSink,
    mut journal: Option<&mut Journal>,
) -> Result<u64, SinkError> {
    let mut bytes = decoder.available_bytes() as u64;
    let mut out = Vec::new();
    let mut read = ring.read();
    // In this order, so that all older records of the channel stand in front of each record of the ring. Where the
    // recording is cut, nothing older than its last record is missing.
    decoder.look();
    while !read.is_empty() {
        out.clear();
        let taken = decoder.decode(RingSlices(read.slices()), DECODED_BYTES, &mut out);
        read.release_bytes(taken);
        bytes += taken as u64;
        take(&out, watch, sink, journal.as_deref_mut())?;
    }
    loop {
        out.clear();
        let is_more = decoder.rest(DECODED_BYTES, &mut out);
        take(&out, watch, sink, None)?;
        if !is_more {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::encode::push_record;

    fn records(kinds: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            push_record(&mut out, *kind, 0, &vec![number as u8; 8 * (number % 3 + 1)]);
        }
        out
    }

    fn kinds(bytes: &[u8]) -> Vec<u32> {
        RingSlices([bytes, &[]]).records_from(0).map(|seen| seen.kind).collect()
    }

    #[test]
    fn journals_keep_the_side_band_across_the_seam() {
        use record_type::{COMM, EXIT, LOST, MMAP2, SAMPLE, SWITCH};
        let all = records(&[SAMPLE, COMM, LOST, MMAP2, SAMPLE, SWITCH, EXIT]);
        for seam in (0..=all.len()).step_by(8) {
            let mut journal = Journal::default();
            journal.keep(RingSlices([&all[..seam], &all[seam..]]));
            assert_eq!(kinds(&journal.records), [COMM, MMAP2, EXIT], "seam {seam}");
            assert!(!journal.is_cut);
        }
    }

    #[test]
    fn snapshots_come_in_the_order_of_time_without_the_record_that_is_cut() {
        let newest_first = records(&[5, 4, 3, 2]);
        assert_eq!(kinds(&oldest_first(&newest_first)), [2, 3, 4, 5]);
        assert_eq!(kinds(&oldest_first(&newest_first[..newest_first.len() - 8])), [3, 4, 5]);
        // A part of the ring that was never written.
        let with_zeros = [&newest_first[..], &[0; 64]].concat();
        assert_eq!(kinds(&oldest_first(&with_zeros)), [2, 3, 4, 5]);
        assert!(oldest_first(&[]).is_empty());
    }
}
