//! The history of goroutines: where threads run them, and where they wait.
//!
//! While a thread runs a goroutine, the runs and waits of the thread are the goroutine's. It ends where the goroutine parks,
//! or where the thread or another one runs the next goroutine: the scheduler has taken the first one off, or it came back
//! from a system call while all its turns were taken. Until a thread runs it again, it is runnable.

use super::class::class_of;
use super::pair::MAX_WAITS;
use super::site::frames;
use crate::error::WhyError;
use crate::history::{MAX_INTERVALS, Run, ThreadHistory, Wait, WaitSite, WakeUp, Waker};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_perfdata::goroutine::Change;
use whit_profile::switches::WaitClass;
use whit_profile::tables::{
    Goroutine, GoroutineChange, GoroutineWaker, StreamEnd, TableSource, WaitKind,
};
use whit_types::{Pid, TimestampNs};

/// Where a thread waits until Go's scheduler has work for it. A goroutine that it ran has no thread then.
const WITHOUT_GOROUTINE: &str = "runtime.stopm";

/// Most changes: each wait has three. They take up to 1.25 GiB.
const MAX_STEPS: usize = 3 * MAX_WAITS;
const _: () = assert!(MAX_STEPS * size_of::<Step>() <= 5 << 28);

/// A goroutine of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GoroutineId {
    /// Goroutines of other processes may have the same number.
    pub process: Pid,
    /// Its address and its number.
    pub goroutine: Goroutine,
}

impl GoroutineId {
    /// The number by which Go's runtime prints it; else the address.
    pub fn number(self) -> u64 {
        self.goroutine.number.unwrap_or(self.goroutine.address)
    }
}

/// Time in which a thread runs a goroutine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OnThread {
    pub(crate) from: TimestampNs,
    pub(crate) to: TimestampNs,
    /// The number of the thread.
    pub(crate) thread: u32,
}

/// A goroutine, by its number in a list of histories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GoTask {
    pub(crate) id: GoroutineId,
    /// The threads that run it, in order of time.
    pub(crate) turns: Vec<OnThread>,
    /// The last thread that ran it.
    pub(crate) thread: u32,
}

/// A change of a goroutine, without its texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) time: TimestampNs,
    pub(super) thread: u32,
    pub(super) change: Change,
    pub(super) id: GoroutineId,
    pub(super) class: WaitClass,
    pub(super) callsite: Option<u32>,
    pub(super) waker: GoroutineWaker,
}

/// The changes of goroutines in order of time.
#[derive(Default)]
pub(crate) struct Steps(Vec<Step>);

impl Steps {
    /// Those of a recording; none where it has no goroutines.
    ///
    /// # Errors
    /// The recording changed, or there are too many.
    pub(crate) fn of(source: &TableSource) -> Result<Steps, WhyError> {
        let mut steps = Vec::new();
        if !source.has_goroutines() {
            return Ok(Steps(steps));
        }
        let mut classes = Classes { reasons: source.wait_reasons(), known: FxHashMap::default() };
        let mut processes: FxHashMap<u32, Pid> = FxHashMap::default();
        let read = source.goroutine_changes(&mut |change| {
            if steps.len() <= MAX_STEPS {
                let process = || source.thread(change.thread).map_or(Pid(-1), |row| row.pid);
                let process = *processes.entry(change.thread).or_insert_with(process);
                let class = classes.of(source, &change);
                let GoroutineChange { time, thread, change, goroutine, waker, callsite, .. } =
                    change;
                let id = GoroutineId { process, goroutine };
                steps.push(Step { time, thread, change, id, class, callsite, waker });
            }
        });
        match read {
            Err(StreamEnd::Load(error)) => Err(error.into()),
            _ if steps.len() > MAX_STEPS => Err(WhyError::TooManyGoroutineWaits {
                path: source.info().path.into_exact(),
                max: MAX_WAITS,
            }),
            _ => Ok(Steps(steps)),
        }
    }
}

/// Classes of parks, each looked for once.
struct Classes {
    reasons: Vec<Arc<str>>,
    known: FxHashMap<(Option<u64>, Option<u32>), WaitClass>,
}

impl Classes {
    fn of(&mut self, source: &TableSource, change: &GoroutineChange) -> WaitClass {
        let GoroutineChange { reason, callsite, .. } = *change;
        if change.change != Change::Park {
            return WaitClass::Unknown;
        }
        *self.known.entry((reason, callsite)).or_insert_with(|| {
            let name = reason.and_then(|number| self.reasons.get(usize::try_from(number).ok()?));
            class_of(name.map_or("", |name| name), &frames(source, callsite))
        })
    }
}

/// The state of a goroutine as the next change finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// No change of it was recorded yet.
    #[default]
    Unknown,
    /// Another one has made it.
    New(WakeUp),
    On(u32, TimestampNs),
    Parked {
        from: TimestampNs,
        class: WaitClass,
        callsite: Option<u32>,
        wake_up: Option<WakeUp>,
    },
    /// Without a thread, and not parked.
    Runnable(TimestampNs),
}

/// Makes histories of goroutines from those of threads.
pub(super) struct Maker<'a> {
    threads: &'a [ThreadHistory],
    /// Whether a thread without work waits at a call site.
    is_without_work: &'a mut dyn FnMut(Option<u32>) -> bool,
    /// Whether records were lost between two moments.
    is_lossy: &'a dyn Fn(TimestampNs, TimestampNs) -> bool,
    /// The number of the first goroutine.
    first: u32,
    numbers: FxHashMap<GoroutineId, u32>,
    tasks: Vec<(GoTask, State)>,
    histories: Vec<ThreadHistory>,
    /// The goroutine that each thread runs.
    running: FxHashMap<u32, u32>,
    /// Runs and waits that goroutines have from threads.
    copied: u64,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        (threads, first): (&'a [ThreadHistory], u32),
        is_without_work: &'a mut dyn FnMut(Option<u32>) -> bool,
        is_lossy: &'a dyn Fn(TimestampNs, TimestampNs) -> bool,
    ) -> Maker<'a> {
        Maker {
            threads,
            is_without_work,
            is_lossy,
            first,
            numbers: FxHashMap::default(),
            tasks: Vec::new(),
            histories: Vec::new(),
            running: FxHashMap::default(),
            copied: 0,
        }
    }

    /// Whether there are more runs and waits than are taken.
    fn is_full(&self) -> bool {
        self.copied > MAX_INTERVALS
    }

    /// The place of a goroutine in the lists.
    fn place(&mut self, id: GoroutineId, thread: u32) -> usize {
        let next = self.tasks.len() as u32;
        let place = *self.numbers.entry(id).or_insert(next) as usize;
        if place == self.tasks.len() {
            self.tasks.push((GoTask { id, turns: Vec::new(), thread }, State::default()));
            self.histories.push(ThreadHistory::default());
        }
        place
    }

    /// Takes the next step, in order of time.
    pub(super) fn add(&mut self, step: Step) {
        let Step { time, thread, change, id, class, callsite, waker } = step;
        let place = self.place(id, thread);
        match change {
            Change::Create => {
                let waker = self.waker(id.process, waker, thread);
                self.tasks[place].1 = State::New(WakeUp { at: time, waker });
            }
            Change::Run => self.run(place, thread, time),
            Change::Park => {
                if matches!(self.tasks[place].1, State::On(on, _) if on == thread) {
                    self.end_turn(place, time, false);
                }
                // In a corrupt recording another one ran: turns of a thread do not overlap.
                if let Some(other) = self.running.remove(&thread)
                    && other as usize != place
                {
                    self.end_turn(other as usize, time, true);
                }
                self.tasks[place].1 = State::Parked { from: time, class, callsite, wake_up: None };
            }
            Change::Ready => {
                let waker = self.waker(id.process, waker, thread);
                if let State::Parked { wake_up: wake_up @ None, .. } = &mut self.tasks[place].1 {
                    *wake_up = Some(WakeUp { at: time, waker });
                }
            }
        }
    }

    /// The goroutine that makes another one ready, where its thread is known; else the thread.
    fn waker(&self, process: Pid, waker: GoroutineWaker, thread: u32) -> Waker {
        let goroutine = match waker {
            // A timer, or a packet.
            GoroutineWaker::Scheduler | GoroutineWaker::Poller => return Waker::Interrupt,
            GoroutineWaker::Unknown => return Waker::Thread(thread),
            GoroutineWaker::Goroutine(goroutine) => goroutine,
        };
        let number = self.numbers.get(&GoroutineId { process, goroutine });
        match number.map(|number| (number, self.tasks[*number as usize].1)) {
            Some((number, State::On(..))) => Waker::Thread(self.first + number),
            _ => Waker::Thread(thread),
        }
    }

    fn run(&mut self, place: usize, thread: u32, time: TimestampNs) {
        if let Some(before) = self.running.insert(thread, place as u32)
            && before as usize != place
        {
            self.end_turn(before as usize, time, true);
        }
        if let State::On(on, _) = self.tasks[place].1 {
            if on != thread {
                self.running.remove(&on);
            }
            self.end_turn(place, time, true);
        }
        let (task, state) = &mut self.tasks[place];
        let wait = match *state {
            State::Unknown | State::On(..) => None,
            State::New(creation) => {
                Some((creation.at, WaitKind::New, WaitClass::New, None, Some(creation)))
            }
            State::Runnable(from) => {
                Some((from, WaitKind::Preempt, WaitClass::Preempted, None, None))
            }
            State::Parked { from, class, callsite, wake_up } => {
                // Without a function that makes it ready: the collector, or the poller where polls were not recorded.
                let wake_up = wake_up.or(Some(WakeUp { at: time, waker: Waker::Interrupt }));
                Some((from, WaitKind::Sync, class, callsite, wake_up))
            }
        };
        (*state, task.thread) = (State::On(thread, time), thread);
        if let Some((from, kind, class, callsite, wake_up)) = wait {
            self.histories[place].add_wait(Wait {
                from,
                to: time,
                kind,
                class,
                site: WaitSite { callsite, object: None },
                wake_up,
                is_lossy: (self.is_lossy)(from, time),
                is_open: false,
                is_of_goroutine: true,
            });
        }
    }

    /// Ends the time of a goroutine on a thread: the runs and waits of the thread are its own. Where it did not park, it
    /// is runnable then: since the thread waits for work, or else since now.
    fn end_turn(&mut self, place: usize, to: TimestampNs, is_taken_off: bool) {
        let (task, state) = &mut self.tasks[place];
        let State::On(thread, from) = *state else { return };
        let history = self.threads.get(thread as usize);
        let waits = history
            .map_or(&[][..], |history| between(history.waits(), from, to, |it| (it.from, it.to)));
        let is_idle = |wait: &&Wait| is_taken_off && (self.is_without_work)(wait.site.callsite);
        let idle = waits.iter().find(is_idle);
        let end = idle.map_or(to, |wait| wait.from.max(from));
        *state = State::Runnable(end);
        if from < end {
            task.turns.push(OnThread { from, to: end, thread });
        }
        let own = &mut self.histories[place];
        let runs = history
            .map_or(&[][..], |history| between(history.runs(), from, end, |it| (it.from, it.to)));
        self.copied += (runs.len() + waits.len()) as u64;
        for run in runs {
            own.add_run(Run { from: run.from.max(from), to: run.to.min(end), ..*run });
        }
        for wait in waits.iter().filter(|wait| wait.from < end) {
            let to = wait.to.min(end);
            let wake_up = wait.wake_up.filter(|wake_up| wake_up.at <= to);
            own.add_wait(Wait { from: wait.from.max(from), to, wake_up, ..*wait });
        }
    }

    /// The goroutines with their histories. The recording ends at `last`.
    pub(super) fn finish(mut self, last: TimestampNs) -> (Vec<GoTask>, Vec<ThreadHistory>) {
        for place in 0..self.tasks.len() {
            match self.tasks[place].1 {
                State::On(..) => self.end_turn(place, last, false),
                State::Parked { from, class, callsite, wake_up } => {
                    self.histories[place].add_wait(Wait {
                        from,
                        to: last,
                        kind: WaitKind::Sync,
                        class,
                        site: WaitSite { callsite, object: None },
                        wake_up,
                        is_lossy: (self.is_lossy)(from, last),
                        is_open: true,
                        is_of_goroutine: true,
                    });
                }
                State::Unknown | State::New(_) | State::Runnable(_) => {}
            }
        }
        (self.tasks.into_iter().map(|(task, _)| task).collect(), self.histories)
    }
}

/// Those of intervals in order of time that have a part between two moments.
fn between<T>(
    intervals: &[T],
    from: TimestampNs,
    to: TimestampNs,
    times: impl Fn(&T) -> (TimestampNs, TimestampNs),
) -> &[T] {
    let first = intervals.partition_point(|it| times(it).1 <= from);
    let rest = &intervals[first..];
    &rest[..rest.partition_point(|it| times(it).0 < to)]
}

/// Goroutines by their numbers, which follow those of threads.
#[derive(Debug)]
pub(crate) struct GoTasks {
    first: u32,
    tasks: Vec<GoTask>,
    numbers: FxHashMap<GoroutineId, u32>,
}

impl Default for GoTasks {
    fn default() -> GoTasks {
        GoTasks { first: u32::MAX, tasks: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl GoTasks {
    /// Adds the histories of goroutines behind those of threads.
    ///
    /// # Errors
    /// They have too many runs and waits.
    pub(crate) fn add(
        source: &TableSource,
        steps: Steps,
        threads: &mut Vec<ThreadHistory>,
        is_lossy: &dyn Fn(TimestampNs, TimestampNs) -> bool,
    ) -> Result<GoTasks, WhyError> {
        if steps.0.is_empty() {
            return Ok(GoTasks::default());
        }
        threads.resize(threads.len().max(source.nr_threads()), ThreadHistory::default());
        let first = threads.len() as u32;
        let mut known: FxHashMap<Option<u32>, bool> = FxHashMap::default();
        let mut is_without_work = |callsite| {
            let is_it = |name: &Arc<str>| name.starts_with(WITHOUT_GOROUTINE);
            let look = || frames(source, callsite).iter().any(is_it);
            *known.entry(callsite).or_insert_with(look)
        };
        let last = threads.iter().filter_map(|it| Some(it.span()?.1)).max();
        let last = last.max(steps.0.last().map(|step| step.time)).unwrap_or_default();
        let mut maker = Maker::new((threads, first), &mut is_without_work, is_lossy);
        for step in steps.0 {
            maker.add(step);
            if maker.is_full() {
                return Err(WhyError::TooMany);
            }
        }
        let numbers = std::mem::take(&mut maker.numbers);
        let (tasks, histories) = maker.finish(last);
        threads.extend(histories);
        Ok(GoTasks { first, tasks, numbers })
    }

    /// A goroutine by its number; `None` for threads.
    pub(crate) fn get(&self, number: u32) -> Option<&GoTask> {
        self.tasks.get(number.checked_sub(self.first)? as usize)
    }

    /// Whether no goroutine is recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The number of a goroutine.
    pub(crate) fn number(&self, id: GoroutineId) -> Option<u32> {
        self.numbers.get(&id).map(|number| self.first + number)
    }

    /// The goroutines that have a number of Go's runtime, with their numbers here.
    pub(crate) fn with_number(&self, number: u64) -> impl Iterator<Item = (u32, GoroutineId)> {
        let all = self.tasks.iter().zip(0..).map(|(task, place)| (self.first + place, task.id));
        all.filter(move |(_, id)| id.goroutine.number == Some(number))
    }

    /// How many histories are those of threads.
    pub(crate) fn first(&self) -> usize {
        self.first as usize
    }

    /// The parts of a time of a thread or goroutine by the thread that ran it.
    pub(crate) fn on_threads(
        &self,
        number: u32,
        from: TimestampNs,
        to: TimestampNs,
    ) -> impl Iterator<Item = OnThread> {
        let turns =
            self.get(number).map(|task| between(&task.turns, from, to, |it| (it.from, it.to)));
        let cut =
            move |it: &OnThread| OnThread { from: it.from.max(from), to: it.to.min(to), ..*it };
        let thread = turns.is_none().then_some(OnThread { from, to, thread: number });
        turns.unwrap_or_default().iter().map(cut).chain(thread)
    }
}

#[cfg(test)]
mod tests;
