//! How long the thread that follows processes rests between two looks at its rings.
//!
//! It rests only where it is busy: a look at each record wakes it many times for each new process, and takes the CPU from
//! the programs that are measured. Meanwhile the BPF programs find missing mappings themselves.

use std::time::{Duration, Instant};

use super::allowance::Account;

/// A thread that takes a larger part of one CPU is busy.
const BUSY_SHARE: f64 = 0.02;
/// A thread that worked less may save up the share of this time.
const SAVED_MAX: Duration = Duration::from_secs(1);
/// The first rest of a busy thread. Each next one is twice as long.
const FIRST: Duration = Duration::from_micros(250);
/// No rest is longer. With rests of 2 ms, the programs cut twice as many stacks of young processes as unknown; with
/// 5 ms, four times as many.
const LONGEST: Duration = Duration::from_millis(1);
/// Where more than this part of a ring was full, the next look comes at once.
const FULL_PART: usize = 8;

/// The rests of one thread.
#[derive(Debug)]
pub(super) struct Rest {
    last: Duration,
    account: Account,
    looked: Instant,
    used_ns: u64,
}

/// The fullest ring, at a look.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Fill {
    /// Bytes that were in it.
    pub(super) taken: usize,
    /// Bytes that it has room for.
    pub(super) room: usize,
}

impl Rest {
    /// For a thread that has used so much CPU time by now.
    pub(super) fn new(now: Instant, used_ns: u64) -> Rest {
        Rest { last: Duration::ZERO, account: Account::default(), looked: now, used_ns }
    }

    /// The rest after a look.
    pub(super) fn after(&mut self, fill: Fill, now: Instant, used_ns: u64) -> Duration {
        let elapsed = now.saturating_duration_since(self.looked).as_nanos() as f64;
        let taken = used_ns.saturating_sub(self.used_ns) as f64;
        (self.looked, self.used_ns) = (now, used_ns);
        let is_busy = self.account.rest_ns(BUSY_SHARE, SAVED_MAX, elapsed, taken) > 0.0;
        let is_full = fill.taken > fill.room / FULL_PART;
        self.last = match is_busy && !is_full {
            true => (self.last * 2).clamp(FIRST, LONGEST),
            false => Duration::ZERO,
        };
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that looks, and its rests in microseconds.
    struct Looking {
        rest: Rest,
        now: Instant,
        used_ns: u64,
    }

    impl Looking {
        fn new() -> Looking {
            let now = Instant::now();
            Looking { rest: Rest::new(now, 0), now, used_ns: 0 }
        }

        fn look(&mut self, elapsed_us: u64, worked_us: u64, taken: usize) -> u128 {
            self.now += Duration::from_micros(elapsed_us);
            self.used_ns += worked_us * 1000;
            self.rest.after(Fill { taken, room: 65536 }, self.now, self.used_ns).as_micros()
        }
    }

    #[test]
    fn a_thread_that_works_little_never_rests() {
        let mut thread = Looking::new();
        assert!((0..10_000).all(|_| thread.look(10_000, 150, 300) == 0));
        // Some new processes at once are known at once.
        assert!((0..90).all(|_| thread.look(1000, 200, 300) == 0));
    }

    #[test]
    fn rests_of_a_busy_thread_grow() {
        let mut thread = Looking::new();
        let rests: Vec<u128> = (0..5).map(|_| thread.look(1000, 500, 300)).collect();
        assert_eq!(rests, [250, 500, 1000, 1000, 1000]);
        assert_eq!(thread.look(10_000_000, 500, 300), 0, "the time is made up for");
    }

    #[test]
    fn a_ring_that_fills_leaves_no_rest() {
        let mut thread = Looking::new();
        for _ in 0..9 {
            thread.look(1000, 900, 300);
        }
        assert_eq!(thread.look(1000, 200, 8193), 0);
        assert_eq!(thread.look(1000, 200, 8192), 250);
    }
}
