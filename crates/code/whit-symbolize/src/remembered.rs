//! Meanings of addresses, remembered for the next time that somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use whit_types::Svma;

use crate::resolution::Resolution;

/// Addresses that are remembered; beyond that, all are forgotten.
const ADDRESSES_MAX: usize = 1 << 16;

/// The meanings of addresses in all binaries.
#[derive(Default)]
pub(crate) struct Remembered {
    known: Mutex<FxHashMap<(u64, Svma), Entry>>,
    binaries: AtomicU64,
}

struct Entry {
    resolution: Resolution,
    is_used: bool,
}

/// The part of one binary. A binary that is opened again has another one: more may be known of it by then.
pub(crate) struct BinaryMemory {
    all: Arc<Remembered>,
    binary: u64,
}

impl Remembered {
    pub(crate) fn of_binary(self: &Arc<Remembered>) -> BinaryMemory {
        BinaryMemory { all: self.clone(), binary: self.binaries.fetch_add(1, Ordering::Relaxed) }
    }

    /// Forgets the addresses that nobody asked for since the last call.
    pub(crate) fn forget_unused(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, entry| std::mem::take(&mut entry.is_used));
        known.shrink_to_fit();
    }
}

impl BinaryMemory {
    /// The remembered meaning of an address, or the one that `resolve` finds.
    pub(crate) fn get_or(&self, address: Svma, resolve: impl FnOnce() -> Resolution) -> Resolution {
        let key = (self.binary, address);
        let lock = || self.all.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = lock().get_mut(&key) {
            entry.is_used = true;
            return entry.resolution.clone();
        }
        let resolution = resolve();
        let mut known = lock();
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        known.insert(key, Entry { resolution: resolution.clone(), is_used: true });
        resolution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::Reason;
    use std::cell::Cell;

    /// Counts the look-ups of addresses.
    fn look_ups(memory: &BinaryMemory, addresses: impl Iterator<Item = u64>) -> usize {
        let count = Cell::new(0);
        for address in addresses {
            let resolution = memory.get_or(Svma(address), || {
                count.set(count.get() + 1);
                Resolution::absent(Reason::OutsideSymbols)
            });
            assert!(resolution.function.is_none());
        }
        count.get()
    }

    #[test]
    fn an_address_is_looked_up_once_in_each_binary() {
        let all = Arc::<Remembered>::default();
        let (one, other) = (all.of_binary(), all.of_binary());
        assert_eq!(look_ups(&one, [1, 2, 1, 2].into_iter()), 2);
        assert_eq!(look_ups(&other, [1, 2].into_iter()), 2);
        assert_eq!(look_ups(&one, [1, 2].into_iter()), 0);
    }

    #[test]
    fn unused_addresses_are_forgotten() {
        let all = Arc::<Remembered>::default();
        let memory = all.of_binary();
        look_ups(&memory, 0..100);
        all.forget_unused();
        assert_eq!(look_ups(&memory, 0..10), 0);
        all.forget_unused();
        assert_eq!(all.known.lock().unwrap().len(), 10);
        assert_eq!(look_ups(&memory, 0..20), 10);
    }

    #[test]
    fn addresses_that_never_come_again_take_bounded_memory() {
        let all = Arc::<Remembered>::default();
        let memory = all.of_binary();
        look_ups(&memory, 0..3 * ADDRESSES_MAX as u64 + 5);
        assert!(all.known.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
