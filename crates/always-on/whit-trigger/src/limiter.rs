//! How often a dump may follow a trigger.

use crate::settings::{DUMPS_PER_DAY_MAX, INTERVAL_S_MAX, Settings};
use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// Why no dump follows a trigger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Suppressed {
    /// The last dump was a moment ago.
    #[error("the last dump is not older than `min-interval-s`")]
    MinInterval,
    /// There were many dumps.
    #[error("`dumps-per-day` is reached")]
    DumpsPerDay,
    /// There were large dumps.
    #[error("`bytes-per-day` is reached")]
    BytesPerDay,
}

/// Triggers without a dump, by the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SuppressedCounts {
    /// Those of [`Suppressed::MinInterval`].
    pub min_interval: u64,
    /// Those of [`Suppressed::DumpsPerDay`].
    pub dumps_per_day: u64,
    /// Those of [`Suppressed::BytesPerDay`].
    pub bytes_per_day: u64,
}

/// Remembers the dumps of the last day. Time comes in as a value: that since any moment.
#[derive(Clone, Debug)]
pub struct Limiter {
    min_interval: Duration,
    dumps_per_day: usize,
    bytes_per_day: u64,
    /// Time and bytes of the dumps of the last day, the oldest first.
    dumps: VecDeque<(Duration, u64)>,
    counts: SuppressedCounts,
}

impl Limiter {
    /// By these settings, which are valid ones.
    pub fn new(settings: &Settings) -> Limiter {
        let mut limiter = Limiter {
            min_interval: Duration::ZERO,
            dumps_per_day: 0,
            bytes_per_day: 0,
            dumps: VecDeque::new(),
            counts: SuppressedCounts::default(),
        };
        limiter.set(settings);
        limiter
    }

    /// Other settings hold from now on; dumps and counts stay.
    pub fn set(&mut self, settings: &Settings) {
        let interval_s = settings.min_interval_s.clamp(0.0, INTERVAL_S_MAX);
        self.min_interval = Duration::try_from_secs_f64(interval_s).unwrap_or(DAY);
        self.dumps_per_day = settings.dumps_per_day.min(DUMPS_PER_DAY_MAX) as usize;
        self.bytes_per_day = settings.bytes_per_day;
    }

    /// Whether a dump of so many bytes may follow now. Counts where none may.
    ///
    /// # Errors
    /// The bound that is reached.
    pub fn admit(&mut self, now: Duration, bytes: u64) -> Result<(), Suppressed> {
        let is_old = |at: Duration| now.saturating_sub(at) >= DAY;
        while self.dumps.front().is_some_and(|(at, _)| is_old(*at)) {
            self.dumps.pop_front();
        }
        let last = self.dumps.back().map(|(at, _)| now.saturating_sub(*at));
        if last.is_some_and(|since| since < self.min_interval) {
            self.counts.min_interval += 1;
            return Err(Suppressed::MinInterval);
        }
        if self.dumps.len() >= self.dumps_per_day {
            self.counts.dumps_per_day += 1;
            return Err(Suppressed::DumpsPerDay);
        }
        let sum: u64 = self.dumps.iter().map(|(_, bytes)| *bytes).sum();
        if sum.saturating_add(bytes) > self.bytes_per_day {
            self.counts.bytes_per_day += 1;
            return Err(Suppressed::BytesPerDay);
        }
        Ok(())
    }

    /// A dump of so many bytes was written.
    pub fn wrote(&mut self, now: Duration, bytes: u64) {
        self.dumps.push_back((now, bytes));
        if self.dumps.len() > DUMPS_PER_DAY_MAX as usize {
            self.dumps.pop_front();
        }
    }

    /// Triggers that no dump followed.
    pub fn counts(&self) -> SuppressedCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limiter(min_interval_s: f64, dumps_per_day: u32, bytes_per_day: u64) -> Limiter {
        let settings =
            Settings { min_interval_s, dumps_per_day, bytes_per_day, ..Settings::default() };
        Limiter::new(&settings)
    }

    fn dump(limiter: &mut Limiter, at_s: u64, bytes: u64) -> Result<(), Suppressed> {
        let at = Duration::from_secs(at_s);
        limiter.admit(at, bytes)?;
        limiter.wrote(at, bytes);
        Ok(())
    }

    #[test]
    fn bounds_hold_and_suppressed_triggers_are_counted() {
        let mut it = limiter(10.0, 3, 100);
        assert_eq!(dump(&mut it, 0, 10), Ok(()));
        assert_eq!(dump(&mut it, 9, 10), Err(Suppressed::MinInterval));
        assert_eq!(dump(&mut it, 10, 10), Ok(()));
        assert_eq!(dump(&mut it, 30, 90), Err(Suppressed::BytesPerDay));
        assert_eq!(dump(&mut it, 40, 80), Ok(()));
        assert_eq!(dump(&mut it, 60, 0), Err(Suppressed::DumpsPerDay));
        let counts = SuppressedCounts { min_interval: 1, dumps_per_day: 1, bytes_per_day: 1 };
        assert_eq!(it.counts(), counts);
        // The first dump is a day old.
        assert_eq!(dump(&mut it, 86_400, 11), Err(Suppressed::BytesPerDay));
        assert_eq!(dump(&mut it, 86_400, 10), Ok(()));
    }

    proptest! {
        #[test]
        fn no_day_has_more_than_the_settings_allow(
            tries in prop::collection::vec((0u64..20_000, 0u64..60), 1..200),
        ) {
            let mut it = limiter(60.0, 5, 150);
            let (mut now, mut made) = (0, Vec::new());
            for (step, bytes) in tries {
                now += step;
                if dump(&mut it, now, bytes).is_ok() {
                    made.push((now, bytes));
                }
                let day = made.iter().filter(|(at, _)| now - at < 86_400);
                prop_assert!(day.clone().count() <= 5);
                prop_assert!(day.map(|(_, bytes)| bytes).sum::<u64>() <= 150);
            }
            prop_assert!(made.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 60));
        }
    }
}
