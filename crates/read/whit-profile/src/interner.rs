//! Gives numbers to distinct values.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Gives each distinct value a number.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    pub(crate) values: Vec<T>,
    by_value: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { values: Vec::new(), by_value: FxHashMap::default() }
    }
}

impl<T: Copy + Eq + std::hash::Hash> Interner<T> {
    #[inline]
    pub(crate) fn intern(&mut self, value: T) -> u32 {
        *self.by_value.entry(value).or_insert_with(|| {
            self.values.push(value);
            (self.values.len() - 1) as u32
        })
    }

    pub(crate) fn get(&self, value: &T) -> Option<u32> {
        self.by_value.get(value).copied()
    }
}

/// Gives each distinct text a number.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) values: Vec<Arc<str>>,
    by_value: FxHashMap<Arc<str>, u32>,
}

impl Texts {
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        if let Some(known) = self.by_value.get(text) {
            return *known;
        }
        let text: Arc<str> = text.into();
        let number = self.values.len() as u32;
        self.values.push(text.clone());
        self.by_value.insert(text, number);
        number
    }
}
