//! How far figures can be trusted: medians of samples, taken again and again from the measurements.

use serde::Serialize;

use crate::random::Random;

/// Times that samples are taken.
const RESAMPLES: usize = 4000;
/// Share of them that an interval leaves out at each end.
const LEFT_OUT: f64 = 0.025;
/// Any number but 0: the same samples are taken each time.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A figure, and the interval that 95 in 100 of the samples come to.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Estimate {
    /// From all that was measured.
    pub(crate) value: f64,
    /// Where the interval begins.
    pub(crate) low: f64,
    /// Where it ends.
    pub(crate) high: f64,
}

/// The median; `None` of nothing.
pub(super) fn median(values: &[f64]) -> Option<Estimate> {
    estimate(&[values], |medians| medians[0])
}

/// The median of some values, of that of others. Infinite where the latter is not above 0.
pub(super) fn ratio(values: &[f64], others: &[f64]) -> Option<Estimate> {
    estimate(&[values, others], |medians| match medians[1] > 0.0 {
        true => medians[0] / medians[1],
        false => f64::INFINITY,
    })
}

/// The median of some values, less that of others.
pub(super) fn difference([values, others]: [&[f64]; 2]) -> Option<Estimate> {
    estimate(&[values, others], |medians| medians[0] - medians[1])
}

/// Such a difference, of another one. Infinite where the latter is not above 0.
pub(super) fn ratio_of_differences(
    [values, others]: [&[f64]; 2],
    [of_values, of_others]: [&[f64]; 2],
) -> Option<Estimate> {
    estimate(&[values, others, of_values, of_others], |medians| {
        let of = medians[2] - medians[3];
        if of > 0.0 { (medians[0] - medians[1]) / of } else { f64::INFINITY }
    })
}

fn estimate(sets: &[&[f64]], of: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
    if sets.iter().any(|set| set.is_empty()) {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut sample = |set: &&[f64]| {
        let drawn = (0..set.len()).map(|_| set[random.below(set.len())]);
        middle(drawn.collect())
    };
    let mut draws: Vec<f64> =
        (0..RESAMPLES).map(|_| of(&sets.iter().map(&mut sample).collect::<Vec<_>>())).collect();
    draws.sort_by(f64::total_cmp);
    let at = |share: f64| draws[((RESAMPLES - 1) as f64 * share).round() as usize];
    let value = of(&sets.iter().map(|set| middle(set.to_vec())).collect::<Vec<_>>());
    Some(Estimate { value, low: at(LEFT_OUT), high: at(1.0 - LEFT_OUT) })
}

/// The median of at least one value.
fn middle(mut values: Vec<f64>) -> f64 {
    whit_types::median(&mut values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_differences_are_certain() {
        let estimate = ratio(&[2.0; 9], &[8.0; 7]).unwrap();
        assert_eq!(estimate, Estimate { value: 0.25, low: 0.25, high: 0.25 });
        assert_eq!(median(&[]), None);
        assert_eq!(ratio(&[1.0], &[]), None);
        assert_eq!(ratio(&[1.0], &[-1.0]).unwrap().value, f64::INFINITY);
    }

    #[test]
    fn differences_are_of_medians() {
        let whole = [7.0, 9.0, 8.0];
        let certain = |value| Estimate { value, low: value, high: value };
        assert_eq!(difference([&[8.0; 3], &[3.0; 5]]), Some(certain(5.0)));
        assert_eq!(difference([&whole, &[3.0]]).unwrap().value, 5.0);
        assert_eq!(difference([&whole, &[]]), None);
        let twice = ratio_of_differences([&[13.0; 2], &[3.0]], [&[8.0; 3], &[3.0; 5]]);
        assert_eq!(twice, Some(certain(2.0)));
        let none = ratio_of_differences([&[13.0], &[3.0]], [&[3.0], &[3.0]]).unwrap();
        assert_eq!(none.value, f64::INFINITY);
    }

    #[test]
    fn more_spread_is_less_certain() {
        let width = |step: f64| {
            let values: Vec<f64> = (0..21).map(|n| 100.0 + step * f64::from(n - 10)).collect();
            let estimate = median(&values).unwrap();
            assert_eq!(estimate.value, 100.0);
            estimate.high - estimate.low
        };
        assert!(width(1.0) > 2.0 && width(1.0) < 16.0, "{}", width(1.0));
        assert!((width(4.0) / width(1.0) - 4.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn intervals_lie_within_the_measurements(
            values in prop::collection::vec(1.0f64..100.0, 1..30),
        ) {
            let estimate = median(&values).unwrap();
            let (min, max) = values.iter().fold((f64::MAX, f64::MIN), |(min, max), &value| {
                (min.min(value), max.max(value))
            });
            prop_assert!(min <= estimate.low && estimate.low <= estimate.high);
            prop_assert!(estimate.high <= max);
        }
    }
}
