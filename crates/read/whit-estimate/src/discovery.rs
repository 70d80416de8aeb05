//! Many tests at once, by Benjamini and Hochberg.

/// The share of false ones among the differences that are called.
const FALSE_SHARE: f64 = 0.05;

/// Which of many differences are called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discoveries {
    /// Largest probability that is called; nothing is called where it is negative.
    threshold: f64,
    /// The level at which one more test would have been judged.
    level: f64,
    /// The share of false ones within the called rows, so that it is that of all.
    share: f64,
}

impl Discoveries {
    /// Whether a difference of this probability is called.
    pub fn calls(&self, p: f64) -> bool {
        p <= self.threshold
    }

    /// The level of the test that a further difference would have to pass.
    pub fn level(&self) -> f64 {
        self.level
    }
}

/// Judges all tests together, given their probabilities: at most 5 % of the called differences are false on average;
/// and where no difference is real, at most 5 % of all comparisons call any.
pub fn discoveries(probabilities: impl IntoIterator<Item = f64>) -> Discoveries {
    discoveries_at(FALSE_SHARE, probabilities)
}

/// The same with another share of false ones: of the tests of one row among several, where `found` has judged the rows.
pub fn discoveries_within(
    found: &Discoveries,
    probabilities: impl IntoIterator<Item = f64>,
) -> Discoveries {
    discoveries_at(found.share, probabilities)
}

/// The probability that all of several tests found chance alone (Simes): rows with several tests are judged by it.
pub fn combined(probabilities: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = probabilities.into_iter().filter(|p| !p.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let of_rank = sorted.iter().zip(1..).map(|(p, rank)| p * count / f64::from(rank));
    of_rank.fold(1.0, f64::min)
}

fn discoveries_at(share: f64, probabilities: impl IntoIterator<Item = f64>) -> Discoveries {
    let mut sorted: Vec<f64> = probabilities.into_iter().filter(|p| !p.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let level = |rank: usize| share * rank as f64 / sorted.len().max(1) as f64;
    let called =
        (1..=sorted.len()).rev().find(|rank| sorted[rank - 1] <= level(*rank)).unwrap_or(0);
    let threshold = if called == 0 { -1.0 } else { sorted[called - 1] };
    let next = (called + 1).min(sorted.len().max(1));
    let of_rows = if sorted.is_empty() { share } else { level(called) };
    let level = if sorted.is_empty() { share } else { level(next) };
    Discoveries { threshold, level, share: of_rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of the paper (Benjamini and Hochberg 1995, section 4.1): four of fifteen.
    #[test]
    fn the_papers_example() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let found = discoveries_at(0.05, p);
        assert_eq!(p.iter().filter(|p| found.calls(**p)).count(), 4);
        assert!((found.level() - 0.05 * 5.0 / 15.0).abs() < 1e-12);
    }

    #[test]
    fn one_test_is_judged_alone_and_none_calls_nothing() {
        assert!(discoveries([0.05]).calls(0.05) && !discoveries([0.051]).calls(0.051));
        assert!(!discoveries([]).calls(0.0));
        assert_eq!(discoveries([]).level(), FALSE_SHARE);
        assert!(!discoveries([f64::NAN, 0.9]).calls(0.05));
    }

    /// Two rows of ten are called: the tests of each are judged at a fifth of the level (Benjamini and Bogomolov 2014).
    #[test]
    fn tests_of_rows_are_judged_at_the_share_of_called_rows() {
        assert!((combined([0.04, 0.01, 0.03]) - 0.03).abs() < 1e-12);
        assert_eq!((combined([]), combined([0.5, 0.9])), (1.0, 0.9));
        let rows = [0.001, 0.002].into_iter().chain([0.5; 8]);
        let found = discoveries(rows);
        let within = discoveries_within(&found, [0.004, 0.011, 0.5]);
        assert!(!within.calls(0.004) && discoveries_within(&found, [0.003, 0.6]).calls(0.003));
        assert!(!discoveries_within(&discoveries([0.5, 0.6]), [0.0001]).calls(0.0001));
    }

    proptest! {
        /// As the definition says it: the largest rank whose probability is below its line.
        #[test]
        fn equals_the_definition(p in prop::collection::vec(0.0f64..0.2, 0..40)) {
            let found = discoveries(p.iter().copied());
            let below = |p: f64, all: &[f64]| all.iter().filter(|q| **q <= p).count() as f64;
            for one in &p {
                let expected = p.iter().any(|q| q >= one && *q <= FALSE_SHARE * below(*q, &p) / p.len() as f64);
                prop_assert_eq!(found.calls(*one), expected);
            }
        }
    }
}
