//! All that the records of a stream say about its budget.

use std::sync::Arc;

use whit_types::TimestampNs;

use crate::budget::{BudgetRecord, RecordedSettings};
use crate::event_table::EventTable;
use crate::reader::Recording;
use crate::record::{RawRecord, SideBand};
use crate::stream::{StreamError, StreamReader};

mod reduction;

pub use reduction::{ReducedShares, Reduction};

/// Changes that a history has at most.
pub const CHANGES_MAX: usize = 1 << 16;
/// Intervals of a cost over time at most. Where there are more, two become one.
pub const INTERVALS_MAX: usize = 4096;

/// The settings from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsChange {
    /// On the clock of the records.
    pub from: TimestampNs,
    /// In force from then on.
    pub settings: RecordedSettings,
}

/// The mean cost in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostInterval {
    /// When the time ended.
    pub until: TimestampNs,
    /// The time that it is the mean of, which ends then.
    pub length_ms: u32,
    /// In millionths of the capacity.
    pub mean_ppm: u32,
}

/// The budget, and the settings by which it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetHistory {
    /// The cost that was allowed, in millionths of the capacity.
    pub budget_ppm: u32,
    /// CPUs that this is a share of, in thousandths, at the end.
    pub capacity_millicpus: u32,
    /// The time of the first record.
    pub begin: TimestampNs,
    /// That of the last one.
    pub end: TimestampNs,
    /// In order of time; the first one is that of the beginning.
    pub changes: Vec<SettingsChange>,
    /// Later changes that were left out.
    pub left_out: u64,
    /// The cost over time, in order of time.
    pub costs: Vec<CostInterval>,
}

impl BudgetHistory {
    /// The mean of the cost over time.
    pub fn mean_ppm(&self) -> u32 {
        let lengths = self.costs.iter().map(|cost| u64::from(cost.length_ms));
        let costs = self.costs.iter().map(|cost| u64::from(cost.mean_ppm));
        let sum: u64 = lengths.clone().zip(costs).map(|(length, cost)| length * cost).sum();
        sum.checked_div(lengths.sum()).unwrap_or(0) as u32
    }

    /// The settings in force at a moment.
    pub fn at(&self, time: TimestampNs) -> Option<RecordedSettings> {
        let found = self.changes.iter().rev().find(|change| change.from <= time);
        found.or(self.changes.first()).map(|change| change.settings)
    }
}

/// Collects the records of a stream, in the order of their times, in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct HistoryBuilder {
    history: BudgetHistory,
    /// So many intervals that were stated become one.
    merged: u32,
    /// The interval that has not all of these.
    open: Option<(CostInterval, u32)>,
}

impl HistoryBuilder {
    /// Takes the next record.
    pub fn push(&mut self, time: TimestampNs, record: &BudgetRecord) {
        let history = &mut self.history;
        if history.changes.is_empty() {
            history.begin = time;
        }
        history.budget_ppm = record.budget_ppm;
        history.capacity_millicpus = record.capacity_millicpus;
        history.end = history.end.max(time);
        if history.changes.last().is_none_or(|last| last.settings != record.settings) {
            if history.changes.len() < CHANGES_MAX {
                history.changes.push(SettingsChange { from: time, settings: record.settings });
            } else {
                history.left_out += 1;
            }
        }
        if record.mean_over_ms > 0 {
            let (length_ms, mean_ppm) = (record.mean_over_ms, record.mean_ppm);
            self.push_cost(CostInterval { until: time, length_ms, mean_ppm });
        }
    }

    fn push_cost(&mut self, new: CostInterval) {
        let (interval, count) = match self.open.take() {
            Some((open, count)) => (joined(open, new), count + 1),
            None => (new, 1),
        };
        if count < self.merged.max(1) {
            self.open = Some((interval, count));
            return;
        }
        let costs = &mut self.history.costs;
        costs.push(interval);
        if costs.len() >= INTERVALS_MAX {
            *costs = costs
                .chunks(2)
                .map(|two| two.iter().copied().reduce(joined))
                .collect::<Option<_>>()
                .unwrap_or_default();
            self.merged = self.merged.max(1).saturating_mul(2);
        }
    }

    /// Takes all that a builder of another stream has.
    pub fn merge(&mut self, other: HistoryBuilder) {
        let (Some(mine), Some(theirs)) = (self.clone().finish(), other.clone().finish()) else {
            if self.history.changes.is_empty() {
                *self = other;
            }
            return;
        };
        let [mut all, earlier] =
            if mine.end < theirs.end { [theirs, mine] } else { [mine, theirs] };
        all.begin = all.begin.min(earlier.begin);
        all.left_out += earlier.left_out;
        all.changes.extend(earlier.changes);
        all.costs.extend(earlier.costs);
        all.changes.sort_by_key(|change| change.from);
        all.changes.truncate(CHANGES_MAX);
        all.costs.sort_by_key(|cost| cost.until);
        *self = HistoryBuilder { history: all, merged: self.merged.max(other.merged), open: None };
    }

    /// `None` where no record was taken.
    pub fn finish(self) -> Option<BudgetHistory> {
        let mut history = self.history;
        history.costs.extend(self.open.map(|(interval, _)| interval));
        (!history.changes.is_empty()).then_some(history)
    }
}

fn joined(first: CostInterval, second: CostInterval) -> CostInterval {
    let sum =
        |interval: &CostInterval| u64::from(interval.length_ms) * u64::from(interval.mean_ppm);
    let length_ms = first.length_ms.saturating_add(second.length_ms);
    let mean_ppm = (sum(&first) + sum(&second)).checked_div(length_ms.into()).unwrap_or(0) as u32;
    CostInterval { until: first.until.max(second.until), length_ms, mean_ppm }
}

/// The history of a recording, by one pass over its streams; `None` where its recorder had no budget.
///
/// # Errors
/// A stream is damaged.
pub fn read_history(recording: &Recording) -> Result<Option<BudgetHistory>, StreamError> {
    let events = Arc::new(EventTable::new(&recording.events));
    let mut all = HistoryBuilder::default();
    for stream in &recording.streams {
        let mut reader = StreamReader::without_dumps(stream, &events, 1);
        let (mut builder, mut block) = (HistoryBuilder::default(), Vec::new());
        while reader.next_block(&mut block)?.is_some() {
            let mut rest = &block[..];
            while let Some((record, behind)) = RawRecord::split(rest) {
                rest = behind;
                if record.is_budget()
                    && let Some(SideBand::Budget(settings)) = SideBand::parse(record)
                {
                    let time = events.parse_id_trailer(record).time;
                    builder.push(time.unwrap_or_default(), &settings);
                }
            }
        }
        all.merge(builder);
    }
    Ok(all.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(mean_ppm: u32) -> BudgetRecord {
        BudgetRecord { budget_ppm: 1, mean_ppm, mean_over_ms: 1000, ..BudgetRecord::default() }
    }

    #[test]
    fn a_long_recording_has_longer_intervals_of_the_same_mean() {
        let mut builder = HistoryBuilder::default();
        let count = 3 * INTERVALS_MAX as u64;
        (0..count).for_each(|at| builder.push(TimestampNs(at), &cost(1000 + at as u32 % 2 * 2000)));
        let history = builder.finish().unwrap();
        assert!(history.costs.len() < INTERVALS_MAX);
        // Means are whole millionths.
        let odd = history.costs.iter().find(|cost| cost.mean_ppm.abs_diff(2000) > 2);
        assert_eq!(odd, None);
        let length: u64 = history.costs.iter().map(|cost| u64::from(cost.length_ms)).sum();
        assert_eq!(length, 1000 * count);
        assert!(history.mean_ppm().abs_diff(2000) <= 2, "{}", history.mean_ppm());
        assert_eq!(history.changes.len(), 1, "nothing has changed");
    }

    #[test]
    fn streams_have_one_history() {
        let settings = RecordedSettings { stretch: 2, ..RecordedSettings::default() };
        let (mut first, mut second) = (HistoryBuilder::default(), HistoryBuilder::default());
        first.push(TimestampNs(5), &cost(10));
        first.push(TimestampNs(9), &BudgetRecord { settings, ..cost(30) });
        second.push(TimestampNs(7), &cost(20));
        let mut all = HistoryBuilder::default();
        all.merge(first);
        all.merge(HistoryBuilder::default());
        all.merge(second);
        let all = all.finish().unwrap();
        let means: Vec<_> = all.costs.iter().map(|cost| cost.mean_ppm).collect();
        assert_eq!((all.begin, all.end, means), (TimestampNs(5), TimestampNs(9), vec![10, 20, 30]));
        assert_eq!(all.at(TimestampNs(8)), Some(RecordedSettings::default()));
        assert_eq!(all.at(TimestampNs(9)), Some(settings));
        assert_eq!(HistoryBuilder::default().finish(), None);
    }
}
