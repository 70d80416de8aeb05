//! Memory of functions, which SQLite does not count.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the functions of a connection may take together.
#[derive(Debug)]
pub(crate) struct Budget {
    used_bytes: AtomicUsize,
    max_bytes: usize,
}

impl Budget {
    pub(crate) fn new(max_bytes: usize) -> Budget {
        Budget { used_bytes: AtomicUsize::new(0), max_bytes }
    }

    /// Takes bytes; false where they are too many.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max_bytes
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of one holder, given back with it.
#[derive(Debug)]
pub(crate) struct Held {
    budget: std::sync::Arc<Budget>,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(budget: std::sync::Arc<Budget>) -> Held {
        Held { budget, bytes: 0 }
    }

    /// Sets how many bytes are held; false where they are too many.
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        self.budget.take(more)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
