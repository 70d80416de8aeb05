//! Memory of rows that readers hold, which no SQL engine counts.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the readers of a connection may take together.
#[derive(Debug)]
pub struct Budget {
    used_bytes: AtomicUsize,
    max_bytes: usize,
}

impl Budget {
    /// So many bytes.
    pub fn new(max_bytes: usize) -> Budget {
        Budget { used_bytes: AtomicUsize::new(0), max_bytes }
    }

    /// Takes bytes; false where they are too many.
    pub fn take(&self, bytes: usize) -> bool {
        self.used_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max_bytes
    }

    /// Takes bytes no more.
    pub fn give_back(&self, bytes: usize) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of one holder, given back with it.
#[derive(Debug)]
pub struct Held {
    budget: std::sync::Arc<Budget>,
    bytes: usize,
}

impl Held {
    /// Nothing yet.
    pub fn new(budget: std::sync::Arc<Budget>) -> Held {
        Held { budget, bytes: 0 }
    }

    /// Sets how many bytes are held; false where they are too many.
    pub fn set(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        self.budget.take(more)
    }

    /// Takes so many bytes more; false where they are too many.
    pub fn take_more(&mut self, bytes: usize) -> bool {
        self.set(self.bytes.saturating_add(bytes))
    }

    /// Gives all of them back.
    pub fn clear(&mut self) {
        self.budget.give_back(std::mem::take(&mut self.bytes));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}
