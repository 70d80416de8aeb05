//! The callers that `--parent` chooses: of each call chain the first function whose name a pattern matches.

use regex_lite::Regex;
use rustc_hash::FxHashMap;
use whit_profile::model::{FunctionId, NodeId, Profile};

use super::options::ChainOrder;

/// perf's pattern.
pub const DEFAULT_PARENT: &str = "^sys_|^do_page_fault";

/// By node of the call tree, the function that the pattern chooses; empty where nobody asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Parents(Vec<Option<FunctionId>>);

impl Parents {
    /// The function of each node. Chains are searched in the order in which they are drawn, as in perf; inlined functions
    /// are none of the symbol table's and match nothing.
    pub(super) fn new(profile: &Profile, pattern: &Regex, order: ChainOrder) -> Parents {
        let matching = matching_functions(profile, pattern);
        let mut parents: Vec<Option<FunctionId>> = Vec::with_capacity(profile.nodes.len());
        for node in &profile.nodes {
            let frame = &profile.frames[node.frame.index()];
            let own = matching[frame.function.index()].filter(|_| !frame.inlined);
            let above = parents.get(node.parent.index()).copied().flatten();
            parents.push(match order {
                ChainOrder::Caller => above.or(own),
                ChainOrder::Callee => own.or(above),
            });
        }
        Parents(parents)
    }

    pub(super) fn of_node(&self, node: NodeId) -> Option<FunctionId> {
        self.0.get(node.index()).copied().flatten()
    }
}

/// By function, the first of its name, where the pattern matches it.
fn matching_functions(profile: &Profile, pattern: &Regex) -> Vec<Option<FunctionId>> {
    let mut first = FxHashMap::default();
    let functions = profile.functions.iter().zip(0..);
    let of = functions.map(|(function, id)| {
        let name = function.name.exact();
        let is_wanted = function.known && pattern.is_match(name);
        is_wanted.then(|| *first.entry(name).or_insert(FunctionId(id)))
    });
    of.collect()
}

/// Cuts off what matching functions called: their samples are their own. The outermost match of a chain counts.
pub fn ignore_callees(profile: &mut Profile, pattern: &Regex) {
    let matching = matching_functions(profile, pattern);
    let mut ends: Vec<NodeId> = Vec::with_capacity(profile.nodes.len());
    for (node, id) in profile.nodes.iter().zip(0..) {
        let frame = &profile.frames[node.frame.index()];
        let parent_end = ends.get(node.parent.index()).copied();
        // A chain ends at its own node, unless it ended further up.
        let is_cut =
            parent_end.is_some_and(|end| end != node.parent || is_end(profile, &matching, end));
        let stays = !is_cut || (frame.inlined && parent_end == Some(node.parent));
        ends.push(parent_end.filter(|_| !stays).unwrap_or(NodeId(id)));
    }
    let end = |node: NodeId| ends.get(node.index()).copied().unwrap_or(node);
    for row in &mut profile.rows {
        row.node = end(row.node);
    }
    for weight in profile.blocks.iter_mut().flat_map(|blocks| blocks.weights.iter_mut().flatten()) {
        weight.node = end(weight.node);
    }
}

/// True where a node, or the physical function that it was inlined into, is one that callees are ignored of.
fn is_end(profile: &Profile, matching: &[Option<FunctionId>], node: NodeId) -> bool {
    let mut node = &profile.nodes[node.index()];
    while profile.frames[node.frame.index()].inlined {
        match profile.nodes.get(node.parent.index()) {
            Some(parent) => node = parent,
            None => return false,
        }
    }
    matching[profile.frames[node.frame.index()].function.index()].is_some()
}

/// Leaves out samples in code without a symbol, as if they had not been taken.
pub fn hide_unresolved(profile: &mut Profile) {
    let Profile { nodes, frames, functions, facets, rows, events, blocks, .. } = profile;
    let is_known = |frame: usize| functions[frames[frame].function.index()].known;
    let resolved = |node: NodeId, facet: usize| {
        let branch = facets.get(facet).and_then(|facets| facets.branch);
        let ends = branch.into_iter().flat_map(|branch| [branch.from, branch.to]).flatten();
        nodes.get(node.index()).is_some_and(|node| is_known(node.frame.index()))
            && ends.into_iter().all(|frame| is_known(frame.index()))
    };
    rows.retain(|row| resolved(row.node, row.facets.index()));
    for event in events.iter_mut() {
        (event.samples, event.period) = (0, 0);
    }
    for row in rows.iter() {
        let event = &mut events[row.event.index()];
        event.samples += row.samples;
        event.period += row.period;
    }
    // Blocks of time have the samples that were left out, too.
    *blocks = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{At, Builder, Who, at};

    const MAIN: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: None };

    fn chain(names: &[&str]) -> Vec<At> {
        names.iter().zip(1..).map(|(name, address)| at(name, "/bin/app", address)).collect()
    }

    fn name(profile: &Profile, function: Option<FunctionId>) -> &str {
        function.map_or("-", |id| profile.functions[id.index()].name.exact())
    }

    #[test]
    fn the_order_of_chains_decides_between_callers() {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        builder.sample(event, MAIN, &chain(&["main", "a_outer", "a_inner", "leaf"]), 1);
        builder.sample(event, MAIN, &chain(&["main", "other"]), 1);
        let profile = builder.profile;
        let pattern = Regex::new("^a_").unwrap();
        for (order, expected) in [(ChainOrder::Caller, "a_outer"), (ChainOrder::Callee, "a_inner")]
        {
            let parents = Parents::new(&profile, &pattern, order);
            let of = |row: usize| name(&profile, parents.of_node(profile.rows[row].node));
            assert_eq!((of(0), of(1)), (expected, "-"));
        }
    }

    #[test]
    fn callees_of_the_outermost_match_are_cut_off() {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        builder.sample(event, MAIN, &chain(&["main", "a_outer", "a_inner", "leaf"]), 1);
        builder.sample(event, MAIN, &chain(&["main", "other"]), 1);
        let mut profile = builder.profile;
        ignore_callees(&mut profile, &Regex::new("^a_").unwrap());
        let leaf = |row: usize| {
            let frame = profile.nodes[profile.rows[row].node.index()].frame;
            name(&profile, Some(profile.frames[frame.index()].function))
        };
        assert_eq!((leaf(0), leaf(1)), ("a_outer", "other"));
    }

    #[test]
    fn samples_without_a_symbol_are_left_out() {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        builder.sample(event, MAIN, &[at("main", "/bin/app", 1)], 5);
        builder.sample(event, MAIN, &[at("0x7f", "/bin/app", 2).unknown()], 7);
        let mut profile = builder.profile;
        hide_unresolved(&mut profile);
        assert_eq!(
            (profile.rows.len(), profile.events[0].samples, profile.events[0].period),
            (1, 1, 5)
        );
    }
}
