//! Readings of the recording's clock and of others at one moment, as records of the stream.
//!
//! JIT compilers stamp their code by `CLOCK_MONOTONIC`, and the kernel's default clock for records is another one, with a
//! rate of its own. Each reading is a LOST_SAMPLES record of no loss that has more words than the kernel gives it, so that
//! a pipe, a killed recorder's file and a part of a stream have readings too. `docs/format.md` has the layout.

use crate::bytes::Cursor;
use whit_types::TimestampNs;

/// Tells such a record from one of a loss.
const MARK: u64 = u64::from_le_bytes(*b"WHITCLCK");
/// Number of lost samples, mark and fields.
const SIZE_BYTES: usize = 48;

/// Clocks that were read at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// The clock that stamps records.
    pub record: TimestampNs,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, in nanoseconds since the epoch.
    pub wall_clock_ns: u64,
    /// The time that reading took: the relation is no more exact.
    pub within_ns: u32,
}

impl ClockReading {
    /// Fields of the record, behind its number of lost samples.
    pub(crate) fn fields(&self) -> Vec<u8> {
        let words = [MARK, self.record.0, self.monotonic_ns, self.wall_clock_ns];
        let words = words.into_iter().chain([u64::from(self.within_ns)]);
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// From the body of a LOST_SAMPLES record; `None` for any other one. Later versions append fields.
    pub(crate) fn parse(body: &[u8]) -> Option<ClockReading> {
        if !is_marked(body) {
            return None;
        }
        let mut c = Cursor::new(body.get(16..)?);
        Some(ClockReading {
            record: TimestampNs(c.u64()?),
            monotonic_ns: c.u64()?,
            wall_clock_ns: c.u64()?,
            within_ns: c.u32()?,
        })
    }
}

/// Whether the body of a LOST_SAMPLES record states clocks, and no loss.
#[inline]
pub(crate) fn is_marked(body: &[u8]) -> bool {
    let words = body.first_chunk::<SIZE_BYTES>().map(|body| body.split_at(8));
    words.is_some_and(|(lost, rest)| lost == [0; 8] && rest.starts_with(&MARK.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, AttrFlags, SampleType};
    use crate::encode::RecordEncoder;
    use crate::record::{RawRecord, SideBand};
    use crate::sample::{SampleId, SampleLayout};

    #[test]
    fn readings_are_read_as_they_were_written_and_a_loss_is_none() {
        let sample_type = SampleType::TID | SampleType::TIME | SampleType::IDENTIFIER;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        let layout = SampleLayout::new(&Attr { sample_type, flags, ..Attr::default() });
        let id = SampleId { time: Some(TimestampNs(77)), id: Some(9), ..SampleId::default() };
        let written = ClockReading {
            record: TimestampNs(1 << 40),
            monotonic_ns: 1 << 41,
            wall_clock_ns: 1 << 60,
            within_ns: 1234,
        };
        let mut out = Vec::new();
        RecordEncoder::new(layout).clocks(&mut out, &written, id);
        fn parse(bytes: &[u8]) -> Option<SideBand<'_>> {
            SideBand::parse(RawRecord::split(bytes).unwrap().0)
        }
        let (record, rest) = RawRecord::split(&out).unwrap();
        assert!(rest.is_empty() && record.states_no_loss() && !record.is_budget());
        assert_eq!(parse(&out), Some(SideBand::Clocks(written)));
        let id = layout.parse_id_trailer(record.body).unwrap();
        assert_eq!((id.time, id.id), (Some(TimestampNs(77)), Some(9)));
        for at in [8, 16] {
            let mut other = out.clone();
            other[at] ^= 1;
            assert!(matches!(parse(&other), Some(SideBand::LostSamples { .. })));
        }
        let mut cut = out[..48].to_vec();
        cut[6..8].copy_from_slice(&48u16.to_le_bytes());
        assert_eq!(parse(&cut), Some(SideBand::LostSamples { lost: 0 }));
    }
}
