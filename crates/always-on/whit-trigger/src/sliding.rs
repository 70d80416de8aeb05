//! The growth of counters within the last while.

use std::collections::VecDeque;

/// Readings in a window, at most: more often than that nobody reads.
const READINGS_MAX: usize = 256;

/// Readings of `N` counters of the last window.
#[derive(Clone, Debug)]
pub(crate) struct Sliding<const N: usize> {
    window_ns: u64,
    readings: VecDeque<(u64, [u64; N])>,
}

/// The growth within a window, or since the first reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Growth<const N: usize> {
    pub(crate) by: [u64; N],
    pub(crate) within_ns: u64,
}

impl<const N: usize> Sliding<N> {
    pub(crate) fn new(window_ns: u64) -> Sliding<N> {
        Sliding { window_ns, readings: VecDeque::new() }
    }

    /// Adds a reading. Counters that went back belong to another cgroup of the same name: they begin anew.
    pub(crate) fn add(&mut self, now_ns: u64, totals: [u64; N]) -> Growth<N> {
        let went_back = |(_, before): &(u64, [u64; N])| {
            before.iter().zip(&totals).any(|(before, now)| now < before)
        };
        if self.readings.back().is_some_and(went_back) {
            self.readings.clear();
        }
        self.readings.push_back((now_ns, totals));
        // The reading at the window's beginning, or the last one before it, stays.
        let begin_ns = now_ns.saturating_sub(self.window_ns);
        while self.readings.len() > READINGS_MAX
            || self.readings.get(1).is_some_and(|(at_ns, _)| *at_ns <= begin_ns)
        {
            self.readings.pop_front();
        }
        let (at_ns, before) = self.readings.front().copied().unwrap_or((now_ns, totals));
        let by = std::array::from_fn(|index| totals[index] - before[index]);
        Growth { by, within_ns: now_ns.saturating_sub(at_ns) }
    }

    /// The next event needs a growth of its own.
    pub(crate) fn restart(&mut self) {
        if let Some(last) = self.readings.pop_back() {
            self.readings.clear();
            self.readings.push_back(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn growth_is_that_of_the_window() {
        let mut sliding = Sliding::new(100);
        let mut at = |now, total| sliding.add(now, [total]);
        assert_eq!(at(1000, 50), Growth { by: [0], within_ns: 0 });
        assert_eq!(at(1050, 60), Growth { by: [10], within_ns: 50 });
        assert_eq!(at(1100, 70), Growth { by: [20], within_ns: 100 });
        assert_eq!(at(1150, 70), Growth { by: [10], within_ns: 100 });
        assert_eq!(at(1170, 75), Growth { by: [15], within_ns: 120 });
        // Another cgroup has the name now.
        assert_eq!(at(1200, 3), Growth { by: [0], within_ns: 0 });
        sliding.add(1250, [9]);
        sliding.restart();
        assert_eq!(sliding.add(1260, [10]), Growth { by: [1], within_ns: 10 });
    }

    proptest! {
        #[test]
        fn readings_are_bounded(steps in prop::collection::vec((0u64..3, 0u64..5), 0..2000)) {
            let (mut now, mut total) = (0, 0);
            let mut sliding = Sliding::new(1000);
            for (step, growth) in steps {
                (now, total) = (now + step, total + growth);
                prop_assert!(sliding.add(now, [total]).by[0] <= total);
                prop_assert!(sliding.readings.len() <= READINGS_MAX);
            }
        }
    }
}
