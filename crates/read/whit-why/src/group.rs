//! The path added up: pieces of one kind, place and thread name.

use crate::path::{Activity, Piece};
use crate::place::{Places, ThreadName};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use whit_profile::LoadError;
use whit_profile::switches::WaitClass;
use whit_profile::tables::{IntervalRow, SampleWanted, StreamEnd, TableSource, Trust, WantedFacts};
use whit_types::{CpuId, Pid, TimestampNs};

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

/// The part of a piece that other records are looked up in.
#[derive(Clone, Copy)]
struct Span {
    from: TimestampNs,
    to: TimestampNs,
    group: usize,
}

fn explained(source: &TableSource, places: &mut Places, piece: &Piece) -> Option<ExplainedGroup> {
    let explains = piece.explains?;
    let thread = ThreadName::of(source, explains.thread);
    Some(ExplainedGroup {
        threads: (thread.pid, thread.name),
        class: explains.class,
        place: places.of(source, explains.callsite),
    })
}

/// Adds the pieces up, the longest group first.
pub(crate) fn groups(source: &TableSource, pieces: &[Piece]) -> Result<Vec<Group>, LoadError> {
    let mut places = Places::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut by_key: FxHashMap<GroupKey, usize> = FxHashMap::default();
    let mut runs: FxHashMap<u32, Vec<Span>> = FxHashMap::default();
    let mut queues: FxHashMap<CpuId, Vec<Span>> = FxHashMap::default();
    for piece in pieces {
        let thread = ThreadName::of(source, piece.thread);
        let key = GroupKey {
            threads: (thread.pid, thread.name),
            activity: piece.activity,
            // A thread is taken off anywhere.
            place: match piece.activity {
                Activity::RunQueue(_) => None,
                _ => places.of(source, piece.callsite),
            },
            explains: explained(source, &mut places, piece),
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
        group.explained.extend(piece.explains.map(|explains| explains.thread));
        group.wakers.extend(piece.waker);
        group.duration_ns += piece.duration_ns();
        group.pieces += 1;
        group.longest_ns = group.longest_ns.max(piece.duration_ns());
        let span = Span { from: piece.from, to: piece.to, group: number };
        if piece.activity == Activity::Running {
            runs.entry(piece.thread).or_default().push(span);
        }
        if let Some(cpu) = piece.cpu {
            queues.entry(cpu).or_default().push(span);
        }
    }
    let mut functions: Vec<FxHashMap<Option<Arc<str>>, u64>> =
        vec![FxHashMap::default(); groups.len()];
    samples(source, &mut |time, thread, weight, callsite| {
        let of_thread = runs.get(&thread).map_or(&[][..], Vec::as_slice);
        let next = of_thread.partition_point(|run| run.to < time);
        if let Some(run) = of_thread.get(next).filter(|run| run.from <= time) {
            let sum = functions[run.group].entry(places.of(source, callsite)).or_default();
            *sum = sum.saturating_add(weight);
        }
    })?;
    for (group, sums) in groups.iter_mut().zip(functions) {
        group.sampled = sums.values().copied().fold(0, u64::saturating_add);
        group.functions =
            sums.into_iter().filter_map(|(name, weight)| Some((name?, weight))).collect();
        group
            .functions
            .sort_by(|one, other| (Reverse(one.1), &one.0).cmp(&(Reverse(other.1), &other.0)));
    }
    if !queues.is_empty() {
        behind(source, &queues, &mut groups)?;
    }
    // Equal ones stay in the order of the path.
    groups.sort_by_key(|group| Reverse(group.duration_ns));
    Ok(groups)
}

/// Finds the threads that ran on a CPU while a thread of the path waited for that CPU.
fn behind(
    source: &TableSource,
    queues: &FxHashMap<CpuId, Vec<Span>>,
    groups: &mut [Group],
) -> Result<(), LoadError> {
    let mut sums: FxHashMap<(usize, u32), u64> = FxHashMap::default();
    let ended = source.intervals(false, &mut |rows| {
        for row in rows.drain(..) {
            let IntervalRow::Run(run) = row else { continue };
            // Another thread may have run in it.
            if run.trust == Trust::Lossy {
                continue;
            }
            let on_cpu = run.cpu.and_then(|cpu| queues.get(&cpu)).map_or(&[][..], Vec::as_slice);
            let (from, to) = (run.start, TimestampNs(run.start.0.saturating_add(run.duration_ns)));
            // The path is at one place at a time: spans of a CPU do not overlap.
            let first = on_cpu.partition_point(|span| span.to <= from);
            for span in on_cpu[first..].iter().take_while(|span| span.from < to) {
                let Some(thread) = source.thread_of(run.task) else { break };
                let common_ns = to.min(span.to).since(from.max(span.from));
                *sums.entry((span.group, thread)).or_default() += common_ns;
            }
        }
        true
    });
    for ((group, thread), ns) in sums {
        groups[group].behind.push((thread, ns));
    }
    for group in groups {
        group.behind.sort_unstable_by_key(|(thread, ns)| (Reverse(*ns), *thread));
    }
    ended.or_else(end_of_stream)
}

/// Hands the samples that distribute CPU time to `take`: time, thread, weight and innermost call site.
fn samples(
    source: &TableSource,
    take: &mut dyn FnMut(TimestampNs, u32, u64, Option<u32>),
) -> Result<(), LoadError> {
    let Some(event) = source.cpu_time_event() else { return Ok(()) };
    let wanted = SampleWanted {
        stacks: true,
        facts: WantedFacts { thread: true, ..WantedFacts::default() },
        ..SampleWanted::default()
    };
    let ended = source.samples(&wanted, &mut |batch| {
        for sample in batch.drain(..) {
            if let (true, Some(thread)) = (sample.event == event, sample.thread) {
                take(sample.time, thread, sample.weight, sample.callsite);
            }
        }
        true
    });
    ended.or_else(end_of_stream)
}

fn end_of_stream(end: StreamEnd) -> Result<(), LoadError> {
    match end {
        StreamEnd::Load(error) => Err(error),
        StreamEnd::Stopped | StreamEnd::NoRoom => Ok(()),
    }
}
