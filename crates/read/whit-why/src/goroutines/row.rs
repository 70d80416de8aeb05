//! Waits of goroutines, added up.

use super::pair::{GoWait, GoWaker};
use super::site::Sites;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_profile::switches::Durations;
use whit_profile::tables::{GoroutineWaker, TableSource};

/// The waits for one reason in one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoRow {
    /// The value of `runtime.waitReason`.
    pub reason: Option<u64>,
    /// The innermost function of the program; the one that the goroutine began with where it is all of the standard
    /// library's.
    pub function: Option<Arc<str>>,
    /// From the park until the goroutine was ready.
    pub waits: Durations,
    /// From there until a thread ran it.
    pub runnable_ns: u64,
    /// Waits without an end. They are in no other number.
    pub open: u64,
    /// Goroutines that wait.
    pub goroutines: u64,
    /// The most frequent call chain with the longest sum, by its innermost call site.
    pub callsite: Option<u32>,
    /// Those that ended the waits, the longest sum first.
    pub wakers: Vec<GoPart>,
}

/// The waits that wakers of one kind ended, in one function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoPart {
    /// One of the wakers.
    pub waker: GoWaker,
    /// The function, as a row has it; `None` for wakers that are no goroutine.
    pub function: Option<Arc<str>>,
    /// Goroutines that did it.
    pub goroutines: u64,
    /// Waits.
    pub count: u64,
    /// Their time.
    pub total_ns: u64,
    /// The call chain of the longest sum, by its innermost call site.
    pub callsite: Option<u32>,
}

type Key = (Option<u64>, Option<Arc<str>>);

pub(super) fn rows(source: &TableSource, sites: &mut Sites, waits: &[GoWait]) -> Vec<GoRow> {
    let mut all: BTreeMap<Key, Vec<&GoWait>> = BTreeMap::new();
    for wait in waits {
        let function = sites.of(source, wait.callsite);
        all.entry((wait.reason, function)).or_default().push(wait);
    }
    let mut rows: Vec<_> =
        all.into_iter().map(|(key, waits)| row(source, sites, key, &waits)).collect();
    rows.sort_by_key(|row| Reverse((row.waits.total_ns, row.open)));
    rows
}

fn row(source: &TableSource, sites: &mut Sites, (reason, function): Key, all: &[&GoWait]) -> GoRow {
    let mut waits = Durations::default();
    let (mut runnable_ns, mut open) = (0u64, 0);
    let mut chains = Chains::default();
    let mut wakers: BTreeMap<(u8, Option<Arc<str>>), Vec<&GoWait>> = BTreeMap::new();
    for wait in all {
        chains.add(wait.callsite, wait.blocked_ns().unwrap_or(0));
        let Some((end, ns)) = wait.end.zip(wait.blocked_ns()) else {
            open += 1;
            continue;
        };
        waits.add(ns);
        runnable_ns = runnable_ns.saturating_add(wait.runnable_ns().unwrap_or(0));
        let key = match end.waker {
            GoWaker::Ready(GoroutineWaker::Goroutine(_)) => (0, sites.of(source, end.callsite)),
            GoWaker::Ready(GoroutineWaker::Unknown) => (1, sites.of(source, end.callsite)),
            GoWaker::Ready(GoroutineWaker::Scheduler) => (2, None),
            GoWaker::Ready(GoroutineWaker::Poller) => (3, None),
            GoWaker::NoFunction => (4, None),
        };
        wakers.entry(key).or_default().push(wait);
    }
    let mut wakers: Vec<_> =
        wakers.into_iter().filter_map(|((_, function), waits)| part(function, &waits)).collect();
    wakers.sort_by_key(|part| Reverse((part.total_ns, part.count)));
    let goroutines = distinct(all.iter().map(|wait| wait.goroutine));
    let callsite = chains.first();
    GoRow { reason, function, waits, runnable_ns, open, goroutines, callsite, wakers }
}

fn part(function: Option<Arc<str>>, waits: &[&GoWait]) -> Option<GoPart> {
    let mut chains = Chains::default();
    let mut total_ns = 0u64;
    for wait in waits {
        let ns = wait.blocked_ns().unwrap_or(0);
        total_ns = total_ns.saturating_add(ns);
        chains.add(wait.end.and_then(|end| end.callsite), ns);
    }
    let waker = waits.first()?.end?.waker;
    let goroutines = distinct(waits.iter().filter_map(|wait| match wait.end?.waker {
        GoWaker::Ready(GoroutineWaker::Goroutine(goroutine)) => Some(goroutine),
        GoWaker::Ready(_) | GoWaker::NoFunction => None,
    }));
    let (count, callsite) = (waits.len() as u64, chains.first());
    Some(GoPart { waker, function, goroutines, count, total_ns, callsite })
}

fn distinct<T: Ord>(all: impl Iterator<Item = T>) -> u64 {
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.dedup();
    all.len() as u64
}

/// Sums of call sites.
#[derive(Default)]
struct Chains(FxHashMap<u32, (u64, u64)>);

impl Chains {
    fn add(&mut self, callsite: Option<u32>, ns: u64) {
        let Some(callsite) = callsite else { return };
        let sum = self.0.entry(callsite).or_default();
        *sum = (sum.0.saturating_add(ns), sum.1 + 1);
    }

    fn first(&self) -> Option<u32> {
        let by_sum = |(callsite, sum): &(&u32, &(u64, u64))| (**sum, Reverse(**callsite));
        self.0.iter().max_by_key(by_sum).map(|(callsite, _)| *callsite)
    }
}
