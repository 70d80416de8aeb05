//! Which files go: the oldest ones, by their age and by the bytes of all.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// Files that are remembered; older ones go.
const FILES_MAX: usize = 200_000;

/// How long files stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub(crate) age: Duration,
    pub(crate) bytes: u64,
}

/// A file, or several that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) end: SystemTime,
    pub(crate) bytes: u64,
}

/// Files in the order in which they were written.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    entries: VecDeque<Entry>,
    bytes: u64,
}

impl Kept {
    /// Those that are there at the start.
    pub(crate) fn new(mut entries: Vec<Entry>) -> Kept {
        entries.sort_by(|one, other| (one.end, &one.name).cmp(&(other.end, &other.name)));
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        Kept { entries: entries.into(), bytes }
    }

    pub(crate) fn add(&mut self, entry: Entry) {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
    }

    /// Takes the next file out that has to go.
    pub(crate) fn next_due(&mut self, limits: Limits, now: SystemTime) -> Option<Entry> {
        let first = self.entries.front()?;
        // A file of the future is not old.
        let age = now.duration_since(first.end).unwrap_or_default();
        // The newest file stays, if it alone is too large.
        let is_over = self.bytes > limits.bytes && self.entries.len() > 1;
        if age <= limits.age && !is_over && self.entries.len() <= FILES_MAX {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// A file that could not be removed: it is tried again.
    pub(crate) fn put_back(&mut self, entry: Entry) {
        self.bytes += entry.bytes;
        self.entries.push_front(entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn oldest(&self) -> Option<SystemTime> {
        self.entries.front().map(|entry| entry.end)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    fn entry(second: u64, bytes: u64) -> Entry {
        Entry { name: format!("f{second}"), end: at(second), bytes }
    }

    fn gone(kept: &mut Kept, age_s: u64, bytes: u64, now_s: u64) -> Vec<String> {
        let limits = Limits { age: Duration::from_secs(age_s), bytes };
        std::iter::from_fn(|| kept.next_due(limits, at(now_s))).map(|entry| entry.name).collect()
    }

    #[test]
    fn the_oldest_files_go_by_age_and_by_bytes() {
        let mut kept = Kept::new(vec![entry(30, 10), entry(10, 10), entry(20, 10)]);
        kept.add(entry(40, 10));
        assert_eq!(gone(&mut kept, 100, 1000, 110), Vec::<String>::new());
        assert_eq!(gone(&mut kept, 100, 1000, 111), ["f10"]);
        assert_eq!(gone(&mut kept, 100, 20, 111), ["f20"]);
        assert_eq!((kept.len(), kept.bytes(), kept.oldest()), (2, 20, Some(at(30))));
        assert_eq!(gone(&mut kept, 100, 5, 111), ["f30"]);
        assert_eq!(gone(&mut kept, 100, 5, 1000), ["f40"]);
        assert_eq!((kept.len(), kept.bytes()), (0, 0));
    }

    #[test]
    fn a_clock_that_was_set_back_removes_nothing() {
        let mut kept = Kept::new(vec![entry(1000, 10), entry(2000, 10)]);
        assert_eq!(gone(&mut kept, 10, 100, 5), Vec::<String>::new());
        assert_eq!(gone(&mut kept, 10, 10, 5), ["f1000"]);
    }
}
