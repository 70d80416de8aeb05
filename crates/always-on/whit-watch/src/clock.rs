//! When windows begin and end: by the monotonic clock, at multiples of their length by the clock of the machine.

use std::time::{Duration, SystemTime};

/// A clock was set where it differs by more from the prediction of the other one.
const STEP: Duration = Duration::from_secs(1);

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since some moment in the past. It never goes back.
    pub monotonic: Duration,
    /// The clock of the machine, which is set now and then.
    pub wall: SystemTime,
}

/// A window that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// By the monotonic clock.
    pub from: Duration,
    /// When it began, by the clock that is right at its end.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
    /// How far the clock was set within it.
    pub step: Option<Duration>,
}

/// The window that runs.
#[derive(Clone, Copy, Debug)]
pub struct WindowClock {
    length: Duration,
    begun: Now,
    ends: Duration,
}

impl WindowClock {
    /// The first window ends at a multiple of `length`, and is shorter than others.
    pub fn new(length: Duration, now: Now) -> WindowClock {
        WindowClock { length, begun: now, ends: now.monotonic + until_multiple(length, now.wall) }
    }

    /// When the window ends, by the monotonic clock.
    pub fn ends(&self) -> Duration {
        self.ends
    }

    /// When the window began, by the monotonic clock.
    pub fn begun(&self) -> Duration {
        self.begun.monotonic
    }

    /// Ends the window and begins the next one.
    pub fn cut(&mut self, now: Now) -> Ended {
        let length = now.monotonic.saturating_sub(self.begun.monotonic);
        let predicted = self.begun.wall + length;
        let step = match now.wall.duration_since(predicted) {
            Ok(ahead) => ahead,
            Err(behind) => behind.duration(),
        };
        let from = self.begun.monotonic;
        *self = WindowClock::new(self.length, now);
        if self.ends - now.monotonic < self.length / 2 {
            // A wake-up that came early by a hair is no window of its own.
            self.ends += self.length;
        }
        Ended { from, start: now.wall - length, end: now.wall, step: (step > STEP).then_some(step) }
    }
}

/// Time until the next multiple of `length` since 1970.
fn until_multiple(length: Duration, wall: SystemTime) -> Duration {
    let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let length_ns = length.as_nanos().max(1);
    Duration::from_nanos((length_ns - since % length_ns) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(monotonic_ms: u64, wall_ms: u64) -> Now {
        Now {
            monotonic: Duration::from_millis(monotonic_ms),
            wall: SystemTime::UNIX_EPOCH + Duration::from_millis(wall_ms),
        }
    }

    #[test]
    fn windows_end_at_multiples_of_their_length() {
        let mut clock = WindowClock::new(Duration::from_secs(30), now(1000, 70_000));
        assert_eq!(clock.ends(), Duration::from_secs(21));
        let ended = clock.cut(now(21_002, 90_002));
        assert_eq!((ended.start, ended.end), (now(0, 70_000).wall, now(0, 90_002).wall));
        assert_eq!((ended.from, ended.step), (Duration::from_secs(1), None));
        assert_eq!(clock.ends(), Duration::from_secs(51));
        // Early by a hair: the next window has its whole length.
        clock.cut(now(50_999, 119_999));
        assert_eq!(clock.ends(), Duration::from_secs(81));
    }

    #[test]
    fn a_clock_that_is_set_changes_names_and_no_lengths() {
        for (wall, step_s) in [(3_690_000, 3600), (30_000, 60)] {
            let mut clock = WindowClock::new(Duration::from_secs(30), now(0, 60_000));
            let ended = clock.cut(now(30_000, wall));
            assert_eq!(ended.step, Some(Duration::from_secs(step_s)));
            assert_eq!(ended.end, ended.start + Duration::from_secs(30));
            assert_eq!(clock.ends(), Duration::from_secs(60));
        }
    }

    #[test]
    fn a_machine_that_slept_has_a_long_window() {
        let mut clock = WindowClock::new(Duration::from_secs(10), now(0, 0));
        let ended = clock.cut(now(500_000, 500_000));
        assert_eq!((ended.step, ended.end), (None, now(0, 500_000).wall));
        assert_eq!(clock.ends(), Duration::from_secs(510));
    }
}
