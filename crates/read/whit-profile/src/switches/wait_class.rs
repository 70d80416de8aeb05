//! Classes of waits, and sets of them.

use super::switch_event::{TaskState, WaitKind};
use whit_perfdata::wait_object::Brings;

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
    /// The same, ended by a client: the loop had no work.
    IdleLoop,
    /// The same, ended by a peer to which the program has opened the connection.
    Peer,
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
    /// The next quota of CPU time of its cgroup, and then a CPU.
    Throttled,
    /// A CPU: the thread is new.
    New,
}

impl WaitClass {
    /// Every class, in the order of the tables.
    pub const ALL: [WaitClass; 17] = [
        WaitClass::Lock,
        WaitClass::Disk,
        WaitClass::Network,
        WaitClass::Pipe,
        WaitClass::PageFault,
        WaitClass::Sleep,
        WaitClass::Poll,
        WaitClass::IdleLoop,
        WaitClass::Peer,
        WaitClass::Queue,
        WaitClass::Child,
        WaitClass::Join,
        WaitClass::Other,
        WaitClass::Unknown,
        WaitClass::Preempted,
        WaitClass::Throttled,
        WaitClass::New,
    ];

    /// The class of a voluntary wait at a stack of this class, by the object of the wait.
    pub fn of_object(self, brings: Brings) -> WaitClass {
        match (self, brings) {
            (WaitClass::Poll, Brings::Work) => WaitClass::IdleLoop,
            (WaitClass::Poll, Brings::Answers) => WaitClass::Peer,
            _ => self,
        }
    }

    /// The class of a wait that needs no call stack; `None` for voluntary waits.
    pub fn without_stack(kind: WaitKind, state: Option<TaskState>) -> Option<WaitClass> {
        match kind {
            WaitKind::Sync => None,
            WaitKind::Preempt if state.is_some_and(TaskState::is_throttled) => {
                Some(WaitClass::Throttled)
            }
            WaitKind::Preempt => Some(WaitClass::Preempted),
            WaitKind::New => Some(WaitClass::New),
        }
    }

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
            WaitClass::IdleLoop => "idle-loop",
            WaitClass::Peer => "peer",
            WaitClass::Queue => "queue",
            WaitClass::Child => "child",
            WaitClass::Join => "join",
            WaitClass::Other => "other",
            WaitClass::Unknown => "unknown",
            WaitClass::Preempted => "preempted",
            WaitClass::Throttled => "throttled",
            WaitClass::New => "new",
        }
    }
}

/// Several classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WaitClassSet(u32);

/// Words for several classes at once.
const GROUPS: [(&str, &[WaitClass]); 3] = [
    ("io", &[WaitClass::Disk, WaitClass::Network, WaitClass::Pipe, WaitClass::PageFault]),
    (
        "idle",
        &[
            WaitClass::Sleep,
            WaitClass::Poll,
            WaitClass::IdleLoop,
            WaitClass::Peer,
            WaitClass::Queue,
            WaitClass::Child,
            WaitClass::Join,
        ],
    ),
    ("cpu", &[WaitClass::Preempted, WaitClass::Throttled, WaitClass::New]),
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

    /// Those of threads that can run.
    pub const CPU: WaitClassSet = WaitClassSet(
        1 << WaitClass::Preempted as u32
            | 1 << WaitClass::Throttled as u32
            | 1 << WaitClass::New as u32,
    );

    /// The set with one class more.
    pub fn with(self, class: WaitClass) -> WaitClassSet {
        WaitClassSet(self.0 | 1 << class as u32)
    }

    /// True for a class in the set.
    pub fn has(self, class: WaitClass) -> bool {
        self.0 & 1 << class as u32 != 0
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
