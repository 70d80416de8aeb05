//! Weights by node for one context, and the chains of one row read off them.

use whit_profile::model::{Profile, SampleRow};

use super::chain_tree::{self, ChainTree, Chains, Member, Pruning};
use super::latency::{Weigher, WeightPair};
use super::tree::{NONE, Tree};

/// Weights of one context's samples, by node. The tables are as long as the call tree and are
/// made once; a stamp per node says whether its entries belong to the current context.
pub(super) struct Weights {
    /// Nodes that the context's samples reach, descending: callees before callers.
    pub(super) touched: Vec<u32>,
    /// Weight of samples with this leaf.
    pub(super) own: Vec<u64>,
    /// The other weight of them; empty where one is computed.
    own_other: Vec<u64>,
    /// Number of samples with this leaf.
    pub(super) own_samples: Vec<u64>,
    /// First thread with this leaf.
    pub(super) own_thread: Vec<u32>,
    /// Weight of samples with this node in their chain.
    pub(super) below: Vec<u64>,
    /// The other weight of them; empty where one is computed.
    below_other: Vec<u64>,
    /// Number of samples with this node in their chain.
    pub(super) below_samples: Vec<u64>,
    /// First thread with this node in its chain.
    pub(super) thread: Vec<u32>,
    /// Greatest depth of a leaf at or below this node.
    pub(super) deepest: Vec<u32>,
    stamp: Vec<u32>,
    now: u32,
    /// Per-row scratch weights, valid where `mark_stamp` is the current row's.
    mark: Vec<u64>,
    mark_stamp: Vec<u32>,
    mark_now: u32,
    marked: Vec<u32>,
}

impl Weights {
    pub(super) fn new(nodes: usize, weigher: Weigher) -> Weights {
        let others = if weigher.has_latency() { nodes } else { 0 };
        Weights {
            own_other: vec![0; others],
            below_other: vec![0; others],
            touched: Vec::new(),
            own: vec![0; nodes],
            own_samples: vec![0; nodes],
            own_thread: vec![0; nodes],
            below: vec![0; nodes],
            below_samples: vec![0; nodes],
            thread: vec![0; nodes],
            deepest: vec![0; nodes],
            stamp: vec![0; nodes],
            now: 0,
            mark: vec![0; nodes],
            mark_stamp: vec![0; nodes],
            mark_now: 0,
            marked: Vec::new(),
        }
    }

    /// Replaces the weights by those of `rows`.
    pub(super) fn load(
        &mut self,
        tree: &Tree,
        profile: &Profile,
        weigher: Weigher,
        rows: &[&SampleRow],
    ) {
        self.now += 1;
        self.touched.clear();
        for row in rows {
            let leaf = tree.shown[row.node.index()];
            self.touch_chain(tree, leaf);
            let i = leaf as usize;
            let WeightPair { first, other } = weigher.weigh(profile, row);
            self.own[i] += first;
            if let Some(sum) = self.own_other.get_mut(i) {
                *sum += other;
            }
            self.own_samples[i] += row.samples;
            self.own_thread[i] = self.own_thread[i].min(row.thread.0);
            self.deepest[i] = tree.depth[i];
        }
        self.touched.sort_unstable_by(|a, b| b.cmp(a));
        for &node in &self.touched {
            let i = node as usize;
            self.below[i] += self.own[i];
            self.below_samples[i] += self.own_samples[i];
            self.thread[i] = self.thread[i].min(self.own_thread[i]);
            let parent = tree.parent[i];
            if parent != NONE {
                let p = parent as usize;
                self.below[p] += self.below[i];
                self.below_samples[p] += self.below_samples[i];
                self.thread[p] = self.thread[p].min(self.thread[i]);
                self.deepest[p] = self.deepest[p].max(self.deepest[i]);
            }
        }
        if !self.own_other.is_empty() {
            self.add_others(tree);
        }
    }

    /// Sums the other weights from callees to callers.
    fn add_others(&mut self, tree: &Tree) {
        for &node in &self.touched {
            let i = node as usize;
            self.below_other[i] += self.own_other[i];
            let parent = tree.parent[i];
            if parent != NONE {
                self.below_other[parent as usize] += self.below_other[i];
            }
        }
    }

    /// Both weights of samples with this leaf.
    pub(super) fn own_pair(&self, node: usize) -> WeightPair {
        let other = self.own_other.get(node).copied().unwrap_or(0);
        WeightPair { first: self.own[node], other }
    }

    /// Both weights of samples with this node in their chain.
    pub(super) fn below_pair(&self, node: usize) -> WeightPair {
        let other = self.below_other.get(node).copied().unwrap_or(0);
        WeightPair { first: self.below[node], other }
    }

    fn touch_chain(&mut self, tree: &Tree, leaf: u32) {
        let mut node = leaf;
        while node != NONE && self.stamp[node as usize] != self.now {
            let i = node as usize;
            self.stamp[i] = self.now;
            self.touched.push(node);
            (self.own[i], self.own_samples[i], self.own_thread[i]) = (0, 0, u32::MAX);
            (self.below[i], self.below_samples[i], self.thread[i]) = (0, 0, u32::MAX);
            self.deepest[i] = 0;
            if !self.own_other.is_empty() {
                (self.own_other[i], self.below_other[i]) = (0, 0);
            }
            node = tree.parent[i];
        }
    }

    fn is_touched(&self, node: u32) -> bool {
        self.stamp[node as usize] == self.now
    }

    fn begin_marks(&mut self) {
        self.mark_now += 1;
        self.marked.clear();
    }

    fn add_mark(&mut self, node: u32, weight: u64) {
        let i = node as usize;
        if self.mark_stamp[i] != self.mark_now {
            self.mark_stamp[i] = self.mark_now;
            self.mark[i] = 0;
            self.marked.push(node);
        }
        self.mark[i] += weight;
    }

    fn marked_weight(&self, node: u32) -> u64 {
        let i = node as usize;
        if self.mark_stamp[i] == self.mark_now { self.mark[i] } else { 0 }
    }
}

/// The nodes of each row of a context, as linked lists through two tables over all nodes: each
/// node lies in one list by its frame's place and in one by the place its samples count for.
pub(super) struct RowLists {
    frame_head: Vec<u32>,
    frame_next: Vec<u32>,
    leaf_head: Vec<u32>,
    leaf_next: Vec<u32>,
}

impl RowLists {
    pub(super) fn new(nodes: usize) -> RowLists {
        RowLists {
            frame_head: Vec::new(),
            frame_next: vec![NONE; nodes],
            leaf_head: Vec::new(),
            leaf_next: vec![NONE; nodes],
        }
    }

    pub(super) fn link(
        &mut self,
        tree: &Tree,
        weights: &Weights,
        children: bool,
        row_of: impl Fn(u32) -> u32,
    ) {
        for &node in &weights.touched {
            let i = node as usize;
            if weights.own_samples[i] > 0 {
                let row = row_of(tree.self_place[i]);
                push(&mut self.leaf_head, &mut self.leaf_next, row, node);
            }
            if children {
                push(&mut self.frame_head, &mut self.frame_next, row_of(tree.place[i]), node);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.frame_head.clear();
        self.leaf_head.clear();
    }

    fn leaves(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        walk(&self.leaf_head, &self.leaf_next, row)
    }

    fn frames(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        walk(&self.frame_head, &self.frame_next, row)
    }
}

fn push(head: &mut Vec<u32>, next: &mut [u32], row: u32, node: u32) {
    let row = row as usize;
    if head.len() <= row {
        head.resize(row + 1, NONE);
    }
    next[node as usize] = std::mem::replace(&mut head[row], node);
}

fn walk<'a>(head: &'a [u32], next: &'a [u32], row: usize) -> impl Iterator<Item = u32> + 'a {
    let first = head.get(row).copied().filter(|&n| n != NONE);
    std::iter::successors(first, move |&n| Some(next[n as usize]).filter(|&n| n != NONE))
}

/// One row, and the tables that its chains are read from.
pub(super) struct Input<'a> {
    pub(super) tree: &'a Tree,
    pub(super) weights: &'a mut Weights,
    pub(super) lists: &'a RowLists,
    /// Index of the row in its context.
    pub(super) row: usize,
    /// True where chains of callees are drawn with the row's own.
    pub(super) children: bool,
}

/// Chains from the outermost caller down. The row's own samples begin at the root; samples that
/// the row called begin at the row's outermost frame.
pub(super) fn from_callers(input: Input<'_>, pruning: &Pruning<'_>) -> ChainTree {
    let Input { tree, weights, lists, row, children } = input;
    weights.begin_marks();
    let mut own_place = None;
    for leaf in lists.leaves(row) {
        own_place = Some(tree.self_place[leaf as usize]);
        let weight = weights.own[leaf as usize];
        let mut node = leaf;
        while node != NONE {
            weights.add_mark(node, weight);
            node = tree.parent[node as usize];
        }
    }
    let down = Down { tree, weights, own_place };
    let roots = weights.marked.iter().filter(|&&n| tree.parent[n as usize] == NONE);
    let mut start: Vec<Member> = roots.filter_map(|&n| down.member(n, true)).collect();
    if children {
        let outermost = lists.frames(row).filter(|&n| tree.same_above[n as usize] == NONE);
        start.extend(outermost.filter_map(|n| down.member(n, false)));
    }
    chain_tree::build(&down, start, pruning)
}

/// Chains that go down the call tree. Marks hold the weight of the row's own samples.
struct Down<'a> {
    tree: &'a Tree,
    weights: &'a Weights,
    own_place: Option<u32>,
}

impl Down<'_> {
    fn member(&self, node: u32, own: bool) -> Option<Member> {
        if !self.weights.is_touched(node) {
            return None;
        }
        let marked = self.weights.marked_weight(node);
        let weight = if own { marked } else { self.weights.below[node as usize] - marked };
        (weight > 0).then(|| Member { key: self.tree.key[node as usize], node, own, weight })
    }
}

impl Chains for Down<'_> {
    fn ending(&self, member: &Member) -> u64 {
        let i = member.node as usize;
        let is_own = self.own_place == Some(self.tree.self_place[i]);
        if is_own == member.own { self.weights.own[i] } else { 0 }
    }

    fn follow(&self, member: &Member, out: &mut Vec<Member>) {
        let children = self.tree.children(member.node);
        out.extend(children.iter().filter_map(|&c| self.member(c, member.own)));
    }
}

/// Chains from the executing function up. The row's own samples begin at their leaf; samples that
/// the row called begin at the row's innermost frame.
pub(super) fn from_callees(input: Input<'_>, pruning: &Pruning<'_>) -> ChainTree {
    let Input { tree, weights, lists, row, children } = input;
    let up = Up { tree };
    let mut start: Vec<Member> =
        lists.leaves(row).map(|n| up.member(n, true, weights.own[n as usize])).collect();
    if children {
        // A frame's weight covers the samples in which it is the row's innermost frame. That is the
        // weight of its subtree, less the weights of the row's frames and own leaves within it. The
        // latter are summed up first, so no weight goes negative.
        weights.begin_marks();
        for node in lists.frames(row) {
            let above = tree.same_above[node as usize];
            if above != NONE {
                weights.add_mark(above, weights.below[node as usize]);
            }
        }
        for leaf in lists.leaves(row) {
            let at = tree.self_at[leaf as usize];
            if at != NONE {
                weights.add_mark(at, weights.own[leaf as usize]);
            }
        }
        let weight = |n: u32| weights.below[n as usize] - weights.marked_weight(n);
        start.extend(lists.frames(row).map(|n| up.member(n, false, weight(n))));
    }
    start.retain(|m| m.weight > 0);
    chain_tree::build(&up, start, pruning)
}

/// Chains that go up the call tree.
struct Up<'a> {
    tree: &'a Tree,
}

impl Up<'_> {
    fn member(&self, node: u32, own: bool, weight: u64) -> Member {
        Member { key: self.tree.key[node as usize], node, own, weight }
    }
}

impl Chains for Up<'_> {
    fn ending(&self, member: &Member) -> u64 {
        if self.tree.parent[member.node as usize] == NONE { member.weight } else { 0 }
    }

    fn follow(&self, member: &Member, out: &mut Vec<Member>) {
        let parent = self.tree.parent[member.node as usize];
        if parent != NONE {
            out.push(self.member(parent, member.own, member.weight));
        }
    }
}
