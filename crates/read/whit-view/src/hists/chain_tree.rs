//! The call-chain tree of one row.
//!
//! It is perf's radix tree: a node holds the functions up to the next branching or the end of a
//! chain, so a path without branches is one node. It is built from the top, branch by branch.
//! Branches below the threshold are never entered, so the work is that of the branches drawn.

use std::cmp::Ordering;

use whit_profile::model::{DsoKind, Frame, FunctionId, Profile};

use super::options::{ChainMode, ChainOptions};
use super::tree::ChainKey;

/// One function of a call chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ChainEntry {
    /// Index into the profile's functions.
    pub function: FunctionId,
    /// True where it was inlined.
    pub inlined: bool,
}

impl ChainEntry {
    fn from_key(key: ChainKey) -> ChainEntry {
        ChainEntry { function: FunctionId((key >> 1) as u32), inlined: key & 1 == 1 }
    }
}

/// One node: a run of functions without a branch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainNode {
    /// Functions, in the order in which the chain is drawn.
    pub entries: Vec<ChainEntry>,
    /// Period of the chains that end here.
    pub hit: u64,
    /// Period of the chains that go on from here, drawn or not.
    pub children_hit: u64,
    /// Node above; `None` at the top.
    pub parent: Option<u32>,
    /// Nodes below, heaviest first, those below the threshold left out.
    pub children: Vec<u32>,
}

impl ChainNode {
    /// Period of all chains through this node.
    pub fn cumulative(&self) -> u64 {
        self.hit + self.children_hit
    }
}

/// The call chains of one row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChainTree {
    /// Nodes; parents come before their children.
    pub nodes: Vec<ChainNode>,
    /// The topmost nodes, heaviest first.
    pub roots: Vec<u32>,
}

impl ChainTree {
    /// The nodes where chains of at least `min_hit` end, heaviest first: what `flat` and `folded`
    /// draw.
    pub fn ends(&self, min_hit: u64) -> Vec<u32> {
        let mut order = Vec::new();
        let mut stack: Vec<(u32, bool)> = self.roots.iter().rev().map(|&r| (r, false)).collect();
        while let Some((node, leaving)) = stack.pop() {
            let n = &self.nodes[node as usize];
            if !leaving {
                stack.push((node, true));
                stack.extend(n.children.iter().rev().map(|&c| (c, false)));
            } else if n.hit > 0 && n.hit >= min_hit {
                order.push(node);
            }
        }
        order.sort_by_key(|&n| std::cmp::Reverse(self.nodes[n as usize].hit));
        order
    }

    /// The functions from the top down to `node`.
    pub fn path(&self, node: u32) -> Vec<ChainEntry> {
        let mut runs = Vec::new();
        let mut current = Some(node);
        while let Some(i) = current {
            let n = &self.nodes[i as usize];
            runs.push(&n.entries);
            current = n.parent;
        }
        runs.into_iter().rev().flatten().copied().collect()
    }
}

/// A place in the call tree that several chains of a row have reached, and their period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) key: ChainKey,
    pub(super) node: u32,
    /// True for chains of samples of the row itself, which are drawn whole; false for chains of
    /// samples that the row called, which are drawn from the row on.
    pub(super) own: bool,
    pub(super) weight: u64,
}

/// How chains go on.
pub(super) trait Chains {
    /// Period of the chains that end at `member`.
    fn ending(&self, member: &Member) -> u64;
    /// Adds the members that follow `member`.
    fn follow(&self, member: &Member, out: &mut Vec<Member>);
}

/// Which branches are kept, and in which order equal ones stand.
pub(super) struct Pruning<'a> {
    pub(super) order: &'a KeyOrder,
    pub(super) mode: ChainMode,
    /// Threshold of all modes but `fractal`.
    pub(super) min_hit: u64,
    /// Threshold of `fractal`: share of the parent, between 0 and 1.
    pub(super) min_share: f64,
}

impl<'a> Pruning<'a> {
    pub(super) fn new(order: &'a KeyOrder, options: &ChainOptions, total: u64) -> Pruning<'a> {
        let min_share = options.min_percent / 100.0;
        Pruning { order, mode: options.mode, min_hit: (total as f64 * min_share) as u64, min_share }
    }

    fn threshold(&self, parent_children_hit: u64) -> u64 {
        match self.mode {
            ChainMode::Fractal => (parent_children_hit as f64 * self.min_share).ceil() as u64,
            _ => self.min_hit,
        }
    }
}

/// Builds the tree of the chains that begin at `start`.
pub(super) fn build(chains: &impl Chains, start: Vec<Member>, pruning: &Pruning<'_>) -> ChainTree {
    let mut builder = Builder { chains, pruning, tree: ChainTree::default(), work: Vec::new() };
    builder.branch(None, start);
    while let Some((node, members)) = builder.work.pop() {
        builder.extend(node, members);
    }
    builder.tree
}

struct Builder<'a, C> {
    chains: &'a C,
    pruning: &'a Pruning<'a>,
    tree: ChainTree,
    work: Vec<(u32, Vec<Member>)>,
}

impl<C: Chains> Builder<'_, C> {
    /// Follows the run of functions that begins with `members` to its end.
    fn extend(&mut self, node: u32, mut members: Vec<Member>) {
        loop {
            let hit: u64 = members.iter().map(|m| self.chains.ending(m)).sum();
            let mut next = Vec::new();
            for member in &members {
                self.chains.follow(member, &mut next);
            }
            merge(&mut next);
            let one_way = next.first().is_some_and(|f| next.iter().all(|m| m.key == f.key));
            if hit == 0 && one_way {
                let entry = ChainEntry::from_key(next[0].key);
                self.tree.nodes[node as usize].entries.push(entry);
                members = next;
                continue;
            }
            let n = &mut self.tree.nodes[node as usize];
            n.hit = hit;
            n.children_hit = next.iter().map(|m| m.weight).sum();
            self.branch(Some(node), next);
            return;
        }
    }

    /// Makes a node of each group of members with one key that is heavy enough.
    fn branch(&mut self, parent: Option<u32>, mut members: Vec<Member>) {
        merge(&mut members);
        let below: u64 = members.iter().map(|m| m.weight).sum();
        let threshold = self.pruning.threshold(below);
        let groups = members.chunk_by(|a, b| a.key == b.key);
        let weigh = |g: &[Member]| g.iter().map(|m| m.weight).sum::<u64>();
        let mut kept: Vec<(u64, &[Member])> =
            groups.map(|g| (weigh(g), g)).filter(|&(weight, _)| weight >= threshold).collect();
        kept.sort_by(|a, b| {
            b.0.cmp(&a.0).then_with(|| self.pruning.order.compare(a.1[0].key, b.1[0].key))
        });
        let mut ids = Vec::with_capacity(kept.len());
        for (_, group) in kept {
            let id = self.tree.nodes.len() as u32;
            ids.push(id);
            self.tree.nodes.push(ChainNode {
                entries: vec![ChainEntry::from_key(group[0].key)],
                hit: 0,
                children_hit: 0,
                parent,
                children: Vec::new(),
            });
            self.work.push((id, group.to_vec()));
        }
        match parent {
            Some(parent) => self.tree.nodes[parent as usize].children = ids,
            None => self.tree.roots = ids,
        }
    }
}

/// Sorts by key and joins members that stand at one node.
fn merge(members: &mut Vec<Member>) {
    members.sort_unstable_by_key(|m| (m.key, m.node, m.own));
    members.dedup_by(|later, kept| {
        let same = (later.key, later.node, later.own) == (kept.key, kept.node, kept.own);
        if same {
            kept.weight += later.weight;
        }
        same
    });
}

/// The order of equally heavy branches.
///
/// perf takes the order of symbol addresses, highest first, and for different binaries the order
/// of heap pointers, code outside of all binaries last. Here binaries stand by name; within one, the lowest sampled address of a
/// function stands for its start, which orders functions alike, since they do not overlap.
pub(super) struct KeyOrder {
    /// By function: rank of the binary's name, and lowest address.
    rank: Vec<(u32, u64)>,
}

impl KeyOrder {
    pub(super) fn new(profile: &Profile) -> KeyOrder {
        let mut lowest = vec![u64::MAX; profile.functions.len()];
        for Frame { function, address, .. } in &profile.frames {
            let slot = &mut lowest[function.index()];
            *slot = (*slot).min(address.0);
        }
        let mut by_name: Vec<u32> = (0..profile.dsos.len() as u32).collect();
        by_name.sort_by_key(|&d| {
            let dso = &profile.dsos[d as usize];
            (dso.kind == DsoKind::Unknown, &dso.short_name, d)
        });
        let mut dso_rank = vec![0; profile.dsos.len()];
        for (rank, &dso) in by_name.iter().enumerate() {
            dso_rank[dso as usize] = rank as u32;
        }
        let functions = profile.functions.iter().zip(lowest);
        KeyOrder { rank: functions.map(|(f, low)| (dso_rank[f.dso.index()], low)).collect() }
    }

    fn compare(&self, a: ChainKey, b: ChainKey) -> Ordering {
        let of = |key: ChainKey| self.rank[(key >> 1) as usize];
        let ((dso_a, low_a), (dso_b, low_b)) = (of(a), of(b));
        dso_a.cmp(&dso_b).then(low_b.cmp(&low_a)).then(a.cmp(&b))
    }
}
