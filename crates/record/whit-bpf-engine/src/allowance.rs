//! CPU time that a thread may take, as a part of all time.
//!
//! A thread that has taken more rests until that is made up for. It may save up, so that a few new processes are known
//! at once. It spends the saved time at a pace: where thousands of processes come, their first seconds cost little more
//! than the later ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// No more is saved up than the allowance of this time.
const SAVED_MAX: Duration = Duration::from_secs(5);
/// Saved time is spent at so many times the share.
const PACE: f64 = 3.0;
/// The time at that pace that is spent at once.
const BURST: Duration = Duration::from_millis(300);
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

/// CPU time that may be taken at a rate, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Account {
    saved_ns: f64,
}

impl Account {
    /// The time that nothing may be taken now, where so much of the elapsed time was taken. `for_time`: no more is saved up
    /// than belongs to it.
    pub(super) fn rest_ns(
        &mut self,
        share: f64,
        for_time: Duration,
        elapsed: f64,
        taken: f64,
    ) -> f64 {
        let most = share * for_time.as_nanos() as f64;
        self.saved_ns = (self.saved_ns + share * elapsed - taken).clamp(-most, most);
        (-self.saved_ns / share).max(0.0)
    }
}

/// The accounts of one thread.
#[derive(Debug)]
pub(crate) struct Allowance {
    mean: Account,
    pace: Account,
    last: Instant,
    used_ns: u64,
}

impl Allowance {
    /// From a moment on, at which the thread had used so much.
    pub(crate) fn new(now: Instant, used_ns: u64) -> Allowance {
        Allowance { mean: Account::default(), pace: Account::default(), last: now, used_ns }
    }

    /// How long the thread should rest now, having used so much.
    pub(crate) fn rest(&mut self, share: &Share, now: Instant, used_ns: u64) -> Duration {
        let elapsed = now.saturating_duration_since(self.last).as_nanos() as f64;
        let taken = used_ns.saturating_sub(self.used_ns) as f64;
        (self.last, self.used_ns) = (now, used_ns);
        let Some(share) = share.get() else { return Duration::ZERO };
        let mean_ns = self.mean.rest_ns(share, SAVED_MAX, elapsed, taken);
        let pace_ns = self.pace.rest_ns((share * PACE).min(1.0), BURST, elapsed, taken);
        Duration::from_nanos(mean_ns.max(pace_ns) as u64).min(REST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU time in each second, of work of 2 ms whenever there is no rest.
    fn used_ns_of_seconds(share: &Share, idle_s: u64, seconds: u64) -> Vec<u64> {
        let begin = Instant::now();
        let (mut allowance, mut used_ns) = (Allowance::new(begin, 0), 0);
        let mut now_ns = idle_s * 1_000_000_000;
        let mut used = Vec::new();
        for second in 1..=seconds {
            let before = used_ns;
            while now_ns < (idle_s + second) * 1_000_000_000 {
                let rest = allowance.rest(share, begin + Duration::from_nanos(now_ns), used_ns);
                let worked = if rest.is_zero() { 2_000_000 } else { 0 };
                used_ns += worked;
                now_ns += worked + rest.as_nanos() as u64;
            }
            used.push(used_ns - before);
        }
        used
    }

    #[test]
    fn a_thread_takes_its_share_and_no_more() {
        let share = Share::default();
        let used =
            |share: &Share| used_ns_of_seconds(share, 0, 10).iter().sum::<u64>() as f64 / 1e10;
        assert!(used(&share) > 0.99, "without a limit it never rests");
        for part in [0.5, 0.05, 0.005] {
            share.set(part);
            let used = used(&share);
            assert!((used - part).abs() < part / 20.0 + 0.001, "{used} of {part}");
        }
    }

    #[test]
    fn what_was_saved_up_is_spent_at_its_pace() {
        let share = Share::default();
        share.set(0.012);
        let used = used_ns_of_seconds(&share, 100, 10);
        // The saved 60 ms go within three seconds, beside the 12 ms of each.
        let most = (0.036 * 1.3 * 1e9) as u64 + 2_000_000;
        assert!(used[0] <= most && used[0] > 40_000_000, "{used:?}");
        let first: u64 = used[..3].iter().sum();
        assert!((first as f64 - 96e6).abs() < 4e6, "{used:?}");
        assert!(used[3..].iter().all(|used| used.abs_diff(12_000_000) <= 3_000_000), "{used:?}");
    }

    #[test]
    fn a_thread_that_took_very_much_at_once_comes_back() {
        let share = Share::default();
        share.set(0.01);
        let begin = Instant::now();
        let mut allowance = Allowance::new(begin, 0);
        let at = |s| begin + Duration::from_secs(s);
        assert_eq!(allowance.rest(&share, at(100), 9_000_000_000), REST_MAX);
        assert_eq!(allowance.rest(&share, at(106), 9_000_000_000), Duration::ZERO);
    }
}
