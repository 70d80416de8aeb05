//! Functions that the programs have met, and which of them still have no name.
//!
//! A name can be missing for a while: the interpreter's layout is learned after the tables of its binary, and memory
//! may not be readable at the moment. Each CPU announces a function once, so that no later meeting is sure to come.
//! Functions without a name are therefore read again at each later meeting, now and then, and when recording ends.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use whit_bpf::stacks::{Announcement, MetFunction};
use whit_perfdata::interpreted::INTERPRETED_MAX;

/// Functions that are remembered as named.
const NAMED_MAX: usize = 2 * INTERPRETED_MAX;
/// Functions without a name that are read again, two KiB each. Those of ended processes are among them.
const UNREAD_MAX: usize = 4096;
/// Time until functions without a name are read again: first, and at most. It doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MOST_PAUSE: Duration = Duration::from_millis(1600);

/// The functions met so far.
#[derive(Debug)]
pub(super) struct MetFunctions {
    named: HashSet<MetFunction>,
    unread: HashMap<MetFunction, Announcement>,
    /// Those that are not read again.
    given_up: u64,
    /// Time since functions were read again, and the time after which they are.
    passed: Duration,
    pause: Duration,
}

impl MetFunctions {
    pub(super) fn new() -> MetFunctions {
        MetFunctions {
            named: HashSet::new(),
            unread: HashMap::new(),
            given_up: 0,
            passed: Duration::ZERO,
            pause: FIRST_PAUSE,
        }
    }

    /// A function is met. `read` is asked for its name unless it has one; each CPU announces a function for itself.
    pub(super) fn meet(&mut self, met: Announcement, mut read: impl FnMut(&Announcement) -> bool) {
        let function = met.function;
        if self.named.contains(&function) {
            return;
        }
        if read(&met) {
            self.unread.remove(&function);
            self.add_named(function);
        } else if self.unread.len() < UNREAD_MAX {
            if self.unread.insert(function, met).is_none() {
                self.pause = FIRST_PAUSE;
            }
        } else if !self.unread.contains_key(&function) {
            self.given_up += 1;
        }
    }

    fn add_named(&mut self, met: MetFunction) {
        if self.named.len() >= NAMED_MAX {
            self.named.clear();
        }
        self.named.insert(met);
    }

    /// Time has passed: reads those without a name again where enough of it has.
    pub(super) fn pass(&mut self, time: Duration, read: impl FnMut(&Announcement) -> bool) {
        self.passed += time;
        if self.passed >= self.pause && !self.unread.is_empty() {
            self.passed = Duration::ZERO;
            self.pause = (2 * self.pause).min(MOST_PAUSE);
            self.read_again(read);
        }
    }

    /// Reads those without a name again.
    pub(super) fn read_again(&mut self, mut read: impl FnMut(&Announcement) -> bool) {
        let (named, unread): (HashMap<_, _>, _) =
            std::mem::take(&mut self.unread).into_iter().partition(|(_, met)| read(met));
        self.unread = unread;
        named.into_keys().for_each(|met| self.add_named(met));
    }

    /// The number of functions without a name.
    pub(super) fn without_name(&self) -> u64 {
        self.given_up + self.unread.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(code: u64) -> Announcement {
        let function = MetFunction { pid: 7, interpreter: 1, code, identity: 1, globals: 0 };
        Announcement::new(function, Vec::new())
    }

    #[test]
    fn a_function_that_cannot_be_read_yet_is_read_again() {
        let mut all = MetFunctions::new();
        all.meet(met(1), |_| false);
        all.meet(met(2), |_| true);
        assert_eq!(all.without_name(), 1);
        // At a later meeting.
        all.meet(met(1), |_| true);
        assert_eq!(all.without_name(), 0);
        all.meet(met(1), |_| panic!("it has a name"));
        // After a while.
        all.meet(met(3), |_| false);
        all.pass(FIRST_PAUSE / 2, |_| panic!("too early"));
        let mut asked = Vec::new();
        all.pass(FIRST_PAUSE, |function| {
            asked.push(function.function.code);
            false
        });
        assert_eq!((asked, all.without_name()), (vec![3], 1));
        all.pass(FIRST_PAUSE, |_| panic!("pauses become longer"));
        // When recording ends.
        all.read_again(|_| true);
        assert_eq!(all.without_name(), 0);
    }

    #[test]
    fn functions_that_stay_without_a_name_are_bounded_and_counted() {
        let mut all = MetFunctions::new();
        let count = UNREAD_MAX as u64 + 10;
        (0..count).for_each(|code| all.meet(met(code), |_| false));
        assert_eq!((all.unread.len(), all.without_name()), (UNREAD_MAX, count));
        for _ in 0..100 {
            all.pass(FIRST_PAUSE, |_| false);
        }
        assert_eq!((all.pause, all.without_name()), (MOST_PAUSE, count));
    }
}
