//! The path added up: pieces of one kind, place and thread name.

use crate::history::ThreadHistory;
use crate::path::{Activity, HandOver, Path};
use crate::place::{Places, ThreadName};
use crate::runs::{Runs, Span};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use whit_profile::LoadError;
use whit_profile::switches::WaitClass;
use whit_profile::tables::TableSource;
use whit_types::{CpuId, Pid};

/// Threads of one process that have one name.
type Threads = (Pid, Option<Arc<str>>);

/// The wait that a group explains.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExplainedGroup {
    /// Process and name of the thread that waits.
    pub threads: Threads,
    /// The thing or event that it waits for.
    pub class: WaitClass,
    /// The function in which it waits.
    pub place: Option<Arc<str>>,
}

/// Common properties of the pieces of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GroupKey {
    /// Process and name of the threads.
    pub threads: Threads,
    /// Running, waiting, or why it is unknown.
    pub activity: Activity,
    /// The function in which they wait.
    pub place: Option<Arc<str>>,
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
    /// Weight of all samples on these pieces.
    pub sampled: u64,
}

fn explained(source: &TableSource, places: &mut Places, wait: HandOver) -> ExplainedGroup {
    let thread = ThreadName::of(source, wait.thread);
    ExplainedGroup {
        threads: (thread.pid, thread.name),
        class: wait.class,
        place: places.of(source, wait.callsite),
    }
}

/// Adds the pieces up, the longest group first.
pub(crate) fn groups(
    source: &TableSource,
    threads: &[ThreadHistory],
    path: &Path,
) -> Result<Vec<Group>, LoadError> {
    let mut places = Places::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut by_key: FxHashMap<GroupKey, usize> = FxHashMap::default();
    let mut runs = Runs::default();
    let mut queues: FxHashMap<CpuId, Vec<Span>> = FxHashMap::default();
    for piece in &path.pieces {
        let explains = path.hand_over_of(piece);
        let thread = ThreadName::of(source, piece.thread);
        let key = GroupKey {
            threads: (thread.pid, thread.name),
            activity: piece.activity,
            // A thread is taken off anywhere.
            place: match piece.activity {
                Activity::RunQueue(_) => None,
                _ => places.of(source, piece.callsite),
            },
            explains: explains.map(|wait| explained(source, &mut places, wait)),
        };
        let number = *by_key.entry(key.clone()).or_insert_with(|| {
            groups.push(Group {
                key,
                threads: BTreeSet::new(),
                explained: BTreeSet::new(),
                wakers: BTreeSet::new(),
                duration_ns: 0,
                pieces: 0,
                longest_ns: 0,
                behind: Vec::new(),
                functions: Vec::new(),
                sampled: 0,
            });
            groups.len() - 1
        });
        let group = &mut groups[number];
        group.threads.insert(piece.thread);
        group.explained.extend(explains.map(|wait| wait.thread));
        group.wakers.extend(piece.waker);
        group.duration_ns += piece.duration_ns();
        group.pieces += 1;
        group.longest_ns = group.longest_ns.max(piece.duration_ns());
        if piece.activity == Activity::Running {
            runs.add(piece, number);
        }
        if let Some(cpu) = piece.cpu {
            queues.entry(cpu).or_default().push(Span { from: piece.from, to: piece.to, number });
        }
    }
    let mut functions: Vec<FxHashMap<Option<Arc<str>>, u64>> =
        vec![FxHashMap::default(); groups.len()];
    runs.samples(source, &mut |number, weight, callsite| {
        let sum = functions[number].entry(places.of(source, callsite)).or_default();
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
    behind(threads, &queues, &mut groups);
    // Equal ones stay in the order of the path.
    groups.sort_by_key(|group| Reverse(group.duration_ns));
    Ok(groups)
}

/// Finds the threads that ran on a CPU while a thread of the path waited for that CPU.
fn behind(threads: &[ThreadHistory], queues: &FxHashMap<CpuId, Vec<Span>>, groups: &mut [Group]) {
    let mut sums: FxHashMap<(usize, u32), u64> = FxHashMap::default();
    for (thread, history) in (0..).zip(threads) {
        // Another thread may have run in a run with losses.
        for run in history.runs().iter().filter(|run| !run.is_lossy) {
            let on_cpu = run.cpu.and_then(|cpu| queues.get(&cpu)).map_or(&[][..], Vec::as_slice);
            // The path is at one place at a time: spans of a CPU do not overlap.
            let first = on_cpu.partition_point(|span| span.to <= run.from);
            for span in on_cpu[first..].iter().take_while(|span| span.from < run.to) {
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
