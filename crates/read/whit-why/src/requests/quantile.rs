//! Quantiles of durations: of the calls in order of duration, the one at the rank.

use super::parts::Parts;

/// Their names and ranks, in thousandths of all calls.
pub const QUANTILES: [(&str, u64); 5] =
    [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1000)];

/// A quantile, with the parts of the call that stands there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quantile {
    /// `p50` and the like.
    pub name: &'static str,
    /// Index of the call.
    pub call: usize,
    /// How long the call took.
    pub duration_ns: u64,
    /// The parts of its duration.
    pub parts: Parts,
}

/// The index of a quantile among `count` values in ascending order; `None` without any.
pub(crate) fn rank(count: usize, thousandths: u64) -> Option<usize> {
    let rank = (count as u128 * u128::from(thousandths)).div_ceil(1000);
    (rank as usize).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_smallest_value_that_enough_do_not_exceed() {
        assert_eq!(rank(0, 500), None);
        assert_eq!(rank(1, 500), Some(0));
        assert_eq!(rank(100, 990), Some(98));
        assert_eq!(rank(101, 990), Some(99));
        assert_eq!(rank(1000, 999), Some(998));
        assert_eq!(rank(7, 1000), Some(6));
    }
}
