//! Quantiles by order statistics.

use crate::difference::Tested;
use crate::ratio::{Estimate, LEVEL};
use crate::resample::Series;
use crate::student;

/// The quantile of durations, `values` in ascending order, by the values at the ranks that its error allows (Woodruff's interval). `unknown`
/// values are missing, and may be anything: the range is of the ranks that they allow.
///
/// `below` has for each part the number of values, and the number of those that are not above the quantile: where they
/// come in clusters, the share of those scatters more than that of independent values.
///
/// `None` without two values.
pub fn quantile(values: &[f64], share: f64, below: &Series, unknown: u64) -> Option<Tested> {
    let count = values.len();
    if count < 2 || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let n = count as f64;
    let independent = share * (1.0 - share) / n;
    let scatter = below.estimate();
    let variance = scatter.map_or(independent, |it| it.variance.max(independent));
    let freedom = scatter.map_or(n - 1.0, |it| it.freedom);
    let limit = student::upper_quantile((1.0 - LEVEL) / 2.0, freedom);
    let half = limit * variance.sqrt();
    let at = |rank: f64| values[(rank.ceil().max(1.0) as usize).min(count) - 1];
    let value = at(share * n);
    let (low, high) = (at((share - half) * n), at((share + half) * n + 1.0));
    // The longer side stands for both.
    let error = (value - low).max(high - value) / limit;
    let estimate = Estimate { value, variance: error * error, freedom };
    let all = n + unknown as f64;
    let range = (at(share * all - unknown as f64).min(value), at(share * all).max(value));
    // Where the missing values may be the longest of all, nothing bounds the quantile.
    let is_bounded = share * all <= n || unknown == 0;
    let range = (range.0, if is_bounded { range.1 } else { f64::MAX });
    Some(Tested { estimate, range })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascending(count: usize) -> Vec<f64> {
        (1..=count).map(|value| value as f64).collect()
    }

    /// The median of 100 values lies between the 40th and the 61st of them in 95 of 100 cases.
    #[test]
    fn the_median_of_independent_values_has_the_ranks_of_the_textbook() {
        let found = quantile(&ascending(100), 0.5, &Series::default(), 0).unwrap();
        assert_eq!(found.estimate.value, 50.0);
        let half = found.estimate.half_width();
        assert!((10.0..=11.5).contains(&half), "{half}");
        assert_eq!(found.range, (50.0, 50.0));
    }

    #[test]
    fn clusters_widen_the_interval() {
        let values = ascending(400);
        let alone = quantile(&values, 0.5, &Series::default(), 0).unwrap();
        // Blocks of 20 values that all lie on one side of the median.
        let blocks =
            Series::new((0..20).map(|block| (20.0, if block % 2 == 0 { 20.0 } else { 0.0 })));
        let clustered = quantile(&values, 0.5, &blocks, 0).unwrap();
        let times = clustered.estimate.error() / alone.estimate.error();
        assert!((3.5..6.0).contains(&times), "{times}");
    }

    #[test]
    fn missing_values_move_the_rank_both_ways() {
        let values = ascending(100);
        let found = quantile(&values, 0.5, &Series::default(), 20).unwrap();
        assert_eq!(found.range, (40.0, 60.0));
        let high = quantile(&values, 0.99, &Series::default(), 20).unwrap();
        assert_eq!(high.range.1, f64::MAX);
        assert_eq!(quantile(&values[..1], 0.5, &Series::default(), 0), None);
    }
}
