//! The paths of intervals of a recording.

use crate::error::WhyError;
use crate::explained::Explained;
use crate::goroutines::GoTasks;
use crate::group::{Group, Sums, groups};
use crate::histories::Histories;
use crate::history::{MAX_INTERVALS, ThreadHistory};
use crate::path::critical_path;
use crate::place::ThreadName;
use crate::requests::{Call, ChosenRequests, WhichRequests, chosen};
use crate::stacks::{Stacks, stacks};
use crate::times::Times;
use whit_profile::tables::{TableSource, Tables};
use whit_profile::time_filter::{TimeFilter, TimeRange};
use whit_profile::warning::Warning;
use whit_profile::{LoadError, Question, Reading};
use whit_types::{Tid, TimestampNs};

/// The number of the goroutine that runs `main.main`.
const MAIN_GOROUTINE: u64 = 1;
/// Bytes of a command name.
const MAX_COMM_BYTES: usize = 15;

/// Which intervals are explained: the question that [`Why`] answers.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Requests, in place of a thread and a time.
    pub requests: Option<ChosenRequests>,
    /// The thread; without it the first one of the recorded command, or the first goroutine of a Go program.
    pub tid: Option<Tid>,
    /// A goroutine by its number, in place of a thread.
    pub goroutine: Option<u64>,
    /// One part of the recorded time; without it the whole recorded life of the thread.
    pub time: Option<TimeFilter>,
    /// Adds the pieces of each interval up, not those of all.
    pub each: bool,
}

/// The explained intervals.
pub struct Why {
    /// The recording.
    pub source: TableSource,
    goroutines: GoTasks,
    /// One, or those of several requests, the longest first.
    pub intervals: Vec<Explained>,
    /// The intervals are requests.
    pub are_requests: bool,
    /// The pieces of all intervals, added up, the longest first; none where each interval has its own.
    pub groups: Vec<Group>,
}

impl Question for Interval {
    type Answer = Why;
    type Error = WhyError;

    /// Reads a recording twice: its switches, then the samples on the paths.
    fn read(self, reading: Reading<'_>) -> Result<Why, WhyError> {
        let source = reading.answer(Tables)?;
        let info = source.info();
        let path = info.path.into_exact();
        if !source.has_switches() {
            return Err(WhyError::NoSwitches(path));
        }
        if !source.has_wakeups() {
            return Err(WhyError::NoWakeUps(path));
        }
        if let Some(requests) = &self.requests {
            let calls = chosen(&source, requests)?;
            let times = calls.iter().map(|call| TimeRange { from: call.from, to: call.to });
            let times = Times::of(times);
            let histories = Histories::of(&source, Some(&times), &|_| true)?;
            let wanted = calls
                .into_iter()
                .map(|call| (histories.number(call.goroutine, call.thread), call))
                .collect();
            return Ok(Why { are_requests: true, ..why(source, histories, wanted, self.each)? });
        }
        let recorded = (info.first_sample.unwrap_or(TimestampNs(0)), info.last_sample);
        let recorded = (recorded.0, recorded.1.unwrap_or(TimestampNs(u64::MAX)));
        let time = self.time.as_ref().map(|time| part_of(time, recorded)).transpose()?;
        let times = time.map(|time| Times::of([time]));
        let histories = Histories::of(&source, times.as_ref(), &|_| true)?;
        let caller = match (self.goroutine, self.tid) {
            (Some(number), _) => goroutine_of(&histories, number, path)?,
            (None, Some(_)) => thread_of(&source, &histories, self.tid, path)?,
            (None, None) => {
                first_of(&source, &histories, thread_of(&source, &histories, None, path)?)
            }
        };
        let (from, to) = span_of(&histories.all[caller as usize], time)?;
        let interval = Call { thread: caller, goroutine: None, from, to, depth: 0, key: None };
        why(source, histories, vec![(caller, interval)], self.each)
    }
}

/// So many of the slowest requests of each name, each with sums of its own: a question.
#[derive(Clone, Copy, Debug)]
pub struct SlowestOfEach(pub usize);

impl Question for SlowestOfEach {
    /// In the order in which names were recorded; `None` for names without a request.
    type Answer = Vec<Option<Why>>;
    type Error = WhyError;

    /// Reads a recording three times for each name.
    fn read(self, reading: Reading<'_>) -> Result<Vec<Option<Why>>, WhyError> {
        let names = reading.answer(Tables)?.request_names();
        let paths = names.iter().map(|name| {
            let which = WhichRequests::Slowest(self.0);
            let requests = Some(ChosenRequests { name: name.to_string(), key: None, which });
            match reading.answer(Interval { requests, each: true, ..Interval::default() }) {
                Ok(why) => Ok(Some(why)),
                // None of them ended.
                Err(WhyError::NoRequestRank { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        });
        paths.collect()
    }
}

fn why(
    source: TableSource,
    histories: Histories,
    wanted: Vec<(u32, Call)>,
    each: bool,
) -> Result<Why, WhyError> {
    let (mut intervals, mut pieces) = (Vec::with_capacity(wanted.len()), 0);
    for (thread, Call { from, to, key, .. }) in wanted {
        let path = critical_path(&histories.all, thread, from, to);
        pieces += path.pieces.len() as u64;
        if pieces > MAX_INTERVALS {
            return Err(WhyError::TooManyPieces);
        }
        intervals.push(Explained { thread, from, to, key, path, groups: Vec::new() });
    }
    let paths: Vec<_> = intervals.iter().map(|it| &it.path).collect();
    let sums = if each { Sums::OfEach } else { Sums::OfAll };
    let mut lists = groups(&source, &histories, &paths, sums)?;
    let mut all = Vec::new();
    match each {
        true => intervals.iter_mut().zip(lists).for_each(|(it, groups)| it.groups = groups),
        false => all = lists.pop().unwrap_or_default(),
    }
    let goroutines = histories.goroutines;
    Ok(Why { source, goroutines, intervals, are_requests: false, groups: all })
}

impl Why {
    /// The paths as a tree of stacks. Reads the samples once more.
    ///
    /// # Errors
    /// The recording changed while it was read.
    pub fn stacks(&self) -> Result<Stacks, LoadError> {
        stacks(&self.source, &self.goroutines, &self.intervals)
    }

    /// A thread or goroutine by its number.
    pub fn thread_name(&self, number: u32) -> ThreadName {
        ThreadName::of(&self.source, &self.goroutines, number)
    }

    /// Defects of the recording.
    pub fn warnings(&self) -> Vec<Warning> {
        self.source.warnings()
    }

    /// The lengths of all intervals in nanoseconds, added up.
    pub fn duration_ns(&self) -> u64 {
        self.intervals.iter().fold(0, |sum, it| sum.saturating_add(it.duration_ns()))
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

/// The goroutine to explain.
fn goroutine_of(histories: &Histories, number: u64, path: String) -> Result<u32, WhyError> {
    let mut alike = histories.goroutines.with_number(number);
    match (alike.next(), alike.next()) {
        (Some((goroutine, _)), None) => Ok(goroutine),
        (Some(_), Some(_)) => Err(WhyError::SeveralGoroutines { path, number }),
        (None, _) if histories.goroutines.is_empty() => Err(WhyError::NoGoroutines(path)),
        (None, _) => Err(WhyError::NoGoroutine { path, number }),
    }
}

/// The first goroutine of a Go program, whose threads run any goroutine; else the thread.
fn first_of(source: &TableSource, histories: &Histories, thread: u32) -> u32 {
    let process = source.thread(thread).map(|row| row.pid);
    let mut alike = histories.goroutines.with_number(MAIN_GOROUTINE);
    let of_process = alike.find(|(_, id)| Some(id.process) == process);
    of_process.map_or(thread, |(number, _)| number)
}

/// The thread to explain.
fn thread_of(
    source: &TableSource,
    histories: &Histories,
    wanted: Option<Tid>,
    path: String,
) -> Result<u32, WhyError> {
    let known = (0..).zip(histories.of_threads()).filter(|(_, history)| history.span().is_some());
    let numbered = known.filter_map(|(number, history)| {
        let row = source.thread(number)?;
        Some((number, history, row))
    });
    if let Some(tid) = wanted {
        let mut of_tid = numbered.filter(|(_, _, row)| row.tid == tid);
        return of_tid.next().map(|(number, ..)| number).ok_or(WhyError::NoThread { path, tid });
    }
    // Threads that others made have their creation.
    let roots: Vec<_> = numbered
        .filter(|(_, history, row)| row.pid.0 == row.tid.0 && !history.has_creator())
        .collect();
    if let [(number, ..)] = roots[..] {
        return Ok(number);
    }
    // The recorder makes the process of its command before it records, and the program begins later.
    let cmdline = source.info().cmdline;
    let is_command = |name: &str| cmdline.iter().any(|word| comm_of(word.exact()) == name);
    let began = roots.iter().filter_map(|(number, _, row)| {
        let is_command = row.name.as_deref().is_some_and(is_command);
        Some((source.began(*number).filter(|_| is_command)?, *number))
    });
    let first = began.min();
    first.map(|(_, number)| number).ok_or(WhyError::SeveralProcesses(path))
}

/// The command name that the kernel makes of the path of a program.
fn comm_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let end = (0..=MAX_COMM_BYTES.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    &name[..end.unwrap_or_default()]
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
