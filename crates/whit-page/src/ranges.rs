//! Sums of any range of time, for a page that is served: from the time of each sample, where the page itself has buckets.

use super::columns::{differences, push_varint};
use super::moments::{ends, moments, page_rows};
use super::tables::Tables;
use std::ops::Range;
use whit_profile::model::Profile;
use whit_profile::switches::Switches;

/// The samples of a page in order of time: 28 bytes each.
#[derive(Debug, Default)]
pub struct Ranges {
    begin_ns: u64,
    rows: usize,
    /// Since the beginning.
    time_ns: Vec<u64>,
    row: Vec<u32>,
    samples: Vec<u64>,
    period: Vec<u64>,
}

/// The moments of a checked profile; none where it was loaded without times.
pub(crate) fn build(profile: &Profile, switches: Option<&Switches>, tables: &Tables<'_>) -> Ranges {
    let rows = tables.rows.len();
    let Some(singles) = &profile.singles else { return Ranges { rows, ..Ranges::default() } };
    let row_of = page_rows(profile, tables);
    let Some((begin_ns, _)) = ends(moments(profile, singles, &row_of), switches) else {
        return Ranges { rows, ..Ranges::default() };
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
}
