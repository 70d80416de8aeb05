//! Sums of any range of time, for a page that is served: from the time of each sample, where the page itself has buckets.

use super::columns::{differences, push_varint};
use super::moments::{ends, moments, page_rows};
use super::tables::Tables;
use std::ops::Range;
use whit_profile::model::Profile;
use whit_profile::switches::Switches;

/// Samples of a thread that an answer has at most; beyond, it says that there are more.
const MAX_LANE_SAMPLES: usize = 200_000;

/// The samples of a page in order of time: 28 bytes each.
#[derive(Debug, Default)]
pub struct Ranges {
    begin_ns: u64,
    rows: usize,
    /// The page's thread of each row.
    thread_of: Vec<u32>,
    /// Since the beginning.
    time_ns: Vec<u64>,
    row: Vec<u32>,
    samples: Vec<u64>,
    period: Vec<u64>,
}

/// The moments of a checked profile; none where it was loaded without times.
pub(crate) fn build(profile: &Profile, switches: Option<&Switches>, tables: &Tables<'_>) -> Ranges {
    let rows = tables.rows.len();
    let thread_of = tables.rows.iter().map(|row| row.thread).collect();
    let none = Ranges { rows, thread_of, ..Ranges::default() };
    let Some(singles) = &profile.singles else { return none };
    let row_of = page_rows(profile, tables);
    let Some((begin_ns, _)) = ends(moments(profile, singles, &row_of), switches) else {
        return none;
    };
    let mut all: Vec<_> = moments(profile, singles, &row_of).collect();
    all.sort_unstable_by_key(|moment| moment.0);
    Ranges {
        begin_ns,
        rows,
        time_ns: all.iter().map(|moment| moment.0 - begin_ns).collect(),
        row: all.iter().map(|moment| moment.1).collect(),
        samples: all.iter().map(|moment| moment.3).collect(),
        period: all.iter().map(|moment| moment.4).collect(),
        ..none
    }
}

impl Ranges {
    /// The first moment, by the clock of the recording: ranges count from there.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// Samples that are kept.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// True where the recording has no times.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Row, samples and period of each row of the page that has samples from the range's start up to before its end.
    pub fn sums(&self, range: Range<u64>) -> Vec<(u32, u64, u64)> {
        let place = |time| self.time_ns.partition_point(|known| *known < time);
        let (from, to) = (place(range.start), place(range.end.max(range.start)));
        let mut sums = vec![(0u64, 0u64); self.rows];
        let columns =
            self.row[from..to].iter().zip(&self.samples[from..to]).zip(&self.period[from..to]);
        for ((row, samples), period) in columns {
            let sum = &mut sums[*row as usize];
            *sum = (sum.0.saturating_add(*samples), sum.1.saturating_add(*period));
        }
        let all = sums.iter().enumerate().map(|(row, sum)| (row as u32, sum.0, sum.1));
        all.filter(|sum| sum.1 > 0 || sum.2 > 0).collect()
    }

    /// The same as LEB128 numbers: their count, then rows as differences in zigzag form, samples and periods
    /// (`web/src/source.js` reads them).
    pub fn columns(&self, range: Range<u64>) -> Vec<u8> {
        let sums = self.sums(range);
        let mut bytes = Vec::new();
        push_varint(&mut bytes, sums.len() as u64);
        differences(sums.iter().map(|sum| sum.0)).for_each(|value| push_varint(&mut bytes, value));
        sums.iter().for_each(|sum| push_varint(&mut bytes, sum.1));
        sums.iter().for_each(|sum| push_varint(&mut bytes, sum.2));
        bytes
    }

    /// The samples of a thread of the page from the range's start up to before its end. LEB128 numbers: their count, 1 where
    /// there are more than an answer has, times and rows as differences in zigzag form, samples, periods.
    pub fn lane(&self, range: Range<u64>, thread: u32) -> Vec<u8> {
        let place = |time| self.time_ns.partition_point(|known| *known < time);
        let (from, to) = (place(range.start), place(range.end.max(range.start)));
        let is_own = |at: &usize| self.thread_of.get(self.row[*at] as usize) == Some(&thread);
        let mut own: Vec<usize> = (from..to).filter(is_own).take(MAX_LANE_SAMPLES + 1).collect();
        let is_cut = own.len() > MAX_LANE_SAMPLES;
        own.truncate(MAX_LANE_SAMPLES);
        let mut bytes = Vec::new();
        push_varint(&mut bytes, own.len() as u64);
        push_varint(&mut bytes, u64::from(is_cut));
        // Times reach beyond 32 bits; they only grow.
        let mut before = 0;
        for time in own.iter().map(|at| self.time_ns[*at]) {
            push_varint(&mut bytes, (time - before).saturating_mul(2));
            before = time;
        }
        let rows = own.iter().map(|at| self.row[*at]);
        differences(rows).for_each(|value| push_varint(&mut bytes, value));
        own.iter().for_each(|at| push_varint(&mut bytes, self.samples[*at]));
        own.iter().for_each(|at| push_varint(&mut bytes, self.period[*at]));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(samples: usize) -> Ranges {
        Ranges {
            begin_ns: 0,
            rows: 3,
            thread_of: vec![7, 8, 7],
            time_ns: (0..samples as u64).map(|at| at * 10_000_000_000).collect(),
            row: (0..samples as u32).map(|at| at % 3).collect(),
            samples: vec![1; samples],
            period: vec![5; samples],
        }
    }

    fn numbers(bytes: &[u8]) -> Vec<u64> {
        let mut all = vec![(0u64, 0)];
        for byte in bytes {
            let (value, shift) = all.pop().unwrap_or_default();
            all.push((value | u64::from(byte & 0x7f) << shift, shift + 7));
            if byte & 0x80 == 0 {
                all.push((0, 0));
            }
        }
        all.pop();
        all.into_iter().map(|(value, _)| value).collect()
    }

    #[test]
    fn a_lane_has_the_samples_of_its_thread_within_the_range() {
        let lane = ranges(6).lane(10_000_000_000..50_000_000_000, 7);
        // At 20 and 30 s, of rows 2 and 0.
        let expected = [2, 0, 40_000_000_000, 20_000_000_000, 4, 3, 1, 1, 5, 5];
        assert_eq!(numbers(&lane), expected);
        assert_eq!(numbers(&ranges(6).lane(0..u64::MAX, 9)), [0, 0]);
    }

    #[test]
    fn a_lane_says_that_it_has_more_samples_than_an_answer() {
        let many = MAX_LANE_SAMPLES / 2 * 3;
        assert_eq!(numbers(&ranges(many).lane(0..u64::MAX, 7))[..2], [200_000, 0]);
        assert_eq!(numbers(&ranges(many + 3).lane(0..u64::MAX, 7))[..2], [200_000, 1]);
    }
}
