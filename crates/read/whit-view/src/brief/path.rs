//! The call path that most samples follow.

use super::MAX_LIST;
use super::parts::{Function, HottestPath, PathStep};
use crate::hists::percent;
use rustc_hash::FxHashMap;
use whit_profile::model::{EventId, FunctionId, NodeId, Profile};

/// A path with a smaller part of the event is one of many.
const SHARE_MIN: f64 = 0.05;

/// From the roots on, always to the callee with the most weight, while more weight goes on than ends here. `None` where
/// the recording has no call chains.
pub(super) fn hottest(profile: &Profile, event: EventId) -> Option<HottestPath> {
    if !profile.recording.has_callchains {
        return None;
    }
    let weights = Weights::new(profile, event);
    let mut steps: Vec<(FunctionId, u64)> = Vec::new();
    let mut callees = weights.roots.clone();
    let mut ends_here = 0;
    let total = profile.events[event.index()].period;
    let weight_min = (total as f64 * SHARE_MIN) as u64;
    while let Some((function, nodes, weight)) = weights.heaviest(profile, &callees) {
        if weight <= ends_here || weight < weight_min {
            break;
        }
        steps.push((function, weight));
        ends_here = nodes.iter().map(|node| weights.own[node.index()]).fold(0, u64::saturating_add);
        callees = nodes.iter().flat_map(|node| weights.callees(*node)).collect();
    }
    let last = steps.last()?.1;
    // Recursion stands in one step.
    let runs: Vec<_> = steps.chunk_by(|a, b| a.0 == b.0).collect();
    let inner = &runs[runs.len().saturating_sub(MAX_LIST)..];
    let step = |run: &&[(FunctionId, u64)]| PathStep {
        function: Function::of(profile, run[0].0),
        percent: percent(run[run.len() - 1].1, total),
        times: run.len(),
    };
    Some(HottestPath {
        percent: percent(last, total),
        functions: steps.len(),
        innermost: inner.iter().map(step).collect(),
    })
}

/// Periods at each node of the call tree.
struct Weights {
    own: Vec<u64>,
    total: Vec<u64>,
    first_callee: Vec<NodeId>,
    next_sibling: Vec<NodeId>,
    roots: Vec<NodeId>,
}

impl Weights {
    fn new(profile: &Profile, event: EventId) -> Weights {
        let count = profile.nodes.len();
        let mut own = vec![0u64; count];
        for row in profile.rows.iter().filter(|row| row.event == event) {
            if let Some(weight) = own.get_mut(row.node.index()) {
                *weight = weight.saturating_add(row.period);
            }
        }
        let mut weights = Weights {
            total: own.clone(),
            own,
            first_callee: vec![NodeId::NONE; count],
            next_sibling: vec![NodeId::NONE; count],
            roots: Vec::new(),
        };
        // A caller stands before its callees.
        for at in (0..count).rev() {
            let (node, parent) = (NodeId(at as u32), profile.nodes[at].parent);
            let weight = weights.total[at];
            match weights.total.get_mut(parent.index()) {
                None => weights.roots.push(node),
                Some(total) => {
                    *total = total.saturating_add(weight);
                    let first = &mut weights.first_callee[parent.index()];
                    weights.next_sibling[at] = std::mem::replace(first, node);
                }
            }
        }
        weights
    }

    fn callees(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let exists = |node: NodeId| (node.index() < self.own.len()).then_some(node);
        let first = exists(self.first_callee[node.index()]);
        std::iter::successors(first, move |node| exists(self.next_sibling[node.index()]))
    }

    /// The function with the most weight among these nodes, its nodes, and the weight. The first by name, of equals.
    fn heaviest(
        &self,
        profile: &Profile,
        nodes: &[NodeId],
    ) -> Option<(FunctionId, Vec<NodeId>, u64)> {
        let mut by_function: FxHashMap<FunctionId, (Vec<NodeId>, u64)> = FxHashMap::default();
        for node in nodes.iter().filter(|node| self.total[node.index()] > 0) {
            let function = profile.frames[profile.nodes[node.index()].frame.index()].function;
            let entry = by_function.entry(function).or_default();
            entry.0.push(*node);
            entry.1 = entry.1.saturating_add(self.total[node.index()]);
        }
        let name = |function: &FunctionId| profile.functions[function.index()].name.exact();
        let heavier = |a: &(FunctionId, (Vec<NodeId>, u64)),
                       b: &(FunctionId, (Vec<NodeId>, u64))| {
            a.1.1.cmp(&b.1.1).then_with(|| name(&b.0).cmp(name(&a.0))).then_with(|| b.0.cmp(&a.0))
        };
        let (function, (nodes, weight)) = by_function.into_iter().max_by(heavier)?;
        Some((function, nodes, weight))
    }
}
