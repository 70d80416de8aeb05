//! The tasks of a recording: threads with their parents, and the memory that their processes mapped.
//!
//! As in perf, an exec leaves the mappings of the program before in the list, so that they are all that a process ever
//! mapped; a later mapping cuts those that it hides.

mod memory;
mod read;

use crate::error::LoadError;
use crate::reading::{Question, Reading};
use crate::warning::Warning;
use memory::Memory;
use read::{Change, TimedChange};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_types::{OutsideText, Pid, Tid};

pub use memory::MappedRange;

/// All tasks, each behind its parent, in order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct TaskList {
    /// In depth-first order.
    pub tasks: Vec<Task>,
    /// Defects of the recording.
    pub warnings: Vec<Warning>,
}

/// One thread; of several with one number, the last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// The thread that made it; `None` where no fork was recorded.
    pub parent: Option<Tid>,
    /// Its last command name; `None` without a recorded one.
    pub comm: Option<OutsideText>,
    /// Number of recorded tasks around it.
    pub depth: usize,
    /// By address. Threads of a process have the same.
    pub ranges: Arc<Vec<MappedRange>>,
}

/// The tasks of a whole recording, whatever the reading selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tasks;

impl Question for Tasks {
    type Answer = TaskList;
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<TaskList, LoadError> {
        let read = read::read(reading);
        let mut tree = Replay::default();
        tree.set_idle();
        for TimedChange { change, .. } in &read.changes {
            tree.apply(change);
        }
        for (pid, tid) in &read.sampled {
            tree.find_or_add(*pid, *tid);
        }
        Ok(TaskList { tasks: tree.list(), warnings: read.warnings })
    }
}

struct Thread {
    pid: Pid,
    parent: Option<Tid>,
    comm: Option<Arc<str>>,
}

/// Threads by number, as the changes make them.
#[derive(Default)]
struct Replay {
    threads: BTreeMap<Tid, Thread>,
    memories: FxHashMap<Pid, Arc<Memory>>,
}

impl Replay {
    /// Every machine has it, recorded or not.
    fn set_idle(&mut self) {
        let idle = Thread { pid: Pid(0), parent: None, comm: Some("swapper".into()) };
        self.threads.insert(Tid(0), idle);
    }

    fn find_or_add(&mut self, pid: Pid, tid: Tid) -> &mut Thread {
        self.threads.entry(tid).or_insert(Thread { pid, parent: None, comm: None })
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Comm { pid, tid, name } => {
                self.find_or_add(*pid, *tid).comm = Some(name.clone());
            }
            Change::Fork { task, copies_maps } => {
                let parent = self.find_or_add(task.parent_pid, task.parent_tid);
                let comm = parent.comm.clone();
                let new = Thread { pid: task.pid, parent: Some(task.parent_tid), comm };
                self.threads.insert(task.tid, new);
                if task.pid != task.parent_pid && *copies_maps {
                    let memory = self.memories.get(&task.parent_pid).cloned().unwrap_or_default();
                    self.memories.insert(task.pid, memory);
                }
            }
            Change::Map { pid, tid, range } => {
                self.find_or_add(*pid, *tid);
                Arc::make_mut(self.memories.entry(*pid).or_default()).map(range.clone());
            }
        }
    }

    fn list(self) -> Vec<Task> {
        let mut children: FxHashMap<Tid, Vec<Tid>> = FxHashMap::default();
        let mut roots = Vec::new();
        for (tid, thread) in &self.threads {
            match thread.parent.filter(|parent| parent != tid && self.threads.contains_key(parent))
            {
                Some(parent) => children.entry(parent).or_default().push(*tid),
                None => roots.push(*tid),
            }
        }
        let ranges: FxHashMap<Pid, Arc<Vec<MappedRange>>> =
            self.memories.iter().map(|(pid, memory)| (*pid, Arc::new(memory.list()))).collect();
        let mut list = Lister { replay: &self, children, ranges, listed: FxHashSet::default() };
        let mut tasks = list.below(roots);
        // Numbers that a corrupt recording makes each other's parents hang on no root.
        let rest = self.threads.keys().copied();
        for tid in rest.collect::<Vec<_>>() {
            tasks.extend(list.below(vec![tid]));
        }
        tasks
    }
}

struct Lister<'a> {
    replay: &'a Replay,
    children: FxHashMap<Tid, Vec<Tid>>,
    ranges: FxHashMap<Pid, Arc<Vec<MappedRange>>>,
    listed: FxHashSet<Tid>,
}

impl Lister<'_> {
    /// Tasks and all below them, with a stack of its own: forks can be thousands deep.
    fn below(&mut self, roots: Vec<Tid>) -> Vec<Task> {
        let mut tasks = Vec::new();
        let mut stack: Vec<(Tid, usize)> = roots.into_iter().rev().map(|tid| (tid, 0)).collect();
        while let Some((tid, depth)) = stack.pop() {
            let Some(thread) = self.replay.threads.get(&tid) else { continue };
            if !self.listed.insert(tid) {
                continue;
            }
            tasks.push(Task {
                pid: thread.pid,
                tid,
                parent: thread.parent,
                comm: thread.comm.as_ref().map(OutsideText::from),
                depth,
                ranges: self.ranges.get(&thread.pid).cloned().unwrap_or_default(),
            });
            let children = self.children.get(&tid).into_iter().flatten().rev();
            stack.extend(children.map(|child| (*child, depth + 1)));
        }
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::record::Task as Forked;

    fn fork(parent: (i32, i32), child: (i32, i32)) -> Change {
        let task = Forked {
            pid: Pid(child.0),
            tid: Tid(child.1),
            parent_pid: Pid(parent.0),
            parent_tid: Tid(parent.1),
            time: 0,
        };
        Change::Fork { task, copies_maps: true }
    }

    fn replayed(changes: &[Change]) -> Vec<(i32, usize, Option<String>, usize)> {
        let mut replay = Replay::default();
        changes.iter().for_each(|change| replay.apply(change));
        let tasks = replay.list().into_iter();
        let name = |task: &Task| task.comm.as_ref().map(ToString::to_string);
        tasks.map(|task| (task.tid.0, task.depth, name(&task), task.ranges.len())).collect()
    }

    fn comm(pid: i32, name: &str) -> Change {
        Change::Comm { pid: Pid(pid), tid: Tid(pid), name: name.into() }
    }

    #[test]
    fn children_follow_their_parents_with_their_names_and_maps() {
        let range = MappedRange { start: 4096, end: 8192, ..MappedRange::default() };
        let map = Change::Map { pid: Pid(1), tid: Tid(1), range };
        let changes = [
            comm(1, "a"),
            map,
            fork((1, 1), (5, 5)),
            fork((1, 1), (1, 3)),
            fork((5, 5), (6, 6)),
            comm(5, "b"),
        ];
        let name = |name: &str| Some(name.to_owned());
        let expected = [
            (1, 0, name("a"), 1),
            (3, 1, name("a"), 1),
            (5, 1, name("b"), 1),
            (6, 2, name("a"), 1),
        ];
        assert_eq!(replayed(&changes), expected);
    }

    #[test]
    fn tasks_that_are_each_others_parents_are_listed_once() {
        let changes = [fork((1, 1), (2, 2)), fork((2, 2), (1, 1)), fork((3, 3), (3, 3))];
        let mut tids: Vec<_> = replayed(&changes).iter().map(|task| task.0).collect();
        tids.sort_unstable();
        assert_eq!(tids, [1, 2, 3]);
    }
}
