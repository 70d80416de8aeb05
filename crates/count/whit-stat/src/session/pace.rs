//! Longer intervals where reading and printing counts would cost too much.

use std::time::Duration;

/// An interval has at most so many times the length that was asked for.
const STRETCH_MAX: u32 = 1024;
/// Intervals become shorter where that would cost no more than this part of the budget.
const RAISE_TO: f64 = 0.65;

/// Decides which ticks of the clock end an interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pace {
    /// The share of the capacity that reading and printing may cost.
    budget: f64,
    cpus: f64,
    stretch: u32,
    /// Ticks since the last interval ended.
    ticks: u32,
    /// The time between two ticks.
    tick: Duration,
    /// The cost of intervals that were too short to be judged, and their time.
    unjudged: (Duration, Duration),
}

impl Pace {
    /// Without a limit each tick ends an interval.
    pub(super) fn new(budget_ppm: Option<u32>, cpus: usize, tick: Duration) -> Pace {
        let budget = budget_ppm.map_or(f64::INFINITY, |ppm| f64::from(ppm) / 1e6);
        let unjudged = (Duration::ZERO, Duration::ZERO);
        Pace { budget, cpus: cpus.max(1) as f64, stretch: 1, ticks: 0, tick, unjudged }
    }

    /// Whether this tick ends an interval.
    pub(super) fn ends(&mut self) -> bool {
        self.ticks += 1;
        let ends = self.ticks >= self.stretch;
        if ends {
            self.ticks = 0;
        }
        ends
    }

    /// Takes the cost of an interval. Gives the new length of intervals, in times of the one that was asked for, where it
    /// changes. Behind a late tick the next one comes at once. The clocks of CPU time and of elapsed time are not read at
    /// the same moment, so the cost of such an interval is judged together with the next.
    pub(super) fn spent(&mut self, used: Duration, length: Duration) -> Option<u32> {
        let (used, length) = (self.unjudged.0 + used, self.unjudged.1 + length);
        self.unjudged = (used, length);
        if length.is_zero() || length < self.tick / 2 || self.budget.is_infinite() {
            return None;
        }
        self.unjudged = (Duration::ZERO, Duration::ZERO);
        let share = used.as_secs_f64() / length.as_secs_f64() / self.cpus;
        let before = self.stretch;
        let (mut share, mut stretch) = (share, before);
        while share > self.budget && stretch < STRETCH_MAX {
            (share, stretch) = (share / 2.0, stretch * 2);
        }
        if stretch == before && before > 1 && share * 2.0 <= self.budget * RAISE_TO {
            stretch /= 2;
        }
        self.stretch = stretch;
        (stretch != before).then_some(stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(pace: &mut Pace, ticks: usize) -> Vec<bool> {
        (0..ticks).map(|_| pace.ends()).collect()
    }

    #[test]
    fn intervals_become_longer_until_they_cost_no_more_than_the_budget() {
        let [used, length] = [4, 50].map(Duration::from_millis);
        let mut pace = Pace::new(Some(10_000), 2, length);
        assert_eq!(ends(&mut pace, 2), [true, true]);
        // 4 % of two CPUs: a quarter of that is within 1 %.
        assert_eq!(pace.spent(used, length), Some(4));
        assert_eq!(ends(&mut pace, 5), [false, false, false, true, false]);
        assert_eq!(pace.spent(used, length * 4), None);
        assert_eq!(pace.spent(used / 4, length * 4), Some(2));
        assert_eq!(pace.spent(used / 8, length * 2), Some(1));
        assert_eq!(pace.spent(used / 8, length), None);
        assert_eq!(pace.spent(length * 100, length), Some(STRETCH_MAX));
    }

    #[test]
    fn without_a_limit_each_tick_ends_an_interval() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(None, 2, second);
        assert_eq!((pace.spent(second, second), ends(&mut pace, 2)), (None, vec![true, true]));
        assert_eq!(Pace::new(Some(1), 1, second).spent(second, Duration::ZERO), None);
    }

    #[test]
    fn an_interval_behind_a_late_tick_is_judged_with_the_next() {
        let [us, ms] = [Duration::from_micros(1), Duration::from_millis(1)];
        let mut pace = Pace::new(Some(1_000_000), 1, ms);
        assert_eq!(pace.spent(60 * us, 50 * us), None);
        assert_eq!(pace.spent(300 * us, 950 * us), None);
        // Each interval is judged once.
        assert_eq!(pace.spent(900 * us, ms), None);
        assert_eq!(pace.spent(200 * us, 50 * us), None);
        assert_eq!(pace.spent(950 * us, 950 * us), Some(2));
    }
}
