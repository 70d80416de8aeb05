//! Reduces a profile to the distinctions that the page makes.
//!
//! Frames lose their address (function, file and line remain), nodes that then are the same call
//! are merged, and the lightest threads beyond the bound become one.

use rustc_hash::FxHashMap;
use whit_profile::model::{CallNode, FileId, Frame, FunctionId, NodeId, Profile, SampleRow};

/// The meaning of a node of the page.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum PageFrame {
    /// A place in a function.
    Code { function: FunctionId, source: Option<(FileId, u32)>, inlined: bool, kernel: bool },
    /// This many nodes that were too small to embed one by one.
    Folded { nodes: u32 },
}

impl From<&Frame> for PageFrame {
    fn from(frame: &Frame) -> Self {
        let &Frame { function, source, inlined, kernel, address: _ } = frame;
        PageFrame::Code { function, source, inlined, kernel }
    }
}

/// Parent of a root, node of a row without frames.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// A node of the page's call tree; `parent` is [`NO_NODE`] or stands before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PageNode {
    pub(crate) parent: u32,
    pub(crate) frame: u32,
}

/// Samples that share all that the page tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageRow {
    pub(crate) event: u32,
    pub(crate) thread: u32,
    pub(crate) comm: u32,
    /// One more than the cgroup's index, 0 for none.
    pub(crate) cgroup: u32,
    pub(crate) node: u32,
    pub(crate) samples: u64,
    pub(crate) period: u64,
}

impl PageRow {
    pub(crate) fn key(&self) -> (u32, u32, u32, u32, u32) {
        (self.event, self.thread, self.comm, self.cgroup, self.node)
    }
}

/// Frames, call tree and rows of the page, still with the profile's functions and files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merged {
    pub(crate) frames: Vec<PageFrame>,
    pub(crate) nodes: Vec<PageNode>,
    pub(crate) rows: Vec<PageRow>,
    /// For each node of the profile its node here; [`NO_NODE`] where it leads to no sample.
    pub(crate) node_of: Vec<u32>,
}

/// Numbers things in the order of their first appearance.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    ids: FxHashMap<T, u32>,
    pub(crate) items: Vec<T>,
}

impl<T: Copy + Eq + std::hash::Hash> Interner<T> {
    pub(crate) fn new() -> Self {
        Interner { ids: FxHashMap::default(), items: Vec::new() }
    }

    pub(crate) fn id(&mut self, item: T) -> u32 {
        *self.ids.entry(item).or_insert_with(|| {
            self.items.push(item);
            (self.items.len() - 1) as u32
        })
    }
}

/// Merges frames, nodes and rows of a checked profile.
pub(crate) fn merge(profile: &Profile) -> Merged {
    let mut frames = Interner::new();
    let frame_ids: Vec<u32> = profile.frames.iter().map(|f| frames.id(f.into())).collect();
    let mut nodes = Interner::new();
    let mut node_ids: Vec<u32> = Vec::with_capacity(profile.nodes.len());
    for &CallNode { parent, frame } in &profile.nodes {
        let parent = if parent == NodeId::NONE { NO_NODE } else { node_ids[parent.index()] };
        node_ids.push(nodes.id(PageNode { parent, frame: frame_ids[frame.index()] }));
    }
    let rows = profile.rows.iter().map(|row| PageRow {
        event: row.event.0,
        thread: row.thread.0,
        comm: row.comm.0,
        cgroup: cgroup_of(profile, row),
        node: if row.node == NodeId::NONE { NO_NODE } else { node_ids[row.node.index()] },
        samples: row.samples,
        period: row.period,
    });
    let rows = coalesce(rows.collect());
    Merged { frames: frames.items, nodes: nodes.items, rows, node_of: node_ids }
}

/// [`PageRow::cgroup`] of a row.
pub(crate) fn cgroup_of(profile: &Profile, row: &SampleRow) -> u32 {
    let cgroup = profile.facets_of(row).and_then(|facets| facets.cgroup);
    // An index that the profile does not have is none.
    cgroup.filter(|id| id.index() < profile.cgroups.len()).map_or(0, |id| id.0 + 1)
}

/// Sorts rows by event, thread, comm, cgroup and node, and adds up those that are the same in all.
pub(crate) fn coalesce(mut rows: Vec<PageRow>) -> Vec<PageRow> {
    rows.sort_unstable_by_key(PageRow::key);
    rows.dedup_by(|row, kept| {
        let same = row.key() == kept.key();
        if same {
            kept.samples = kept.samples.saturating_add(row.samples);
            kept.period = kept.period.saturating_add(row.period);
        }
        same
    });
    rows
}

/// For each thread of the profile its index in the page, where at most `max` threads are told
/// apart. The others share the index after the last; their number is returned as well.
pub(crate) fn bound_threads(rows: &[PageRow], threads: usize, max: usize) -> (Vec<u32>, usize) {
    if threads <= max {
        return ((0..threads as u32).collect(), 0);
    }
    let mut samples = vec![0u64; threads];
    for row in rows {
        let sum = &mut samples[row.thread as usize];
        *sum = sum.saturating_add(row.samples);
    }
    let mut heaviest: Vec<usize> = (0..threads).collect();
    heaviest.sort_by_key(|&thread| std::cmp::Reverse(samples[thread]));
    let kept = max.saturating_sub(1);
    let mut index = vec![kept as u32; threads];
    for (new, &thread) in heaviest[..kept].iter().enumerate() {
        index[thread] = new as u32;
    }
    (index, threads - kept)
}
