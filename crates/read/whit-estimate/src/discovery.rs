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
    let mut sorted: Vec<f64> = probabilities.into_iter().filter(|p| !p.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let level = |rank: usize| FALSE_SHARE * rank as f64 / sorted.len().max(1) as f64;
    let called =
        (1..=sorted.len()).rev().find(|rank| sorted[rank - 1] <= level(*rank)).unwrap_or(0);
    let threshold = if called == 0 { -1.0 } else { sorted[called - 1] };
    let next = (called + 1).min(sorted.len().max(1));
    Discoveries { threshold, level: if sorted.is_empty() { FALSE_SHARE } else { level(next) } }
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
        let found = discoveries(p);
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
