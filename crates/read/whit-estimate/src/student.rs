//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Above that, the distribution is the normal one to all digits that are shown.
const MAX_FREEDOM: f64 = 1e6;

/// The value that a t-distributed variable exceeds with this probability (at most a half); infinite for none.
pub(crate) fn upper_quantile(tail: f64, freedom: f64) -> f64 {
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    // The tail is the exact number: 1 - tail loses its digits.
    distribution(freedom).map_or(f64::INFINITY, |t| -t.inverse_cdf(tail.min(0.5)))
}

/// The probability that a t-distributed variable lies at least so far from zero, on either side.
pub(crate) fn both_tails(t: f64, freedom: f64) -> f64 {
    if t.is_nan() {
        return 1.0;
    }
    distribution(freedom).map_or(1.0, |d| (2.0 * d.sf(t.abs())).clamp(0.0, 1.0))
}

fn distribution(freedom: f64) -> Option<StudentsT> {
    let freedom = freedom.min(MAX_FREEDOM);
    (freedom > 0.0).then(|| StudentsT::new(0.0, 1.0, freedom).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Published tables print three digits behind the point.
    const PRINTED: f64 = 0.000_51;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (tail, freedom, expected) in [
            (0.025, 1.0, 12.706),
            (0.025, 4.0, 2.776),
            (0.025, 31.0, 2.040),
            (0.025, 63.0, 1.998),
            (0.005, 30.0, 2.750),
            (0.05, 10.0, 1.812),
            (0.2, 60.0, 0.848),
            (0.0005, 30.0, 3.646),
            (0.025, 1e9, 1.960),
        ] {
            let found = upper_quantile(tail, freedom);
            assert!((found - expected).abs() < PRINTED, "t({tail}, {freedom}) = {found}");
        }
        assert_eq!(upper_quantile(0.0, 5.0), f64::INFINITY);
        assert_eq!(upper_quantile(0.5, 5.0), 0.0);
        assert_eq!(upper_quantile(0.025, 0.0), f64::INFINITY);
    }

    #[test]
    fn tails_are_exact_far_out() {
        // Cauchy's distribution, in closed form: 2/pi atan(1/t).
        for t in [0.5, 3.0, 1e3, 1e6] {
            let expected = 2.0 / std::f64::consts::PI * (1.0f64 / t).atan();
            assert!((both_tails(t, 1.0) / expected - 1.0).abs() < 1e-9, "{t}");
        }
        assert_eq!(both_tails(f64::INFINITY, 9.0), 0.0);
        assert_eq!((both_tails(0.0, 9.0), both_tails(f64::NAN, 9.0)), (1.0, 1.0));
    }

    proptest! {
        /// The two functions invert each other, for fractional degrees of freedom too.
        #[test]
        fn quantile_and_tail_agree(tail in 1e-9f64..0.4999, freedom in 0.5f64..500.0) {
            let there_and_back = both_tails(upper_quantile(tail, freedom), freedom) / 2.0;
            prop_assert!((there_and_back / tail - 1.0).abs() < 1e-5, "{} {}", there_and_back, tail);
        }
    }
}
