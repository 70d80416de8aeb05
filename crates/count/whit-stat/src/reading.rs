//! One read of one counter in one place.

/// A count with the times that tell how much of it was seen.
///
/// Where the PMU has fewer counters than there are events, the kernel counts them in turn: a
/// counter that was enabled for longer than it ran has missed the rest (`perf_event_open(2)`,
/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `_RUNNING`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Events that were counted.
    pub value: u64,
    /// How long the counter was to count.
    pub enabled_ns: u64,
    /// How long it did.
    pub running_ns: u64,
}

impl Reading {
    /// A counter that has counted nothing and was never enabled.
    pub const ZERO: Reading = Reading { value: 0, enabled_ns: 0, running_ns: 0 };

    /// The difference from `earlier`. A count may wrap. Times step back where a thread with an
    /// inherited counter has just ended; the difference is then 0.
    #[must_use]
    pub fn since(self, earlier: Reading) -> Reading {
        Reading {
            value: self.value.wrapping_sub(earlier.value),
            enabled_ns: self.enabled_ns.saturating_sub(earlier.enabled_ns),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
        }
    }

    /// The sum of two counters' values and times.
    #[must_use]
    pub fn plus(self, other: Reading) -> Reading {
        Reading {
            value: self.value.wrapping_add(other.value),
            enabled_ns: self.enabled_ns.saturating_add(other.enabled_ns),
            running_ns: self.running_ns.saturating_add(other.running_ns),
        }
    }

    /// Whether anything was seen at all. A switch that ends the turn of a cgroup may be counted just after it,
    /// and in an interval without any time of it.
    pub fn is_counted(self) -> bool {
        if self.enabled_ns == 0 { self.value > 0 } else { self.running_ns > 0 }
    }

    /// The count for the whole time, estimated from the time that was seen. 0 where none was.
    pub fn scaled(self) -> u64 {
        if !self.is_counted() {
            return 0;
        }
        if self.running_ns >= self.enabled_ns {
            return self.value;
        }
        // 64 by 64 bits fit into 128.
        let product = u128::from(self.value) * u128::from(self.enabled_ns);
        u64::try_from(product / u128::from(self.running_ns)).unwrap_or(u64::MAX)
    }

    /// The share of the time that was seen, in percent; 100 where there was no time.
    pub fn percent_running(self) -> f64 {
        if self.enabled_ns == 0 {
            return 100.0;
        }
        100.0 * self.running_ns as f64 / self.enabled_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(value: u64, enabled_ns: u64, running_ns: u64) -> Reading {
        Reading { value, enabled_ns, running_ns }
    }

    #[test]
    fn multiplexed_counts_are_estimated() {
        assert_eq!(reading(100, 400, 100).scaled(), 400);
        assert_eq!(reading(100, 400, 400).scaled(), 100);
        assert_eq!((reading(100, 400, 0).scaled(), reading(1, 0, 0).scaled()), (0, 1));
        assert!(reading(1, 0, 0).is_counted() && !reading(100, 400, 0).is_counted());
        assert_eq!(reading(u64::MAX, u64::MAX, 1).scaled(), u64::MAX);
        assert_eq!(reading(1, 4, 1).percent_running(), 25.0);
        assert_eq!(Reading::ZERO.percent_running(), 100.0);
    }

    proptest! {
        #[test]
        fn differences_add_up_to_the_whole(
            steps in prop::collection::vec((0..1u64 << 40, 0..1u64 << 40, 0..1u64 << 40), 1..20)
        ) {
            let mut total = Reading::ZERO;
            let (mut last, mut sum) = (Reading::ZERO, Reading::ZERO);
            for (value, enabled, running) in steps {
                total = total.plus(reading(value, enabled, running));
                sum = sum.plus(total.since(last));
                last = total;
            }
            prop_assert_eq!(sum, total);
        }

        #[test]
        fn an_estimate_is_never_below_the_count(value: u64, enabled: u64, running in 1u64..) {
            prop_assert!(reading(value, enabled, running).scaled() >= value);
        }

        #[test]
        fn a_counter_that_always_ran_is_exact(value: u64, time in 1u64..) {
            prop_assert_eq!(reading(value, time, time).scaled(), value);
        }
    }
}
