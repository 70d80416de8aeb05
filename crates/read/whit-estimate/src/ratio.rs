//! The ratio of two sums, and its error from the scatter between parts.

use crate::student;

/// How often an interval holds the true value.
pub const LEVEL: f64 = 0.95;

/// Fewest degrees of freedom that give an error: less than about two equal parts are no scatter.
const MIN_FREEDOM: f64 = 0.5;

/// Fewer parts say nothing of how much neighbours depend on each other.
const MIN_NEIGHBOURS: usize = 12;

/// The parts of one side in order of time: for each the weight that values are divided by.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    weights: Vec<f64>,
    total: f64,
    /// Sum over parts of the squared weight times its factor; see [`Parts::factor`].
    squares: f64,
    /// Sum of the products of the weights of neighbours, 0 for few parts.
    neighbours: f64,
    freedom: f64,
}

impl Parts {
    /// Parts of these weights. Weights that are not positive stand for empty parts. `None` where fewer than about two
    /// parts have the weight: they tell nothing of an error.
    pub fn new(weights: Vec<f64>) -> Option<Parts> {
        let positive =
            |weight: &f64| if weight.is_finite() && *weight > 0.0 { *weight } else { 0.0 };
        let weights: Vec<f64> = weights.iter().map(positive).collect();
        let total: f64 = weights.iter().sum();
        let squared: f64 = weights.iter().map(|weight| (weight / total).powi(2)).sum();
        // As many equal parts would scatter as much; empty parts count nothing.
        let freedom = 1.0 / squared - 1.0;
        if !total.is_finite() || total <= 0.0 || freedom.is_nan() || freedom < MIN_FREEDOM {
            return None;
        }
        let mut parts = Parts { weights, total, squares: 0.0, neighbours: 0.0, freedom };
        let all = 0..parts.weights.len();
        parts.squares = all.map(|part| parts.factor(part) * parts.weights[part].powi(2)).sum();
        if parts.count() >= MIN_NEIGHBOURS {
            parts.neighbours = parts.weights.windows(2).map(|pair| pair[0] * pair[1]).sum();
        }
        Some(parts)
    }

    /// Sum of the weights.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Parts that have weight.
    pub fn count(&self) -> usize {
        self.weights.iter().filter(|weight| **weight > 0.0).count()
    }

    /// Degrees of freedom of an error that comes from these parts: one less than as many equal parts.
    pub fn freedom(&self) -> f64 {
        self.freedom
    }

    /// The intervals of shares of these parts; `samples` is the number of all samples.
    pub fn share_intervals(&self, samples: f64) -> ShareIntervals {
        ShareIntervals::new(self.freedom, samples)
    }

    /// A part pulls the common ratio towards its own, so that its residual is too small by its share of the weight. For
    /// n equal parts this is n/(n-1), as in every variance.
    fn factor(&self, part: usize) -> f64 {
        1.0 / (1.0 - self.weights[part] / self.total)
    }

    /// The weights of the parts before and behind a part.
    fn around(&self, part: usize) -> f64 {
        let weight = |part: usize| self.weights.get(part).copied().unwrap_or_default();
        weight(part + 1) + part.checked_sub(1).map_or(0.0, weight)
    }
}

/// Sums of one quantity over parts. Parts without any of it need not be added.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RatioSum {
    sum: f64,
    squares: f64,
    products: f64,
    /// Products of the values of neighbours.
    neighbours: f64,
    /// Products of values and the weights around them.
    around: f64,
    /// The part that was added last, and its value.
    last: (usize, f64),
}

impl RatioSum {
    /// Adds the value of a part. Each part is added once, in order. A part without weight adds nothing.
    pub fn add(&mut self, parts: &Parts, part: usize, value: f64) {
        let Some(weight) = parts.weights.get(part).filter(|weight| **weight > 0.0) else { return };
        debug_assert!(self.sum == 0.0 || part > self.last.0, "{part} behind {}", self.last.0);
        let factor = parts.factor(part);
        self.sum += value;
        self.squares += factor * value * value;
        self.products += factor * value * weight;
        if part == self.last.0 + 1 {
            self.neighbours += value * self.last.1;
        }
        self.around += value * parts.around(part);
        self.last = (part, value);
    }

    /// The ratio of the sum to the parts' total weight.
    pub fn estimate(&self, parts: &Parts) -> Estimate {
        let value = self.sum / parts.total;
        // The squared residuals, value less ratio times weight, multiplied out.
        let residuals = self.squares - 2.0 * value * self.products + value * value * parts.squares;
        let residuals = residuals.max(0.0);
        // The scatter of a sum counts twice what lasts from one part into the next.
        let variance = residuals + 2.0 * self.covariance(value, parts).clamp(0.0, residuals);
        let variance = variance / (parts.total * parts.total);
        Estimate { value, variance, freedom: parts.freedom }
    }

    /// Sum of the products of the residuals of neighbours, multiplied out; 0 for few parts.
    fn covariance(&self, value: f64, parts: &Parts) -> f64 {
        match parts.neighbours {
            0.0 => 0.0,
            neighbours => self.neighbours - value * self.around + value * value * neighbours,
        }
    }
}

/// A ratio with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The ratio.
    pub value: f64,
    /// Its squared standard error.
    pub variance: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

impl Estimate {
    /// Standard error.
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Half the width of the symmetric interval at [`LEVEL`].
    pub fn half_width(&self) -> f64 {
        student::upper_quantile((1.0 - LEVEL) / 2.0, self.freedom) * self.error()
    }

    /// The same estimate times a number that is known without an error.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Estimate {
        let variance = self.variance * factor * factor;
        Estimate { value: self.value * factor, variance, freedom: self.freedom }
    }

    /// The variance is at least `least`: a function without any sample may have been missed by chance.
    #[must_use]
    pub fn with_least_variance(&self, least: f64) -> Estimate {
        Estimate { variance: self.variance.max(least), ..*self }
    }

    /// The interval of a share; those of many shares of the same parts come from [`Parts::share_intervals`].
    pub fn share_interval(&self, samples: f64) -> (f64, f64) {
        ShareIntervals::new(self.freedom, samples).of(self)
    }
}

/// The intervals of shares of the same parts. They have one quantile, and finding it takes longer than all else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareIntervals {
    quantile: f64,
    samples: f64,
}

impl ShareIntervals {
    fn new(freedom: f64, samples: f64) -> ShareIntervals {
        ShareIntervals { quantile: student::upper_quantile((1.0 - LEVEL) / 2.0, freedom), samples }
    }

    /// The interval of a share between 0 and 1 at [`LEVEL`], by Wilson's formula: it stays inside 0 and 1, and is right
    /// for shares of few samples. Its number of samples is the number of independent ones that would scatter as
    /// much; that of all samples is taken where nothing scatters.
    pub fn of(&self, estimate: &Estimate) -> (f64, f64) {
        let share = estimate.value.clamp(0.0, 1.0);
        let (spread, variance) = (share * (1.0 - share), estimate.variance);
        let n = if variance > 0.0 && spread > 0.0 { spread / variance } else { self.samples };
        let t = self.quantile;
        if n.is_nan() || n <= 0.0 || !t.is_finite() {
            return (0.0, 1.0);
        }
        let weight = 1.0 + t * t / n;
        let middle = (share + t * t / (2.0 * n)) / weight;
        let half = t / weight * (spread / n + t * t / (4.0 * n * n)).sqrt();
        ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimate(weights: &[f64], values: &[f64]) -> Estimate {
        let parts = Parts::new(weights.to_vec()).unwrap();
        let mut sum = RatioSum::default();
        values.iter().enumerate().for_each(|(part, value)| sum.add(&parts, part, *value));
        sum.estimate(&parts)
    }

    /// The error over equal parts is that of a mean: the textbook's formula.
    #[test]
    fn equal_parts_give_the_error_of_a_mean() {
        let values = [3.0, 5.0, 4.0, 8.0];
        let found = estimate(&[10.0; 4], &values);
        let mean = values.iter().sum::<f64>() / 4.0;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let expected = squares / 3.0 / 4.0 / 100.0;
        assert_eq!(found.value, 0.5);
        assert!((found.variance - expected).abs() < 1e-12);
        assert!((found.freedom - 3.0).abs() < 1e-12);
    }

    #[test]
    fn one_part_gives_no_error() {
        assert_eq!(Parts::new(vec![]), None);
        assert_eq!(Parts::new(vec![5.0]), None);
        assert_eq!(Parts::new(vec![0.0, 0.0]), None);
        assert_eq!(Parts::new(vec![5.0, 0.0, f64::NAN, -1.0, f64::INFINITY]), None);
        assert_eq!(Parts::new(vec![1000.0, 1.0]), None);
        assert_eq!(Parts::new(vec![4.0, 5.0, 0.0]).unwrap().count(), 2);
    }

    /// Halves that differ, and values that take turns.
    #[test]
    fn what_lasts_from_part_to_part_makes_the_error_larger() {
        let of = |values: &[f64]| estimate(&vec![1.0; values.len()], values).variance;
        let turns: Vec<f64> = (0..16).map(|part| f64::from(part % 2)).collect();
        let halves: Vec<f64> = (0..16).map(|part| f64::from(part / 8)).collect();
        // 16 residuals of a half; one of the 15 products of neighbours is negative.
        let independent = 16.0 * 0.25 * 16.0 / 15.0;
        assert!((of(&turns) * 256.0 - independent).abs() < 1e-9);
        assert!((of(&halves) * 256.0 - (independent + 2.0 * (14.0 - 1.0) * 0.25)).abs() < 1e-9);
        let few: Vec<f64> = (0..8).map(|part| f64::from(part / 4)).collect();
        assert!((of(&few) * 64.0 - 8.0 * 0.25 * 8.0 / 7.0).abs() < 1e-9);
    }

    #[test]
    fn empty_parts_change_nothing() {
        let with = estimate(&[10.0, 0.0, 10.0, 10.0], &[1.0, 9.0, 2.0, 3.0]);
        assert_eq!(with, estimate(&[10.0, 10.0, 10.0], &[1.0, 2.0, 3.0]));
    }

    #[test]
    fn intervals_of_shares_stay_inside() {
        let one_of_many = Estimate { value: 0.001, variance: 1e-6, freedom: 31.0 };
        let (low, high) = one_of_many.share_interval(1000.0);
        assert!(low > 0.0 && low < 0.001 && high > 0.004 && high < 0.01, "{low} {high}");
        let all = Estimate { value: 1.0, variance: 0.0, freedom: 31.0 };
        let (low, high) = all.share_interval(100.0);
        assert!(low > 0.95 && low < 0.97 && high == 1.0, "{low}");
        let wide = Estimate { value: 0.5, variance: 1e-4, freedom: 1e6 };
        let (low, high) = wide.share_interval(1.0);
        assert!((low - 0.4804).abs() < 1e-4 && (high - 0.5196).abs() < 1e-4, "{low} {high}");
        assert_eq!(wide.share_interval(f64::NAN), (low, high));
        assert_eq!(all.share_interval(0.0), (0.0, 1.0));
    }

    proptest! {
        /// The multiplied-out residuals are those of the definition.
        #[test]
        fn residuals_are_those_of_the_definition(
            parts in prop::collection::vec((1.0f64..1e6, 0.0f64..1.0), 3..60),
        ) {
            let weights: Vec<f64> = parts.iter().map(|part| part.0).collect();
            prop_assume!(Parts::new(weights.clone()).is_some());
            let values: Vec<f64> = parts.iter().map(|part| part.0 * part.1).collect();
            let found = estimate(&weights, &values);
            let total: f64 = weights.iter().sum();
            let ratio = values.iter().sum::<f64>() / total;
            let residuals: Vec<f64> =
                weights.iter().zip(&values).map(|(weight, value)| value - ratio * weight).collect();
            let square = |(weight, residual): (&f64, &f64)| residual.powi(2) / (1.0 - weight / total);
            let squares = weights.iter().zip(&residuals).map(square).sum::<f64>();
            let of_neighbours = match residuals.len() < MIN_NEIGHBOURS {
                true => 0.0,
                false => residuals.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>(),
            };
            let expected = (squares + 2.0 * of_neighbours.clamp(0.0, squares)) / (total * total);
            prop_assert!((found.value - ratio).abs() < 1e-12);
            // The terms that cancel are below 60 parts of weight 1, each exact to 1e-16.
            prop_assert!((found.variance - expected).abs() < 1e-13, "{} {}", found.variance, expected);
        }

        /// Neither the order of parts nor the unit of weights matters.
        #[test]
        fn order_and_unit_do_not_matter(
            parts in prop::collection::vec((1.0f64..100.0, 0.0f64..1.0), 3..40), unit in 0.01f64..100.0,
        ) {
            let weights: Vec<f64> = parts.iter().map(|part| part.0).collect();
            prop_assume!(Parts::new(weights.clone()).is_some());
            let values: Vec<f64> = parts.iter().map(|part| part.0 * part.1).collect();
            let one = estimate(&weights, &values);
            let turned = |list: &[f64]| list.iter().rev().map(|x| x * unit).collect::<Vec<_>>();
            let other = estimate(&turned(&weights), &turned(&values));
            prop_assert!((one.value - other.value).abs() < 1e-12);
            prop_assert!((one.variance - other.variance).abs() < 1e-12);
        }

        /// Shares of the same parts have the intervals that each has by itself.
        #[test]
        fn intervals_of_the_same_parts_are_those_of_each(
            weights in prop::collection::vec(50.0f64..100.0, 3..20), value in 0.0f64..=1.0,
            variance in 0.0f64..0.1, n in 1.0f64..1e6,
        ) {
            let parts = Parts::new(weights).unwrap();
            let estimate = Estimate { value, variance, freedom: parts.freedom() };
            prop_assert_eq!(parts.share_intervals(n).of(&estimate), estimate.share_interval(n));
        }

        /// Any numbers give an interval around the share.
        #[test]
        fn intervals_hold_the_share(value in 0.0f64..=1.0, variance in 0.0f64..1.0, freedom in 0.5f64..1e7, n in 0.0f64..1e9) {
            let (low, high) = Estimate { value, variance, freedom }.share_interval(n);
            prop_assert!(0.0 <= low && low <= value && value <= high && high <= 1.0);
        }
    }
}
