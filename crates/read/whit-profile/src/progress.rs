//! Telling how far a long load has come.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts bytes and passes each step on.
pub(crate) struct Progress<'a> {
    total_bytes: u64,
    done_bytes: AtomicU64,
    report: &'a (dyn Fn(u64, u64) + Sync),
}

impl<'a> Progress<'a> {
    /// `report` gets bytes done and bytes in total; it is called from several threads.
    pub(crate) fn new(total_bytes: u64, report: &'a (dyn Fn(u64, u64) + Sync)) -> Progress<'a> {
        Progress { total_bytes, done_bytes: AtomicU64::new(0), report }
    }

    /// Another `bytes` are done.
    pub(crate) fn advance(&self, bytes: u64) {
        let done = self.done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.report)(done.min(self.total_bytes), self.total_bytes);
    }
}
