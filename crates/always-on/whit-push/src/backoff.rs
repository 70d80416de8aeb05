//! The wait after a request that failed.

use std::time::Duration;

/// The longest wait that a receiver may ask for.
const ASKED_MAX: Duration = Duration::from_secs(3600);
/// Doublings, after which the longest wait is reached in any case.
const DOUBLINGS_MAX: u32 = 20;

/// Waits that double with each failure.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first: first.min(longest), longest, failures: 0 }
    }

    pub(crate) fn success(&mut self) {
        self.failures = 0;
    }

    /// The wait after one more failure: between a half and the whole of a time that doubles, so that many hosts do not
    /// come back at once. `asked` is the receiver's wish, which is kept. `chance` is any number.
    pub(crate) fn failure(&mut self, asked: Option<Duration>, chance: u64) -> Duration {
        let whole =
            self.first.saturating_mul(1 << self.failures.min(DOUBLINGS_MAX)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        self.with_jitter(whole, asked, chance)
    }

    /// The wait where only people can mend the destination.
    pub(crate) fn hopeless(&mut self, chance: u64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.with_jitter(self.longest, None, chance)
    }

    fn with_jitter(&self, whole: Duration, asked: Option<Duration>, chance: u64) -> Duration {
        let half = whole / 2;
        let share = (chance >> 40) as f64 / f64::from(1u32 << 24);
        let jitter = half.mul_f64(share);
        match asked {
            Some(asked) => asked.min(ASKED_MAX) + jitter,
            None => half + jitter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);

    #[test]
    fn waits_double_up_to_the_longest() {
        for chance in [0, u64::MAX / 3, u64::MAX] {
            let mut backoff = Backoff::new(FIRST, LONGEST);
            for wanted_s in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
                let wait = backoff.failure(None, chance);
                let wanted = Duration::from_secs(wanted_s);
                assert!(wait >= wanted / 2 && wait <= wanted, "{wait:?} for {wanted:?}");
            }
            backoff.success();
            assert!(backoff.failure(None, chance) <= FIRST);
        }
    }

    #[test]
    fn many_hosts_do_not_come_back_at_once() {
        let wait = |chance| Backoff::new(FIRST, LONGEST).failure(None, chance);
        assert_eq!(wait(0), FIRST / 2);
        assert!(wait(u64::MAX) > FIRST * 9 / 10);
    }

    #[test]
    fn a_wish_of_the_receiver_is_kept_within_reason() {
        let asked =
            |s| Backoff::new(FIRST, LONGEST).failure(Some(Duration::from_secs(s)), u64::MAX);
        assert!(asked(120) >= Duration::from_secs(120) && asked(120) <= Duration::from_secs(121));
        assert!(asked(1 << 40) <= ASKED_MAX + FIRST);
    }

    #[test]
    fn a_destination_that_people_have_to_mend_is_asked_seldom() {
        let mut backoff = Backoff::new(FIRST, LONGEST);
        assert!(backoff.hopeless(0) >= LONGEST / 2);
        assert!(backoff.failure(None, u64::MAX) > FIRST, "it was a failure, too");
    }

    #[test]
    fn failures_without_an_end_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::from_secs(u64::MAX / 2), Duration::MAX);
        for _ in 0..100 {
            assert!(backoff.failure(None, 0) > Duration::ZERO);
        }
    }
}
