//! Counters by the index that the status register gives them, and sets of counters.

use core::fmt;

/// A counter: general-purpose counter *n* has index *n*, fixed counter *i* has index 32 + *i*, as in
/// the global control and status registers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterIndex(u8);

/// General-purpose counters that indices have room for.
pub const GENERAL_MAX: u8 = 32;
/// Fixed counters that indices have room for: status bits from 48 on mean other things.
pub const FIXED_MAX: u8 = 16;
/// Counters that indices have room for.
pub const COUNTERS_MAX: usize = (GENERAL_MAX + FIXED_MAX) as usize;

impl CounterIndex {
    /// General-purpose counter `number`.
    ///
    /// # Panics
    /// From [`GENERAL_MAX`] on.
    #[must_use]
    pub const fn general(number: u8) -> CounterIndex {
        assert!(number < GENERAL_MAX, "there are 32 general-purpose counters at most");
        CounterIndex(number)
    }

    /// Fixed counter `number`.
    ///
    /// # Panics
    /// From [`FIXED_MAX`] on.
    #[must_use]
    pub const fn fixed(number: u8) -> CounterIndex {
        assert!(number < FIXED_MAX, "there are 16 fixed counters at most");
        CounterIndex(GENERAL_MAX + number)
    }

    /// The number among the fixed counters, where it is one.
    #[must_use]
    pub const fn as_fixed(self) -> Option<u8> {
        self.0.checked_sub(GENERAL_MAX)
    }

    /// True for a fixed counter.
    #[must_use]
    pub const fn is_fixed(self) -> bool {
        self.0 >= GENERAL_MAX
    }

    /// The index itself, below [`COUNTERS_MAX`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The counter's bit in global control and status.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.0
    }
}

impl fmt::Debug for CounterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CounterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_fixed() {
            Some(number) => write!(f, "fixed{number}"),
            None => write!(f, "pmc{}", self.0),
        }
    }
}

/// A set of counters; bits are those of global control and status.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct CounterMask(u64);

impl CounterMask {
    /// No counter.
    pub const EMPTY: CounterMask = CounterMask(0);

    /// Bits that stand for counters.
    const ALL: u64 = (1 << COUNTERS_MAX) - 1;

    /// The counters among `bits`; others are dropped.
    #[must_use]
    pub const fn from_bits(bits: u64) -> CounterMask {
        CounterMask(bits & CounterMask::ALL)
    }

    /// The first `count` general-purpose counters; there are 32 at most.
    #[must_use]
    pub const fn first_general(count: u8) -> CounterMask {
        let count = if count > GENERAL_MAX { GENERAL_MAX } else { count };
        CounterMask((1 << count) - 1)
    }

    /// The first `count` fixed counters; there are 16 at most.
    #[must_use]
    pub const fn first_fixed(count: u8) -> CounterMask {
        let count = if count > FIXED_MAX { FIXED_MAX } else { count };
        CounterMask(((1 << count) - 1) << GENERAL_MAX)
    }

    /// One counter.
    #[must_use]
    pub const fn single(counter: CounterIndex) -> CounterMask {
        CounterMask(counter.bit())
    }

    /// Bit *n* stands for counter *n*, as in the global registers.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Number of counters in the mask.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// True where there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a counter is among them.
    #[must_use]
    pub const fn contains(self, counter: CounterIndex) -> bool {
        self.0 & counter.bit() != 0
    }

    /// Counters that are in either mask.
    #[must_use]
    pub const fn union(self, other: CounterMask) -> CounterMask {
        CounterMask(self.0 | other.0)
    }

    /// Counters that are in both masks.
    #[must_use]
    pub const fn intersection(self, other: CounterMask) -> CounterMask {
        CounterMask(self.0 & other.0)
    }

    /// Those that are not in `other`.
    #[must_use]
    pub const fn without(self, other: CounterMask) -> CounterMask {
        CounterMask(self.0 & !other.0)
    }

    /// Adds a counter.
    pub const fn insert(&mut self, counter: CounterIndex) {
        self.0 |= counter.bit();
    }

    /// Removes a counter.
    pub const fn remove(&mut self, counter: CounterIndex) {
        self.0 &= !counter.bit();
    }

    /// The fixed counters among them.
    #[must_use]
    pub const fn fixed(self) -> CounterMask {
        CounterMask(self.0 & !(u32::MAX as u64))
    }

    /// The one with the lowest index.
    #[must_use]
    pub const fn first(self) -> Option<CounterIndex> {
        if self.0 == 0 { None } else { Some(CounterIndex(self.0.trailing_zeros() as u8)) }
    }

    /// All of them, the lowest index first.
    pub fn iter(self) -> impl Iterator<Item = CounterIndex> {
        let mut left = self;
        core::iter::from_fn(move || {
            let counter = left.first()?;
            left.remove(counter);
            Some(counter)
        })
    }
}

impl FromIterator<CounterIndex> for CounterMask {
    fn from_iter<I: IntoIterator<Item = CounterIndex>>(counters: I) -> CounterMask {
        let mut mask = CounterMask::EMPTY;
        counters.into_iter().for_each(|counter| mask.insert(counter));
        mask
    }
}

impl fmt::Debug for CounterMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn indices_are_status_bits() {
        assert_eq!(CounterIndex::general(3).bit(), 8);
        assert_eq!(CounterIndex::fixed(1).bit(), 1 << 33);
        assert_eq!(CounterIndex::fixed(1).as_fixed(), Some(1));
        assert_eq!(
            format!("{} {}", CounterIndex::general(3), CounterIndex::fixed(1)),
            "pmc3 fixed1"
        );
    }

    #[test]
    fn bits_that_are_no_counters_are_dropped() {
        assert_eq!(CounterMask::from_bits(u64::MAX).bits(), (1 << 48) - 1);
        let mask = CounterMask::first_general(2).union(CounterMask::first_fixed(1));
        assert_eq!(mask.bits(), 0x1_0000_0003);
        assert_eq!(mask.iter().collect::<CounterMask>(), mask);
        assert_eq!(CounterMask::first_general(200).len(), 32);
        assert_eq!(CounterMask::first_fixed(200).len(), 16);
    }
}
