//! The calls of a recording.

use super::call::{Call, Counts};
use super::pair::Pairing;
use crate::error::WhyError;
use crate::goroutines::GoTasks;
use crate::losses::Losses;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use whit_profile::LoadError;
use whit_profile::tables::{RequestKey, StreamEnd, TableSource};
use whit_types::{Arch, Pid, TimestampNs};

/// A name, its calls, and those without a duration.
pub(super) type CallsOfName = (Arc<str>, Vec<Call>, Counts);

/// The calls of each name, in the order in which names were recorded; or those of one name.
pub(super) fn calls(
    source: &TableSource,
    wanted: Option<&str>,
) -> Result<Vec<CallsOfName>, WhyError> {
    let names = source.request_names();
    let path = || source.info().path.into_exact();
    if names.is_empty() {
        return Err(WhyError::NoRequests(path()));
    }
    if let Some(name) = wanted
        && !names.iter().any(|known| **known == *name)
    {
        let (name, known) = (name.to_owned(), names.join(", "));
        return Err(WhyError::NoRequestName { path: path(), name, known });
    }
    let all = all_calls(source)?;
    let is_wanted = |name: &Arc<str>| wanted.is_none_or(|it| *it == **name);
    Ok(all.into_iter().filter(|(name, ..)| is_wanted(name)).collect())
}

pub(super) fn all_calls(source: &TableSource) -> Result<Vec<CallsOfName>, LoadError> {
    let names = source.request_names();
    let arch = source.arch().or(Arch::native()).unwrap_or(Arch::X86_64);
    let mut pairings: Vec<Pairing> = names.iter().map(|_| Pairing::new(arch)).collect();
    let read = source.request_marks(&mut |mark| {
        if let Some(pairing) = pairings.get_mut(mark.kind as usize) {
            // Threads have their process in their number.
            let row = mark.goroutine.and_then(|_| source.thread(mark.thread));
            pairing.add(row.map_or(Pid(-1), |row| row.pid), mark);
        }
    });
    if let Err(StreamEnd::Load(error)) = read {
        return Err(error);
    }
    let finished = names.into_iter().zip(pairings).map(|(name, pairing)| {
        let (calls, counts) = pairing.finish();
        (name, calls, counts)
    });
    Ok(finished.collect())
}

/// Name and key of a request.
pub(crate) type RequestName = (Arc<str>, Option<RequestKey>);

/// The outermost calls of each thread or goroutine in order of time, of all names.
#[derive(Default)]
pub(crate) struct CallsOfThreads(FxHashMap<u32, Vec<(Arc<str>, Call)>>);

impl CallsOfThreads {
    pub(crate) fn of(
        source: &TableSource,
        goroutines: &GoTasks,
    ) -> Result<CallsOfThreads, LoadError> {
        let mut threads: FxHashMap<u32, Vec<(Arc<str>, Call)>> = FxHashMap::default();
        for (name, calls, _) in all_calls(source)? {
            for call in calls.into_iter().filter(|call| call.depth == 0) {
                let goroutine = call.goroutine.and_then(|id| goroutines.number(id));
                let caller = goroutine.unwrap_or(call.thread);
                threads.entry(caller).or_default().push((name.clone(), call));
            }
        }
        for calls in threads.values_mut() {
            calls.sort_by_key(|(_, call)| (call.from, call.to));
            // A request of one name may be within one of another.
            let mut end = TimestampNs(0);
            calls.retain(|(_, call)| {
                let is_outer = call.from >= end;
                end = end.max(call.to);
                is_outer
            });
        }
        Ok(CallsOfThreads(threads))
    }

    /// Texts of keys without their numbers: queries that differ in values alone have one key.
    pub(crate) fn without_numbers(mut self) -> CallsOfThreads {
        for (_, call) in self.0.values_mut().flatten() {
            if let Some(RequestKey::Text(text)) = &call.key {
                call.key = Some(RequestKey::Text(without_numbers(text).into()));
            }
        }
        self
    }

    /// Adds the time that a thread spent in requests between two moments to their sums.
    pub(crate) fn add(
        &self,
        sums: &mut BTreeMap<RequestName, u64>,
        thread: u32,
        (from, to): (TimestampNs, TimestampNs),
    ) {
        let calls = self.0.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = calls.partition_point(|(_, call)| call.to <= from);
        for (name, call) in calls[first..].iter().take_while(|(_, call)| call.from < to) {
            let common_ns = call.to.min(to).since(call.from.max(from));
            *sums.entry((name.clone(), call.key.clone())).or_default() += common_ns;
        }
    }
}

/// A question mark for each number of a text. Digits within a word stay.
fn without_numbers(text: &str) -> String {
    let mut without = String::with_capacity(text.len());
    let (mut is_word, mut is_number) = (false, false);
    for letter in text.chars() {
        let begins = letter.is_ascii_digit() && !is_word && !is_number;
        is_number = begins || (is_number && (letter.is_alphanumeric() || letter == '.'));
        is_word = !is_number && (letter.is_alphanumeric() || letter == '_');
        match (begins, is_number) {
            (true, _) => without.push('?'),
            (false, true) => {}
            (false, false) => without.push(letter),
        }
    }
    without
}

/// The shortest first.
pub(super) fn sort(calls: &mut [Call]) {
    calls.sort_by_key(|call| (call.duration_ns(), call.from));
}

/// Requests of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChosenRequests {
    /// As `--request` of the recorder gave it.
    pub name: String,
    /// Only those with this text in their keys.
    pub key: Option<String>,
    /// Some of them.
    pub which: WhichRequests,
}

/// Some of the requests of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhichRequests {
    /// One: 1 is the slowest, 2 the next.
    Rank(usize),
    /// So many of the slowest.
    Slowest(usize),
    /// All that took at least so many nanoseconds.
    LongerThan(u64),
}

/// The outermost calls that are wanted, the slowest first. There is at least one.
pub(crate) fn chosen(source: &TableSource, wanted: &ChosenRequests) -> Result<Vec<Call>, WhyError> {
    let losses = Losses::of(source);
    let name = wanted.name.clone();
    let all = calls(source, Some(&name))?.into_iter().flat_map(|(_, calls, _)| calls);
    let is_certain = |call: &Call| call.depth == 0 && !losses.touch(call.from, call.to);
    let mut calls: Vec<_> = all.filter(is_certain).collect();
    if let Some(key) = &wanted.key {
        let recorded = calls.len();
        calls.retain(|call| call.has_key(key));
        if calls.is_empty() && recorded > 0 {
            return Err(WhyError::NoRequestKey { name, key: key.clone(), recorded });
        }
    }
    sort(&mut calls);
    calls.reverse();
    let count = calls.len();
    let longest = calls.first().map_or(0, Call::duration_ns);
    match wanted.which {
        WhichRequests::Rank(rank) => {
            calls.truncate(rank);
            calls = calls.split_off(rank.saturating_sub(1).min(calls.len()));
        }
        WhichRequests::Slowest(most) => calls.truncate(most),
        WhichRequests::LongerThan(ns) => calls.retain(|call| call.duration_ns() >= ns),
    }
    match (calls.is_empty(), wanted.which) {
        (false, _) => Ok(calls),
        (true, WhichRequests::LongerThan(_)) if count > 0 => {
            let longest = format!("{:?}", Duration::from_nanos(longest));
            Err(WhyError::NoneSoLong { name, longest })
        }
        (true, WhichRequests::Rank(rank)) => Err(WhyError::NoRequestRank { name, count, rank }),
        (true, _) => Err(WhyError::NoRequestRank { name, count, rank: 1 }),
    }
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn queries_that_differ_in_values_have_one_text() {
        for (text, wanted) in [
            ("UPDATE t1 SET a = a + 2667 WHERE bid = 1;", "UPDATE t1 SET a = a + ? WHERE bid = ?;"),
            ("VALUES (4, -84, 1.5e3, 0x1f)", "VALUES (?, -?, ?, ?)"),
            ("GET /users/4711/orders?page=2", "GET /users/?/orders?page=?"),
            ("utf8_1 x86", "utf8_1 x86"),
            ("", ""),
        ] {
            assert_eq!(without_numbers(text), wanted);
        }
    }
}
