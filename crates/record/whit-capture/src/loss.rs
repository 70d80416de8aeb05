//! Looks at the records that pass: counts samples, finds losses, keeps the time of the last record.
//!
//! The kernel writes a LOST record into a ring as soon as there is room again after it had to
//! drop records, stamped with that moment. The ring was therefore *paused* from the record before
//! the LOST record to the LOST record itself, unless that says since when ([`whit_perfdata::loss`]).
//! Data loss is paused time over recorded time. A channel of the BPF engine is drained with the ring of its
//! CPU and counts as a part of it: the ring is paused while either is full.
//!
//! Only headers are read, the ids of samples, and the time of two records per look and two per LOST
//! record: the cost is one line of the cache per record.

use whit_engine_api::ring_slices::{RecordRef, RingSlices};
use whit_engine_api::time_layout::TimeLayout;
use whit_perfdata::loss::PausedTime;
use whit_perfdata::packed;
use whit_perfdata::record::{HEADER_SIZE_BYTES, misc, record_type};
use whit_types::TimestampNs;

use crate::mapped_files::MappedFiles;

/// Counts of one ring so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Whole records, headers included.
    pub bytes: u64,
    /// Records of any type.
    pub records: u64,
    /// Records of the type SAMPLE; a packed one counts as the samples that it holds.
    pub samples: u64,
    /// Records that LOST records report as dropped.
    pub lost_records: u64,
    /// Samples that LOST_SAMPLES records report as dropped before they reached a ring.
    pub lost_samples: u64,
    /// Time during which the ring was full.
    pub paused_ns: u64,
    /// Time of the first sample.
    pub first_sample: Option<TimestampNs>,
    /// Time of the last sample.
    pub last_sample: Option<TimestampNs>,
    /// Time of the last record.
    pub last_record: Option<TimestampNs>,
    /// Bytes that could not be read as records; the kernel writes none.
    pub unreadable_bytes: u64,
}

/// Whole records in up to two pieces, and how many they are.
///
/// Only this module makes one, and counts the records itself: no sink can book other records than it writes.
#[derive(Clone, Copy, Debug)]
pub struct ScannedRecords<'a> {
    ring_slices: RingSlices<'a>,
    tally: Tally,
}

impl<'a> ScannedRecords<'a> {
    /// All of these, which were no ring's or were scanned before.
    pub fn of(slices: [&'a [u8]; 2]) -> ScannedRecords<'a> {
        let ring_slices = RingSlices(slices);
        ScannedRecords { ring_slices, tally: Tally::among(ring_slices) }
    }

    /// The same in pieces that end at the first whole record behind `enough_bytes`. A rest that is no whole record
    /// is left out.
    pub(crate) fn pieces(
        bytes: &'a [u8],
        enough_bytes: usize,
    ) -> impl Iterator<Item = ScannedRecords<'a>> {
        let mut records = RingSlices([bytes, &[]]).records_from(0);
        std::iter::from_fn(move || {
            let first = records.next()?;
            let mut end = first.at + first.size;
            while end - first.at < enough_bytes
                && let Some(seen) = records.next()
            {
                end = seen.at + seen.size;
            }
            Some(ScannedRecords::of([&bytes[first.at..end], &[]]))
        })
    }

    /// A record of the recorder's own that no one counts and no one can lose.
    pub(crate) fn mark(record: &'a [u8]) -> ScannedRecords<'a> {
        ScannedRecords { ring_slices: RingSlices([record, &[]]), tally: Tally::default() }
    }

    /// The bytes.
    pub fn slices(&self) -> [&'a [u8]; 2] {
        self.ring_slices.0
    }

    /// The same as one row of records.
    pub(crate) fn ring_slices(&self) -> RingSlices<'a> {
        self.ring_slices
    }

    /// Their number of bytes.
    pub fn size_bytes(&self) -> usize {
        self.ring_slices.size_bytes()
    }

    /// The counts.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

/// How much there is of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records of any type.
    pub records: u64,
    /// Samples among them.
    pub samples: u64,
}

impl Tally {
    /// Counts whole records.
    pub fn of(bytes: &[u8]) -> Tally {
        Tally::among(RingSlices([bytes, &[]]))
    }

    fn among(ring_slices: RingSlices<'_>) -> Tally {
        let mut tally = Tally::default();
        ring_slices.records_from(0).for_each(|seen| tally += Tally::of_record(&ring_slices, seen));
        tally
    }

    /// Counts one record: a packed one counts as the records that it holds.
    fn of_record(ring_slices: &RingSlices<'_>, seen: RecordRef) -> Tally {
        match packed_tally(ring_slices, seen) {
            Some((tally, _)) => tally,
            None => Tally { records: 1, samples: u64::from(seen.kind == record_type::SAMPLE) },
        }
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.records += other.records;
        self.samples += other.samples;
    }
}

impl std::ops::SubAssign for Tally {
    fn sub_assign(&mut self, other: Tally) {
        self.records -= other.records;
        self.samples -= other.samples;
    }
}

/// The counts of a packed record, and the time of its first switch; `None` for all others. For those, it
/// looks at no more than the id: the end of a sample may be far away.
fn packed_tally(ring_slices: &RingSlices<'_>, seen: RecordRef) -> Option<(Tally, TimestampNs)> {
    if seen.kind != record_type::SAMPLE
        || ring_slices.word(seen.at + HEADER_SIZE_BYTES) != Some(packed::PACKED_ID)
    {
        return None;
    }
    let tail = (seen.at + seen.size).checked_sub(packed::TAIL_BYTES)?;
    let (records, samples) = packed::tally(ring_slices.word(tail + 8)?);
    Some((Tally { records, samples }, TimestampNs(ring_slices.word(tail)?)))
}

/// The mapping records of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Mappings {
    /// The events ask the kernel for build ids in them.
    pub have_build_ids: bool,
    /// An output describes their files. Where none does, nothing is remembered of files and processes: a recorder that
    /// runs for months would see ever more of them.
    pub are_described: bool,
}

/// Watches one ring.
#[derive(Clone, Debug)]
pub struct RingWatch {
    layout: TimeLayout,
    mappings: Mappings,
    /// Counts since the start or the last call of [`Self::take_counts`].
    pub counts: RingCounts,
    /// Files that were mapped as code.
    pub mapped: MappedFiles,
    paused: PausedTime,
    scratch: Vec<u8>,
}

impl RingWatch {
    /// For a ring whose records have this layout.
    pub fn new(layout: TimeLayout, mappings: Mappings) -> RingWatch {
        let (counts, mapped) = (RingCounts::default(), MappedFiles::default());
        let (paused, scratch) = (PausedTime::default(), Vec::new());
        RingWatch { layout, mappings, counts, mapped, paused, scratch }
    }

    /// Takes the counts since the last call.
    pub fn take_counts(&mut self) -> RingCounts {
        // A loss that is reported into the next output began behind the last record of this one.
        let fresh = RingCounts { last_record: self.counts.last_record, ..RingCounts::default() };
        std::mem::replace(&mut self.counts, fresh)
    }

    /// Scans a ring's bytes, record by record, until these are at least `enough_bytes`. Gives them; bytes that are no
    /// records are among them. A record with traces of other recorders comes alone, and is restored before it is written.
    pub fn observe<'a>(
        &mut self,
        slices: [&'a [u8]; 2],
        enough_bytes: usize,
    ) -> ScannedRecords<'a> {
        let ring_slices = RingSlices(slices);
        let (mut last, mut last_sample) = (None, None);
        let mut tally = Tally::default();
        let mut at = 0;
        while at < ring_slices.size_bytes().min(enough_bytes) {
            let Some(seen) = ring_slices.record_at(at) else {
                self.counts.unreadable_bytes += (ring_slices.size_bytes() - at) as u64;
                at = ring_slices.size_bytes();
                break;
            };
            let has_traces = self.has_traces(&ring_slices, seen);
            if has_traces && at > 0 {
                break;
            }
            match seen.kind {
                record_type::SAMPLE => {
                    if self.mappings.are_described {
                        self.note_process(&ring_slices, seen);
                    }
                    if self.counts.first_sample.is_none() {
                        let packed = packed_tally(&ring_slices, seen).map(|(_, first)| first);
                        self.counts.first_sample = packed.or_else(|| self.time(&ring_slices, seen));
                    }
                    last_sample = Some(seen);
                }
                record_type::LOST => self.lost(&ring_slices, seen, last),
                record_type::LOST_SAMPLES => {
                    let lost = ring_slices.word(at + HEADER_SIZE_BYTES).unwrap_or(0);
                    self.counts.lost_samples += lost;
                }
                record_type::FORK if self.mappings.are_described => {
                    let word = ring_slices.word(at + HEADER_SIZE_BYTES).unwrap_or(0);
                    self.mapped.processes.note_fork(word as u32, (word >> 32) as u32);
                }
                record_type::MMAP2 if self.mappings.are_described => {
                    let record = ring_slices.bytes_of(seen, &mut self.scratch);
                    let bits = u16::from_le_bytes([record[4], record[5]]);
                    // Without that, the bit is another recorder's.
                    if !(self.mappings.have_build_ids && bits & misc::MMAP_BUILD_ID != 0) {
                        self.mapped.note(&record[HEADER_SIZE_BYTES..]);
                    }
                }
                _ => {}
            }
            tally += Tally::of_record(&ring_slices, seen);
            at += seen.size;
            last = Some(seen);
            if has_traces {
                break;
            }
        }
        self.counts.bytes += at as u64;
        self.counts.records += tally.records;
        self.counts.samples += tally.samples;
        let time = |seen: Option<RecordRef>| self.time(&ring_slices, seen?);
        let (last, last_sample) = (time(last), time(last_sample));
        self.counts.last_record = last.or(self.counts.last_record);
        self.counts.last_sample = last_sample.or(self.counts.last_sample);
        ScannedRecords { ring_slices: RingSlices(ring_slices.first(at)), tally }
    }

    /// Whether the kernel has left something of other recorders in a record ([`whit_perfdata::shared_record`]).
    #[inline]
    fn has_traces(&self, ring_slices: &RingSlices<'_>, seen: RecordRef) -> bool {
        let has_build_id_bit = || {
            let bits = ring_slices.word(seen.at).map_or(0, |header| (header >> 32) as u16);
            bits & misc::MMAP_BUILD_ID != 0
        };
        match seen.kind {
            record_type::MMAP2 => !self.mappings.have_build_ids && has_build_id_bit(),
            _ => self.layout.own_size(ring_slices, seen) < seen.size,
        }
    }

    /// The record without traces of other recorders, where `scanned` is one that has some. Stock perf believes all of a
    /// record, and looks for the id of its event at the end.
    pub(crate) fn restored(&self, scanned: &ScannedRecords<'_>) -> Option<Vec<u8>> {
        let ring_slices = scanned.ring_slices();
        let seen = ring_slices.record_at(0).filter(|seen| self.has_traces(&ring_slices, *seen))?;
        let size = self.layout.own_size(&ring_slices, seen);
        let mut record = ring_slices.first(size).concat();
        if seen.kind == record_type::MMAP2 {
            let bits = u16::from_le_bytes([record[4], record[5]]) & !misc::MMAP_BUILD_ID;
            record[4..6].copy_from_slice(&bits.to_le_bytes());
        }
        record[6..HEADER_SIZE_BYTES].copy_from_slice(&(size as u16).to_le_bytes());
        Some(record)
    }

    fn note_process(&mut self, ring_slices: &RingSlices<'_>, seen: RecordRef) {
        let processes = &mut self.mapped.processes;
        match self.layout.process(ring_slices, seen) {
            Some(pid) if processes.is_last(pid) => {}
            // A packed one holds switches of any processes.
            Some(pid) if packed_tally(ring_slices, seen).is_none() => processes.note(pid),
            _ => processes.note_all(),
        }
    }

    fn lost(&mut self, ring_slices: &RingSlices<'_>, seen: RecordRef, before: Option<RecordRef>) {
        // Body: id, then the number of records.
        let lost = ring_slices.word(seen.at + HEADER_SIZE_BYTES + 8).unwrap_or(0);
        self.counts.lost_records += lost;
        let since = self.layout.loss_since(ring_slices, seen).or_else(|| match before {
            Some(before) => self.time(ring_slices, before),
            None => self.counts.last_record,
        });
        // Time 0 says that nobody knows.
        if let (1.., Some(since), Some(now)) = (lost, since, self.time(ring_slices, seen))
            && since.0 > 0
        {
            self.counts.paused_ns += self.paused.add(since, now);
        }
    }

    /// The time during which the ring was full.
    pub(crate) fn paused(&self) -> &PausedTime {
        &self.paused
    }

    /// The time of the first of some records.
    pub(crate) fn time_of_first(&self, records: &[u8]) -> Option<TimestampNs> {
        let ring_slices = RingSlices([records, &[]]);
        self.time(&ring_slices, ring_slices.record_at(0)?)
    }

    fn time(&self, ring_slices: &RingSlices<'_>, seen: RecordRef) -> Option<TimestampNs> {
        self.layout.time(ring_slices, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled::SampledProcesses;
    use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
    use whit_perfdata::encode::push_record;
    use whit_perfdata::packed::{Numbers, Origin, Packer, Switch};
    use whit_perfdata::record::PROT_EXEC;

    fn watch() -> RingWatch {
        let sample_type = SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::IDENTIFIER;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        let mappings = Mappings { have_build_ids: false, are_described: true };
        RingWatch::new(TimeLayout::new(&Attr { sample_type, flags, ..Attr::default() }), mappings)
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn sample(out: &mut Vec<u8>, time: u64) {
        // identifier, ip, pid/tid, time, cpu.
        push_record(out, record_type::SAMPLE, 0, &words(&[7, 0x1000, 1, time, 0]));
    }

    fn lost(out: &mut Vec<u8>, count: u64, time: u64) {
        // id, lost; trailer: pid/tid, time, cpu, identifier.
        push_record(out, record_type::LOST, 0, &words(&[7, count, 1, time, 0, 7]));
    }

    fn recorded() -> Vec<u8> {
        let mut bytes = Vec::new();
        sample(&mut bytes, 100);
        sample(&mut bytes, 200);
        lost(&mut bytes, 5, 350);
        sample(&mut bytes, 360);
        // A FORK-like record with a trailer.
        push_record(&mut bytes, record_type::COMM, 0, &words(&[1, 2, 1, 400, 0, 7]));
        lost(&mut bytes, 2, 420);
        bytes
    }

    #[test]
    fn losses_are_counted_and_timed() {
        let mut watch = watch();
        let bytes = recorded();
        let scanned = watch.observe([&bytes, &[]], usize::MAX);
        assert_eq!(scanned.size_bytes(), bytes.len());
        assert_eq!(scanned.tally(), Tally { records: 6, samples: 3 });
        assert_eq!(scanned.tally(), Tally::of(&bytes));
        let counts = watch.counts;
        assert_eq!((counts.samples, counts.records, counts.lost_records), (3, 6, 7));
        assert_eq!(counts.bytes, bytes.len() as u64);
        assert_eq!(counts.paused_ns, (350 - 200) + (420 - 400));
        assert_eq!(counts.first_sample, Some(TimestampNs(100)));
        assert_eq!(counts.last_sample, Some(TimestampNs(360)));
        assert_eq!(counts.last_record, Some(TimestampNs(420)));
        assert_eq!(counts.unreadable_bytes, 0);
    }

    /// A loss beside the ring, and one that its record says the beginning of.
    fn lost_since(out: &mut Vec<u8>, count: u64, since: u64, time: u64) {
        push_record(out, record_type::LOST, 0, &words(&[7, count, since, 1, time, 0, 7]));
    }

    #[test]
    fn a_loss_that_says_since_when_counts_from_then_on_and_no_moment_counts_twice() {
        let mut bytes = Vec::new();
        sample(&mut bytes, 100);
        sample(&mut bytes, 300);
        lost_since(&mut bytes, 5, 150, 310);
        lost_since(&mut bytes, 5, 250, 350);
        // Nothing was lost, and nobody knows since when.
        lost_since(&mut bytes, 0, 350, 400);
        lost_since(&mut bytes, 3, 0, 420);
        for seam in (0..=bytes.len()).step_by(8) {
            let mut watch = watch();
            watch.observe([&bytes[..seam], &bytes[seam..]], usize::MAX);
            assert_eq!((watch.counts.lost_records, watch.counts.paused_ns), (13, 350 - 150));
        }
    }

    #[test]
    fn every_seam_gives_the_same() {
        let bytes = recorded();
        let mut whole = watch();
        whole.observe([&bytes, &[]], usize::MAX);
        for seam in (0..=bytes.len()).step_by(8) {
            let mut watch = watch();
            watch.observe([&bytes[..seam], &bytes[seam..]], usize::MAX);
            assert_eq!(watch.counts, whole.counts, "seam {seam}");
        }
    }

    #[test]
    fn several_looks_add_up_and_end_behind_whole_records() {
        let bytes = recorded();
        let mut whole = watch();
        let all = whole.observe([&bytes, &[]], usize::MAX);
        let record_ends: Vec<_> =
            RingSlices([&bytes, &[]]).records_from(0).map(|seen| seen.at + seen.size).collect();
        for enough in [1, 48, 50, 100, 1000] {
            let mut parts = watch();
            let (mut at, mut tally) = (0, Tally::default());
            while at < bytes.len() {
                let scanned = parts.observe([&bytes[at..], &[]], enough);
                assert_eq!(scanned.slices(), [&bytes[at..at + scanned.size_bytes()], &[]]);
                assert_eq!(scanned.tally(), Tally::of(scanned.slices()[0]));
                tally += scanned.tally();
                let first = record_ends.iter().find(|end| **end >= at + enough);
                at += scanned.size_bytes();
                assert_eq!(at, *first.unwrap_or(&bytes.len()), "{enough}");
            }
            assert_eq!((parts.counts, tally), (whole.counts, all.tally()), "{enough}");
        }
    }

    #[test]
    fn pieces_are_all_records_once_and_end_at_the_first_record_behind_their_size() {
        let bytes = recorded();
        let record_ends: Vec<_> =
            RingSlices([&bytes, &[]]).records_from(0).map(|seen| seen.at + seen.size).collect();
        for enough in [1, 48, 49, 60, 1000] {
            let with_rest = [&bytes[..], &[0; 8]].concat();
            let (mut all, mut tally) = (Vec::new(), Tally::default());
            for piece in ScannedRecords::pieces(&with_rest, enough) {
                let begin = all.len();
                all.extend_from_slice(piece.slices()[0]);
                tally += piece.tally();
                let first = record_ends.iter().find(|end| **end >= begin + enough);
                assert_eq!(all.len(), *first.unwrap_or(&bytes.len()), "{enough}");
            }
            assert_eq!((all, tally), (bytes.clone(), Tally::of(&bytes)), "{enough}");
        }
    }

    /// A packed sample of two switches, at 500 and at 700.
    fn packed_switches() -> Vec<u8> {
        let origin = Origin { id: 7, cpu: 3, has_cpu: true, is_cpu_wide: false };
        let mut packer = Packer::new(origin);
        for time_ns in [500, 700] {
            packer.switch(&Switch { time_ns, ..Switch::default() }, Numbers::default());
        }
        packer.came(packed::Thread { pid: 1, tid: 2 }, 600);
        let mut bytes = Vec::new();
        packer.finish(&mut bytes);
        bytes
    }

    #[test]
    fn a_packed_sample_counts_as_the_samples_that_it_replaces() {
        let bytes = packed_switches();
        // Each switch is a sample and a record that a thread goes.
        let tally = Tally { records: 5, samples: 2 };
        assert_eq!(Tally::of(&bytes), tally);
        for seam in (0..=bytes.len()).step_by(8) {
            let mut watch = watch();
            let scanned = watch.observe([&bytes[..seam], &bytes[seam..]], usize::MAX);
            assert_eq!(scanned.tally(), tally, "seam {seam}");
            assert_eq!((watch.counts.records, watch.counts.samples), (5, 2));
            assert_eq!(watch.counts.first_sample, Some(TimestampNs(500)), "the first one's");
        }
        // A record with that word, and no sample.
        let mut other = Vec::new();
        push_record(&mut other, record_type::COMM, 0, &bytes[HEADER_SIZE_BYTES..]);
        assert_eq!(Tally::of(&other), Tally { records: 1, samples: 0 });
    }

    #[test]
    fn each_output_has_its_own_counts_and_a_loss_begins_in_the_one_before() {
        let mut watch = watch();
        let bytes = recorded();
        watch.observe([&bytes, &[]], usize::MAX);
        let counts = watch.counts;
        assert_eq!(watch.take_counts(), counts);
        let last_record = Some(TimestampNs(420));
        assert_eq!(watch.counts, RingCounts { last_record, ..RingCounts::default() });
        let mut next = Vec::new();
        lost(&mut next, 4, 450);
        watch.observe([&next, &[]], usize::MAX);
        assert_eq!((watch.counts.lost_records, watch.counts.paused_ns), (4, 450 - 420));
        assert_eq!(watch.paused().total_ns(), counts.paused_ns + 450 - 420);
        assert_eq!(watch.take_counts().lost_records, 4);
    }

    #[test]
    fn samples_that_were_lost_before_a_ring_are_counted_apart() {
        let mut bytes = recorded();
        for lost in [11, 30] {
            // Lost; trailer: pid/tid, time, cpu, identifier.
            push_record(&mut bytes, record_type::LOST_SAMPLES, 0, &words(&[lost, 1, 430, 0, 7]));
        }
        let mut watch = watch();
        watch.observe([&bytes, &[]], usize::MAX);
        assert_eq!((watch.counts.lost_samples, watch.counts.lost_records), (41, 7));
    }

    #[test]
    fn files_that_were_mapped_as_code_are_noted() {
        let mut bytes = Vec::new();
        for (inode, misc, path) in
            [(42, 0, b"/bin/tool\0"), (43, misc::MMAP_BUILD_ID, b"/bin/with\0")]
        {
            let mut body = words(&[1 << 32 | 1, 0x1000, 0x1000, 0, 8 << 32 | 1, inode, 0]);
            body.extend([PROT_EXEC.to_le_bytes(), [0; 4]].concat());
            body.extend(path);
            body.resize(80, 0);
            // Trailer: pid/tid, time, cpu, identifier.
            body.extend(words(&[1, 400, 0, 7]));
            push_record(&mut bytes, record_type::MMAP2, misc, &body);
        }
        let fork = words(&[1 << 32 | 2, 1 << 32 | 2, 0, 1, 400, 0, 7]);
        push_record(&mut bytes, record_type::FORK, 0, &fork);
        let noted = |have_build_ids, are_described, seam: usize| {
            let mappings = Mappings { have_build_ids, are_described };
            let mut watch = RingWatch { mappings, ..watch() };
            passed(&mut watch, &bytes, seam);
            let mut paths: Vec<_> =
                watch.mapped.iter().map(|(_, file)| file.path.to_vec()).collect();
            paths.sort();
            let processes = format!("{:?}", watch.mapped.processes);
            let is_empty = processes == format!("{:?}", SampledProcesses::default());
            assert_eq!(is_empty, !are_described, "{processes}");
            paths
        };
        for seam in (0..=bytes.len()).step_by(8) {
            assert_eq!(noted(true, true, seam), [b"/bin/tool"], "seam {seam}");
            // The bit is that of another recorder's event.
            assert_eq!(noted(false, true, seam), [b"/bin/tool", b"/bin/with"], "seam {seam}");
            assert!(noted(false, false, seam).is_empty(), "seam {seam}");
        }
    }

    #[test]
    fn a_record_that_grew_by_other_recorders_has_its_own_time() {
        let mut bytes = Vec::new();
        // Address, length and type, name; trailer: pid/tid, time, cpu, identifier; older contents of the ring.
        let name = u64::from_le_bytes(*b"bpf_a\0\0\0");
        let body = words(&[0x1000, 64, name, 1, 450, 0, 7, 99, 98, 97, 96]);
        push_record(&mut bytes, record_type::KSYMBOL, 0, &body);
        let event = words(&[1, 0, 1, 460, 0, 7, 99, 98, 97, 96]);
        push_record(&mut bytes, record_type::BPF_EVENT, 0, &event);
        let mut watch = watch();
        assert_eq!(watch.time_of_first(&bytes), Some(TimestampNs(450)));
        passed(&mut watch, &bytes, bytes.len());
        assert_eq!(watch.counts.last_record, Some(TimestampNs(460)));
    }

    /// The bytes that the sink gets for a ring's bytes in two pieces.
    fn passed(watch: &mut RingWatch, bytes: &[u8], seam: usize) -> Vec<u8> {
        let (mut out, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let back = seam.max(at);
            let scanned = watch.observe([&bytes[at..back], &bytes[back..]], usize::MAX);
            match watch.restored(&scanned) {
                Some(record) => out.extend(record),
                None => out.extend(scanned.slices().concat()),
            }
            at += scanned.size_bytes();
        }
        out
    }

    #[test]
    fn traces_of_other_recorders_are_not_written() {
        // Trailers: pid/tid, time, cpu, identifier; behind them older contents of the ring.
        let name = u64::from_le_bytes(*b"bpf_a\0\0\0");
        let symbol = words(&[0x1000, 64, name, 1, 450, 0, 7]);
        let program = words(&[1, 0, 1, 460, 0, 7]);
        // Its sizes are 3 and 2 bytes, before and behind the change, and these follow.
        let poke = words(&[0x1000, 2 << 16 | 3 | 0xcccc_cccc << 32, 0xcc, 1, 470, 0, 7]);
        let mut map = words(&[1 << 32 | 1, 0x1000, 0x1000, 0, 8 << 32 | 1, 43, 0, 5, 0]);
        map.extend(words(&[1, 480, 0, 7]));
        let kinds = [record_type::KSYMBOL, record_type::BPF_EVENT, record_type::TEXT_POKE];
        let (mut found, mut wanted) = (Vec::new(), Vec::new());
        for number in 0..3 {
            sample(&mut found, 100 + number);
            sample(&mut wanted, 100 + number);
            for (kind, body) in kinds.into_iter().zip([&symbol, &program, &poke]) {
                let older = words(&vec![99; 4 * number as usize]);
                push_record(&mut found, kind, 0, &[&body[..], &older].concat());
                push_record(&mut wanted, kind, 0, body);
            }
            push_record(&mut found, record_type::MMAP2, 2 | misc::MMAP_BUILD_ID, &map);
            push_record(&mut wanted, record_type::MMAP2, 2, &map);
        }
        for seam in (0..=found.len()).step_by(8) {
            let mut watch = watch();
            assert_eq!(passed(&mut watch, &found, seam), wanted, "seam {seam}");
            let records = RingSlices([&wanted, &[]]).records_from(0).count() as u64;
            assert_eq!((watch.counts.records, watch.counts.samples), (records, 3));
            assert_eq!(watch.counts.bytes, found.len() as u64);
        }
        // Such events have build ids in these records.
        let mappings = Mappings { have_build_ids: true, are_described: true };
        let mut asks = RingWatch { mappings, ..watch() };
        let mut with_bit = Vec::new();
        push_record(&mut with_bit, record_type::MMAP2, 2 | misc::MMAP_BUILD_ID, &map);
        assert_eq!(passed(&mut asks, &with_bit, 0), with_bit);
    }

    #[test]
    fn a_loss_before_all_records_has_no_beginning() {
        let mut bytes = Vec::new();
        lost(&mut bytes, 4, 450);
        let mut watch = watch();
        assert_eq!(watch.time_of_first(&bytes), Some(TimestampNs(450)));
        assert_eq!(watch.time_of_first(&[]), None);
        watch.observe([&bytes, &[]], usize::MAX);
        assert_eq!((watch.counts.lost_records, watch.counts.paused_ns), (4, 0));
    }

    #[test]
    fn a_mark_is_written_and_not_counted() {
        let bytes = recorded();
        let mark = ScannedRecords::mark(&bytes);
        assert_eq!((mark.slices()[0], mark.tally()), (&bytes[..], Tally::default()));
        let mut rest = Tally::of(&bytes);
        rest -= Tally { records: 4, samples: 1 };
        assert_eq!(rest, Tally { records: 2, samples: 2 });
    }

    #[test]
    fn nonsense_is_counted_and_ends_the_look() {
        let mut bytes = recorded();
        bytes.extend([0xff; 24]);
        let mut watch = watch();
        let scanned = watch.observe([&bytes, &[]], usize::MAX);
        assert_eq!(scanned.size_bytes(), bytes.len());
        assert_eq!((watch.counts.records, watch.counts.unreadable_bytes), (6, 24));
    }
}
