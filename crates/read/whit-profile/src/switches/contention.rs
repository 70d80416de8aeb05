//! Waits for locks of the kernel, from the tracepoints `lock:contention_begin` and `lock:contention_end`.
//!
//! They are told apart from context switches: a thread that spins does not leave its CPU. The end of a wait names the
//! lock alone, so that a beginning and an end belong together where thread and lock are the same.

use super::durations::Durations;
use super::interval::Task;
use super::locks::MAX_LOCK_ROWS;
use super::losses::Losses;
use super::options::SwitchOptions;
use super::switch_event::StackRef;
use super::switch_key::SwitchKey;
use rustc_hash::FxHashMap;
use whit_types::{CpuId, TimestampNs};

/// A beginning or an end of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contention {
    pub(crate) time: TimestampNs,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) task: Task,
    pub(crate) address: u64,
    /// Absent at the end.
    pub(crate) flags: Option<u32>,
    pub(crate) stack: StackRef,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct ContentionKey {
    pub(super) row: SwitchKey,
    pub(super) address: u64,
    pub(super) flags: u32,
}

/// The idle tasks of all CPUs have one number.
type WaiterKey = (Task, Option<CpuId>, u64);

/// Sums while a recording is read.
#[derive(Debug, Default)]
pub(super) struct ContentionTotals {
    begun: FxHashMap<WaiterKey, (TimestampNs, ContentionKey)>,
    pub(super) sums: FxHashMap<ContentionKey, (Durations, u64)>,
    pub(super) left_off: u64,
}

impl ContentionTotals {
    pub(super) fn new(wanted: &SwitchOptions) -> Option<ContentionTotals> {
        wanted.locks.then(ContentionTotals::default)
    }

    fn key(of: &Contention) -> WaiterKey {
        (of.task, of.cpu.filter(|_| of.task.tid.0 == 0), of.address)
    }

    /// A mutex states a beginning where it begins to spin, and another one where it begins to sleep: the first one counts.
    /// Where the end between two beginnings was lost instead, the loss is in the wait.
    pub(super) fn begin(&mut self, of: &Contention, key: ContentionKey) {
        if self.begun.len() >= MAX_LOCK_ROWS {
            self.left_off += 1;
            return;
        }
        self.begun.entry(ContentionTotals::key(of)).or_insert((of.time, key));
    }

    /// An end whose beginning is not in the recording says nothing.
    pub(super) fn end(
        &mut self,
        of: &Contention,
        losses: &Losses,
        has_length: impl Fn(u64) -> bool,
    ) {
        let Some((from, key)) = self.begun.remove(&ContentionTotals::key(of)) else { return };
        let ns = of.time.since(from);
        if has_length(ns) {
            let is_whole = !losses.touch(of.task.tid, from, of.time);
            self.add(key, is_whole.then_some(ns));
        }
    }

    fn add(&mut self, key: ContentionKey, ns: Option<u64>) {
        if self.sums.len() >= MAX_LOCK_ROWS && !self.sums.contains_key(&key) {
            self.left_off += 1;
            return;
        }
        let (waits, uncertain) = self.sums.entry(key).or_default();
        match ns {
            Some(ns) => waits.add(ns),
            None => *uncertain += 1,
        }
    }

    /// Waits that have no end are of uncertain length.
    pub(super) fn finish(&mut self) {
        for (_, (_, key)) in std::mem::take(&mut self.begun) {
            self.add(key, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::switch_key::NO_COMM;
    use super::*;
    use crate::loss_window::{LossWindow, RingLoss};
    use crate::switches::ObjectKey;
    use whit_types::{Pid, Tid};

    fn at(time: u64, tid: i32, address: u64) -> Contention {
        Contention {
            time: TimestampNs(time),
            cpu: Some(CpuId(time as u32 % 2)),
            task: Task { pid: Pid(tid), tid: Tid(tid) },
            address,
            flags: None,
            stack: StackRef::NONE,
        }
    }

    fn key(thread: u32, address: u64) -> ContentionKey {
        let row = SwitchKey {
            thread,
            comm: NO_COMM,
            stack: StackRef::NONE,
            object: ObjectKey::None,
            brings: Default::default(),
            block: 0,
        };
        ContentionKey { row, address, flags: 1 }
    }

    fn sums(totals: &ContentionTotals, thread: u32, address: u64) -> Option<(u64, u64, u64)> {
        let (waits, uncertain) = totals.sums.get(&key(thread, address))?;
        Some((waits.count, waits.total_ns, *uncertain))
    }

    #[test]
    fn ends_belong_to_beginnings_of_thread_and_lock() {
        let (mut totals, losses) = (ContentionTotals::default(), Losses::new(&[]));
        let end = |totals: &mut ContentionTotals, of| totals.end(&of, &losses, |_| true);
        totals.begin(&at(10, 1, 0xa), key(1, 0xa));
        totals.begin(&at(11, 2, 0xa), key(2, 0xa));
        // A spinlock of the scheduler, on the way to sleep at a mutex.
        totals.begin(&at(12, 1, 0xb), key(1, 0xb));
        end(&mut totals, at(15, 1, 0xb));
        end(&mut totals, at(20, 2, 0xa));
        end(&mut totals, at(110, 1, 0xa));
        // Its beginning is not in the recording.
        end(&mut totals, at(120, 3, 0xa));
        totals.finish();
        assert_eq!(sums(&totals, 1, 0xa), Some((1, 100, 0)));
        assert_eq!(sums(&totals, 1, 0xb), Some((1, 3, 0)));
        assert_eq!(sums(&totals, 2, 0xa), Some((1, 9, 0)));
        assert_eq!(totals.sums.len(), 3);
    }

    #[test]
    fn a_mutex_that_spins_and_then_sleeps_is_one_wait() {
        let (mut totals, losses) = (ContentionTotals::default(), Losses::new(&[]));
        totals.begin(&at(10, 1, 0xa), key(1, 0xa));
        totals.begin(&at(14, 1, 0xa), key(1, 0xa));
        totals.end(&at(30, 1, 0xa), &losses, |_| true);
        totals.finish();
        assert_eq!(sums(&totals, 1, 0xa), Some((1, 20, 0)));
    }

    #[test]
    fn idle_tasks_are_distinguished_by_their_cpu() {
        let (mut totals, losses) = (ContentionTotals::default(), Losses::new(&[]));
        totals.begin(&at(10, 0, 0xa), key(0, 0xa));
        totals.begin(&at(11, 0, 0xa), key(0, 0xa));
        totals.end(&at(12, 0, 0xa), &losses, |_| true);
        totals.end(&at(21, 0, 0xa), &losses, |_| true);
        assert_eq!(sums(&totals, 0, 0xa), Some((2, 12, 0)));
    }

    #[test]
    fn waits_with_a_loss_or_without_an_end_are_uncertain() {
        let window = LossWindow { from: TimestampNs(100), to: TimestampNs(110) };
        let losses = Losses::new(&[RingLoss { cpu: None, thread: None, records: 1, window }]);
        let mut totals = ContentionTotals::default();
        for time in [10, 95, 200, 300] {
            totals.begin(&at(time, 1, 0xa), key(1, 0xa));
            if time < 200 {
                totals.end(&at(time + 20, 1, 0xa), &losses, |_| true);
            }
        }
        totals.end(&at(310, 1, 0xa), &losses, |ns| ns > 200);
        totals.begin(&at(400, 1, 0xa), key(1, 0xa));
        totals.finish();
        // The last end is of a wait that is too short for the filter.
        assert_eq!(sums(&totals, 1, 0xa), Some((1, 20, 2)));
    }
}
