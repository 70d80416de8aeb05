//! The class of a wait: the thing that the thread waited for, by the names of functions in its call stack.
//!
//! The innermost kernel function that the table knows decides. A futex serves locks, queues and joins alike, so for
//! a wait at a futex the innermost user function that the table knows decides; the same where the recording has no
//! kernel functions. A futex wait that no user function explains is one for a lock.
//!
//! Runtimes make their own locks and queues of those of the C library. So functions of a runtime decide before those of
//! the C library: the innermost of the runtime itself, else the outermost of the managed program's library.

use super::model::{SwitchRow, SwitchSums, TimelineSpan, Wait};
use super::wait_class::{WaitClass, WaitClassSet};
use super::wait_class_names::{KERNEL, MANAGED, Meaning, PARKS, RUNTIME, USER, meaning_of};
use crate::ids::NodeId;
use crate::model::Profile;
use rustc_hash::FxHashMap;
use whit_perfdata::wait_object::Brings;

/// A function of a call stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedFrame<'a> {
    /// Its name, with or without suffixes of compilers and symbol versions.
    pub name: &'a str,
    /// True for a function of the kernel.
    pub kernel: bool,
}

/// The class of a voluntary wait at a call stack, innermost function first.
pub fn classify(frames: &[NamedFrame<'_>]) -> WaitClass {
    if frames.is_empty() {
        return WaitClass::Unknown;
    }
    let kernel = frames.iter().filter(|frame| frame.kernel);
    let known = kernel.filter_map(|frame| meaning_of(KERNEL, frame.name)).collect::<Vec<_>>();
    match known.first() {
        Some(Meaning::Class(WaitClass::Lock)) => WaitClass::Lock,
        // A lock can be made of a file that its waiters poll.
        Some(Meaning::Class(WaitClass::Poll)) if has_lock(frames) => WaitClass::Lock,
        // The disk serves the fault.
        Some(Meaning::Class(_)) if known.contains(&Meaning::Class(WaitClass::PageFault)) => {
            WaitClass::PageFault
        }
        Some(Meaning::Class(class)) => *class,
        Some(Meaning::Futex) => by_user(frames).unwrap_or(WaitClass::Lock),
        Some(Meaning::Semaphore) | None => by_user(frames).unwrap_or(WaitClass::Other),
    }
}

/// The class by the functions of the program and its libraries.
fn by_user(frames: &[NamedFrame<'_>]) -> Option<WaitClass> {
    let user = || frames.iter().filter(|frame| !frame.kernel);
    if let Some(class) = by_runtime(frames) {
        return Some(class);
    }
    let mut known = user().filter_map(|frame| meaning_of(USER, frame.name));
    match known.next()? {
        Meaning::Class(class) => Some(class),
        // Locks can be made of it.
        Meaning::Semaphore | Meaning::Futex => {
            let is_lock = known.any(|meaning| meaning == Meaning::Class(WaitClass::Lock));
            Some(if is_lock { WaitClass::Lock } else { WaitClass::Queue })
        }
    }
}

/// The class by the functions of a runtime and of the managed program.
fn by_runtime(frames: &[NamedFrame<'_>]) -> Option<WaitClass> {
    let user = || frames.iter().filter(|frame| !frame.kernel);
    let runtime = user().find_map(|frame| meaning_of(RUNTIME, frame.name));
    let managed = || user().rev().find_map(|frame| meaning_of(MANAGED, frame.name));
    match runtime.or_else(managed)? {
        Meaning::Class(class) => Some(class),
        Meaning::Futex | Meaning::Semaphore => None,
    }
}

/// Whether a thread of a Java virtual machine parks, and no known function of the program says what for.
fn is_parked(frames: &[NamedFrame<'_>]) -> bool {
    let mut user = frames.iter().filter(|frame| !frame.kernel);
    user.any(|frame| meaning_of(PARKS, frame.name).is_some()) && by_runtime(frames).is_none()
}

fn has_lock(frames: &[NamedFrame<'_>]) -> bool {
    let mut user = frames.iter().filter(|frame| !frame.kernel);
    user.any(|frame| meaning_of(USER, frame.name) == Some(Meaning::Class(WaitClass::Lock)))
}

/// Whether a function of the kernel is one of a lock of the kernel; `None` for functions that say nothing.
pub(super) fn is_kernel_lock(name: &str) -> Option<bool> {
    meaning_of(KERNEL, name).map(|meaning| meaning == Meaning::Class(WaitClass::Lock))
}

/// Classes of the stacks of waits.
#[derive(Clone, Debug, Default)]
pub struct NodeClasses(FxHashMap<NodeId, NodeClass>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NodeClass {
    class: WaitClass,
    is_parked: bool,
}

impl NodeClasses {
    /// For these stacks.
    pub fn of(profile: &Profile, nodes: impl Iterator<Item = NodeId>) -> NodeClasses {
        let mut classes = FxHashMap::default();
        let mut frames = Vec::new();
        for leaf in nodes {
            classes.entry(leaf).or_insert_with(|| {
                frames.clear();
                let mut at = leaf;
                while let Some(node) = profile.nodes.get(at.index()) {
                    let frame = &profile.frames[node.frame.index()];
                    let name = profile.functions[frame.function.index()].name.exact();
                    frames.push(NamedFrame { name, kernel: frame.kernel });
                    at = node.parent;
                }
                let class = classify(&frames);
                NodeClass { class, is_parked: class == WaitClass::Queue && is_parked(&frames) }
            });
        }
        NodeClasses(classes)
    }

    fn at(&self, node: NodeId, brings: Brings) -> WaitClass {
        let class = self.0.get(&node).map_or(WaitClass::Unknown, |node| node.class);
        class.of_object(brings)
    }

    /// The class of the voluntary waits of a row.
    pub fn get(&self, row: &SwitchRow) -> WaitClass {
        self.at(row.node, row.brings)
    }

    /// The class of the voluntary wait that a span is.
    pub fn of_span(&self, span: &TimelineSpan) -> WaitClass {
        self.at(span.node, span.brings)
    }

    /// Whether voluntary waits at a stack, which count as `queue`, may be for locks: a thread of a Java virtual machine
    /// parks there, and no known function of the program says what for.
    pub fn is_parked(&self, node: NodeId) -> bool {
        self.0.get(&node).is_some_and(|node| node.is_parked)
    }

    /// The class of a wait of any kind.
    pub fn of_wait(&self, wait: &Wait) -> WaitClass {
        let by_stack = || self.at(wait.node, wait.brings);
        WaitClass::without_stack(wait.kind, wait.state).unwrap_or_else(by_stack)
    }

    /// The sums of a row, taken apart by class; `None` for CPU time. Parts without anything are left out.
    pub fn split(
        &self,
        row: &SwitchRow,
    ) -> impl Iterator<Item = (Option<WaitClass>, SwitchSums)> + use<> {
        let sums = &row.sums;
        let preempted = SwitchSums {
            preempt_count: sums.preempt_count.saturating_sub(sums.throttled_count),
            preempt_wait_ns: sums.preempt_wait_ns.saturating_sub(sums.throttled_wait_ns),
            longest_preempt_ns: sums.longest_preempt_ns,
            ..SwitchSums::default()
        };
        let throttled = SwitchSums {
            preempt_count: sums.throttled_count,
            preempt_wait_ns: sums.throttled_wait_ns,
            throttled_count: sums.throttled_count,
            throttled_wait_ns: sums.throttled_wait_ns,
            longest_throttled_ns: sums.longest_throttled_ns,
            ..SwitchSums::default()
        };
        let new = SwitchSums {
            new_count: sums.new_count,
            new_wait_ns: sums.new_wait_ns,
            longest_new_ns: sums.longest_new_ns,
            ..SwitchSums::default()
        };
        // Uncertain waits have no kind of their own: they stand at the stack of theirs.
        let voluntary = SwitchSums {
            cpu_ns: 0,
            lossy_cpu_ns: 0,
            preempt_count: 0,
            preempt_wait_ns: 0,
            throttled_count: 0,
            throttled_wait_ns: 0,
            longest_preempt_ns: 0,
            longest_throttled_ns: 0,
            new_count: 0,
            new_wait_ns: 0,
            longest_new_ns: 0,
            ..*sums
        };
        let parts = [
            (None, sums.cpu_only()),
            (Some(self.get(row)), voluntary),
            (Some(WaitClass::Preempted), preempted),
            (Some(WaitClass::Throttled), throttled),
            (Some(WaitClass::New), new),
        ];
        parts.into_iter().filter(|(_, sums)| !sums.is_empty())
    }

    /// Classes of the waits in a row.
    pub fn of_row(&self, row: &SwitchRow) -> WaitClassSet {
        self.split(row).filter_map(|(class, _)| class).collect()
    }
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
