//! Writes into the samples of clocks the period that was in force when they were taken ([`super::stretches`]).

use std::sync::Arc;

use whit_engine_api::open_event::OpenEvent;
use whit_engine_api::ring_slices::RingSlices;
use whit_engine_api::time_layout::TimeLayout;
use whit_engine_api::{DecodeCounts, RecordDecoder};
use whit_perfdata::attr::{Attr, SampleType};
use whit_perfdata::record::{HEADER_SIZE_BYTES, record_type};
use whit_perfdata::sample_head::place_of;
use whit_types::TimestampNs;

use super::stretches::{Stretches, is_clock};

/// Where the fields of a clock's samples stand, from the start of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    id: usize,
    time: usize,
    period: usize,
}

impl Fields {
    /// `None` where samples do not have all of them.
    fn of(attr: &Attr) -> Option<Fields> {
        let before =
            |field| place_of(attr.sample_type, field).map(|place| HEADER_SIZE_BYTES + place);
        Some(Fields {
            id: before(SampleType::IDENTIFIER)?,
            time: before(SampleType::TIME)?,
            period: before(SampleType::PERIOD)?,
        })
    }
}

/// Corrects periods behind the engine's decoder, or behind none.
#[derive(Debug)]
pub(super) struct StretchedDecoder {
    inner: Option<Box<dyn RecordDecoder>>,
    stretches: Arc<Stretches>,
    fields: Option<Fields>,
    layout: TimeLayout,
    ring_time: TimestampNs,
}

impl StretchedDecoder {
    /// For a ring of these events.
    pub(super) fn new(
        inner: Option<Box<dyn RecordDecoder>>,
        events: &[OpenEvent],
        stretches: Arc<Stretches>,
    ) -> StretchedDecoder {
        let clock = events.iter().find(|event| is_clock(event));
        StretchedDecoder {
            inner,
            stretches,
            fields: clock.and_then(|event| Fields::of(&event.event.attr)),
            layout: TimeLayout::new(&events[0].event.attr),
            ring_time: TimestampNs(0),
        }
    }

    fn correct(&self, records: &mut [u8]) {
        let Some(fields) = self.fields.filter(|_| self.stretches.has_changed()) else { return };
        let look = self.stretches.look();
        let mut at = 0;
        while let Some(seen) = RingSlices([&*records, &[]]).record_at(at) {
            at = seen.at + seen.size;
            if seen.kind != record_type::SAMPLE || fields.period + 8 > seen.size {
                continue;
            }
            let word = |offset| RingSlices([&*records, &[]]).word(seen.at + offset);
            let (Some(id), Some(time)) = (word(fields.id), word(fields.time)) else { continue };
            let stretch = look.at(id, TimestampNs(time));
            if let (Some(stretch @ 2..), Some(period)) = (stretch, word(fields.period)) {
                let stretched = period.saturating_mul(u64::from(stretch));
                let place = seen.at + fields.period;
                records[place..place + 8].copy_from_slice(&stretched.to_le_bytes());
            }
        }
    }

    /// As the kernel wrote them.
    fn copy(
        &mut self,
        ring_slices: RingSlices<'_>,
        enough_bytes: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut end = 0;
        for seen in ring_slices.records_from(0) {
            end = seen.at + seen.size;
            if let Some(time) = self.layout.time(&ring_slices, seen) {
                self.ring_time = time;
            }
            if end >= enough_bytes {
                break;
            }
        }
        // The rest is no whole record, and will never be one.
        let taken = if end == 0 { ring_slices.size_bytes() } else { end };
        ring_slices.first(taken).iter().for_each(|piece| out.extend_from_slice(piece));
        taken
    }
}

impl RecordDecoder for StretchedDecoder {
    fn available_bytes(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.available_bytes())
    }

    fn start_stream(&mut self) {
        self.inner.iter_mut().for_each(|inner| inner.start_stream());
    }

    fn look(&mut self) {
        self.inner.iter_mut().for_each(|inner| inner.look());
    }

    fn decode(
        &mut self,
        ring_slices: RingSlices<'_>,
        enough_bytes: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let begin = out.len();
        let taken = match &mut self.inner {
            Some(inner) => inner.decode(ring_slices, enough_bytes, out),
            None => self.copy(ring_slices, enough_bytes, out),
        };
        self.correct(&mut out[begin..]);
        taken
    }

    fn rest(&mut self, enough_bytes: usize, out: &mut Vec<u8>) -> bool {
        let begin = out.len();
        let is_more = self.inner.as_mut().is_some_and(|inner| inner.rest(enough_bytes, out));
        self.correct(&mut out[begin..]);
        is_more
    }

    fn counts(&self) -> DecodeCounts {
        self.inner.as_ref().map(|inner| inner.counts()).unwrap_or_default()
    }

    fn ring_time(&self) -> TimestampNs {
        self.inner.as_ref().map_or(self.ring_time, |inner| inner.ring_time())
    }

    fn last_outside(&self) -> Option<TimestampNs> {
        self.inner.as_ref().and_then(|inner| inner.last_outside())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::encode::push_record;

    const ID: u64 = 77;

    fn sample(id: u64, time: u64) -> Vec<u8> {
        // IDENTIFIER, IP, TID, TIME, PERIOD, and the length of an empty call chain.
        let words = [id, 0x1000, 5, time, 1000, 0];
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut out = Vec::new();
        push_record(&mut out, record_type::SAMPLE, 0, &body);
        out
    }

    fn decoder(stretches: Arc<Stretches>) -> StretchedDecoder {
        let sample_type = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::PERIOD
            | SampleType::CALLCHAIN;
        let attr = Attr { sample_type, ..Attr::default() };
        let fields = Fields::of(&attr);
        assert_eq!(fields, Some(Fields { id: 8, time: 32, period: 40 }));
        let (layout, ring_time) = (TimeLayout::new(&attr), TimestampNs(0));
        StretchedDecoder { inner: None, stretches, fields, layout, ring_time }
    }

    fn periods(bytes: &[u8]) -> Vec<u64> {
        let slices = RingSlices([bytes, &[]]);
        slices.records_from(0).map(|seen| slices.word(seen.at + 40).unwrap()).collect()
    }

    #[test]
    fn samples_say_the_period_that_was_in_force_at_their_time() {
        let stretches = Stretches::new(None);
        let mut decoder = decoder(stretches.clone());
        let rows = [sample(ID, 10), sample(ID, 20), sample(8, 20), sample(ID, 30), sample(ID, 45)];
        let ring = rows.concat();
        let decode = |decoder: &mut StretchedDecoder, seam: usize| {
            let (mut out, mut at) = (Vec::new(), 0);
            while at < ring.len() {
                let front = &ring[at.min(seam)..seam.max(at).min(ring.len())];
                let pieces = if at < seam { [front, &ring[seam..]] } else { [&ring[at..], &[]] };
                at += decoder.decode(RingSlices(pieces), 1, &mut out);
            }
            out
        };
        assert_eq!(decode(&mut decoder, 0), ring, "nothing has changed yet");
        stretches.pretend(ID, TimestampNs(20), 8);
        stretches.pretend(ID, TimestampNs(40), 2);
        for seam in (0..=ring.len()).step_by(8) {
            let out = decode(&mut decoder, seam);
            assert_eq!(periods(&out), [1000, 8000, 1000, 8000, 2000], "seam {seam}");
            assert_eq!(decoder.ring_time(), TimestampNs(45));
        }
    }

    #[test]
    fn what_is_no_sample_with_all_fields_stays_as_it_is() {
        let stretches = Stretches::new(None);
        stretches.pretend(ID, TimestampNs(0), 8);
        let mut short = Vec::new();
        push_record(&mut short, record_type::SAMPLE, 0, &ID.to_le_bytes());
        push_record(&mut short, record_type::COMM, 0, &sample(ID, 50)[8..]);
        short.extend([0; 16]);
        let mut out = Vec::new();
        let mut decoder = decoder(stretches);
        let taken = decoder.decode(RingSlices([&short, &[]]), 1 << 20, &mut out);
        let rest = decoder.decode(RingSlices([&short[taken..], &[]]), 1 << 20, &mut out);
        assert_eq!((taken + rest, out), (short.len(), short));
    }
}
