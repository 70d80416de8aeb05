//! The walk: from the end of an interval back to its beginning.

use crate::history::{Before, Begun, Moment, ThreadHistory, Wait, WaitSite, WakeUp, Waker};
use rustc_hash::FxHashMap;
use whit_profile::switches::WaitClass;
use whit_profile::tables::WaitKind;
use whit_types::{CpuId, TimestampNs};

/// Why nobody knows what a piece of time was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unknown {
    /// Switches may be missing: records were lost, came late, or contradict each other.
    MissingSwitches,
    /// No record says what the thread did.
    NotRecorded,
    /// The thread waits, and its wake-up is not recorded.
    NoWakeUp,
    /// The thread waits, and nothing is recorded of its waker.
    WakerNotRecorded,
    /// The thread waits, and by the records its waker was not on a CPU at the wake-up.
    WakerNotRunning,
}

/// The kind of a piece of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Activity {
    /// The thread is on a CPU.
    Running,
    /// The thread could run, and has no CPU: it was taken off, was woken, or is new.
    RunQueue(WaitKind),
    /// The thread was taken off since its cgroup has used its quota of CPU time up.
    Throttled,
    /// The goroutine could run, and Go's scheduler has no thread run it.
    Runnable,
    /// The thread waits for something that no thread of the recording did: the wait ends by an interrupt.
    Waiting(WaitClass),
    /// The wait had not ended when the recording did.
    StillWaiting(WaitClass),
    /// Nobody knows.
    Unknown(Unknown),
}

/// A wait that the pieces of other threads explain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandOver {
    /// The hand-over by which the path came to the thread that waits; `None` for the thread that is explained.
    pub outer: Option<HandOverId>,
    /// The thread that waits.
    pub thread: u32,
    /// The class of its wait.
    pub class: WaitClass,
    /// The place and the object of the wait.
    pub site: WaitSite,
}

/// The number of a hand-over. Outer ones have lower numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandOverId(u32);

impl HandOverId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A piece of the path: one thread, one activity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// When it begins.
    pub from: TimestampNs,
    /// When it ends.
    pub to: TimestampNs,
    /// The thread that the time was spent in.
    pub thread: u32,
    /// Running, waiting, or why it is unknown.
    pub activity: Activity,
    /// The place and the object of the wait.
    pub site: WaitSite,
    /// The thread that ended a wait, where the path does not lead to it.
    pub waker: Option<u32>,
    /// The CPU on which a thread runs that waits for one.
    pub cpu: Option<CpuId>,
    /// The wait for which the path came to this thread; `None` for the thread that is explained.
    pub explains: Option<HandOverId>,
}

impl Piece {
    /// Its length in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// The critical path of an interval.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Path {
    /// In order of time: they follow each other without a gap.
    pub pieces: Vec<Piece>,
    /// By their numbers.
    pub hand_overs: Vec<HandOver>,
}

impl Path {
    /// The innermost hand-over by which the path came to a piece.
    pub fn hand_over_of(&self, piece: &Piece) -> Option<HandOver> {
        self.hand_overs.get(piece.explains?.index()).copied()
    }

    /// The hand-overs by which the path came to a piece, innermost first.
    pub fn hand_overs_of(&self, piece: &Piece) -> impl Iterator<Item = HandOver> + '_ {
        let outer = |it: &HandOver| self.hand_overs.get(it.outer?.index()).copied();
        std::iter::successors(self.hand_over_of(piece), outer)
    }
}

/// A thread whose wait is explained; the path comes back to it where the wait begins.
struct Frame {
    thread: u32,
    from: TimestampNs,
    explains: Option<HandOverId>,
}

struct Walk<'a> {
    threads: &'a [ThreadHistory],
    /// Waits are explained by the threads that ended them.
    follows_wakers: bool,
    path: Path,
    /// Threads that were explained at each other, innermost last.
    frames: Vec<Frame>,
    /// Threads to which the path came without a step back in time.
    at_this_time: Vec<u32>,
    thread: u32,
    /// Beginning of the time that this thread explains.
    from: TimestampNs,
    time: TimestampNs,
    explains: Option<HandOverId>,
    /// By thread, of the last moment that was looked up.
    begun: FxHashMap<u32, Begun>,
}

/// The critical path of a thread between two moments. The lengths of its pieces add up to the interval.
///
/// A wait is explained by the thread that ended it: by its runs and waits since the wait began, back from the wake-up.
pub fn critical_path(
    threads: &[ThreadHistory],
    thread: u32,
    from: TimestampNs,
    to: TimestampNs,
) -> Path {
    Walk::new(threads, thread, (from, to), true).whole()
}

/// The time of a thread between two moments: its own runs and waits. The lengths of the pieces add up to the interval.
pub fn own_time(
    threads: &[ThreadHistory],
    thread: u32,
    from: TimestampNs,
    to: TimestampNs,
) -> Vec<Piece> {
    Walk::new(threads, thread, (from, to), false).whole().pieces
}

impl<'a> Walk<'a> {
    fn new(
        threads: &'a [ThreadHistory],
        thread: u32,
        (from, to): (TimestampNs, TimestampNs),
        follows_wakers: bool,
    ) -> Walk<'a> {
        Walk {
            threads,
            follows_wakers,
            path: Path::default(),
            frames: Vec::new(),
            at_this_time: Vec::new(),
            thread,
            from,
            time: to,
            explains: None,
            begun: FxHashMap::default(),
        }
    }

    fn whole(mut self) -> Path {
        loop {
            if self.time > self.from {
                self.step();
            } else if let Some(Frame { thread, from, explains }) = self.frames.pop() {
                (self.thread, self.from, self.explains) = (thread, from, explains);
            } else {
                break;
            }
        }
        self.path.pieces.reverse();
        self.path
    }
}

impl<'a> Walk<'a> {
    fn history(&self, thread: u32) -> Option<&'a ThreadHistory> {
        self.threads.get(thread as usize).filter(|history| !history.is_empty())
    }

    /// The moment to which the walk has come, in a thread.
    fn now(&mut self, thread: u32) -> Option<Moment<'a>> {
        let history = self.history(thread)?;
        let moment = history.at(self.time, self.begun.get(&thread).copied());
        self.begun.insert(thread, moment.begun);
        Some(moment)
    }

    fn step(&mut self) {
        let now = self.now(self.thread);
        let created = now.filter(|_| self.follows_wakers).and_then(Moment::created_since);
        if let Some(creation) = created {
            return self.creation(creation);
        }
        match now.map_or(Before::Gap(TimestampNs(0)), Moment::before) {
            Before::Gap(from) => {
                self.unknown(from, Unknown::NotRecorded, WaitSite::default(), None)
            }
            Before::Run(run) if run.is_lossy => {
                self.unknown(run.from, Unknown::MissingSwitches, WaitSite::default(), None);
            }
            Before::Run(run) => self.piece(run.from, Activity::Running, WaitSite::default(), None),
            Before::Wait(wait) if wait.is_lossy => {
                self.unknown(wait.from, Unknown::MissingSwitches, wait.site, None);
            }
            Before::Wait(wait) => self.wait(*wait),
        }
    }

    fn unknown(&mut self, from: TimestampNs, why: Unknown, site: WaitSite, waker: Option<u32>) {
        self.piece(from, Activity::Unknown(why), site, waker);
    }

    /// A piece from this moment, or from where this thread begins to explain, to the time of the walk.
    fn piece(&mut self, from: TimestampNs, activity: Activity, site: WaitSite, waker: Option<u32>) {
        let (from, to) = (from.max(self.from).min(self.time), self.time);
        let Walk { thread, explains, .. } = *self;
        let cpu = match activity {
            Activity::RunQueue(_) => self.now(thread).and_then(Moment::cpu),
            _ => None,
        };
        self.time = from;
        self.at_this_time.clear();
        let piece = Piece { from, to, thread, activity, site, waker, cpu, explains };
        let pieces = &mut self.path.pieces;
        match pieces.last_mut() {
            // A long run has several records.
            Some(last) if *last == (Piece { from: to, to: last.to, ..piece }) => last.from = from,
            _ => pieces.push(piece),
        }
    }

    /// Before its creation, a thread is its creator.
    fn creation(&mut self, creation: WakeUp) {
        let created = self.thread;
        let creator = creation.waker.thread();
        match creator.filter(|creator| self.leads_to(*creator, creation.at)) {
            Some(creator) => {
                self.at_this_time.push(created);
                self.hand_over(WaitClass::New, WaitSite::default());
                self.thread = creator;
            }
            None => self.unknown(self.from, Unknown::NotRecorded, WaitSite::default(), creator),
        }
    }

    /// Has the next pieces explain a wait of this thread.
    fn hand_over(&mut self, class: WaitClass, site: WaitSite) {
        let hand_overs = &mut self.path.hand_overs;
        let id = HandOverId(hand_overs.len() as u32);
        hand_overs.push(HandOver { outer: self.explains, thread: self.thread, class, site });
        self.explains = Some(id);
    }

    /// Whether the path may come to the thread that made a wake-up: it runs then. Where the path comes to it before the
    /// wake-up, it need not run yet.
    fn leads_to(&mut self, waker: u32, wake_up: TimestampNs) -> bool {
        let is_new = waker != self.thread && !self.at_this_time.contains(&waker);
        let is_earlier = wake_up > self.time;
        is_new && self.now(waker).is_some_and(|now| is_earlier || now.is_on_cpu())
    }

    fn wait(&mut self, wait: Wait) {
        let Wait { from, kind, class, site, .. } = wait;
        if kind == WaitKind::Preempt {
            let activity = match class {
                _ if wait.is_of_goroutine => Activity::Runnable,
                WaitClass::Throttled => Activity::Throttled,
                _ => Activity::RunQueue(kind),
            };
            return self.piece(from, activity, site, None);
        }
        let Some(wake_up) = wait.wake_up else {
            if wait.is_open {
                return self.piece(from, Activity::StillWaiting(class), site, None);
            }
            return self.unknown(from, Unknown::NoWakeUp, site, None);
        };
        if wake_up.at < self.time {
            let activity = match wait.is_of_goroutine {
                true => Activity::Runnable,
                false => Activity::RunQueue(kind),
            };
            return self.piece(wake_up.at.max(from), activity, site, None);
        }
        if !self.follows_wakers {
            return self.piece(from, Activity::Waiting(class), site, wake_up.waker.thread());
        }
        let waker = match wake_up.waker {
            Waker::Thread(waker) => waker,
            Waker::Interrupt => {
                return self.piece(from, Activity::Waiting(class), site, None);
            }
            Waker::Unknown => {
                return self.unknown(from, Unknown::WakerNotRecorded, site, None);
            }
        };
        if self.history(waker).is_none() {
            return self.unknown(from, Unknown::WakerNotRecorded, site, Some(waker));
        }
        if !self.leads_to(waker, wake_up.at) {
            return self.unknown(from, Unknown::WakerNotRunning, site, Some(waker));
        }
        self.at_this_time.push(self.thread);
        self.frames.push(Frame { thread: self.thread, from: self.from, explains: self.explains });
        self.hand_over(class, site);
        self.thread = waker;
        self.from = from.max(self.from);
    }
}
