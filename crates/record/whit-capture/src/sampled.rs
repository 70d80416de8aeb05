//! The processes that have samples: no call chain of the recording leads through a binary that none of them maps.
//!
//! The rings are drained without a look at addresses, so nobody knows the binaries of samples themselves. Which
//! processes a recording has samples of costs one comparison a sample.

use rustc_hash::{FxHashMap, FxHashSet};

/// Most processes that are told apart: of one ring, and of an output. Beyond, all count as sampled.
const PROCESSES_MAX: usize = 65_536;
/// Most processes that are remembered of those that map one file. Beyond, it counts as mapped by a sampled one.
const MAPPERS_MAX: usize = 64;

/// Processes with samples, and the parents of those that were forked meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledProcesses {
    pids: FxHashSet<u32>,
    last: Option<u32>,
    parents: FxHashMap<u32, u32>,
    is_all: bool,
}

impl SampledProcesses {
    /// Whether this is the process of the sample before.
    #[inline]
    pub(crate) fn is_last(&self, pid: u32) -> bool {
        self.last == Some(pid)
    }

    /// Takes note of a sample's process.
    pub(crate) fn note(&mut self, pid: u32) {
        self.last = Some(pid);
        self.insert(pid);
    }

    /// There are samples whose processes are not looked at: any may have some.
    pub(crate) fn note_all(&mut self) {
        self.is_all = true;
    }

    /// Takes note of a new process or thread. A process begins with the mappings of its parent.
    pub(crate) fn note_fork(&mut self, pid: u32, parent: u32) {
        if pid == parent {
            return;
        }
        if self.parents.len() < PROCESSES_MAX || self.parents.contains_key(&pid) {
            self.parents.insert(pid, parent);
        } else {
            self.is_all = true;
        }
    }

    /// Adds those of another ring.
    pub(crate) fn merge(&mut self, other: &SampledProcesses) {
        self.is_all |= other.is_all;
        other.pids.iter().for_each(|pid| self.insert(*pid));
        other.parents.iter().for_each(|(pid, parent)| self.note_fork(*pid, *parent));
    }

    /// The same with all whose mappings a sampled process began with.
    pub(crate) fn with_ancestors(mut self) -> SampledProcesses {
        let mut todo: Vec<u32> = self.pids.iter().copied().collect();
        while let Some(pid) = todo.pop() {
            if let Some(parent) = self.parents.get(&pid).copied()
                && !self.pids.contains(&parent)
            {
                self.insert(parent);
                todo.extend(self.pids.contains(&parent).then_some(parent));
            }
        }
        self
    }

    /// Whether one of these processes has samples.
    pub(crate) fn has_any(&self, mappers: &Mappers) -> bool {
        self.is_all || mappers.is_cut || mappers.pids.iter().any(|pid| self.pids.contains(pid))
    }

    fn insert(&mut self, pid: u32) {
        if self.pids.len() < PROCESSES_MAX {
            self.pids.insert(pid);
        } else if !self.pids.contains(&pid) {
            self.is_all = true;
        }
    }
}

/// The processes that map a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mappers {
    pids: Vec<u32>,
    is_cut: bool,
}

impl Mappers {
    /// A file that one process maps.
    pub(crate) fn of(pid: i32) -> Mappers {
        Mappers { pids: vec![pid as u32], is_cut: false }
    }

    /// Adds a process.
    pub(crate) fn add(&mut self, pid: i32) {
        let pid = pid as u32;
        if self.is_cut || self.pids.contains(&pid) {
            return;
        }
        if self.pids.len() < MAPPERS_MAX {
            self.pids.push(pid);
        } else {
            self.is_cut = true;
        }
    }

    /// Adds those that another ring names.
    pub(crate) fn merge(&mut self, other: &Mappers) {
        self.is_cut |= other.is_cut;
        other.pids.iter().for_each(|pid| self.add(*pid as i32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(pids: &[u32]) -> SampledProcesses {
        let mut sampled = SampledProcesses::default();
        pids.iter().for_each(|pid| sampled.note(*pid));
        sampled
    }

    #[test]
    fn files_of_sampled_processes_and_their_ancestors_are_found() {
        let mut some = sampled(&[7, 9, 7]);
        assert!(some.is_last(7) && !some.is_last(9));
        // 9 was forked by 5, and that by 4; 7 has threads.
        [(9, 5), (5, 4), (7, 7), (30, 7)]
            .iter()
            .for_each(|(pid, from)| some.note_fork(*pid, *from));
        let has = |sampled: &SampledProcesses, pid| sampled.has_any(&Mappers::of(pid));
        assert!(has(&some, 7) && has(&some, 9) && !has(&some, 5));
        let mut merged = sampled(&[11]);
        merged.merge(&some);
        let all = merged.with_ancestors();
        assert_eq!(
            [4, 5, 7, 9, 11, 30, 0].map(|pid| has(&all, pid)),
            [true, true, true, true, true, false, false]
        );
    }

    #[test]
    fn parents_in_a_circle_end() {
        let mut some = sampled(&[1]);
        some.note_fork(1, 2);
        some.note_fork(2, 1);
        assert!(some.with_ancestors().has_any(&Mappers::of(2)));
    }

    #[test]
    fn beyond_the_bounds_everything_counts() {
        let mut mappers = Mappers::default();
        (0..MAPPERS_MAX as i32).for_each(|pid| mappers.add(pid));
        mappers.add(3);
        assert!(!sampled(&[1000]).has_any(&mappers));
        mappers.add(500);
        assert!(sampled(&[1000]).has_any(&mappers));

        let mut many = SampledProcesses::default();
        (0..PROCESSES_MAX as u32).for_each(|pid| many.note(pid));
        many.note(5);
        assert!(!many.has_any(&Mappers::of(1 << 20)));
        many.note(1 << 21);
        assert!(many.has_any(&Mappers::of(1 << 20)));
        let mut forks = SampledProcesses::default();
        (0..=PROCESSES_MAX as u32).for_each(|pid| forks.note_fork(pid + 1, 0));
        assert!(forks.has_any(&Mappers::of(1)));
    }
}
