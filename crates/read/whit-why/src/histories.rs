//! The runs and waits of a recording, by thread and goroutine.

use crate::error::WhyError;
use crate::goroutines::{GoTasks, GoroutineId, Steps};
use crate::history::{MAX_INTERVALS, Run, ThreadHistory, Wait, WaitSite, WakeUp, Waker};
use crate::losses::Losses;
use crate::times::Times;
use whit_profile::tables::{
    Creation, IntervalRow, RunRow, StreamEnd, TableSource, Trust, WaitKind, WaitRow,
};
use whit_types::{Tid, TimestampNs};

/// Histories by the numbers of threads, and behind them those of goroutines.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    pub(crate) all: Vec<ThreadHistory>,
    pub(crate) goroutines: GoTasks,
}

impl Histories {
    /// Those of a recording, with goroutines where it has any.
    ///
    /// # Errors
    /// The recording changed, or there are more than [`MAX_INTERVALS`].
    pub(crate) fn of(
        source: &TableSource,
        times: Option<&Times>,
        keeps: &dyn Fn(u32) -> bool,
    ) -> Result<Histories, WhyError> {
        let steps = Steps::of(source)?;
        let mut all = histories(source, times, keeps)?;
        let losses = Losses::of(source);
        let is_lossy = |from, to| losses.touch(from, to);
        let goroutines = GoTasks::add(source, steps, &mut all, &is_lossy)?;
        Ok(Histories { all, goroutines })
    }

    /// Those of threads.
    pub(crate) fn of_threads(&self) -> &[ThreadHistory] {
        &self.all[..self.goroutines.first().min(self.all.len())]
    }

    /// The number of a goroutine, if it is recorded; else that of the thread.
    pub(crate) fn number(&self, goroutine: Option<GoroutineId>, thread: u32) -> u32 {
        goroutine.and_then(|id| self.goroutines.number(id)).unwrap_or(thread)
    }
}

/// The histories of threads, by their numbers. Runs and waits of other threads than those that are kept, and those that
/// no path of these times leads to, are left out. Creations stay: before its creation, a thread is its creator.
///
/// # Errors
/// The recording changed, or there are more than [`MAX_INTERVALS`].
fn histories(
    source: &TableSource,
    times: Option<&Times>,
    keeps: &dyn Fn(u32) -> bool,
) -> Result<Vec<ThreadHistory>, WhyError> {
    let mut threads: Vec<ThreadHistory> = Vec::new();
    let mut count = 0;
    let is_in_time = |from, to| times.is_none_or(|times| times.touch(from, to));
    let ended = source.intervals(true, &mut |rows| {
        for row in rows.drain(..) {
            let task = match &row {
                IntervalRow::Run(run) => run.task,
                IntervalRow::Wait(wait) => wait.task,
            };
            let Some(thread) = source.thread_of(task) else { continue };
            if threads.len() <= thread as usize {
                threads.resize(thread as usize + 1, ThreadHistory::default());
            }
            let history = &mut threads[thread as usize];
            let is_wanted = |from, to| keeps(thread) && is_in_time(from, to);
            match row {
                IntervalRow::Run(run) => {
                    let run = run_of(&run);
                    if is_wanted(run.from, run.to) {
                        history.add_run(run);
                        count += 1;
                    } else {
                        history.leave_out(run.from, run.to);
                    }
                }
                IntervalRow::Wait(row) => {
                    let wait = wait_of(source, &row);
                    if is_wanted(wait.from, wait.to) || wait.kind == WaitKind::New {
                        history.add_wait(wait);
                        count += 1;
                    } else {
                        history.leave_out(wait.from, wait.to);
                    }
                }
            }
        }
        count <= MAX_INTERVALS
    });
    match ended {
        Err(StreamEnd::Load(error)) => Err(error.into()),
        _ if count > MAX_INTERVALS => Err(WhyError::TooMany),
        _ => {
            let losses = Losses::of(source);
            for (number, history) in (0..).zip(&mut threads) {
                create(source, &losses, number, history);
            }
            Ok(threads)
        }
    }
}

/// Notes that a thread was made, where its first run is recorded and its first wait is not.
fn create(source: &TableSource, losses: &Losses, number: u32, history: &mut ThreadHistory) {
    let Some((first, _)) = history.span().filter(|_| !history.has_creator()) else { return };
    if let Some(Creation { at, by }) = source.creation_of(number, first) {
        let creation = WakeUp { at, waker: Waker::Thread(by) };
        let tid = source.thread(number).map_or(Tid(0), |thread| thread.tid);
        history.add_creation(creation, |until| losses.touch_switches(tid, at, until));
    }
}

fn run_of(run: &RunRow) -> Run {
    let to = TimestampNs(run.start.0.saturating_add(run.duration_ns));
    Run { from: run.start, to, cpu: run.cpu, is_lossy: run.trust == Trust::Lossy }
}

fn wait_of(source: &TableSource, wait: &WaitRow) -> Wait {
    let to = TimestampNs(wait.start.0.saturating_add(wait.duration_ns.unwrap_or(0)));
    let waker = match wait.waker {
        _ if wait.from_interrupt => Waker::Interrupt,
        // The idle thread wakes for interrupts alone.
        Some((_, Tid(0))) => Waker::Interrupt,
        waker => waker.and_then(|it| source.thread_of(it)).map_or(Waker::Unknown, Waker::Thread),
    };
    let wake_up = wait.woken_at.map(|at| WakeUp { at, waker });
    Wait {
        from: wait.start,
        to,
        kind: wait.kind,
        class: source.wait_class(wait),
        site: WaitSite { callsite: wait.callsite, object: source.object_of(wait) },
        wake_up,
        is_lossy: wait.trust == Trust::Lossy,
        is_open: wait.is_open,
        is_of_goroutine: false,
    }
}
