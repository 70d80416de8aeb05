//! Regular times that do not drift.

use std::time::{Duration, Instant};

/// Ticks at fixed distances from the start, however late each of them is taken.
#[derive(Clone, Copy, Debug)]
pub struct Ticker {
    next: Instant,
    length: Duration,
}

impl Ticker {
    /// The first tick comes one length after `begin`.
    pub fn new(begin: Instant, length: Duration) -> Ticker {
        let length = length.max(Duration::from_nanos(1));
        Ticker { next: begin + length, length }
    }

    /// When the next tick is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Takes the tick that is due. One that comes after others were missed stands for all of them:
    /// the ticks behind it are where they would have been.
    pub fn take(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let late = now.duration_since(self.next).as_nanos();
        let missed = u32::try_from(late / self.length.as_nanos()).unwrap_or(u32::MAX - 1);
        self.next += self.length * (missed + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lateness_is_not_passed_on() {
        let begin = Instant::now();
        let at = |us| begin + Duration::from_micros(us);
        let mut ticker = Ticker::new(begin, Duration::from_millis(1));
        assert!(!ticker.take(at(999)));
        assert!(ticker.take(at(1700)));
        assert_eq!(ticker.next(), at(2000));
        assert!(ticker.take(at(5300)), "ticks at 2, 3, 4 and 5 ms are one");
        assert_eq!(ticker.next(), at(6000));
    }

    proptest! {
        #[test]
        fn ticks_stay_multiples_of_their_length(
            length_us in 1u64..5000,
            steps in prop::collection::vec(0u64..20_000, 1..50),
        ) {
            let begin = Instant::now();
            let length = Duration::from_micros(length_us);
            let (mut ticker, mut now) = (Ticker::new(begin, length), begin);
            for step in steps {
                now += Duration::from_micros(step);
                ticker.take(now);
                prop_assert!(ticker.next() > now && ticker.next() <= now + length);
                let since = ticker.next().duration_since(begin).as_nanos();
                prop_assert_eq!(since % length.as_nanos(), 0);
            }
        }
    }
}
