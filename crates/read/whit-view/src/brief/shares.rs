//! Shares of functions, processes, threads and cgroups.

use super::parts::{CgroupShare, Function, FunctionShare, List, ProcessShare, Share, ThreadShare};
use super::{MAX_LIST, name_of};
use crate::hists::{HistRow, Hists, ShareInterval, percent};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::hash::Hash;
use whit_profile::handle;
use whit_profile::model::{EventId, Profile, SampleRow};

/// The functions with the largest shares: of their own, and with all that they call.
pub(super) fn functions(
    profile: &Profile,
    rows: &Hists,
) -> (List<FunctionShare>, List<FunctionShare>) {
    let share = |row: &&HistRow| FunctionShare::of(profile, rows, row);
    // Rows come in an order of their own, which decides between equals.
    let mut own: Vec<_> = rows.rows.iter().filter(|row| row.self_samples > 0).collect();
    own.sort_by_key(|row| Reverse(row.self_period));
    let own_count = own.len();
    let own = own.iter().take(MAX_LIST).filter_map(share).collect();
    // A function that calls nothing is in the first list.
    let calls = |row: &&HistRow| rows.children && row.children_period > row.self_period;
    let mut total: Vec<_> = rows.rows.iter().filter(calls).collect();
    total.sort_by_key(|row| Reverse(row.children_period));
    let total_count = total.len();
    let total = total.iter().take(MAX_LIST).filter_map(share).collect();
    (List { count: own_count, first: own }, List { count: total_count, first: total })
}

impl FunctionShare {
    fn of(profile: &Profile, rows: &Hists, row: &HistRow) -> Option<FunctionShare> {
        let share = |period, samples, interval: Option<ShareInterval>| Share {
            percent: rows.percent(period),
            samples,
            low_percent: interval.map(|interval| interval.low),
            high_percent: interval.map(|interval| interval.high),
        };
        let intervals = row.intervals.as_deref();
        Some(FunctionShare {
            function: Function::of(profile, row.place.function?),
            inlined: row.place.inlined,
            kernel: row.place.kernel,
            own: share(row.self_period, row.self_samples, intervals.map(|it| it.own)),
            total: share(
                row.children_period,
                row.children_samples,
                intervals.map(|it| it.children),
            ),
        })
    }
}

/// Period and samples by a property, the heaviest first.
fn sums<K: Hash + Ord>(
    profile: &Profile,
    event: EventId,
    key: impl Fn(&SampleRow) -> Option<K>,
) -> Vec<(K, f64, u64)> {
    let mut sums: FxHashMap<K, (u64, u64)> = FxHashMap::default();
    for row in profile.rows.iter().filter(|row| row.event == event) {
        let Some(key) = key(row) else { continue };
        let sum = sums.entry(key).or_default();
        *sum = (sum.0.saturating_add(row.period), sum.1 + row.samples);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let total = profile.events[event.index()].period;
    sums.into_iter()
        .map(|(key, (period, samples))| (key, percent(period, total), samples))
        .collect()
}

/// Empty where there is one alone.
fn several<T>(all: Vec<T>) -> List<T> {
    if all.len() > 1 { List::of(all) } else { List::none() }
}

pub(super) fn processes(profile: &Profile, event: EventId) -> List<ProcessShare> {
    let mut names = FxHashMap::default();
    for thread in &profile.threads {
        let name = names.entry(thread.pid).or_insert(thread.comm);
        if thread.tid.0 == thread.pid.0 {
            *name = thread.comm;
        }
    }
    let sums = sums(profile, event, |row| Some(profile.threads[row.thread.index()].pid));
    let processes = sums.into_iter().map(|(pid, percent, samples)| ProcessShare {
        pid: pid.0,
        comm: name_of(&profile.comms[names[&pid].index()]),
        percent,
        samples,
    });
    several(processes.collect())
}

pub(super) fn threads(profile: &Profile, event: EventId) -> List<ThreadShare> {
    let threads = sums(profile, event, |row| Some(row.thread)).into_iter();
    let threads = threads.map(|(thread, percent, samples)| {
        let info = &profile.threads[thread.index()];
        ThreadShare {
            handle: handle::of_thread(info.tid),
            pid: info.pid.0,
            tid: info.tid.0,
            comm: name_of(&profile.comms[info.comm.index()]),
            percent,
            samples,
        }
    });
    several(threads.collect())
}

pub(super) fn cgroups(profile: &Profile, event: EventId) -> List<CgroupShare> {
    let sums = sums(profile, event, |row| profile.facets_of(row)?.cgroup).into_iter();
    let cgroups = sums.map(|(cgroup, percent, samples)| CgroupShare {
        path: name_of(&profile.cgroups[cgroup.index()].path),
        percent,
        samples,
    });
    List::of(cgroups.collect())
}
