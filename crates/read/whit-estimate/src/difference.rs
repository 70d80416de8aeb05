//! The difference of two estimates, tested.

use crate::ratio::{Estimate, LEVEL};
use crate::student;

/// How often a difference of the smallest size that is stated would have been called.
pub const POWER: f64 = 0.8;

/// One side of a test: an estimate, and the range in which its value may lie because samples were lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The estimate from the recorded samples.
    pub estimate: Estimate,
    /// Least and greatest value that the lost samples allow.
    pub range: (f64, f64),
}

impl Tested {
    /// No samples were lost.
    pub fn exact(estimate: Estimate) -> Tested {
        Tested { estimate, range: (estimate.value, estimate.value) }
    }
}

/// A tested difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// After less before, of the recorded samples.
    pub change: f64,
    /// Interval of the change, losses included.
    pub interval: (f64, f64),
    /// Probability of a change at least so large where there is none, whatever the lost samples were.
    pub p: f64,
    error: f64,
    freedom: f64,
    /// The change nearest to none that the lost samples allow.
    nearest: f64,
    /// By how much the lost samples may hide a change.
    slack: f64,
}

impl Difference {
    /// The smallest difference that would have been called in [`POWER`] of all cases, at a level for one test.
    pub fn detectable(&self, level: f64) -> f64 {
        let quantile = |tail| student::upper_quantile(tail, self.freedom);
        (quantile(level / 2.0) + quantile(1.0 - POWER)) * self.error + self.slack
    }
}

impl Difference {
    /// Degrees of freedom of the error.
    pub(crate) fn freedom(&self) -> f64 {
        self.freedom
    }

    /// The same with an error that is so many times as large: the tails are wider than those of Student's distribution.
    pub(crate) fn widened(&self, factor: f64) -> Difference {
        let half = |error: f64| student::upper_quantile((1.0 - LEVEL) / 2.0, self.freedom) * error;
        let more = half(self.error) * (factor - 1.0);
        let error = self.error * factor;
        Difference {
            interval: (self.interval.0 - more, self.interval.1 + more),
            p: probability(self.nearest, error, self.freedom),
            error,
            ..*self
        }
    }
}

/// Compares two estimates that are independent of each other: Welch's test, with Satterthwaite's degrees of freedom.
pub fn compare(before: &Tested, after: &Tested) -> Difference {
    let (a, b) = (before.estimate, after.estimate);
    let variance = a.variance + b.variance;
    let error = variance.sqrt();
    let scatter = |one: Estimate| one.variance * one.variance / one.freedom;
    let freedom = match scatter(a) + scatter(b) {
        all if all > 0.0 => variance * variance / all,
        _ => a.freedom.min(b.freedom),
    };
    let least = after.range.0 - before.range.1;
    let greatest = after.range.1 - before.range.0;
    let nearest = if least > 0.0 { least } else { greatest.min(0.0) };
    let p = probability(nearest, error, freedom);
    let half = student::upper_quantile((1.0 - LEVEL) / 2.0, freedom) * error;
    let change = b.value - a.value;
    let slack = (greatest - change).max(change - least).max(0.0);
    Difference {
        change,
        interval: (least - half, greatest + half),
        p,
        error,
        freedom,
        nearest,
        slack,
    }
}

fn probability(change: f64, error: f64, freedom: f64) -> f64 {
    if change == 0.0 { 1.0 } else { student::both_tails(change / error, freedom) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Loss;
    use proptest::prelude::*;

    fn exact(value: f64, variance: f64, freedom: f64) -> Tested {
        Tested::exact(Estimate { value, variance, freedom })
    }

    /// Two samples of 15: means 20.8 and 23.0, variances of the means 0.5227 and 0.2787, 14 degrees of freedom each.
    #[test]
    fn welchs_test_is_that_of_the_textbook() {
        let d = compare(&exact(20.8, 0.5227, 14.0), &exact(23.0, 0.2787, 14.0));
        let t = 2.2 / (0.5227f64 + 0.2787).sqrt();
        assert!((d.freedom - 25.62).abs() < 0.01, "{}", d.freedom);
        assert!((t - 2.4576).abs() < 1e-3 && (d.p - 0.0211).abs() < 5e-4, "{}", d.p);
        assert!((d.interval.0 - 0.3585).abs() < 2e-3, "{:?}", d.interval);
    }

    #[test]
    fn nothing_that_scatters_is_certain() {
        assert_eq!(compare(&exact(0.5, 0.0, 31.0), &exact(0.5, 0.0, 31.0)).p, 1.0);
        assert_eq!(compare(&exact(0.5, 0.0, 31.0), &exact(0.6, 0.0, 31.0)).p, 0.0);
    }

    #[test]
    fn lost_samples_take_certainty_away() {
        let side = |value: f64, loss: Loss| {
            let estimate = Estimate { value, variance: 1e-6, freedom: 31.0 };
            Tested { estimate, range: loss.widen((value, value)) }
        };
        let clear = compare(&side(0.10, Loss::NONE), &side(0.11, Loss::NONE));
        assert!(clear.p < 1e-6);
        let lossy = compare(&side(0.10, Loss::new(2.0, 100.0)), &side(0.11, Loss::NONE));
        assert_eq!(lossy.p, 1.0);
        assert!(lossy.interval.0 < clear.interval.0 && lossy.interval.1 > clear.interval.1);
        assert!(lossy.detectable(0.05) > clear.detectable(0.05) + 0.01);
    }

    proptest! {
        /// Both directions are judged alike.
        #[test]
        fn the_test_is_symmetric(
            a in -10.0f64..10.0, b in -10.0f64..10.0, va in 1e-6f64..1.0, vb in 1e-6f64..1.0,
        ) {
            let (one, two) = (exact(a, va, 20.0), exact(b, vb, 30.0));
            let (there, back) = (compare(&one, &two), compare(&two, &one));
            prop_assert!((there.p - back.p).abs() < 1e-12 && there.change == -back.change);
            prop_assert!(there.freedom >= 20.0 - 1e-9 && there.freedom <= 50.0 + 1e-9);
            prop_assert!(there.interval.0 <= there.change && there.change <= there.interval.1);
        }
    }
}
