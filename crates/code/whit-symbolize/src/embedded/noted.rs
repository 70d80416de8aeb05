//! The answers that one binary gave.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use whit_types::Svma;
use whit_unwind::Bytes;

use crate::resolution::{Resolution, SymbolRef};

/// The questions to a binary, with the answers.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<Answers>);

#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) resolutions: BTreeMap<u64, Resolution>,
    /// Variables, by start.
    pub(crate) variables: BTreeMap<u64, SymbolRef>,
    /// Start and end.
    pub(crate) unnamed: BTreeSet<(u64, u64)>,
    pub(crate) code: BTreeMap<u64, Bytes>,
}

impl Notes {
    /// The answers so far. A panic of another thread leaves them merely incomplete.
    pub(crate) fn answers(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The meaning of an address, looked up once.
    pub(crate) fn resolution(
        &self,
        address: Svma,
        look_up: impl FnOnce() -> Resolution,
    ) -> Resolution {
        if let Some(known) = self.answers().resolutions.get(&address.0) {
            return known.clone();
        }
        // Not under the lock: others ask for other addresses meanwhile.
        let found = look_up();
        self.answers().resolutions.insert(address.0, found.clone());
        found
    }

    pub(crate) fn unnamed(&self, range: &Range<Svma>) {
        self.answers().unnamed.insert((range.start.0, range.end.0));
    }

    pub(crate) fn variable(&self, symbol: SymbolRef) {
        self.answers().variables.insert(symbol.start.0, symbol);
    }

    /// The longer one counts, where two pieces stand at one address.
    pub(crate) fn code(&self, start: Svma, bytes: &Bytes) {
        let mut answers = self.answers();
        let known = answers.code.entry(start.0).or_default();
        if known.len() < bytes.len() {
            *known = bytes.clone();
        }
    }
}
