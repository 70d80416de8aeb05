//! The class of a wait: the thing that the thread waited for, by the names of functions in its call stack.
//!
//! The innermost kernel function that the table knows decides. A futex serves locks, queues and joins alike, so for
//! a wait at a futex the innermost user function that the table knows decides; the same where the recording has no
//! kernel functions. A futex wait that no user function explains is one for a lock.

use super::model::SwitchSums;
use super::switch_event::WaitKind;
use super::wait_class_names::{KERNEL, Meaning, USER, meaning_of};
use crate::model::{NodeId, Profile};
use rustc_hash::FxHashMap;

/// The thing that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitClass {
    /// A lock of the program or of the kernel, until its holder releases it.
    Lock,
    /// Files and block devices.
    Disk,
    /// Sockets.
    Network,
    /// Bytes or room in a pipe.
    Pipe,
    /// A page of memory that comes from a file or from swap.
    PageFault,
    /// A time.
    Sleep,
    /// Any of several files, by `poll`, `select` or `epoll_wait`.
    Poll,
    /// Work: a condition variable, a semaphore, a queue, an eventfd; kernel threads without work.
    Queue,
    /// The end of a child process.
    Child,
    /// The end of a thread, or other threads at a barrier.
    Join,
    /// Something that the table does not know.
    Other,
    /// No call stack says.
    Unknown,
    /// A CPU: the thread was taken off.
    Preempted,
    /// A CPU: the thread is new.
    New,
}

impl WaitClass {
    /// Every class, in the order of the tables.
    pub const ALL: [WaitClass; 14] = [
        WaitClass::Lock,
        WaitClass::Disk,
        WaitClass::Network,
        WaitClass::Pipe,
        WaitClass::PageFault,
        WaitClass::Sleep,
        WaitClass::Poll,
        WaitClass::Queue,
        WaitClass::Child,
        WaitClass::Join,
        WaitClass::Other,
        WaitClass::Unknown,
        WaitClass::Preempted,
        WaitClass::New,
    ];

    /// The word for it in options and output.
    pub fn name(self) -> &'static str {
        match self {
            WaitClass::Lock => "lock",
            WaitClass::Disk => "disk",
            WaitClass::Network => "network",
            WaitClass::Pipe => "pipe",
            WaitClass::PageFault => "page-fault",
            WaitClass::Sleep => "sleep",
            WaitClass::Poll => "poll",
            WaitClass::Queue => "queue",
            WaitClass::Child => "child",
            WaitClass::Join => "join",
            WaitClass::Other => "other",
            WaitClass::Unknown => "unknown",
            WaitClass::Preempted => "preempted",
            WaitClass::New => "new",
        }
    }
}

/// Several classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitClassSet(u16);

/// Words for several classes at once.
const GROUPS: [(&str, &[WaitClass]); 3] = [
    ("io", &[WaitClass::Disk, WaitClass::Network, WaitClass::Pipe, WaitClass::PageFault]),
    (
        "idle",
        &[WaitClass::Sleep, WaitClass::Poll, WaitClass::Queue, WaitClass::Child, WaitClass::Join],
    ),
    ("cpu", &[WaitClass::Preempted, WaitClass::New]),
];

/// A word that names no class.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no class of waits `{0}`: the classes are {names}; groups are io, idle, cpu", names = names())]
pub struct UnknownWaitClass(String);

fn names() -> String {
    WaitClass::ALL.map(WaitClass::name).join(", ")
}

impl WaitClassSet {
    /// With every class.
    pub const ALL: WaitClassSet = WaitClassSet((1 << WaitClass::ALL.len()) - 1);

    /// The set with one class more.
    pub fn with(self, class: WaitClass) -> WaitClassSet {
        WaitClassSet(self.0 | 1 << class as u16)
    }

    /// True for a class in the set.
    pub fn has(self, class: WaitClass) -> bool {
        self.0 & 1 << class as u16 != 0
    }

    /// Those that are in `self` and not in `others`.
    pub fn without(self, others: WaitClassSet) -> WaitClassSet {
        WaitClassSet(self.0 & !others.0)
    }

    /// Those that are in either.
    pub fn and(self, others: WaitClassSet) -> WaitClassSet {
        WaitClassSet(self.0 | others.0)
    }

    /// The only class of the set; `None` where it has several or none.
    pub fn only(self) -> Option<WaitClass> {
        let mut all = WaitClass::ALL.into_iter().filter(|class| self.has(*class));
        all.next().filter(|_| self.0.count_ones() == 1)
    }

    /// From a name of a class or a group.
    ///
    /// # Errors
    /// [`UnknownWaitClass`] for any other word.
    pub fn parse(name: &str) -> Result<WaitClassSet, UnknownWaitClass> {
        let of_group = GROUPS.iter().find(|(group, _)| *group == name).map(|(_, classes)| *classes);
        let one = WaitClass::ALL.into_iter().find(|class| class.name() == name);
        let set = one.map(|class| WaitClassSet::default().with(class));
        set.or_else(|| of_group.map(|classes| classes.iter().copied().collect()))
            .ok_or_else(|| UnknownWaitClass(name.to_owned()))
    }
}

impl FromIterator<WaitClass> for WaitClassSet {
    fn from_iter<I: IntoIterator<Item = WaitClass>>(classes: I) -> WaitClassSet {
        classes.into_iter().fold(WaitClassSet::default(), WaitClassSet::with)
    }
}

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
    let user = frames.iter().filter(|frame| !frame.kernel);
    let mut known = user.filter_map(|frame| meaning_of(USER, frame.name));
    match known.next()? {
        Meaning::Class(class) => Some(class),
        // Locks can be made of it.
        Meaning::Semaphore | Meaning::Futex => {
            let is_lock = known.any(|meaning| meaning == Meaning::Class(WaitClass::Lock));
            Some(if is_lock { WaitClass::Lock } else { WaitClass::Queue })
        }
    }
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
pub struct NodeClasses(FxHashMap<NodeId, WaitClass>);

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
                classify(&frames)
            });
        }
        NodeClasses(classes)
    }

    /// The class of voluntary waits at a stack.
    pub fn get(&self, node: NodeId) -> WaitClass {
        self.0.get(&node).copied().unwrap_or(WaitClass::Unknown)
    }

    /// The class of a wait of any kind.
    pub fn of_wait(&self, kind: WaitKind, node: NodeId) -> WaitClass {
        match kind {
            WaitKind::Sync => self.get(node),
            WaitKind::Preempt => WaitClass::Preempted,
            WaitKind::New => WaitClass::New,
        }
    }

    /// The sums at a stack, taken apart by class; `None` for CPU time. Parts without anything are left out.
    pub fn split(
        &self,
        node: NodeId,
        sums: &SwitchSums,
    ) -> impl Iterator<Item = (Option<WaitClass>, SwitchSums)> + use<> {
        let preempted = SwitchSums {
            preempt_count: sums.preempt_count,
            preempt_wait_ns: sums.preempt_wait_ns,
            longest_preempt_ns: sums.longest_preempt_ns,
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
            longest_preempt_ns: 0,
            new_count: 0,
            new_wait_ns: 0,
            longest_new_ns: 0,
            ..*sums
        };
        let parts = [
            (None, sums.cpu_only()),
            (Some(self.get(node)), voluntary),
            (Some(WaitClass::Preempted), preempted),
            (Some(WaitClass::New), new),
        ];
        parts.into_iter().filter(|(_, sums)| !sums.is_empty())
    }

    /// Classes of the waits in a row.
    pub fn of_row(&self, node: NodeId, sums: &SwitchSums) -> WaitClassSet {
        self.split(node, sums).filter_map(|(class, _)| class).collect()
    }
}

#[cfg(test)]
#[path = "wait_class_tests.rs"]
mod tests;
