//! A bound for the memory of tables that are being made: large ones wait for each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Memory of all tables that are made at a time. One that needs more is made alone.
pub const WORK_MEMORY_MAX_BYTES: usize = 48 << 20;
/// Making a table takes so many times the size of the sections that it comes from: rows while they are collected, the
/// table, and its form on disk. The largest binaries were measured at 4.
const WORK_PER_SECTION_BYTE: usize = 5;

/// The memory that is in use.
#[derive(Debug)]
pub(crate) struct WorkMemory {
    most_bytes: usize,
    taken_bytes: Mutex<usize>,
    given_back: Condvar,
}

impl Default for WorkMemory {
    fn default() -> WorkMemory {
        WorkMemory::new(WORK_MEMORY_MAX_BYTES)
    }
}

impl WorkMemory {
    /// The most that all tables may take.
    pub(crate) fn new(most_bytes: usize) -> WorkMemory {
        WorkMemory { most_bytes, taken_bytes: Mutex::default(), given_back: Condvar::default() }
    }

    /// Waits until there is room for a table from sections of this size.
    pub(crate) fn take(&self, sections_bytes: usize) -> Taken<'_> {
        let bytes = sections_bytes.saturating_mul(WORK_PER_SECTION_BYTE).min(self.most_bytes);
        let has_no_room = |taken: &mut usize| *taken + bytes > self.most_bytes;
        let waited = self.given_back.wait_while(self.lock(), has_no_room);
        *waited.unwrap_or_else(PoisonError::into_inner) += bytes;
        Taken { memory: self, bytes }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.taken_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    memory: &'a WorkMemory,
    bytes: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.memory.lock() -= self.bytes;
        self.memory.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::read_link;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use whit_testing::wait::wait_until;

    /// How often a thread has waited, by the kernel's count; none once it has ended.
    fn waits(thread: &Path) -> Option<u64> {
        let status = std::fs::read_to_string(thread.join("status")).ok()?;
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count?.trim().parse().ok()
    }

    #[test]
    fn a_table_for_which_there_is_too_little_memory_is_made_alone() {
        let memory = WorkMemory::new(1 << 20);
        let large = memory.take(WORK_MEMORY_MAX_BYTES);
        assert_eq!(*memory.lock(), 1 << 20);
        drop(large);
        assert_eq!(*memory.lock(), 0);
    }

    #[test]
    fn small_tables_are_made_at_once_and_a_large_one_alone() {
        let memory = WorkMemory::default();
        let small = (memory.take(1000), memory.take(1000));
        let is_begun = AtomicBool::new(false);
        let (begun, waiter) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let own = Path::new("/proc").join(read_link("/proc/thread-self").unwrap());
                begun.send((own.clone(), waits(&own))).unwrap();
                let _large = memory.take(usize::MAX);
                is_begun.store(true, Ordering::SeqCst);
                assert_eq!(*memory.lock(), WORK_MEMORY_MAX_BYTES);
            });
            let (waiter, mut before) = waiter.recv().unwrap();
            let mut waits_on = || {
                wait_until("it waits, or does not", || {
                    is_begun.load(Ordering::SeqCst) || waits(&waiter) > before
                });
                before = waits(&waiter);
                !is_begun.load(Ordering::SeqCst)
            };
            assert!(waits_on());
            drop(small.0);
            assert!(waits_on());
            drop(small.1);
        });
        assert!(is_begun.load(Ordering::SeqCst));
        assert_eq!(*memory.lock(), 0);
    }
}
