//! The history of threads: runs and waits of each, in order of time.

use whit_profile::switches::WaitClass;
use whit_profile::tables::WaitKind;
use whit_types::{CpuId, TimestampNs};

/// Most runs and waits of all histories.
pub const MAX_INTERVALS: u64 = 32 << 20;

/// Most memory for one of them: docs/why.md states the product.
const INTERVAL_BYTES: usize = 56;
const _: () = assert!(size_of::<Wait>() <= INTERVAL_BYTES && size_of::<Run>() <= INTERVAL_BYTES);

/// Time on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// When it begins.
    pub from: TimestampNs,
    /// When it ends.
    pub to: TimestampNs,
    /// Its number; `None` where no record has it.
    pub cpu: Option<CpuId>,
    /// True where lost records may hide switches in it.
    pub is_lossy: bool,
}

/// The maker of a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waker {
    /// An interrupt, which ends the path.
    Interrupt,
    /// A thread or goroutine, by its number.
    Thread(u32),
    /// No record names it, or nothing else is recorded of it.
    Unknown,
}

impl Waker {
    /// The number of a thread.
    pub fn thread(self) -> Option<u32> {
        match self {
            Waker::Thread(thread) => Some(thread),
            Waker::Interrupt | Waker::Unknown => None,
        }
    }
}

/// The end of a wait for anything but a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeUp {
    /// When it came.
    pub at: TimestampNs,
    /// The thread or interrupt that made it.
    pub waker: Waker,
}

/// The place and the object of a wait, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WaitSite {
    /// Innermost call site at the switch.
    pub callsite: Option<u32>,
    /// The object; `None` where it is not recorded.
    pub object: Option<u32>,
}

/// Time on no CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// When it begins.
    pub from: TimestampNs,
    /// When the thread is on a CPU again, or the recording ends.
    pub to: TimestampNs,
    /// Why the thread left its CPU.
    pub kind: WaitKind,
    /// The thing or event that the thread waits for.
    pub class: WaitClass,
    /// Its place and its object.
    pub site: WaitSite,
    /// The end of the wait for anything but a CPU; `None` where it is not recorded. A new thread has its creation here.
    pub wake_up: Option<WakeUp>,
    /// True where lost records may hide switches in it.
    pub is_lossy: bool,
    /// True where the recording ends first.
    pub is_open: bool,
    /// True where a goroutine parks, or no thread runs it: it waits for a thread of Go's scheduler, not for a CPU.
    pub is_of_goroutine: bool,
}

/// Runs and waits of one thread or goroutine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadHistory {
    runs: Vec<Run>,
    waits: Vec<Wait>,
    /// The first and the last recorded moment, also of intervals that are left out.
    span: Option<(TimestampNs, TimestampNs)>,
}

/// The run or wait of a thread just before a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before<'a> {
    Run(&'a Run),
    Wait(&'a Wait),
    /// No record says, back to this moment.
    Gap(TimestampNs),
}

/// How many runs and waits of a thread begin before a moment. It makes the search for an earlier moment short.
#[derive(Clone, Copy, Default)]
pub(crate) struct Begun {
    runs: usize,
    waits: usize,
}

/// A moment of a thread.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    history: &'a ThreadHistory,
    time: TimestampNs,
    pub(crate) begun: Begun,
}

/// How many intervals begin before a moment. The search begins at `near`, and is short where that is close.
fn begun_before<T>(
    intervals: &[T],
    time: TimestampNs,
    near: usize,
    from: impl Fn(&T) -> TimestampNs,
) -> usize {
    let is_before = |interval: &T| from(interval) < time;
    if intervals.get(near).is_none_or(is_before) {
        return intervals.partition_point(is_before);
    }
    let (mut low, mut high, mut step) = (near, near, 1);
    while low > 0 && !is_before(&intervals[low - 1]) {
        high = low - 1;
        low = high.saturating_sub(step);
        step *= 2;
    }
    low + intervals[low..high].partition_point(is_before)
}

impl ThreadHistory {
    /// Adds a run. Runs come in order of time.
    pub fn add_run(&mut self, run: Run) {
        if run.from < run.to {
            self.leave_out(run.from, run.to);
            self.runs.push(run);
        }
    }

    /// Adds a wait. Waits come in order of time.
    pub fn add_wait(&mut self, wait: Wait) {
        if wait.from < wait.to {
            self.leave_out(wait.from, wait.to);
            self.waits.push(wait);
        }
    }

    /// Adds the creation of the thread: it waits for its first CPU since then. `is_lossy` says whether records were lost
    /// until its first run.
    pub fn add_creation(&mut self, creation: WakeUp, is_lossy: impl Fn(TimestampNs) -> bool) {
        let Some((first, last)) = self.span.filter(|(first, _)| creation.at < *first) else {
            return;
        };
        let wait = Wait {
            from: creation.at,
            to: first,
            kind: WaitKind::New,
            class: WaitClass::New,
            site: WaitSite::default(),
            wake_up: Some(creation),
            is_lossy: is_lossy(first),
            is_open: false,
            is_of_goroutine: false,
        };
        self.waits.insert(0, wait);
        self.span = Some((creation.at, last));
    }

    /// Notes a run or wait that no path of the wanted time leads to.
    pub fn leave_out(&mut self, from: TimestampNs, to: TimestampNs) {
        let (first, last) = self.span.unwrap_or((from, to));
        self.span = Some((first.min(from), last.max(to)));
    }

    /// All runs, in order of time.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// All waits, in order of time.
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// The first and the last recorded moment.
    pub fn span(&self) -> Option<(TimestampNs, TimestampNs)> {
        self.span
    }

    /// Whether the thread was made while switches were recorded.
    pub fn has_creator(&self) -> bool {
        let begins = |wait: &Wait| self.span.is_some_and(|(first, _)| wait.from == first);
        self.waits.first().is_some_and(|wait| wait.kind == WaitKind::New && begins(wait))
    }

    /// A moment of the thread. `near` is that of a moment close to it, if one is known.
    pub(crate) fn at(&self, time: TimestampNs, near: Option<Begun>) -> Moment<'_> {
        let near = near.unwrap_or(Begun { runs: usize::MAX, waits: usize::MAX });
        let begun = Begun {
            runs: begun_before(&self.runs, time, near.runs, |run| run.from),
            waits: begun_before(&self.waits, time, near.waits, |wait| wait.from),
        };
        Moment { history: self, time, begun }
    }

    /// Whether nothing is recorded of the thread.
    pub(crate) fn is_empty(&self) -> bool {
        self.span.is_none()
    }
}

impl<'a> Moment<'a> {
    /// The creation of the thread, where it was not there just before.
    pub(crate) fn created_since(self) -> Option<WakeUp> {
        let wait = self.history.waits.get(self.begun.waits)?;
        let is_absent = || matches!(self.before(), Before::Gap(_));
        (wait.kind == WaitKind::New && (wait.from == self.time || is_absent()))
            .then_some(wait.wake_up)?
    }

    /// The run or wait just before. A corrupt recording may have intervals that overlap: the one that began last counts.
    pub(crate) fn before(self) -> Before<'a> {
        let Moment { history, time, begun } = self;
        let run = history.runs[..begun.runs].last();
        let wait = history.waits[..begun.waits].last();
        let ended = run.map(|run| run.to).max(wait.map(|wait| wait.to));
        let run = run.filter(|run| time <= run.to);
        let wait = wait.filter(|wait| time <= wait.to);
        match (run, wait) {
            (Some(run), Some(wait)) if run.from < wait.from => Before::Wait(wait),
            (Some(run), _) => Before::Run(run),
            (None, Some(wait)) => Before::Wait(wait),
            (None, None) => Before::Gap(ended.unwrap_or(TimestampNs(0))),
        }
    }

    /// The CPU on which the thread runs from then on.
    pub(crate) fn cpu(self) -> Option<CpuId> {
        let next = self.history.runs.get(self.begun.runs);
        next.filter(|run| run.from == self.time)?.cpu
    }

    /// Whether the thread is on a CPU just before.
    pub(crate) fn is_on_cpu(self) -> bool {
        matches!(self.before(), Before::Run(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_near_any_place_finds_what_a_search_of_all_finds() {
        let times = [1, 4, 4, 4, 7, 9, 12, 12, 30, 31];
        let intervals: Vec<_> = times.map(TimestampNs).into();
        for count in 0..=intervals.len() {
            let intervals = &intervals[..count];
            for time in (0..=33).map(TimestampNs) {
                let all = intervals.partition_point(|from| *from < time);
                for near in (0..=count + 1).chain([usize::MAX]) {
                    let found = begun_before(intervals, time, near, |from| *from);
                    assert_eq!(found, all, "{count} {time:?} {near}");
                }
            }
        }
    }
}
