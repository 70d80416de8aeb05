//! Where records have their time, and samples their process.

use whit_perfdata::attr::{Attr, SampleType};
use whit_perfdata::loss;
use whit_perfdata::record::{HEADER_SIZE_BYTES, record_type};
use whit_perfdata::sample::SampleLayout;
use whit_perfdata::shared_record;
use whit_types::TimestampNs;

use crate::ring_slices::{RecordRef, RingSlices};

/// Where the time stands in records of a recording: the same in all of them, as
/// the recorder's configuration of events sees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLayout {
    /// From the start of a SAMPLE record.
    sample_offset: Option<usize>,
    /// From the end of any other record.
    trailer_offset: Option<usize>,
    /// Size of the sample id at the end of these.
    trailer_bytes: usize,
    /// The process's number, from the start of a SAMPLE record.
    process_offset: Option<usize>,
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
        let in_front = [SampleType::IDENTIFIER, SampleType::IP];
        let in_front = in_front.iter().filter(|field| attr.sample_type.contains(**field)).count();
        let has_process = attr.sample_type.contains(SampleType::TID);
        TimeLayout {
            process_offset: has_process.then_some(HEADER_SIZE_BYTES + in_front * 8),
            sample_offset: layout.time_offset().map(|offset| offset + HEADER_SIZE_BYTES),
            trailer_offset: has_trailer.then_some(words * 8),
            trailer_bytes: layout.id_trailer_size_bytes(),
        }
    }

    /// Since when records may be missing, where a record of losses says so.
    #[inline]
    pub fn loss_since(self, ring_slices: &RingSlices<'_>, seen: RecordRef) -> Option<TimestampNs> {
        let end = HEADER_SIZE_BYTES + loss::fields_bytes(seen.kind)?;
        let has_since = seen.size == end + 8 + self.trailer_bytes;
        has_since.then(|| ring_slices.word(seen.at + end).map(TimestampNs))?
    }

    /// The process of a SAMPLE record.
    #[inline]
    pub fn process(self, ring_slices: &RingSlices<'_>, seen: RecordRef) -> Option<u32> {
        let offset = self.process_offset?;
        if offset + 8 > seen.size {
            return None;
        }
        ring_slices.word(seen.at + offset).map(|word| word as u32)
    }

    /// Where the sample id ends, from the start of a record that is no sample.
    #[inline]
    fn end(self, ring_slices: &RingSlices<'_>, seen: RecordRef) -> usize {
        let word = |at| {
            let at = HEADER_SIZE_BYTES + at;
            (at + 8 <= seen.size).then(|| ring_slices.word(seen.at + at))?
        };
        let fields = shared_record::fields_bytes(seen.kind, word);
        fields.map_or(seen.size, |fields| HEADER_SIZE_BYTES + fields + self.trailer_bytes)
    }

    /// Size of a record without the bytes that the kernel adds for other recorders ([`shared_record`]).
    #[inline]
    pub fn own_size(self, ring_slices: &RingSlices<'_>, seen: RecordRef) -> usize {
        match seen.kind {
            record_type::SAMPLE => seen.size,
            _ => self.end(ring_slices, seen).min(seen.size),
        }
    }

    /// The time of a record.
    #[inline]
    pub fn time(self, ring_slices: &RingSlices<'_>, seen: RecordRef) -> Option<TimestampNs> {
        let offset = if seen.kind == record_type::SAMPLE {
            self.sample_offset?
        } else {
            self.end(ring_slices, seen).checked_sub(self.trailer_offset?)?
        };
        if offset + 8 > seen.size {
            return None;
        }
        ring_slices.word(seen.at + offset).map(TimestampNs)
    }
}
