//! Address spaces by numbers that never come again.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU64, Ordering};

/// An address space. An address of its data structure would not do: it is used again.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct MmId(NonZeroU64);

impl MmId {
    /// The number, where it is one: 0 and the largest are not.
    #[must_use]
    pub const fn new(number: u64) -> Option<MmId> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() != u64::MAX => Some(MmId(number)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// Gives out numbers, each once.
#[derive(Debug)]
pub struct MmIds {
    next: AtomicU64,
}

impl MmIds {
    /// From 1 on.
    #[must_use]
    pub const fn new() -> MmIds {
        MmIds { next: AtomicU64::new(1) }
    }

    /// The next number; `None` for ever where there is none left.
    pub fn allocate(&self) -> Option<MmId> {
        let advance = |number| if number == u64::MAX { None } else { Some(number + 1) };
        // Numbers order nothing else, so they need no order themselves.
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
        MmId::new(taken.ok()?)
    }
}

impl Default for MmIds {
    fn default() -> MmIds {
        MmIds::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_once_and_end_before_the_reserved_one() {
        let ids = MmIds::new();
        assert_eq!(ids.allocate().map(MmId::get), Some(1));
        assert_eq!(ids.allocate().map(MmId::get), Some(2));
        let last = MmIds { next: AtomicU64::new(u64::MAX - 1) };
        assert_eq!(last.allocate().map(MmId::get), Some(u64::MAX - 1));
        assert_eq!((last.allocate(), last.allocate()), (None, None));
        assert!(MmId::new(0).is_none() && MmId::new(u64::MAX).is_none());
    }
}
