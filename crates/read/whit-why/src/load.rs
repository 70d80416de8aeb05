//! The path of an interval of a recording.

use crate::group::{Group, groups};
use crate::history::{MAX_INTERVALS, Run, ThreadHistory, Wait, WakeUp, Waker};
use crate::path::{Path, critical_path};
use crate::place::ThreadName;
use crate::stacks::{Stacks, stacks};
use whit_perfdata::reader::Recording;
use whit_profile::tables::{IntervalRow, RunRow, StreamEnd, TableSource, Trust, WaitKind, WaitRow};
use whit_profile::time_filter::{TimeFilter, TimeRange};
use whit_profile::warning::Warning;
use whit_profile::{LoadError, LoadOptions};
use whit_types::{Tid, TimestampNs};

/// Which interval is explained.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// The thread; without it the first one of the recorded command.
    pub tid: Option<Tid>,
    /// One part of the recorded time; without it the whole recorded life of the thread.
    pub time: Option<TimeFilter>,
}

/// Why there is no path.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The recording could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It has no context switches.
    #[error("{0} has no context switches: record with whit record --engine=bpf --wakeups")]
    NoSwitches(String),
    /// It has context switches without wake-ups.
    #[error(
        "{0} has no wake-ups, which lead from a wait to the thread that ended it: record with whit record --engine=bpf \
         --wakeups"
    )]
    NoWakeUps(String),
    /// There is no such thread.
    #[error("{path} has no context switch of thread {number}: whit report --tasks lists the threads", number = tid.0)]
    NoThread {
        /// The recording.
        path: String,
        /// The thread.
        tid: Tid,
    },
    /// It has not one process alone.
    #[error(
        "{0} has not the switches of one process alone: name a thread with --tid (whit report --tasks lists them)"
    )]
    SeveralProcesses(String),
    /// The time has several parts.
    #[error("one part of the time is explained: give --time one START,STOP, or one share")]
    SeveralTimes,
    /// The thread has no run or wait in the time.
    #[error(
        "the thread has no run and no wait in this time: it is recorded from {from} s to {to} s"
    )]
    NotInTime {
        /// In seconds.
        from: String,
        /// In seconds.
        to: String,
    },
    /// There are too many intervals.
    #[error(
        "the recording has more than {MAX_INTERVALS} runs and waits: choose a part of it with --time"
    )]
    TooMany,
}

/// The explained interval.
pub struct Why {
    /// The recording.
    pub source: TableSource,
    /// Number of the thread.
    pub thread: u32,
    /// Beginning.
    pub from: TimestampNs,
    /// End.
    pub to: TimestampNs,
    /// Pieces and hand-overs of the interval.
    pub path: Path,
    /// The same time, added up, the longest first.
    pub groups: Vec<Group>,
}

impl Why {
    /// Reads a recording twice: its switches, then the samples on the path.
    ///
    /// # Errors
    /// The recording lacks what the path needs, or there is no such interval.
    pub fn load(
        recording: Recording,
        options: LoadOptions,
        interval: &Interval,
        report_progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Why, WhyError> {
        let source = TableSource::open(recording, options, report_progress)?;
        let info = source.info();
        let path = info.path.into_exact();
        if !source.has_switches() {
            return Err(WhyError::NoSwitches(path));
        }
        if !source.has_wakeups() {
            return Err(WhyError::NoWakeUps(path));
        }
        let recorded = (info.first_sample.unwrap_or(TimestampNs(0)), info.last_sample);
        let recorded = (recorded.0, recorded.1.unwrap_or(TimestampNs(u64::MAX)));
        let time = interval.time.as_ref().map(|time| part_of(time, recorded)).transpose()?;
        let threads = histories(&source, time)?;
        let thread = thread_of(&source, &threads, interval, path)?;
        let (from, to) = span_of(&threads[thread as usize], time)?;
        let path = critical_path(&threads, thread, from, to);
        let groups = groups(&source, &threads, &path)?;
        Ok(Why { source, thread, from, to, path, groups })
    }

    /// The path as a tree of stacks. Reads the samples once more.
    ///
    /// # Errors
    /// The recording changed while it was read.
    pub fn stacks(&self) -> Result<Stacks, LoadError> {
        stacks(&self.source, &self.path)
    }

    /// A thread by its number.
    pub fn thread_name(&self, thread: u32) -> ThreadName {
        ThreadName::of(&self.source, thread)
    }

    /// Defects of the recording.
    pub fn warnings(&self) -> Vec<Warning> {
        self.source.warnings()
    }

    /// The length of the interval in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.to.since(self.from)
    }
}

/// The time of the filter, which has one part.
fn part_of(
    filter: &TimeFilter,
    (first, last): (TimestampNs, TimestampNs),
) -> Result<TimeRange, WhyError> {
    let ranges = filter.resolve(first, last);
    let mut ranges = ranges.iter();
    match (ranges.next(), ranges.next()) {
        (Some(range), None) => Ok(range),
        _ => Err(WhyError::SeveralTimes),
    }
}

/// The history of all threads. Runs and waits that no path of this time leads to are left out. Creations stay: before
/// its creation, a thread is its creator.
fn histories(
    source: &TableSource,
    time: Option<TimeRange>,
) -> Result<Vec<ThreadHistory>, WhyError> {
    let mut threads: Vec<ThreadHistory> = Vec::new();
    let mut count = 0;
    let is_wanted = |from, to| time.is_none_or(|time| to >= time.from && from <= time.to);
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
        _ => Ok(threads),
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
        callsite: wait.callsite,
        wake_up,
        is_lossy: wait.trust == Trust::Lossy,
        is_open: wait.is_open,
    }
}

/// The thread to explain.
fn thread_of(
    source: &TableSource,
    threads: &[ThreadHistory],
    interval: &Interval,
    path: String,
) -> Result<u32, WhyError> {
    let known = (0..).zip(threads).filter(|(_, history)| history.span().is_some());
    let numbered = known.filter_map(|(number, history)| {
        let row = source.thread(number)?;
        Some((number, history, row))
    });
    if let Some(tid) = interval.tid {
        let mut of_tid = numbered.filter(|(_, _, row)| row.tid == tid);
        return of_tid.next().map(|(number, ..)| number).ok_or(WhyError::NoThread { path, tid });
    }
    // Threads that others made have their creation.
    let roots: Vec<_> = numbered
        .filter(|(_, history, row)| row.pid.0 == row.tid.0 && !history.has_creator())
        .collect();
    match roots[..] {
        [(number, ..)] => Ok(number),
        _ => Err(WhyError::SeveralProcesses(path)),
    }
}

fn span_of(
    history: &ThreadHistory,
    time: Option<TimeRange>,
) -> Result<(TimestampNs, TimestampNs), WhyError> {
    let (first, last) = history.span().unwrap_or_default();
    let Some(time) = time else { return Ok((first, last)) };
    let (from, to) = (time.from.max(first), time.to.min(last));
    if from >= to {
        return Err(WhyError::NotInTime { from: first.in_seconds(), to: last.in_seconds() });
    }
    Ok((from, to))
}
