//! How often the mappings of a process with very many of them go to the kernel's programs.
//!
//! All mappings of a process go there at once. So a process that makes a hundred thousand of them, one after the other,
//! would keep a CPU busy. Meanwhile the programs find its new mappings themselves.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A process with fewer mappings does not rest.
const MANY: usize = 1024;
/// One with more rests for so long for each mapping: a quarter of a second for as many as there may be. Each time, its
/// mappings take another part of the room for all, and the part before is free again after a second.
const REST_OF_MAPPING: Duration = Duration::from_micros(15);

/// The processes that rest.
#[derive(Debug, Default)]
pub(super) struct Pace {
    until: HashMap<i32, Instant>,
}

impl Pace {
    /// Whether the mappings of a process may be passed on now.
    pub(super) fn may_go(&self, pid: i32, now: Instant) -> bool {
        self.until.get(&pid).is_none_or(|until| *until <= now)
    }

    /// So many mappings were passed on.
    pub(super) fn went(&mut self, pid: i32, mappings: usize, now: Instant) {
        if mappings >= MANY {
            let rest = REST_OF_MAPPING.saturating_mul(u32::try_from(mappings).unwrap_or(u32::MAX));
            self.until.insert(pid, now + rest);
        } else {
            self.until.remove(&pid);
        }
    }

    /// Time until one of these has rested.
    pub(super) fn wait(&self, pids: &[i32], now: Instant) -> Option<Duration> {
        let untils = pids.iter().filter_map(|pid| self.until.get(pid));
        untils.min().map(|until| until.saturating_duration_since(now))
    }

    /// It is gone.
    pub(super) fn forget(&mut self, pid: i32) {
        self.until.remove(&pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_with_many_mappings_rest() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.went(7, MANY - 1, now);
        assert!(pace.may_go(7, now) && pace.wait(&[7], now).is_none());
        pace.went(8, 16_000, now);
        let later = now + Duration::from_millis(240);
        assert!(!pace.may_go(8, now) && pace.may_go(8, later));
        assert_eq!(pace.wait(&[7, 8], now), Some(Duration::from_millis(240)));
        // An exec leaves few.
        pace.went(8, 20, later);
        assert!(pace.may_go(8, now));
        pace.went(8, 2000, now);
        pace.forget(8);
        assert!(pace.may_go(8, now));
    }
}
