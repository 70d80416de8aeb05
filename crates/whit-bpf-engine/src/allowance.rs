//! CPU time that a thread may take, as a part of all time.
//!
//! A thread that has taken more rests until that is made up for. It may save up, so that a few new processes are known
//! at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// No more is saved up than the allowance of this time.
const SAVED_MAX: Duration = Duration::from_secs(10);
/// A rest takes no longer, so that the thread hears of the end.
const REST_MAX: Duration = Duration::from_millis(200);
const MILLION: f64 = 1e6;

/// The part, which may be set at any time; without a limit at first.
#[derive(Debug, Default)]
pub(crate) struct Share(AtomicU64);

impl Share {
    pub(crate) fn set(&self, share: f64) {
        // 0 says that there is no limit.
        let ppm = ((share * MILLION) as u64).max(1);
        // No other memory is read by it.
        self.0.store(ppm, Ordering::Relaxed);
    }

    fn get(&self) -> Option<f64> {
        let ppm = self.0.load(Ordering::Relaxed);
        (ppm > 0).then_some(ppm as f64 / MILLION)
    }
}

/// The account of one thread.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// CPU time that may be taken at once, in nanoseconds.
    saved_ns: f64,
    last: Instant,
    used_ns: u64,
}

impl Allowance {
    /// From a moment on, at which the thread had used so much.
    pub(crate) fn new(now: Instant, used_ns: u64) -> Allowance {
        Allowance { saved_ns: 0.0, last: now, used_ns }
    }

    /// How long the thread should rest now, having used so much.
    pub(crate) fn rest(&mut self, share: &Share, now: Instant, used_ns: u64) -> Duration {
        let elapsed = now.saturating_duration_since(self.last).as_nanos() as f64;
        let taken = used_ns.saturating_sub(self.used_ns) as f64;
        (self.last, self.used_ns) = (now, used_ns);
        let Some(share) = share.get() else { return Duration::ZERO };
        let most = share * SAVED_MAX.as_nanos() as f64;
        self.saved_ns = (self.saved_ns + share * elapsed - taken).clamp(-most, most);
        let rest_ns = (-self.saved_ns / share).max(0.0);
        Duration::from_nanos(rest_ns as u64).min(REST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of 2 ms each time that there is no rest.
    fn used_of_ten_seconds(share: &Share) -> f64 {
        let begin = Instant::now();
        let (mut allowance, mut now_ns, mut used_ns) = (Allowance::new(begin, 0), 0u64, 0);
        while now_ns < 10_000_000_000 {
            let rest = allowance.rest(share, begin + Duration::from_nanos(now_ns), used_ns);
            if rest.is_zero() {
                used_ns += 2_000_000;
                now_ns += 2_000_000;
            } else {
                now_ns += rest.as_nanos() as u64;
            }
        }
        used_ns as f64 / now_ns as f64
    }

    #[test]
    fn a_thread_takes_its_share_and_no_more() {
        let share = Share::default();
        assert!(used_of_ten_seconds(&share) > 0.99, "without a limit it never rests");
        for part in [0.5, 0.05, 0.005] {
            share.set(part);
            let used = used_of_ten_seconds(&share);
            assert!((used - part).abs() < part / 20.0 + 0.001, "{used} of {part}");
        }
    }

    #[test]
    fn what_was_saved_up_is_spent_at_once() {
        let share = Share::default();
        share.set(0.01);
        let begin = Instant::now();
        let mut allowance = Allowance::new(begin, 0);
        let at = |s| begin + Duration::from_secs(s);
        assert_eq!(allowance.rest(&share, at(100), 0), Duration::ZERO);
        // The allowance of ten seconds.
        assert_eq!(allowance.rest(&share, at(100), 99_000_000), Duration::ZERO);
        assert_eq!(allowance.rest(&share, at(100), 110_000_000), REST_MAX);
    }
}
