//! Code of BPF programs, which comes and goes.
//!
//! The records of a program's begin and end may come from two CPUs, whose rings are emptied one after the other. So the
//! end can be here before the begin.

use crate::piece::Record;
use std::collections::BTreeMap;
use whit_types::TimestampNs;

/// Kernel mappings, code of BPF programs, and cgroups that are kept, of each kind.
pub(crate) const KEPT_MAX: usize = 1 << 16;
/// The last that is known of the code at an address: when it came, with its record, or when it went.
#[derive(Clone, Debug)]
struct Last {
    time: TimestampNs,
    record: Option<Record>,
}

/// Rings are emptied once a second: no record of a begin is later than its end by more than this.
const LATE_NS: u64 = 10_000_000_000;

/// Code by its address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    known: BTreeMap<u64, Last>,
    /// The time of the newest record.
    now: TimestampNs,
}

impl Symbols {
    /// Gives the number of records that went, since there are too many.
    pub(crate) fn add(&mut self, start: u64, time: TimestampNs, record: Record) -> u64 {
        self.put(start, Last { time, record: Some(record) })
    }

    pub(crate) fn remove(&mut self, start: u64, time: TimestampNs) {
        self.put(start, Last { time, record: None });
    }

    fn put(&mut self, start: u64, last: Last) -> u64 {
        if self.known.get(&start).is_some_and(|known| known.time > last.time) {
            return 0;
        }
        self.now = self.now.max(last.time);
        let is_full = self.known.len() >= KEPT_MAX && !self.known.contains_key(&start);
        if is_full {
            self.known.pop_first();
        }
        self.known.insert(start, last);
        u64::from(is_full)
    }

    /// Forgets code that went so long ago that its begin is here, too.
    pub(crate) fn forget_ends(&mut self) {
        let late = self.now.0.saturating_sub(LATE_NS);
        self.known.retain(|_, last| last.record.is_some() || last.time.0 >= late);
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.known.values().filter_map(|last| last.record.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(byte: u8) -> Record {
        [byte].into()
    }

    fn kept(symbols: &Symbols) -> Vec<u8> {
        symbols.records().map(|record| record[0]).collect()
    }

    #[test]
    fn an_end_that_comes_before_its_begin_ends_it() {
        let mut symbols = Symbols::default();
        symbols.remove(0x1000, TimestampNs(5));
        symbols.add(0x1000, TimestampNs(4), record(1));
        assert!(kept(&symbols).is_empty());
        // Later code has the address again, and an end of before says nothing of it.
        symbols.add(0x1000, TimestampNs(9), record(2));
        symbols.remove(0x1000, TimestampNs(7));
        assert_eq!(kept(&symbols), [2]);
        symbols.remove(0x1000, TimestampNs(11));
        assert!(kept(&symbols).is_empty());
    }

    #[test]
    fn ends_are_forgotten_when_no_begin_can_come_any_more() {
        let mut symbols = Symbols::default();
        symbols.remove(0x1000, TimestampNs(1));
        symbols.remove(0x2000, TimestampNs(LATE_NS));
        symbols.add(0x3000, TimestampNs(LATE_NS + 5), record(3));
        symbols.forget_ends();
        assert_eq!(symbols.known.keys().copied().collect::<Vec<_>>(), [0x2000, 0x3000]);
        assert_eq!(kept(&symbols), [3]);
    }
}
