//! The call tree as the rows need it: parents, children, places and recursion, by node.

use whit_profile::model::{CallNode, Frame, NodeId, Profile};

use super::code_location::{PlaceIndex, Places};
use super::options::SelfTime;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// Frames with equal keys are merged in call chains: the function, and whether it was inlined.
pub(super) type ChainKey = u64;

/// Packs function and inlined mark.
pub(super) fn chain_key(frame: &Frame) -> ChainKey {
    u64::from(frame.function.0) << 1 | u64::from(frame.inlined)
}

/// The call tree, one entry per node in each table; built once per report in linear time.
pub(super) struct Tree {
    /// Caller, or [`NONE`].
    pub(super) parent: Vec<u32>,
    /// The node that stands for this one: itself, or without inlined frames the physical one.
    pub(super) shown: Vec<u32>,
    /// Merging key.
    pub(super) key: Vec<ChainKey>,
    /// Place of the frame.
    pub(super) place: Vec<PlaceIndex>,
    /// Place that a sample with this leaf itself counts for.
    pub(super) self_place: Vec<PlaceIndex>,
    /// Frames from the root to here, 1 for a root.
    pub(super) depth: Vec<u32>,
    /// The nearest frame above with the same place, or [`NONE`]: recursion.
    pub(super) same_above: Vec<u32>,
    /// The innermost frame of this leaf's chain whose place is the leaf's own, or [`NONE`].
    pub(super) self_at: Vec<u32>,
    child_start: Vec<u32>,
    child_list: Vec<u32>,
}

impl Tree {
    pub(super) fn new(
        profile: &Profile,
        places: &mut Places,
        inline: bool,
        self_time: SelfTime,
    ) -> Tree {
        let physical = physical_nodes(profile);
        let shown =
            if inline { (0..profile.nodes.len() as u32).collect() } else { physical.clone() };
        let parent = parents(&profile.nodes, &shown);
        let depth = depths(&parent);
        let by_frame: Vec<PlaceIndex> =
            profile.frames.iter().map(|f| places.of_frame(profile, f)).collect();
        let place: Vec<_> = profile.nodes.iter().map(|n| by_frame[n.frame.index()]).collect();
        let self_place = match self_time {
            SelfTime::Innermost if inline => place.clone(),
            _ => self_places(profile, places, &physical, &place),
        };
        let (child_start, child_list) = children(&parent, &shown);
        let mut tree = Tree {
            key: profile.nodes.iter().map(|n| chain_key(frame(profile, n))).collect(),
            same_above: vec![NONE; parent.len()],
            self_at: vec![NONE; parent.len()],
            parent,
            shown,
            place,
            self_place,
            depth,
            child_start,
            child_list,
        };
        tree.find_recursion(places.len());
        tree
    }

    pub(super) fn len(&self) -> usize {
        self.parent.len()
    }

    pub(super) fn children(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.child_list[self.child_start[node] as usize..self.child_start[node + 1] as usize]
    }

    /// Fills `same_above` and `self_at` by one walk in depth-first order that keeps, for every
    /// place, the innermost node of the current path.
    fn find_recursion(&mut self, places: usize) {
        let mut innermost = vec![NONE; places];
        let mut stack = Vec::new();
        for root in (0..self.len() as u32).rev() {
            if self.parent[root as usize] == NONE && self.shown[root as usize] == root {
                stack.push((root, false));
            }
        }
        while let Some((node, leaving)) = stack.pop() {
            let i = node as usize;
            let slot = self.place[i] as usize;
            if leaving {
                innermost[slot] = self.same_above[i];
                continue;
            }
            self.same_above[i] = std::mem::replace(&mut innermost[slot], node);
            self.self_at[i] = innermost[self.self_place[i] as usize];
            stack.push((node, true));
            stack.extend(self.children(node).iter().map(|&c| (c, false)));
        }
    }
}

fn frame<'p>(profile: &'p Profile, node: &CallNode) -> &'p Frame {
    &profile.frames[node.frame.index()]
}

/// For each node the nearest node at or above it that is no inlined frame.
fn physical_nodes(profile: &Profile) -> Vec<u32> {
    let mut physical: Vec<u32> = Vec::with_capacity(profile.nodes.len());
    for (i, node) in profile.nodes.iter().enumerate() {
        let above = frame(profile, node).inlined && node.parent != NodeId::NONE;
        physical.push(if above { physical[node.parent.index()] } else { i as u32 });
    }
    physical
}

fn parents(nodes: &[CallNode], shown: &[u32]) -> Vec<u32> {
    let of = |n: &CallNode| match n.parent {
        NodeId::NONE => NONE,
        parent => shown[parent.index()],
    };
    nodes.iter().map(of).collect()
}

fn depths(parent: &[u32]) -> Vec<u32> {
    let mut depth: Vec<u32> = Vec::with_capacity(parent.len());
    for &p in parent {
        depth.push(if p == NONE { 1 } else { depth[p as usize] + 1 });
    }
    depth
}

fn self_places(
    profile: &Profile,
    places: &mut Places,
    physical: &[u32],
    place: &[PlaceIndex],
) -> Vec<PlaceIndex> {
    if !places.uses_source() {
        return physical.iter().map(|&p| place[p as usize]).collect();
    }
    let frame_of = |node: usize| &profile.frames[profile.nodes[node].frame.index()];
    let pairs = physical.iter().enumerate();
    pairs.map(|(i, &p)| places.of_self(profile, frame_of(p as usize), frame_of(i))).collect()
}

/// Children by node, as one list and the start of each node's part of it. Nodes that another one
/// stands for are nobody's children.
fn children(parent: &[u32], shown: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let is_child = |i: usize| parent[i] != NONE && shown[i] == i as u32;
    let mut start = vec![0u32; parent.len() + 1];
    for i in (0..parent.len()).filter(|&i| is_child(i)) {
        start[parent[i] as usize + 1] += 1;
    }
    for i in 1..start.len() {
        start[i] += start[i - 1];
    }
    let mut list = vec![0u32; start[parent.len()] as usize];
    let mut next = start.clone();
    for i in (0..parent.len()).filter(|&i| is_child(i)) {
        let slot = &mut next[parent[i] as usize];
        list[*slot as usize] = i as u32;
        *slot += 1;
    }
    (start, list)
}
