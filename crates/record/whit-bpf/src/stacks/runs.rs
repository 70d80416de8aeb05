//! Which part of the array of mappings is whose.
//!
//! A program may still read memory that was given back: it rests for a while before it is reused.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long returned memory rests. A program runs for microseconds.
const REST: Duration = Duration::from_secs(1);

/// A row of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Run {
    fn end(self) -> u32 {
        self.first + self.count
    }
}

/// Gives out rows of a fixed number of elements.
#[derive(Debug)]
pub(super) struct Runs {
    /// Ascending, none touching the next.
    free: Vec<Run>,
    resting: VecDeque<(Instant, Run)>,
}

impl Runs {
    pub(super) fn new(elements: u32) -> Runs {
        Runs { free: vec![Run { first: 0, count: elements }], resting: VecDeque::new() }
    }

    /// So many elements in a row; `None` where there is no such row.
    pub(super) fn take(&mut self, count: u32, now: Instant) -> Option<Run> {
        while let Some((since, run)) = self.resting.front().copied()
            && now.saturating_duration_since(since) >= REST
        {
            self.resting.pop_front();
            self.put(run);
        }
        let at = self.free.iter().position(|run| run.count >= count)?;
        let found = &mut self.free[at];
        let run = Run { first: found.first, count };
        (found.first, found.count) = (run.end(), found.count - count);
        if found.count == 0 {
            self.free.remove(at);
        }
        Some(run)
    }

    /// Gives elements back.
    pub(super) fn give_back(&mut self, run: Run, now: Instant) {
        if run.count > 0 {
            self.resting.push_back((now, run));
        }
    }

    fn put(&mut self, run: Run) {
        let at = self.free.partition_point(|other| other.first < run.first);
        self.free.insert(at, run);
        for before in [at, at.wrapping_sub(1)] {
            if let (Some(a), Some(b)) =
                (self.free.get(before).copied(), self.free.get(before.wrapping_add(1)).copied())
                && a.end() == b.first
            {
                self.free[before].count += b.count;
                self.free.remove(before + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_element_has_two_owners(steps in prop::collection::vec((1u32..20, any::<prop::sample::Index>(), 0u64..900), 1..80)) {
            let mut now = Instant::now();
            let (mut runs, mut held): (_, Vec<Run>) = (Runs::new(100), Vec::new());
            for (count, which, ms) in steps {
                now += Duration::from_millis(ms);
                if count % 2 == 0 && !held.is_empty() {
                    let run = held.swap_remove(which.index(held.len()));
                    runs.give_back(run, now);
                } else if let Some(run) = runs.take(count, now) {
                    let apart = |other: &Run| run.end() <= other.first || other.end() <= run.first;
                    prop_assert!(held.iter().all(apart) && run.end() <= 100);
                    prop_assert!(runs.resting.iter().all(|(_, other)| apart(other)));
                    held.push(run);
                }
            }
            held.into_iter().for_each(|run| runs.give_back(run, now));
            let all = runs.take(100, now + REST);
            prop_assert_eq!(all, Some(Run { first: 0, count: 100 }));
        }
    }
}
