//! Losses: since when records were lost, for how long, and which share of the recorded time that is.
//!
//! The kernel stamps a LOST record with the moment at which a ring has room again. The records that are
//! missing lie between the ring's record before it and the LOST record. That holds as long as a reader sees the
//! records of the ring and no others in between. Where whit writes other records into the same stream, or
//! where no record follows, it appends a word to the fields of LOST and LOST_SAMPLES: the time since which
//! records may be missing. It stands in front of the sample id, which readers look for from the end of
//! the record.

use std::fmt;

use whit_types::TimestampNs;

use crate::bytes::u64_at;
use crate::record::{RawRecord, record_type};

/// Losses that are compared with later ones. Rings and channels of a CPU are drained in turn, so that
/// what overlaps is reported close together.
const RECENT_MAX: usize = 64;

/// Bytes of the fields that the kernel gives a record of losses; `None` for other records.
pub fn fields_bytes(kind: u32) -> Option<usize> {
    match kind {
        record_type::LOST => Some(16),
        record_type::LOST_SAMPLES => Some(8),
        _ => None,
    }
}

/// Since when records may be missing, where the record says so: it is longer by a word than its fields and a
/// sample id of so many bytes.
pub fn since(record: RawRecord<'_>, trailer_bytes: usize) -> Option<TimestampNs> {
    let at = fields_bytes(record.header.kind)?;
    let has_since = record.body.len() == at + 8 + trailer_bytes;
    has_since.then(|| u64_at(record.body, at).map(TimestampNs))?
}

/// Time during which something was full. No moment counts twice: a ring and the channel beside it are full
/// at the same time.
#[derive(Clone, Debug, Default)]
pub struct PausedTime {
    total_ns: u64,
    /// They neither overlap nor touch; the latest is the last.
    recent: Vec<(u64, u64)>,
}

impl PausedTime {
    /// Adds the time between two moments. Gives how much of it was not counted before.
    pub fn add(&mut self, from: TimestampNs, to: TimestampNs) -> u64 {
        let (mut from, mut to) = (from.0, to.0);
        if from >= to {
            return 0;
        }
        let mut new_ns = to - from;
        let (start, end) = (from, to);
        self.recent.retain(|&(other_from, other_to)| {
            let is_apart = other_to < start || other_from > end;
            if !is_apart {
                new_ns -= other_to.min(end) - other_from.max(start);
                (from, to) = (from.min(other_from), to.max(other_to));
            }
            is_apart
        });
        let at = self.recent.binary_search(&(from, to)).unwrap_or_else(|at| at);
        self.recent.insert(at, (from, to));
        if self.recent.len() > RECENT_MAX {
            self.recent.remove(0);
        }
        self.total_ns = self.total_ns.saturating_add(new_ns);
        new_ns
    }

    /// Length of all pauses; overlapping ones count once.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }
}

/// How much was lost: paused time over recorded time, both summed over rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLoss {
    /// Records and samples that were lost.
    pub lost: u64,
    /// Time during which rings were full.
    pub paused_ns: u64,
    /// Recorded time.
    pub elapsed_ns: u64,
}

impl DataLoss {
    /// The share, from 0 to 1; `None` where something was lost and the time of it is not known.
    pub fn share(self) -> Option<f64> {
        match (self.paused_ns, self.elapsed_ns) {
            (0, _) | (_, 0) => (self.lost == 0).then_some(0.0),
            (paused_ns, elapsed_ns) => Some(paused_ns as f64 / elapsed_ns as f64),
        }
    }

    /// The share in percent with two decimals. A loss is never "0.00%".
    pub fn percent(self) -> Option<String> {
        let percent = self.share()? * 100.0;
        let is_rounded_away = percent < 0.005 && self.paused_ns > 0;
        Some(if is_rounded_away { "<0.01%".to_owned() } else { format!("{percent:.2}%") })
    }
}

impl fmt::Display for DataLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.percent() {
            Some(percent) => write!(f, "data loss {percent}"),
            None => f.write_str("time unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::attr::{Attr, AttrFlags, SampleType};
    use crate::encode::RecordEncoder;
    use crate::event_table::EventTable;
    use crate::feature::EventDesc;
    use crate::record::SideBand;
    use crate::sample::{SampleId, SampleLayout};
    use whit_types::{CpuId, Pid, Tid};

    #[test]
    fn a_record_of_losses_says_since_when_and_is_otherwise_the_kernels() {
        let all = SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::IDENTIFIER;
        for sample_type in [all, SampleType::IP | SampleType::TIME, SampleType::IP] {
            let attr = Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
            let layout = SampleLayout::new(&attr);
            let events = EventTable::new(&[EventDesc { attr, ids: vec![7], name: "e".into() }]);
            let id = SampleId {
                pid_tid: Some((Pid(1), Tid(2))),
                time: Some(TimestampNs(400)),
                id: Some(7),
                cpu: Some(CpuId(3)),
            };
            let encoder = RecordEncoder::new(layout);
            let mut out = Vec::new();
            encoder.lost(&mut out, 7, 12, Some(TimestampNs(100)), id);
            encoder.lost(&mut out, 7, 12, None, id);
            encoder.lost_samples(&mut out, 5, Some(TimestampNs(0)), id);
            encoder.lost_samples(&mut out, 5, None, id);
            let (mut rest, mut seen) = (&out[..], Vec::new());
            while let Some((record, tail)) = RawRecord::split(rest) {
                let lost = match SideBand::parse(record) {
                    Some(SideBand::Lost { id: 7, lost } | SideBand::LostSamples { lost }) => lost,
                    other => panic!("{other:?}"),
                };
                let time = events.parse_id_trailer(record).time.map(|time| time.0);
                assert_eq!(time, sample_type.contains(SampleType::TIME).then_some(400));
                seen.push((lost, events.loss_since(record).map(|since| since.0)));
                rest = tail;
            }
            assert_eq!(seen, [(12, Some(100)), (12, None), (5, Some(0)), (5, None)]);
        }
    }

    #[test]
    fn no_loss_is_said_to_be_none() {
        let text =
            |lost, paused_ns, elapsed_ns| DataLoss { lost, paused_ns, elapsed_ns }.to_string();
        assert_eq!(text(0, 0, 0), "data loss 0.00%");
        assert_eq!(text(0, 0, 100), "data loss 0.00%");
        assert_eq!(text(9, 2, 100), "data loss 2.00%");
        assert_eq!(text(9, 4, 100_000), "data loss <0.01%");
        assert_eq!(text(9, 5, 100_000), "data loss 0.01%");
        // 0.005 % exactly, also in binary fractions.
        assert_eq!(text(9, 1, 20_000), "data loss 0.01%");
        assert_eq!(text(0, 4, 100_000), "data loss <0.01%");
        assert_eq!(text(9, 0, 100), "time unknown");
        assert_eq!(text(9, 2, 0), "time unknown");
    }

    proptest! {
        /// However losses overlap, each moment counts once.
        #[test]
        fn each_moment_counts_once(all in prop::collection::vec((0u64..300, 0u64..40), 0..RECENT_MAX)) {
            let mut paused = PausedTime::default();
            let mut moments = vec![false; 400];
            for (from, len) in all {
                let to = from + len;
                let before = moments.iter().filter(|is_paused| **is_paused).count() as u64;
                (from..to).for_each(|at| moments[at as usize] = true);
                let now = moments.iter().filter(|is_paused| **is_paused).count() as u64;
                prop_assert_eq!(paused.add(TimestampNs(from), TimestampNs(to)), now - before);
                prop_assert_eq!(paused.total_ns(), now);
            }
        }
    }

    #[test]
    fn losses_that_touch_are_one() {
        let mut paused = PausedTime::default();
        let mut add = |from, to| paused.add(TimestampNs(from), TimestampNs(to));
        assert_eq!([add(10, 20), add(30, 40), add(20, 25), add(28, 30)], [10, 10, 5, 2]);
        assert_eq!([add(50, 50), add(60, 55)], [0, 0]);
        assert_eq!(paused.recent, [(10, 25), (28, 40)]);
        // In the order of time, whatever the order of adding.
        paused.add(TimestampNs(1), TimestampNs(2));
        paused.add(TimestampNs(26), TimestampNs(27));
        assert_eq!(paused.recent, [(1, 2), (10, 25), (26, 27), (28, 40)]);
    }

    #[test]
    fn memory_is_bounded_and_the_newest_are_kept() {
        let mut paused = PausedTime::default();
        for at in (0..10_000).step_by(2) {
            assert_eq!(paused.add(TimestampNs(at), TimestampNs(at + 1)), 1);
            assert_eq!(paused.add(TimestampNs(at), TimestampNs(at + 1)), 0);
        }
        assert_eq!((paused.recent.len(), paused.total_ns()), (RECENT_MAX, 5000));
    }
}
