//! Folds small subtrees until a call tree fits the page.
//!
//! A node is small where its subtree has less than the threshold of every event, by samples and by
//! period. The small children of a node become one node, `(N small frames)`, that keeps their
//! weight: sums per event, thread and comm do not change.

use super::merge::{Interner, Merged, NO_NODE, PageFrame, PageNode, PageRow, coalesce};

/// Share of an event below which subtrees are folded first: 0.0001 %. Doubled until the tree fits, so
/// that no more than twice what must go goes.
const FIRST_THRESHOLD: f64 = 0.000_001;

/// Bounds that a tree is folded to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) max_nodes: usize,
    pub(crate) max_rows: usize,
}

impl Bounds {
    fn admit(self, merged: &Merged) -> bool {
        merged.nodes.len() <= self.max_nodes && merged.rows.len() <= self.max_rows
    }
}

/// Folds small nodes until the tree is within `bounds`; returns the threshold if nodes were folded.
///
/// Nodes without any sample below them are dropped in either case. The last resort, a threshold
/// above 1, folds the whole tree into one node.
pub(crate) fn fold(merged: Merged, bounds: Bounds) -> (Merged, Option<f64>) {
    let shares = largest_shares(&merged);
    let merged = drop_empty(merged, &shares);
    if bounds.admit(&merged) {
        return (merged, None);
    }
    let shares = largest_shares(&merged);
    let mut threshold = FIRST_THRESHOLD;
    loop {
        let folded = fold_below(&merged, &shares, threshold);
        if bounds.admit(&folded) || threshold > 1.0 {
            return (folded, Some(threshold));
        }
        threshold *= 2.0;
    }
}

/// For each node the share of its subtree in the event where that is largest.
fn largest_shares(merged: &Merged) -> Vec<f64> {
    let mut shares = vec![0.0f64; merged.nodes.len()];
    let by_event = merged.rows.chunk_by(|a, b| a.event == b.event);
    for rows in by_event {
        let weights: [fn(&PageRow) -> u64; 2] = [|row| row.samples, |row| row.period];
        for weight in weights {
            let mut total = 0.0;
            let mut subtree = vec![0.0f64; merged.nodes.len()];
            for row in rows {
                total += weight(row) as f64;
                if row.node != NO_NODE {
                    subtree[row.node as usize] += weight(row) as f64;
                }
            }
            add_up(&merged.nodes, &mut subtree);
            if total > 0.0 {
                shares.iter_mut().zip(subtree).for_each(|(s, w)| *s = s.max(w / total));
            }
        }
    }
    shares
}

/// Turns each node's own weight into that of its subtree.
fn add_up(nodes: &[PageNode], weights: &mut [f64]) {
    for (index, node) in nodes.iter().enumerate().rev() {
        if node.parent != NO_NODE {
            weights[node.parent as usize] += weights[index];
        }
    }
}

fn drop_empty(merged: Merged, shares: &[f64]) -> Merged {
    if shares.iter().all(|&share| share > 0.0) {
        return merged;
    }
    let mut kept = Kept::new(&merged);
    (0..merged.nodes.len()).filter(|&node| shares[node] > 0.0).for_each(|node| kept.keep(node));
    // Rows without weight may still point at dropped nodes; they say nothing and go as well.
    let weighty = |r: &PageRow| r.samples > 0 || r.period > 0;
    let rows = merged.rows.iter().filter(|r| weighty(r)).map(|row| {
        let node = if row.node == NO_NODE { NO_NODE } else { kept.index[row.node as usize] };
        PageRow { node, ..*row }
    });
    let rows = coalesce(rows.collect());
    let node_of = renumbered(&merged.node_of, |node| kept.index[node]);
    let nodes = kept.nodes;
    Merged { frames: merged.frames, nodes, rows, node_of }
}

/// Nodes that stay, and where each of the old ones went.
struct Kept<'a> {
    old: &'a [PageNode],
    nodes: Vec<PageNode>,
    index: Vec<u32>,
}

impl<'a> Kept<'a> {
    fn new(merged: &'a Merged) -> Self {
        let index = vec![NO_NODE; merged.nodes.len()];
        Kept { old: &merged.nodes, nodes: Vec::new(), index }
    }

    fn parent(&self, node: usize) -> u32 {
        match self.old[node].parent {
            NO_NODE => NO_NODE,
            parent => self.index[parent as usize],
        }
    }

    fn keep(&mut self, node: usize) {
        self.index[node] = self.nodes.len() as u32;
        self.nodes.push(PageNode { parent: self.parent(node), frame: self.old[node].frame });
    }
}

/// The nodes of the profile at their new places.
fn renumbered(node_of: &[u32], new: impl Fn(usize) -> u32) -> Vec<u32> {
    let place = |&node: &u32| if node == NO_NODE { NO_NODE } else { new(node as usize) };
    node_of.iter().map(place).collect()
}

fn fold_below(merged: &Merged, shares: &[f64], threshold: f64) -> Merged {
    let mut kept = Kept::new(merged);
    // One fold for each parent: its node and how many nodes went into it.
    let mut folds = Interner::new();
    let mut fold_sizes: Vec<u32> = Vec::new();
    let mut fold_of = vec![NO_NODE; merged.nodes.len()];
    for (node, &share) in shares.iter().enumerate() {
        if share >= threshold {
            kept.keep(node);
            continue;
        }
        let parent = merged.nodes[node].parent;
        let inherited = if parent == NO_NODE { NO_NODE } else { fold_of[parent as usize] };
        let fold = if inherited != NO_NODE { inherited } else { folds.id(kept.parent(node)) };
        fold_of[node] = fold;
        fold_sizes.resize(folds.items.len(), 0);
        fold_sizes[fold as usize] += 1;
    }
    append_folds(merged, kept, &folds.items, &fold_sizes, &fold_of)
}

/// Appends one node for each fold and points the rows at where their nodes went.
fn append_folds(
    merged: &Merged,
    mut kept: Kept<'_>,
    fold_parents: &[u32],
    fold_sizes: &[u32],
    fold_of: &[u32],
) -> Merged {
    let mut frames = merged.frames.clone();
    let mut sizes = Interner::new();
    let first_fold = kept.nodes.len() as u32;
    let first_frame = frames.len() as u32;
    for (&parent, &size) in fold_parents.iter().zip(fold_sizes) {
        kept.nodes.push(PageNode { parent, frame: first_frame + sizes.id(size) });
    }
    frames.extend(sizes.items.into_iter().map(|nodes| PageFrame::Folded { nodes }));
    let place = |node: usize| match fold_of[node] {
        NO_NODE => kept.index[node],
        fold => first_fold + fold,
    };
    let rows = merged.rows.iter().map(|row| {
        let node = if row.node == NO_NODE { NO_NODE } else { place(row.node as usize) };
        PageRow { node, ..*row }
    });
    let rows = coalesce(rows.collect());
    let node_of = renumbered(&merged.node_of, place);
    Merged { frames, nodes: kept.nodes, rows, node_of }
}

#[cfg(test)]
mod tests {
    use super::PageRow;
    use super::*;
    use proptest::prelude::*;

    fn tree(parents: &[u32], weights: &[(u32, u64, u64)]) -> Merged {
        let nodes = parents.iter().enumerate();
        let nodes = nodes.map(|(i, &parent)| PageNode { parent, frame: i as u32 }).collect();
        let frame = |i| PageFrame::Code {
            function: whit_profile::model::FunctionId(i as u32),
            source: None,
            inlined: false,
            kernel: false,
        };
        let row = |&(node, samples, period)| PageRow {
            event: node % 2,
            thread: 0,
            comm: 0,
            cgroup: 0,
            node,
            samples,
            period,
        };
        let rows = coalesce(weights.iter().map(row).collect());
        let node_of = (0..parents.len() as u32).collect();
        Merged { frames: (0..parents.len()).map(frame).collect(), nodes, rows, node_of }
    }

    fn sums(merged: &Merged) -> [(u64, u64); 2] {
        let mut sums = [(0, 0); 2];
        for row in &merged.rows {
            let sum = &mut sums[row.event as usize];
            *sum = (sum.0 + row.samples, sum.1 + row.period);
        }
        sums
    }

    #[test]
    fn small_children_become_one_node_that_counts_them() {
        let parents = [NO_NODE, 0, 0, 2, 0];
        let merged =
            tree(&parents, &[(0, 99_999_990, 0), (1, 99_999_990, 0), (3, 1, 0), (4, 1, 0)]);
        let bounds = Bounds { max_nodes: 3, max_rows: 100 };
        let (folded, threshold) = fold(merged, bounds);
        assert_eq!(threshold, Some(FIRST_THRESHOLD));
        assert_eq!(folded.nodes.len(), 3);
        assert_eq!(folded.nodes[2].parent, 0);
        let frame = folded.frames[folded.nodes[2].frame as usize];
        assert_eq!(frame, PageFrame::Folded { nodes: 3 });
    }

    #[test]
    fn a_tree_that_fits_stays_but_for_nodes_without_samples() {
        let merged = tree(&[NO_NODE, 0, 0], &[(1, 1, 1)]);
        let (folded, threshold) = fold(merged, Bounds { max_nodes: 3, max_rows: 9 });
        assert_eq!((folded.nodes.len(), threshold), (2, None));
        assert_eq!(folded.rows[0].node, 1);
    }

    proptest! {
        #[test]
        fn folding_keeps_sums_and_bounds(
            seeds in prop::collection::vec((any::<u32>(), 0u64..1000, 0u64..1_000_000), 1..200),
            max_nodes in 1usize..50,
        ) {
            let parents: Vec<u32> = seeds.iter().enumerate()
                .map(|(i, s)| if i == 0 || s.0 % 16 == 0 { NO_NODE } else { s.0 % i as u32 })
                .collect();
            let weights: Vec<_> =
                seeds.iter().enumerate().map(|(i, s)| (i as u32, s.1, s.2)).collect();
            let merged = tree(&parents, &weights);
            let before = sums(&merged);
            let merged_rows = merged.rows.clone();
            let (folded, _) = fold(merged, Bounds { max_nodes, max_rows: 1000 });
            prop_assert!(folded.nodes.len() <= max_nodes);
            prop_assert_eq!(sums(&folded), before);
            for (old, &new) in folded.node_of.iter().enumerate() {
                let has_samples = merged_rows.iter().any(|row| row.node == old as u32 && row.samples + row.period > 0);
                prop_assert!(!has_samples || (new as usize) < folded.nodes.len());
            }
            for (i, node) in folded.nodes.iter().enumerate() {
                prop_assert!(node.parent == NO_NODE || (node.parent as usize) < i);
                prop_assert!((node.frame as usize) < folded.frames.len());
            }
            for row in &folded.rows {
                prop_assert!((row.node as usize) < folded.nodes.len());
            }
        }
    }
}
