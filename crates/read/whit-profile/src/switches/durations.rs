//! How long single waits were: count, sum, longest, and percentiles, in bounded memory.

use std::collections::BTreeMap;

/// Lengths below this have a bucket each; above, so many buckets divide each doubling.
const FINE: u64 = 128;
const STEPS: u64 = 64;

/// Lengths of waits. A percentile is at most 1/64 (1.6 %) longer than the true one; all else is exact.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Durations {
    /// Waits.
    pub count: u64,
    /// Sum, in nanoseconds.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    buckets: BTreeMap<u16, u64>,
}

impl Durations {
    /// Adds one wait.
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        *self.buckets.entry(bucket(ns)).or_default() += 1;
    }

    /// Takes over others.
    pub fn merge(&mut self, other: &Durations) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
    }

    /// The mean; zero without waits.
    pub fn average_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count).unwrap_or(0)
    }

    /// The length that `percent` of the waits do not exceed; zero without waits.
    pub fn percentile_ns(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100) as u64;
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= rank.max(1) {
                return longest_in(*bucket).min(self.max_ns);
            }
        }
        0
    }
}

fn bucket(ns: u64) -> u16 {
    if ns < FINE {
        return ns as u16;
    }
    let shift = u64::from(ns.ilog2() - STEPS.ilog2());
    (FINE + (shift - 1) * STEPS + (ns >> shift) - STEPS) as u16
}

fn longest_in(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < FINE {
        return bucket;
    }
    let (shift, step) = ((bucket - FINE) / STEPS + 1, (bucket - FINE) % STEPS + STEPS);
    (u128::from(step + 1) << shift).saturating_sub(1).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_lengths_and_their_percentiles_are_exact() {
        let mut lengths = Durations::default();
        assert_eq!((lengths.average_ns(), lengths.percentile_ns(50)), (0, 0));
        (1..=100).rev().for_each(|ns| lengths.add(ns));
        assert_eq!(
            [50, 95, 99, 100].map(|percent| lengths.percentile_ns(percent)),
            [50, 95, 99, 100]
        );
        assert_eq!(
            (lengths.count, lengths.total_ns, lengths.max_ns, lengths.average_ns()),
            (100, 5050, 100, 50)
        );
    }

    proptest! {
        #[test]
        fn percentiles_are_at_most_a_64th_too_long(
            all in prop::collection::vec(prop_oneof![0u64..1000, 0u64..1 << 40, any::<u64>()], 1..200),
            percent in 1u64..=100,
        ) {
            let mut lengths = Durations::default();
            let (mut half, mut other) = (Durations::default(), Durations::default());
            for (index, ns) in all.iter().enumerate() {
                lengths.add(*ns);
                if index % 2 == 0 { half.add(*ns) } else { other.add(*ns) }
            }
            half.merge(&other);
            prop_assert_eq!(&half, &lengths);
            let mut sorted = all.clone();
            sorted.sort_unstable();
            let rank = (all.len() as u64 * percent).div_ceil(100).max(1);
            let exact = sorted[rank as usize - 1];
            let stated = lengths.percentile_ns(percent);
            prop_assert!(exact <= stated && stated - exact <= exact / 64, "{} for {}", stated, exact);
        }
    }
}
