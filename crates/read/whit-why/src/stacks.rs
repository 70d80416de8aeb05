//! The path as a tree of stacks: of the thread that is explained, hand-overs to other threads, and their activity.

use crate::explained::Explained;
use crate::goroutines::GoTasks;
use crate::path::{Activity, Path};
use crate::place::{Place, Places, ThreadName, Threads};
use crate::runs::Runs;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use whit_profile::LoadError;
use whit_profile::switches::WaitClass;
use whit_profile::tables::TableSource;

/// Most hand-overs in a stack. The stacks of inner ones begin at the last of these.
const MAX_HAND_OVERS: u32 = 100;

/// A thread, a wait or a function of the path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StackFrame {
    /// Threads or goroutines that have one name.
    Threads(Threads),
    /// They wait for the thread of the next frame.
    HandOver(WaitClass, Place),
    /// The activity of the threads, and where they wait.
    Activity(Activity, Place),
    /// A function on a CPU. The binary is there where the function has no name.
    Function(Arc<str>, Option<Arc<str>>),
    /// Time on a CPU without a sample.
    NoSample,
}

/// Where the names of threads and goroutines are.
#[derive(Clone, Copy)]
struct Names<'a> {
    source: &'a TableSource,
    goroutines: &'a GoTasks,
}

/// A stack with its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stack<'a> {
    /// Its frames, outermost first.
    pub frames: Vec<&'a StackFrame>,
    /// Nanoseconds of the path.
    pub duration_ns: u64,
}

/// All stacks of some paths.
#[derive(Debug, Default)]
pub struct Stacks {
    /// By number: the node of the frame outside it, and the frame. Outer nodes have lower numbers.
    nodes: Vec<(Option<usize>, StackFrame)>,
    numbers: FxHashMap<(Option<usize>, StackFrame), usize>,
    /// Nanoseconds by node, without those of inner frames.
    durations_ns: BTreeMap<usize, u64>,
    /// Those of several paths: threads of one name are one, whatever their process.
    are_several: bool,
}

impl Stacks {
    /// Stacks with their times, which add up to the lengths of the paths.
    pub fn iter(&self) -> impl Iterator<Item = Stack<'_>> {
        self.durations_ns.iter().map(|(node, duration_ns)| {
            let mut frames: Vec<_> = std::iter::successors(Some(*node), |it| self.nodes[*it].0)
                .map(|it| &self.nodes[it].1)
                .collect();
            frames.reverse();
            Stack { frames, duration_ns: *duration_ns }
        })
    }

    fn node(&mut self, outer: Option<usize>, frame: StackFrame) -> usize {
        let nodes = &mut self.nodes;
        *self.numbers.entry((outer, frame)).or_insert_with_key(|key| {
            nodes.push(key.clone());
            nodes.len() - 1
        })
    }

    fn add(&mut self, node: usize, ns: u64) {
        *self.durations_ns.entry(node).or_default() += ns;
    }

    fn thread(&mut self, names: Names<'_>, outer: Option<usize>, thread: u32) -> usize {
        let name = ThreadName::of(names.source, names.goroutines, thread);
        self.node(outer, StackFrame::Threads(name.threads(self.are_several)))
    }

    /// The node of a call site below a node.
    fn calls(&mut self, source: &TableSource, outer: usize, callsite: Option<u32>) -> usize {
        let row = |callsite: Option<u32>| source.callsite(callsite?);
        let calls = std::iter::successors(row(callsite), |it| row(it.parent));
        let mut calls: Vec<_> = calls.map(|it| it.frame).collect();
        calls.reverse();
        calls.into_iter().fold(outer, |outer, frame| match source.frame(frame) {
            Some(frame) => {
                let binary = || source.binary(frame.binary).map(|binary| binary.path);
                let binary = if frame.is_known { None } else { binary() };
                self.node(Some(outer), StackFrame::Function(frame.name, binary))
            }
            None => outer,
        })
    }

    /// The nodes of the hand-overs of a path by their numbers, and the number of hand-overs down to each.
    fn hand_overs(
        &mut self,
        names: Names<'_>,
        places: &mut Places,
        path: &Path,
    ) -> Vec<(usize, u32)> {
        let mut nodes: Vec<(usize, u32)> = Vec::with_capacity(path.hand_overs.len());
        for wait in &path.hand_overs {
            let outer = wait.outer.map(|id| nodes[id.index()]);
            let node = match outer {
                Some((node, MAX_HAND_OVERS)) => (node, MAX_HAND_OVERS),
                _ => {
                    let thread = self.thread(names, outer.map(|outer| outer.0), wait.thread);
                    let place = places.of(names.source, wait.site);
                    let frame = StackFrame::HandOver(wait.class, place);
                    (self.node(Some(thread), frame), outer.map_or(1, |(_, depth)| depth + 1))
                }
            };
            nodes.push(node);
        }
        nodes
    }

    /// Divides the time of runs by the weights of their samples. The heaviest one has the remainder.
    fn divide(&mut self, node: usize, ns: u64, weights: &FxHashMap<usize, u64>) {
        let mut weights: Vec<_> = weights.iter().map(|(node, weight)| (*node, *weight)).collect();
        weights.sort_unstable_by_key(|(node, weight)| (Reverse(*weight), *node));
        let all: u128 = weights.iter().map(|(_, weight)| u128::from(*weight)).sum();
        if all == 0 {
            let unsampled = self.node(Some(node), StackFrame::NoSample);
            return self.add(unsampled, ns);
        }
        let mut rest_ns = ns;
        for (leaf, weight) in weights.iter().skip(1) {
            let part_ns = (u128::from(ns) * u128::from(*weight) / all) as u64;
            rest_ns -= part_ns;
            self.add(*leaf, part_ns);
        }
        self.add(weights[0].0, rest_ns);
    }
}

/// Makes the stacks of paths.
pub(crate) fn stacks(
    source: &TableSource,
    goroutines: &GoTasks,
    intervals: &[Explained],
) -> Result<Stacks, LoadError> {
    let names = Names { source, goroutines };
    let mut stacks = Stacks { are_several: intervals.len() > 1, ..Stacks::default() };
    let mut places = if stacks.are_several { Places::of_several() } else { Places::default() };
    let mut runs = Runs::default();
    let mut running_ns: BTreeMap<usize, u64> = BTreeMap::new();
    for Explained { path, .. } in intervals {
        let of_hand_over = stacks.hand_overs(names, &mut places, path);
        for piece in &path.pieces {
            let outer = piece.explains.map(|id| of_hand_over[id.index()].0);
            let of_thread = stacks.thread(names, outer, piece.thread);
            let place = match piece.activity {
                Activity::RunQueue(_) | Activity::Throttled | Activity::Runnable => {
                    Place::default()
                }
                _ => places.of(source, piece.site),
            };
            let node = stacks.node(Some(of_thread), StackFrame::Activity(piece.activity, place));
            match piece.activity {
                Activity::Running => {
                    runs.add(goroutines, piece, node);
                    *running_ns.entry(node).or_default() += piece.duration_ns();
                }
                _ => stacks.add(node, piece.duration_ns()),
            }
        }
    }
    let mut weights: FxHashMap<usize, FxHashMap<usize, u64>> = FxHashMap::default();
    runs.samples(source, &mut |node, weight, callsite| {
        let leaf = stacks.calls(source, node, callsite);
        let sum = weights.entry(node).or_default().entry(leaf).or_default();
        *sum = sum.saturating_add(weight);
    })?;
    let none = FxHashMap::default();
    for (node, ns) in running_ns {
        stacks.divide(node, ns, weights.get(&node).unwrap_or(&none));
    }
    Ok(stacks)
}
