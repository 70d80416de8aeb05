//! Long names, which are held once and not for each address of their functions.
//!
//! A binary may have names of a megabyte, and a recording may have thousands of addresses in each of their functions.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Names up to this size are copied for each address.
const SHORT_BYTES: usize = 512;

/// Names beyond this size have a bound for all of them: few programs have any.
const LONG_BYTES: usize = 16 << 10;

/// Bytes of all distinct names beyond [`LONG_BYTES`]. Further ones are cut.
const MAX_LONG_BYTES: usize = 64 << 20;

/// Bytes of other names that are remembered.
const MAX_RECENT_BYTES: usize = 16 << 20;

/// At the end of a name that is cut.
const CUT_MARK: &str = "…";

/// A name as shown, and as the file has it.
pub(crate) type NamePair = (Arc<str>, Arc<str>);

/// The long names of one binary.
#[derive(Default)]
pub(crate) struct LongNames(Mutex<Held>);

#[derive(Default)]
struct Held {
    long: FxHashMap<Box<[u8]>, NamePair>,
    long_bytes: usize,
    recent: FxHashMap<Box<[u8]>, NamePair>,
    recent_bytes: usize,
}

impl LongNames {
    /// The pair of the name `raw`, by `make` where it is not held.
    pub(crate) fn get(&self, raw: &[u8], make: impl FnOnce(&[u8]) -> NamePair) -> NamePair {
        if raw.len() <= SHORT_BYTES {
            return make(raw);
        }
        // A map of finished entries is never half-changed: a panic elsewhere does not matter.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match raw.len() > LONG_BYTES {
            true => held.long(raw, make),
            false => held.recent(raw, make),
        }
    }
}

impl Held {
    fn long(&mut self, raw: &[u8], make: impl FnOnce(&[u8]) -> NamePair) -> NamePair {
        if let Some(pair) = self.long.get(raw) {
            return pair.clone();
        }
        if self.long_bytes + raw.len() > MAX_LONG_BYTES {
            return cut(raw);
        }
        let pair = make(raw);
        self.long_bytes += raw.len();
        self.long.insert(raw.into(), pair.clone());
        pair
    }

    fn recent(&mut self, raw: &[u8], make: impl FnOnce(&[u8]) -> NamePair) -> NamePair {
        if let Some(pair) = self.recent.get(raw) {
            return pair.clone();
        }
        let pair = make(raw);
        let bytes = raw.len() + pair.0.len() + pair.1.len();
        if self.recent_bytes + bytes > MAX_RECENT_BYTES {
            self.recent.clear();
            self.recent_bytes = 0;
        }
        self.recent_bytes += bytes;
        self.recent.insert(raw.into(), pair.clone());
        pair
    }
}

fn cut(raw: &[u8]) -> NamePair {
    let front = String::from_utf8_lossy(&raw[..SHORT_BYTES]);
    let name: Arc<str> = Arc::from(format!("{front}{CUT_MARK}"));
    (name.clone(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(raw: &[u8]) -> NamePair {
        let text: Arc<str> = Arc::from(String::from_utf8_lossy(raw));
        (text.clone(), text)
    }

    #[test]
    fn a_long_name_is_held_once() {
        let names = LongNames::default();
        for size in [SHORT_BYTES + 1, LONG_BYTES, LONG_BYTES + 1, 1 << 20] {
            let raw = vec![b'f'; size];
            let first = names.get(&raw, make);
            let second = names.get(&raw, |_| panic!("it is held"));
            assert!(Arc::ptr_eq(&first.0, &second.0) && first.0.len() == size);
        }
    }

    #[test]
    fn names_beyond_the_bound_are_cut_and_those_held_stay_whole() {
        let names = LongNames::default();
        let name = |number: usize| {
            let mut raw = vec![b'f'; 1 << 20];
            raw[..8].copy_from_slice(&number.to_le_bytes().map(|byte| byte | 64));
            raw
        };
        for number in 0..MAX_LONG_BYTES >> 20 {
            assert_eq!(names.get(&name(number), make).0.len(), 1 << 20);
        }
        let beyond = names.get(&vec![b'g'; 1 << 20], |_| panic!("it is cut"));
        assert!(beyond.0.ends_with(CUT_MARK) && beyond.0.len() == SHORT_BYTES + CUT_MARK.len());
        assert_eq!(names.get(&name(1), |_| panic!("it is held")).0.len(), 1 << 20);
    }

    #[test]
    fn names_of_ordinary_length_are_all_whole() {
        let names = LongNames::default();
        let mut most = 0;
        for number in 0..10_000usize {
            let raw = format!("{number:8000}").into_bytes();
            assert_eq!(names.get(&raw, make).0.as_bytes(), raw);
            most = most.max(names.0.lock().unwrap().recent_bytes);
        }
        assert!(most <= MAX_RECENT_BYTES);
    }
}
