//! The page's block of context switches. `web/src/switches.js` reads what this writes.
//!
//! Trees and time line are made here and bounded; they do not depend on the page's call tree, which
//! may have been folded for the samples' sake.

use std::collections::HashMap;

use serde::Serialize;
use whit_profile::model::Profile;
use whit_profile::switches::{SwitchSums, Switches};

use super::columns;
use super::tables::bounded_name;
use super::timeline::{self, TimelineColumns};
use whit_view::hists::ChainOrder;
use whit_view::switches::{
    ChainEntry, StackTree, Stacks, SwitchViewOptions, is_shown, summary_lines,
};

/// Nodes of a tree that a page holds at most.
const MAX_TREE_NODES: usize = 20_000;
/// Share, in percent, below which nodes are left out first where there are too many; doubled until
/// the rest fits.
const FIRST_PERCENT: f64 = 0.001;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SwitchBlock {
    /// The lines in the head of the text.
    facts: Vec<String>,
    names: Vec<String>,
    callee: TreeColumns,
    caller: TreeColumns,
    timeline: TimelineColumns,
}

/// Nodes in the order in which they are shown; `up` is the distance to the parent, 0 for a root.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TreeColumns {
    up: String,
    name: String,
    cpu_ns: String,
    wait_ns: String,
    sync: String,
    preempt: String,
    lossy: String,
    open: String,
    throughout: String,
    left_out: usize,
}

/// The block of a profile whose indices were checked.
pub(crate) fn block(
    profile: &Profile,
    switches: &Switches,
    node_of: timeline::NodeOf<'_>,
) -> SwitchBlock {
    let options = SwitchViewOptions::default();
    let stacks = Stacks::new(profile, &options.filters, options.inline);
    let mut names = Names::default();
    let mut tree = |order| tree(&StackTree::new(stacks, switches, order), profile, &mut names);
    let (callee, caller) = (tree(ChainOrder::Callee), tree(ChainOrder::Caller));
    let timeline = timeline::columns(stacks, switches, node_of);
    let facts = summary_lines(profile, switches, &options);
    SwitchBlock { facts, names: names.list, callee, caller, timeline }
}

#[derive(Default)]
struct Names {
    numbers: HashMap<ChainEntry, u64>,
    list: Vec<String>,
}

impl Names {
    fn number(&mut self, profile: &Profile, place: ChainEntry) -> u64 {
        *self.numbers.entry(place).or_insert_with(|| {
            self.list.push(bounded_name(&place.name(profile)).into_owned());
            self.list.len() as u64 - 1
        })
    }
}

fn tree(tree: &StackTree, profile: &Profile, names: &mut Names) -> TreeColumns {
    let mut percent = 0.0;
    let shown = loop {
        let shown = shown_nodes(tree, percent);
        if shown.len() <= MAX_TREE_NODES || percent > 100.0 {
            break shown;
        }
        percent = f64::max(percent * 2.0, FIRST_PERCENT);
    };
    let column = |value: fn(&SwitchSums) -> u64| {
        columns::plain(shown.iter().map(|(node, _)| value(&tree.nodes[*node as usize].sums)))
    };
    let name = |(node, _): &(u32, u64)| names.number(profile, tree.nodes[*node as usize].place);
    TreeColumns {
        up: columns::plain(shown.iter().map(|(_, up)| *up)),
        name: columns::plain(shown.iter().map(name)),
        cpu_ns: column(|sums| sums.cpu_ns),
        wait_ns: column(SwitchSums::wait_ns),
        sync: column(|sums| sums.sync_count),
        preempt: column(|sums| sums.preempt_count),
        lossy: column(|sums| sums.lossy_count),
        open: column(|sums| sums.open_count),
        throughout: column(|sums| sums.throughout_count),
        left_out: tree.nodes.len() - shown.len(),
    }
}

/// Nodes parents first, siblings in order, each with the distance to its parent.
fn shown_nodes(tree: &StackTree, percent: f64) -> Vec<(u32, u64)> {
    let is_shown = |node: &u32| is_shown(&tree.nodes[*node as usize].sums, &tree.total, percent);
    let mut shown: Vec<(u32, u64)> = Vec::new();
    let mut work: Vec<(u32, Option<usize>)> =
        tree.roots.iter().rev().filter(|node| is_shown(node)).map(|node| (*node, None)).collect();
    while let Some((node, parent)) = work.pop() {
        let at = shown.len();
        shown.push((node, parent.map_or(0, |parent| (at - parent) as u64)));
        let children = tree.nodes[node as usize].children.iter().rev();
        work.extend(children.filter(|node| is_shown(node)).map(|node| (*node, Some(at))));
    }
    shown
}
