//! Paths added up: pieces of one kind, place and thread name.

use crate::goroutines::GoTasks;
use crate::histories::Histories;
use crate::history::{ThreadHistory, WaitSite};
use crate::path::{Activity, HandOver, Path, Piece};
use crate::place::{Place, Places, ThreadName, Threads};
use crate::requests::CallsOfThreads;
use crate::runs::{Runs, Span, Spans};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use whit_profile::LoadError;
use whit_profile::switches::WaitClass;
use whit_profile::tables::{RequestKey, TableSource};
use whit_types::CpuId;

/// The wait that a group explains.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExplainedGroup {
    /// Those that wait.
    pub threads: Threads,
    /// The thing or event that it waits for.
    pub class: WaitClass,
    /// The function and the object of the wait.
    pub place: Place,
}

/// Common properties of the pieces of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupKey {
    /// Those that the time was spent in.
    pub threads: Threads,
    /// Running, waiting, or why it is unknown.
    pub activity: Activity,
    /// The function and the object of the waits.
    pub place: Place,
    /// The wait that it explains.
    pub explains: Option<ExplainedGroup>,
}

/// Pieces of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Their common properties.
    pub key: GroupKey,
    /// Their threads, by number.
    pub threads: BTreeSet<u32>,
    /// Threads with the waits that they explain, by number.
    pub explained: BTreeSet<u32>,
    /// Threads that ended the waits, where the path does not lead to them.
    pub wakers: BTreeSet<u32>,
    /// Their lengths added up.
    pub duration_ns: u64,
    /// How many there are.
    pub pieces: u64,
    /// The longest one.
    pub longest_ns: u64,
    /// Threads that ran on the CPU for which threads of the group waited, with that time in nanoseconds, the longest
    /// first.
    pub behind: Vec<(u32, u64)>,
    /// Functions with the weight of their samples, the heaviest first; of time on a CPU alone.
    pub functions: Vec<(Arc<str>, u64)>,
    /// Requests that the threads were in, with that time in nanoseconds, the longest first.
    pub requests: Vec<(Arc<str>, Option<RequestKey>, u64)>,
    /// Weight of all samples on these pieces.
    pub sampled: u64,
}

impl Group {
    fn of(key: GroupKey) -> Group {
        Group {
            key,
            threads: BTreeSet::new(),
            explained: BTreeSet::new(),
            wakers: BTreeSet::new(),
            duration_ns: 0,
            pieces: 0,
            longest_ns: 0,
            behind: Vec::new(),
            requests: Vec::new(),
            functions: Vec::new(),
            sampled: 0,
        }
    }
}

/// The names by which pieces are added up. Those of several intervals are less exact: threads of any process, and
/// connections with any port of a client.
struct Names<'a> {
    source: &'a TableSource,
    goroutines: &'a GoTasks,
    places: Places,
    are_several: bool,
}

impl<'a> Names<'a> {
    fn of(source: &'a TableSource, goroutines: &'a GoTasks, are_several: bool) -> Names<'a> {
        let places = if are_several { Places::of_several() } else { Places::default() };
        Names { source, goroutines, places, are_several }
    }

    fn threads(&self, thread: u32) -> Threads {
        ThreadName::of(self.source, self.goroutines, thread).threads(self.are_several)
    }

    fn key(&mut self, path: &Path, piece: &Piece) -> GroupKey {
        let explains = path.hand_over_of(piece).map(|wait: HandOver| ExplainedGroup {
            threads: self.threads(wait.thread),
            class: wait.class,
            place: self.places.of(self.source, wait.site),
        });
        GroupKey {
            threads: self.threads(piece.thread),
            activity: piece.activity,
            // A thread is taken off anywhere.
            place: match piece.activity {
                Activity::RunQueue(_) | Activity::Throttled | Activity::Runnable => {
                    Place::default()
                }
                _ => self.places.of(self.source, piece.site),
            },
            explains,
        }
    }
}

/// Common properties of pieces, and of the waits that they explain, by numbers.
type Numbers = (u32, Activity, WaitSite, Option<(u32, WaitClass, WaitSite)>);

/// Which pieces are added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sums {
    /// Those of all intervals.
    OfAll,
    /// Those of each interval.
    OfEach,
}

/// Adds pieces up, the longest group first: a list for all intervals, or one for each.
pub(crate) fn groups(
    source: &TableSource,
    histories: &Histories,
    paths: &[&Path],
    sums: Sums,
) -> Result<Vec<Vec<Group>>, LoadError> {
    let goroutines = &histories.goroutines;
    let mut names = Names::of(source, goroutines, sums == Sums::OfAll && paths.len() > 1);
    let mut groups: Vec<Group> = Vec::new();
    // The list that each group is in.
    let mut lists: Vec<usize> = Vec::new();
    let mut by_key: FxHashMap<(usize, GroupKey), usize> = FxHashMap::default();
    // Names take time, and most pieces have those of others.
    let mut by_numbers: FxHashMap<(usize, Numbers), usize> = FxHashMap::default();
    let calls = CallsOfThreads::of(source, goroutines)?;
    let calls = if names.are_several { calls.without_numbers() } else { calls };
    let mut requests: Vec<BTreeMap<_, u64>> = Vec::new();
    let mut runs = Runs::default();
    let mut queues: FxHashMap<CpuId, Spans> = FxHashMap::default();
    let list_of = |path: usize| if sums == Sums::OfEach { path } else { 0 };
    let pieces = paths.iter().enumerate().flat_map(|(number, path)| {
        path.pieces.iter().map(move |piece| (list_of(number), *path, piece))
    });
    for (list, path, piece) in pieces {
        let explains = path.hand_over_of(piece);
        let wait = explains.map(|wait| (wait.thread, wait.class, wait.site));
        let numbers = (list, (piece.thread, piece.activity, piece.site, wait));
        let number = *by_numbers.entry(numbers).or_insert_with(|| {
            let key = names.key(path, piece);
            let number = *by_key.entry((list, key.clone())).or_insert_with(|| {
                lists.push(list);
                groups.push(Group::of(key));
                requests.push(BTreeMap::new());
                groups.len() - 1
            });
            groups[number].threads.insert(piece.thread);
            groups[number].explained.extend(explains.map(|wait| wait.thread));
            number
        });
        calls.add(&mut requests[number], piece.thread, (piece.from, piece.to));
        let group = &mut groups[number];
        group.wakers.extend(piece.waker);
        group.duration_ns += piece.duration_ns();
        group.pieces += 1;
        group.longest_ns = group.longest_ns.max(piece.duration_ns());
        if piece.activity == Activity::Running {
            runs.add(goroutines, piece, number);
        }
        if let Some(cpu) = piece.cpu {
            queues.entry(cpu).or_default().push(Span { from: piece.from, to: piece.to, number });
        }
    }
    let mut functions: Vec<FxHashMap<Option<Arc<str>>, u64>> =
        vec![FxHashMap::default(); groups.len()];
    runs.samples(source, &mut |number, weight, callsite| {
        let function = names.places.function(source, callsite);
        let sum = functions[number].entry(function).or_default();
        *sum = sum.saturating_add(weight);
    })?;
    for (group, sums) in groups.iter_mut().zip(functions) {
        group.sampled = sums.values().copied().fold(0, u64::saturating_add);
        group.functions =
            sums.into_iter().filter_map(|(name, weight)| Some((name?, weight))).collect();
        group
            .functions
            .sort_by(|one, other| (Reverse(one.1), &one.0).cmp(&(Reverse(other.1), &other.0)));
    }
    for (group, sums) in groups.iter_mut().zip(requests) {
        group.requests = sums.into_iter().map(|((name, key), ns)| (name, key, ns)).collect();
        group.requests.sort_by_key(|request| Reverse(request.2));
    }
    queues.values_mut().for_each(Spans::sort);
    behind(histories.of_threads(), &queues, &mut groups);
    let mut of_lists = vec![Vec::new(); list_of(paths.len().saturating_sub(1)) + 1];
    lists.into_iter().zip(groups).for_each(|(list, group)| of_lists[list].push(group));
    // Equal ones stay in the order of the path.
    of_lists.iter_mut().for_each(|list| list.sort_by_key(|group| Reverse(group.duration_ns)));
    Ok(of_lists)
}

/// Finds the threads that ran on a CPU while a thread of the path waited for that CPU.
fn behind(threads: &[ThreadHistory], queues: &FxHashMap<CpuId, Spans>, groups: &mut [Group]) {
    let mut sums: FxHashMap<(usize, u32), u64> = FxHashMap::default();
    for (thread, history) in (0..).zip(threads) {
        // Another thread may have run in a run with losses.
        for run in history.runs().iter().filter(|run| !run.is_lossy) {
            let Some(on_cpu) = run.cpu.and_then(|cpu| queues.get(&cpu)) else { continue };
            let waits = on_cpu.touched(run.from, run.to);
            for span in waits.filter(|span| span.from < run.to && run.from < span.to) {
                let common_ns = run.to.min(span.to).since(run.from.max(span.from));
                *sums.entry((span.number, thread)).or_default() += common_ns;
            }
        }
    }
    for ((group, thread), ns) in sums {
        groups[group].behind.push((thread, ns));
    }
    for group in groups {
        group.behind.sort_unstable_by_key(|(thread, ns)| (Reverse(*ns), *thread));
    }
}
