//! Latency: samples weighed by the time that they stand for, not by the CPU time.
//!
//! While n threads of the profiled set run, a sample counts for 1/n of its period. So the weights of all samples
//! together are the time in which anything of the set ran. A sample whose parallelism is unknown has no such
//! weight, nor has one of the idle task.

use std::str::FromStr;

use whit_profile::model::{Profile, SampleRow};
use whit_profile::parallelism::Parallelism;

/// Bits behind the point of a latency weight, where periods leave room for them.
const MAX_FRACTION_BITS: u32 = 20;

/// A column of shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightColumn {
    /// Shares of the periods: CPU time.
    Overhead,
    /// Shares of the latency weights: elapsed time.
    Latency,
}

/// The columns of shares; rows are ordered by the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WeightColumns {
    /// CPU time alone.
    #[default]
    Overhead,
    /// CPU time, and latency beside it.
    OverheadAndLatency,
    /// Latency, and CPU time beside it.
    LatencyAndOverhead,
    /// Latency alone.
    Latency,
}

impl WeightColumns {
    /// The columns in the order in which a list names them; with none, CPU time alone.
    pub fn of(list: &[WeightColumn]) -> WeightColumns {
        let latency = list.iter().position(|column| *column == WeightColumn::Latency);
        let overhead = list.iter().position(|column| *column == WeightColumn::Overhead);
        match (overhead, latency) {
            (_, None) => WeightColumns::Overhead,
            (None, Some(_)) => WeightColumns::Latency,
            (Some(first), Some(second)) if first < second => WeightColumns::OverheadAndLatency,
            _ => WeightColumns::LatencyAndOverhead,
        }
    }

    /// The columns, the one that orders rows first.
    pub fn list(self) -> &'static [WeightColumn] {
        use WeightColumn::{Latency, Overhead};
        match self {
            WeightColumns::Overhead => &[Overhead],
            WeightColumns::OverheadAndLatency => &[Overhead, Latency],
            WeightColumns::LatencyAndOverhead => &[Latency, Overhead],
            WeightColumns::Latency => &[Latency],
        }
    }

    /// True where latency is computed.
    pub fn has_latency(self) -> bool {
        self != WeightColumns::Overhead
    }

    /// True where rows and call chains are ordered by latency.
    pub fn by_latency(self) -> bool {
        matches!(self, WeightColumns::LatencyAndOverhead | WeightColumns::Latency)
    }
}

/// Levels of parallelism; empty, all of them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Levels(Vec<(u32, u32)>);

/// A list of levels that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no list of numbers of threads: give numbers and ranges from 1 on, as in 1-4,8")]
pub struct BadLevels(String);

impl FromStr for Levels {
    type Err = BadLevels;

    fn from_str(text: &str) -> Result<Levels, BadLevels> {
        let range = |part: &str| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let range: (u32, u32) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
            (range.0 >= 1 && range.0 <= range.1).then_some(range)
        };
        let all: Option<Vec<_>> = text.split(',').map(range).collect();
        all.map(Levels).ok_or_else(|| BadLevels(text.to_owned()))
    }
}

impl Levels {
    /// True where every sample passes.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Samples of unknown parallelism pass no list.
    pub(super) fn has(&self, parallelism: Option<Parallelism>) -> bool {
        let count = match parallelism {
            _ if self.is_all() => return true,
            Some(Parallelism::Threads(count)) => count,
            Some(Parallelism::Unknown) | None => return false,
        };
        self.0.iter().any(|(from, to)| (*from..=*to).contains(&count))
    }
}

/// Gives sums of samples their weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Weigher {
    columns: WeightColumns,
    fraction_bits: u32,
}

/// A weight by which rows are ordered, and the other one where both are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct WeightPair {
    pub(super) first: u64,
    pub(super) other: u64,
}

impl Weigher {
    /// For samples whose periods add up to `total_period`. The latency weights add up to no more than 64 bits hold.
    pub(super) fn new(columns: WeightColumns, total_period: u64) -> Weigher {
        let room = total_period.leading_zeros().saturating_sub(1);
        Weigher { columns, fraction_bits: room.min(MAX_FRACTION_BITS) }
    }

    /// Latency weights that make one unit of a period.
    pub(super) fn latency_unit(self) -> u64 {
        1 << self.fraction_bits
    }

    pub(super) fn has_latency(self) -> bool {
        self.columns.has_latency()
    }

    #[inline]
    pub(super) fn weigh(self, profile: &Profile, row: &SampleRow) -> WeightPair {
        if !self.columns.has_latency() {
            return WeightPair { first: row.period, other: 0 };
        }
        let latency = match profile.facets_of(row).and_then(|facets| facets.parallelism) {
            Some(Parallelism::Threads(count @ 1..)) => {
                let whole = u128::from(row.period) << self.fraction_bits;
                // No more than the period with its fraction, which has room.
                (whole / u128::from(count)) as u64
            }
            _ => 0,
        };
        self.pair(row.period, latency)
    }

    pub(super) fn pair(self, period: u64, latency: u64) -> WeightPair {
        match self.columns.by_latency() {
            true => WeightPair { first: latency, other: period },
            false => WeightPair { first: period, other: latency },
        }
    }

    /// Period and latency.
    pub(super) fn split(self, pair: WeightPair) -> (u64, u64) {
        match self.columns.by_latency() {
            true => (pair.other, pair.first),
            false => (pair.first, pair.other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_written_as_they_are_named() {
        use WeightColumn::{Latency, Overhead};
        for list in [&[Overhead][..], &[Latency], &[Overhead, Latency], &[Latency, Overhead]] {
            assert_eq!(WeightColumns::of(list).list(), list);
        }
        assert_eq!(WeightColumns::of(&[]), WeightColumns::Overhead);
        assert!(WeightColumns::Latency.by_latency());
        assert!(!WeightColumns::OverheadAndLatency.by_latency());
    }

    #[test]
    fn levels_are_numbers_and_ranges() {
        let levels: Levels = "1-4,8".parse().unwrap();
        let has = |count| levels.has(Some(Parallelism::Threads(count)));
        assert_eq!((0..10).filter(|count| has(*count)).collect::<Vec<_>>(), [1, 2, 3, 4, 8]);
        assert!(!levels.has(Some(Parallelism::Unknown)) && !levels.has(None));
        assert!(Levels::default().has(None));
        for bad in ["", "0", "4-1", "1,,2", "x", "1-", "-3"] {
            assert!(bad.parse::<Levels>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_largest_periods_have_room() {
        for total in [0, 1, 1 << 40, u64::MAX >> 1, u64::MAX] {
            let weigher = Weigher::new(WeightColumns::Latency, total);
            assert!(u128::from(total) * u128::from(weigher.latency_unit()) <= u128::from(u64::MAX));
        }
    }
}
