//! Looking at what passes by: samples counted, losses found, the time of the last record kept.
//!
//! The kernel writes a LOST record into a ring as soon as there is room again after it had to
//! drop records, stamped with that moment. The ring was therefore *paused* from the record before
//! the LOST record to the LOST record itself. Data loss is paused time over recorded time.
//!
//! Only headers are read, and the time of two records per look and two per LOST record: the cost
//! is one load per record.

use whit_perfdata::attr::{Attr, SampleType};
use whit_perfdata::record::{HEADER_SIZE_BYTES, record_type};
use whit_perfdata::sample::SampleLayout;
use whit_types::TimestampNs;

/// What has passed through one ring so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Bytes.
    pub bytes: u64,
    /// Records of any type.
    pub records: u64,
    /// Samples.
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

/// Where the time stands in records of a recording: the same in all of them, as
/// [`crate::configure`] sees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLayout {
    /// From the start of a SAMPLE record.
    sample_offset: Option<usize>,
    /// From the end of any other record.
    trailer_offset: Option<usize>,
}

impl TimeLayout {
    /// From the attributes of any event of the recording.
    pub fn new(attr: &Attr) -> TimeLayout {
        let layout = SampleLayout::new(attr);
        let behind = [
            SampleType::TIME,
            SampleType::ID,
            SampleType::STREAM_ID,
            SampleType::CPU,
            SampleType::IDENTIFIER,
        ];
        let has_trailer = layout.sample_id_all && attr.sample_type.contains(SampleType::TIME);
        let words = behind.iter().filter(|field| attr.sample_type.contains(**field)).count();
        TimeLayout {
            sample_offset: layout.time_offset().map(|offset| offset + HEADER_SIZE_BYTES),
            trailer_offset: has_trailer.then_some(words * 8),
        }
    }
}

/// The bytes of a ring in up to two pieces, as one.
#[derive(Clone, Copy, Debug)]
struct Pieces<'a>([&'a [u8]; 2]);

impl Pieces<'_> {
    fn len(&self) -> usize {
        self.0[0].len() + self.0[1].len()
    }

    /// The word at a position. Records are aligned to words, and so is the seam.
    #[inline]
    fn word(&self, at: usize) -> Option<u64> {
        let [front, back] = self.0;
        let bytes = match at.checked_sub(front.len()) {
            None => front.get(at..)?,
            Some(at) => back.get(at..)?,
        };
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }
}

/// A record that the seam between the two pieces cuts: from where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutRecord {
    /// Its first byte, counted over both pieces.
    pub start: usize,
    /// The first byte behind it.
    pub end: usize,
}

#[derive(Clone, Copy)]
struct Seen {
    at: usize,
    kind: u32,
    size: usize,
}

/// Watches one ring.
#[derive(Clone, Debug)]
pub struct RingWatch {
    layout: TimeLayout,
    /// What has passed so far.
    pub counts: RingCounts,
}

impl RingWatch {
    /// For a ring whose records have this layout.
    pub fn new(layout: TimeLayout) -> RingWatch {
        RingWatch { layout, counts: RingCounts::default() }
    }

    /// Looks at what a ring holds. Gives the record that the seam cuts, if any.
    pub fn observe(&mut self, slices: [&[u8]; 2]) -> Option<CutRecord> {
        let pieces = Pieces(slices);
        let seam = slices[0].len();
        let (mut last, mut last_sample, mut cut) = (None, None, None);
        let mut at = 0;
        while at < pieces.len() {
            let Some(seen) = next(&pieces, at) else {
                self.counts.unreadable_bytes += (pieces.len() - at) as u64;
                break;
            };
            match seen.kind {
                record_type::SAMPLE => {
                    self.counts.samples += 1;
                    if self.counts.first_sample.is_none() {
                        self.counts.first_sample = self.time(&pieces, seen);
                    }
                    last_sample = Some(seen);
                }
                record_type::LOST => self.lost(&pieces, seen, last),
                record_type::LOST_SAMPLES => {
                    let lost = pieces.word(at + HEADER_SIZE_BYTES).unwrap_or(0);
                    self.counts.lost_samples += lost;
                }
                _ => {}
            }
            self.counts.records += 1;
            at += seen.size;
            if seen.at < seam && at > seam {
                cut = Some(CutRecord { start: seen.at, end: at });
            }
            last = Some(seen);
        }
        self.counts.bytes += pieces.len() as u64;
        let time = |seen: Option<Seen>| self.time(&pieces, seen?);
        let (last, last_sample) = (time(last), time(last_sample));
        self.counts.last_record = last.or(self.counts.last_record);
        self.counts.last_sample = last_sample.or(self.counts.last_sample);
        cut
    }

    fn lost(&mut self, pieces: &Pieces<'_>, seen: Seen, before: Option<Seen>) {
        // Body: id, then the number of records.
        self.counts.lost_records += pieces.word(seen.at + HEADER_SIZE_BYTES + 8).unwrap_or(0);
        let before = match before {
            Some(before) => self.time(pieces, before),
            None => self.counts.last_record,
        };
        if let (Some(before), Some(now)) = (before, self.time(pieces, seen)) {
            self.counts.paused_ns += now.since(before);
        }
    }

    fn time(&self, pieces: &Pieces<'_>, seen: Seen) -> Option<TimestampNs> {
        let offset = if seen.kind == record_type::SAMPLE {
            self.layout.sample_offset?
        } else {
            seen.size.checked_sub(self.layout.trailer_offset?)?
        };
        if offset + 8 > seen.size {
            return None;
        }
        pieces.word(seen.at + offset).map(TimestampNs)
    }
}

#[inline]
fn next(pieces: &Pieces<'_>, at: usize) -> Option<Seen> {
    let header = pieces.word(at)?;
    let size = (header >> 48) as usize;
    let fits = size >= HEADER_SIZE_BYTES && size.is_multiple_of(8) && at + size <= pieces.len();
    fits.then_some(Seen { at, kind: header as u32, size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::AttrFlags;
    use whit_perfdata::encode::push_record;

    fn watch() -> RingWatch {
        let sample_type = SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::IDENTIFIER;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        RingWatch::new(TimeLayout::new(&Attr { sample_type, flags, ..Attr::default() }))
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
        assert_eq!(watch.observe([&recorded(), &[]]), None);
        let counts = watch.counts;
        assert_eq!((counts.samples, counts.records, counts.lost_records), (3, 6, 7));
        assert_eq!(counts.paused_ns, (350 - 200) + (420 - 400));
        assert_eq!(counts.first_sample, Some(TimestampNs(100)));
        assert_eq!(counts.last_sample, Some(TimestampNs(360)));
        assert_eq!(counts.last_record, Some(TimestampNs(420)));
        assert_eq!(counts.unreadable_bytes, 0);
    }

    #[test]
    fn every_seam_gives_the_same_and_names_the_record_it_cuts() {
        let bytes = recorded();
        let mut whole = watch();
        whole.observe([&bytes, &[]]);
        for seam in (0..=bytes.len()).step_by(8) {
            let mut watch = watch();
            let cut = watch.observe([&bytes[..seam], &bytes[seam..]]);
            assert_eq!(watch.counts, whole.counts, "seam {seam}");
            if let Some(cut) = cut {
                assert!(cut.start < seam && cut.end > seam);
            }
        }
    }

    #[test]
    fn several_looks_add_up() {
        let bytes = recorded();
        let mut whole = watch();
        whole.observe([&bytes, &[]]);
        let mut parts = watch();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = usize::from(u16::from_le_bytes([rest[6], rest[7]]));
            parts.observe([&rest[..size], &[]]);
            rest = &rest[size..];
        }
        assert_eq!(parts.counts, whole.counts);
    }

    #[test]
    fn nonsense_is_counted_and_ends_the_look() {
        let mut bytes = recorded();
        bytes.extend([0xff; 24]);
        let mut watch = watch();
        watch.observe([&bytes, &[]]);
        assert_eq!((watch.counts.records, watch.counts.unreadable_bytes), (6, 24));
    }
}
