//! The tails of a difference, from resamples of blocks.
//!
//! Times of waits have heavy tails: a few blocks have most of the time. The statistic of a difference (the difference in units
//! of its own error) is then farther from zero by chance than Student's distribution says. Resamples of the blocks show
//! how far (the studentized block bootstrap), where there are blocks enough.

use crate::difference::{Difference, Tested, compare};
use crate::ratio::{Estimate, Parts, RatioSum};
use crate::student;

/// Sides with fewer parts are not resampled: many resamples would have one part alone, and no error.
const MIN_PARTS: usize = 12;

/// Resamples of a difference.
const RESAMPLES: usize = 1000;

/// The share of resamples that lie beyond the point at which their tail is compared with Student's.
const TAIL: f64 = 0.01;

/// The values of one quantity by part, with the weights that they are divided by.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Series {
    values: Vec<(f64, f64)>,
}

impl Series {
    /// For each part the weight and the value. Parts without weight do not count.
    pub fn new(parts: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let is_valid =
            |(weight, value): &(f64, f64)| weight.is_finite() && *weight > 0.0 && value.is_finite();
        Series { values: parts.into_iter().filter(is_valid).collect() }
    }

    /// The ratio of the sums, with its error; `None` where fewer than about two parts have the weight.
    pub fn estimate(&self) -> Option<Estimate> {
        let parts = Parts::new(self.values.iter().map(|part| part.0).collect())?;
        let mut sum = RatioSum::default();
        self.values.iter().enumerate().for_each(|(part, (_, value))| sum.add(&parts, part, *value));
        Some(sum.estimate(&parts))
    }

    /// The parts of both, as those of one side.
    pub fn extend(&mut self, other: &Series) {
        self.values.extend(&other.values);
    }

    /// Sums of the weights and of the values.
    pub fn sums(&self) -> (f64, f64) {
        self.values.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    /// As many parts, each chosen at random among all, and their ratio with its squared error.
    fn resample(&self, draws: &mut Draws) -> (f64, f64) {
        let count = self.values.len();
        // Sums of weight, value, and their squares and products; all parts have about the same weight.
        let (mut w, mut v, mut ww, mut wv, mut vv) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for _ in 0..count {
            let (weight, value) = self.values[draws.below(count)];
            w += weight;
            v += value;
            ww += weight * weight;
            wv += weight * value;
            vv += value * value;
        }
        let ratio = v / w;
        let residuals = (vv - 2.0 * ratio * wv + ratio * ratio * ww).max(0.0);
        let factor = count as f64 / (count as f64 - 1.0);
        (ratio, residuals * factor / (w * w))
    }
}

/// Compares two sides by their estimates. Intervals are wider where resamples of the parts have wider tails than Student's
/// distribution.
pub fn compare_resampled(
    (before, of_before): (&Tested, &Series),
    (after, of_after): (&Tested, &Series),
) -> Difference {
    let difference = compare(before, after);
    if of_before.values.len().min(of_after.values.len()) < MIN_PARTS {
        return difference;
    }
    let (one, other) = (of_before.sums(), of_after.sums());
    let true_change = other.1 / other.0 - one.1 / one.0;
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    let statistic = |_| {
        let (a, b) = (of_before.resample(&mut draws), of_after.resample(&mut draws));
        let distance = (b.0 - a.0 - true_change).abs();
        match (a.1 + b.1).sqrt() {
            error if error > 0.0 => distance / error,
            // All that scatters was left out of the resample: no distance from it is too far.
            _ if distance > 0.0 => f64::INFINITY,
            _ => 0.0,
        }
    };
    let mut statistics: Vec<f64> = (0..RESAMPLES).map(statistic).collect();
    let beyond = (RESAMPLES as f64 * TAIL) as usize;
    let (_, tail, _) = statistics.select_nth_unstable_by(RESAMPLES - 1 - beyond, f64::total_cmp);
    let expected = student::upper_quantile(TAIL / 2.0, difference.freedom());
    let factor = *tail / expected;
    if factor.is_nan() { difference } else { difference.widened(factor.clamp(1.0, MAX_FACTOR)) }
}

/// Nothing is called with wider tails.
const MAX_FACTOR: f64 = 1e3;

/// The same numbers each time: a comparison has one result.
struct Draws(u64);

impl Draws {
    /// A number below a bound (xorshift64*; the bias of the product is below 2^-32 for bounds of blocks).
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * bound as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCKS: usize = 48;

    /// Sums of waits whose lengths are a constant over a power of a number between 0 and 1.
    fn heavy(draws: &mut Draws, mean_waits: usize) -> Series {
        Series::new((0..BLOCKS).map(|_| {
            let waits = mean_waits / 2 + draws.below(mean_waits + 1);
            let wait = |draws: &mut Draws| {
                let unit = (draws.below(1 << 30) as f64 + 1.0) / f64::from(1 << 30);
                unit.powf(-1.0 / 2.2)
            };
            (1.0, (0..waits).map(|_| wait(draws)).sum())
        }))
    }

    fn compared(before: &Series, after: &Series) -> Difference {
        let tested = |series: &Series| Tested::exact(series.estimate().unwrap());
        compare_resampled((&tested(before), before), (&tested(after), after))
    }

    #[test]
    fn equal_sides_with_heavy_tails_are_rarely_called() {
        let mut draws = Draws(42);
        let pairs = 400;
        let called = (0..pairs).filter(|_| {
            let (one, other) = (heavy(&mut draws, 6), heavy(&mut draws, 6));
            compared(&one, &other).p < 0.05
        });
        let called = called.count();
        // 20 on average; 34 and more have a probability of 0.2 %.
        assert!(called < 34, "{called} of {pairs}");
    }

    /// Each value lasts for two blocks.
    #[test]
    fn equal_sides_are_rarely_called_where_blocks_depend_on_each_other() {
        let mut draws = Draws(3);
        let pairs = 400;
        let mut side = || {
            let mut value = || draws.below(1 << 20) as f64;
            let mut last = value();
            Series::new((0..BLOCKS).map(|_| {
                let next = value();
                (1.0, std::mem::replace(&mut last, next) + next)
            }))
        };
        let called = (0..pairs).filter(|_| compared(&side(), &side()).p < 0.05).count();
        // 20 on average; 66 if blocks were taken as independent.
        assert!(called < 34, "{called} of {pairs}");
    }

    #[test]
    fn a_change_of_many_waits_is_found() {
        let mut draws = Draws(7);
        let (one, mut other) = (heavy(&mut draws, 200), heavy(&mut draws, 200));
        assert!(compared(&one, &other).p > 0.001);
        other.values.iter_mut().for_each(|part| part.1 *= 1.5);
        let found = compared(&one, &other);
        assert!(found.p < 1e-4 && found.interval.0 > 0.0, "{found:?}");
    }

    #[test]
    fn one_block_with_all_of_the_time_widens_and_few_parts_do_not() {
        let side = |count: usize, last: f64| {
            Series::new((0..count).map(|at| (1.0, if at + 1 == count { last } else { 1.0 })))
        };
        let (even, odd) = (side(BLOCKS, 1.2), side(BLOCKS, 100.0));
        let tested = |series: &Series| Tested::exact(series.estimate().unwrap());
        let plain = compare(&tested(&even), &tested(&odd));
        let wide = compared(&even, &odd);
        let length = |of: &Difference| of.interval.1 - of.interval.0;
        assert!(length(&wide) > 1.5 * length(&plain), "{plain:?} {wide:?}");
        assert!(wide.p > plain.p && wide.detectable(0.05) > plain.detectable(0.05));
        let (few, others) = (side(5, 3.0), side(5, 9.0));
        assert_eq!(compared(&few, &others), compare(&tested(&few), &tested(&others)));
    }

    proptest! {
        /// The interval of any values holds the change, and is no narrower than without resamples.
        #[test]
        fn resamples_never_narrow(values in prop::collection::vec((0.1f64..9.0, 0.0f64..1e9), 24..60)) {
            let (a, b) = values.split_at(values.len() / 2);
            let (a, b) = (Series::new(a.iter().copied()), Series::new(b.iter().copied()));
            let tested = |series: &Series| Tested::exact(series.estimate().unwrap());
            let (plain, wide) = (compare(&tested(&a), &tested(&b)), compared(&a, &b));
            prop_assert!(wide.interval.0 <= plain.interval.0 && plain.interval.1 <= wide.interval.1);
            prop_assert!(wide.p >= plain.p - 1e-12 && wide.change == plain.change);
        }
    }
}
