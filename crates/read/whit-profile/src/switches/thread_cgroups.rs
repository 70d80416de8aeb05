//! The cgroup of each thread, by its samples.
//!
//! A switch has no cgroup: the kernel writes none, and a thread rarely changes it. So a thread belongs to the cgroup of
//! most of its samples, and a thread without samples to that of most samples of its process.

use crate::machine_model::cgroups::CgroupIndex;
use crate::model::{CgroupInfo, ThreadId, ThreadInfo};
use crate::switches::model::Switches;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;
use std::sync::Arc;
use whit_types::{CgroupPath, Pid, Tid};

/// Different pairs of thread and cgroup that are counted; others do not count.
const MAX_PAIRS: usize = 1 << 20;

/// Facts about threads that records of switches do not have.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadFacts {
    pub(super) cgroups: CgroupTally,
    /// Threads with samples or switches, where the target was chosen by name: the sideband is of all threads.
    pub(super) stated: Option<FxHashSet<(Pid, Tid)>>,
}

impl ThreadFacts {
    pub(super) fn merge(&mut self, other: ThreadFacts) {
        self.cgroups.merge(&other.cgroups);
        if let Some(stated) = other.stated {
            self.stated.get_or_insert_default().extend(stated);
        }
    }
}

/// Samples by thread and cgroup.
#[derive(Clone, Debug, Default)]
pub(super) struct CgroupTally {
    samples: FxHashMap<(Pid, Tid, CgroupIndex), u64>,
}

impl CgroupTally {
    pub(super) fn add(&mut self, pid: Pid, tid: Tid, cgroup: CgroupIndex, count: u64) {
        let key = (pid, tid, cgroup);
        if self.samples.len() < MAX_PAIRS || self.samples.contains_key(&key) {
            *self.samples.entry(key).or_default() += count;
        }
    }

    pub(super) fn merge(&mut self, other: &CgroupTally) {
        for (&(pid, tid, cgroup), count) in &other.samples {
            self.add(pid, tid, cgroup, *count);
        }
    }

    /// The cgroup of each of these threads; `None` where no sample of its process tells it.
    fn of_threads(&self, threads: &[ThreadInfo]) -> Vec<Option<CgroupIndex>> {
        let by_thread =
            most(self.samples.iter().map(|(key, count)| ((key.0, key.1), key.2, *count)));
        let by_process = most(self.samples.iter().map(|(key, count)| (key.0, key.2, *count)));
        let of_thread = |thread: &ThreadInfo| {
            let own = by_thread.get(&(thread.pid, thread.tid));
            own.or_else(|| by_process.get(&thread.pid)).copied()
        };
        threads.iter().map(of_thread).collect()
    }

    /// Enters the cgroups of all threads.
    pub(super) fn enter(
        &self,
        threads: &[ThreadInfo],
        paths: &[Arc<str>],
        switches: &mut Switches,
    ) {
        let info = |index: CgroupIndex| {
            let path = paths.get(index.0 as usize)?;
            Some(CgroupInfo { path: path.as_ref().to_owned().into(), known: true })
        };
        let cgroups = self.of_threads(threads).into_iter();
        switches.cgroups = cgroups.map(|cgroup| cgroup.and_then(info)).collect();
    }
}

/// By key the cgroup with the most samples; of equals the first.
fn most<K: Hash + Eq + Copy>(
    counts: impl Iterator<Item = (K, CgroupIndex, u64)>,
) -> FxHashMap<K, CgroupIndex> {
    let mut sums: FxHashMap<(K, CgroupIndex), u64> = FxHashMap::default();
    for (key, cgroup, count) in counts {
        *sums.entry((key, cgroup)).or_default() += count;
    }
    let mut best: FxHashMap<K, (u64, CgroupIndex)> = FxHashMap::default();
    for ((key, cgroup), sum) in sums {
        let (most, of) = best.entry(key).or_insert((0, cgroup));
        if sum > *most || (sum == *most && cgroup < *of) {
            (*most, *of) = (sum, cgroup);
        }
    }
    best.into_iter().map(|(key, (_, cgroup))| (key, cgroup)).collect()
}

/// Leaves the threads in other cgroups out. Gives the number of threads whose cgroup nothing tells.
pub(super) fn keep_named(names: &[String], switches: &mut Switches) -> usize {
    let is_wanted =
        |info: &CgroupInfo| names.iter().any(|name| CgroupPath(info.path.exact()).is_within(name));
    let cgroups = std::mem::take(&mut switches.cgroups);
    let of = |thread: ThreadId| cgroups.get(thread.index()).and_then(Option::as_ref);
    let lives = switches.lives.iter();
    let untold = lives.filter(|life| of(life.thread).is_none()).count();
    keep(&|thread| of(thread).is_some_and(is_wanted), switches);
    switches.cgroups = cgroups;
    untold
}

/// Leaves out threads that have sideband records alone: those are of all threads, recorded or not.
pub(super) fn keep_stated(
    stated: &FxHashSet<(Pid, Tid)>,
    threads: &[ThreadInfo],
    switches: &mut Switches,
) {
    let is_stated = |thread: ThreadId| {
        threads.get(thread.index()).is_some_and(|info| stated.contains(&(info.pid, info.tid)))
    };
    keep(&is_stated, switches);
}

/// Leaves out threads with all that is theirs.
fn keep(stays: &dyn Fn(ThreadId) -> bool, switches: &mut Switches) {
    switches.run_queue.retain(|delays| stays(delays.thread));
    switches.locks.waits.retain(|wait| stays(wait.thread));
    switches.locks.kernel.retain(|wait| stays(wait.thread));
    let mut numbers = Vec::with_capacity(switches.rows.len());
    let mut kept = 0;
    for row in &switches.rows {
        let stays = stays(row.thread);
        numbers.push(stays.then_some(kept));
        kept += u32::from(stays);
    }
    switches.rows.retain(|row| stays(row.thread));
    switches.wakers.retain_mut(|waker| {
        let number = numbers.get(waker.row as usize).copied().flatten();
        waker.row = number.unwrap_or_default();
        number.is_some()
    });
    switches.worst.retain(|wait| stays(wait.thread));
    switches.lives.retain(|life| stays(life.thread));
    switches.timeline.spans.retain(|span| stays(span.thread));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CommId, NodeId};
    use crate::switches::CpuParts;
    use crate::switches::model::{SwitchRow, SwitchSums, ThreadLife, Waker, WakerRow};

    fn thread(pid: i32, tid: i32) -> ThreadInfo {
        ThreadInfo { pid: Pid(pid), tid: Tid(tid), comm: CommId(0) }
    }

    fn tally(samples: &[(i32, i32, u32, u64)]) -> CgroupTally {
        let mut tally = CgroupTally::default();
        for &(pid, tid, cgroup, count) in samples {
            tally.add(Pid(pid), Tid(tid), CgroupIndex(cgroup), count);
        }
        tally
    }

    #[test]
    fn a_thread_belongs_to_the_cgroup_of_most_of_its_samples_or_its_process() {
        let mut tally =
            tally(&[(1, 1, 0, 2), (1, 1, 1, 3), (1, 2, 0, 9), (4, 4, 1, 1), (4, 4, 0, 1)]);
        tally.merge(&super::tests::tally(&[(1, 1, 1, 1)]));
        let threads = [thread(1, 1), thread(1, 2), thread(1, 3), thread(4, 4), thread(5, 5)];
        let found = tally.of_threads(&threads);
        assert_eq!(found, [Some(1), Some(0), Some(0), Some(0), None].map(|c| c.map(CgroupIndex)));
    }

    #[test]
    fn threads_of_other_cgroups_are_left_out_with_their_wakers() {
        let row = |thread| SwitchRow {
            thread: ThreadId(thread),
            comm: CommId(0),
            node: NodeId::NONE,
            object: None,
            brings: Default::default(),
            block: 0,
            sums: SwitchSums::default(),
        };
        let waker = |row| WakerRow {
            row,
            waker: Waker { thread: ThreadId(0), node: NodeId::NONE, from_interrupt: false },
            count: u64::from(row),
            blocked_ns: 0,
        };
        let life = |thread| ThreadLife {
            thread: ThreadId(thread),
            elapsed_ns: 1,
            left_out_ns: 0,
            parts: CpuParts::default(),
        };
        let mut switches = Switches {
            rows: [0, 1, 1, 2].map(row).to_vec(),
            wakers: [0, 2, 3].map(waker).to_vec(),
            lives: [0, 1, 2].map(life).to_vec(),
            ..Switches::default()
        };
        let paths = ["/a".into(), "/web/x".into()];
        let tally = tally(&[(1, 1, 0, 1), (1, 2, 1, 1)]);
        tally.enter(&[thread(1, 1), thread(1, 2), thread(9, 9)], &paths, &mut switches);
        assert_eq!(keep_named(&["web".to_owned()], &mut switches), 1);
        assert_eq!(switches.rows.iter().map(|row| row.thread.0).collect::<Vec<_>>(), [1, 1]);
        let wakers: Vec<_> = switches.wakers.iter().map(|w| (w.row, w.count)).collect();
        assert_eq!(wakers, [(1, 2)]);
        assert_eq!(switches.lives.len(), 1);
        let stated = [(Pid(1), Tid(1))].into_iter().collect();
        keep_stated(&stated, &[thread(1, 1), thread(1, 2)], &mut switches);
        assert!(
            switches.rows.is_empty() && switches.wakers.is_empty() && switches.lives.is_empty()
        );
    }
}
