//! Adding samples up: a call tree of code places, and weights at its nodes.
//!
//! Each thread of the second pass has an [`Aggregate`] of its own; they are merged at the end.
//! Memory grows with the number of distinct call chains, which [`MAX_TREE_NODES`] bounds.

use crate::call_chain::chain::CodePlace;
use crate::call_chain::chain_entry::ChainEntry;
use crate::facets::RawFacets;
use crate::interner::{Interner, Texts};
use crate::machine_model::process::{CommIndex, SpaceId};
use crate::samples::Samples;
use crate::second_pass::recent_chains::RecentChains;
use crate::second_pass::singles::RawSingle;
use crate::sums::block_sums::BlockSums;
use crate::sums::examples::{ExampleSample, Examples};
use crate::sums::row_key::{NO_FACETS, RowKey};
use rustc_hash::FxHashMap;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// Nodes of one thread's call tree. A chain that would need more is cut at its inner end, and
/// counted.
pub(crate) const MAX_TREE_NODES: usize = 2 << 20;

/// Distinct facets of rows. Samples with further ones are in the rows that no facet tells apart, and counted.
pub(crate) const MAX_FACETS: usize = 1 << 20;

/// Entries of the cache from addresses to places.
const MAX_PLACE_CACHE: usize = 1 << 18;

/// No node: the parent of a root.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// A node of the tree of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlaceNode {
    pub(crate) parent: u32,
    pub(crate) place: u32,
}

/// Sum of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) samples: u64,
    pub(crate) period: u64,
}

impl Weight {
    /// Periods may be anything in a corrupt recording; sums stop at the largest number.
    fn add(&mut self, other: Weight) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
    }
}

/// Everything about a sample but its chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleFacts {
    pub(crate) event: u32,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) comm: Option<CommIndex>,
    /// As [`Aggregate::facets_number`] gave it; `None` where none are wanted.
    pub(crate) facets: Option<u32>,
    pub(crate) period: u64,
    pub(crate) time: Option<TimestampNs>,
    /// Its time, or its position in the recording where it has none.
    pub(crate) moment: TimestampNs,
    /// The state of the address space, if an address means the same code all through it. Absent
    /// where a JIT compiler may have replaced code: nothing is remembered then.
    pub(crate) space: Option<SpaceId>,
}

/// Everything about samples that are added up by their code alone, but that code. Rows of them name no command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafFacts {
    pub(crate) event: u32,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
}

/// Sums over some of the samples.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub(crate) places: Interner<CodePlace>,
    pub(crate) nodes: Interner<PlaceNode>,
    pub(crate) threads: Interner<(Pid, Tid)>,
    pub(crate) facets: Interner<RawFacets>,
    /// Texts that facets name.
    pub(crate) texts: Texts,
    /// Samples that came with further facets when the table was full.
    pub(crate) merged_facets: u64,
    pub(crate) rows: FxHashMap<RowKey, Weight>,
    /// Weights in blocks of time, where they are wanted.
    pub(crate) blocks: Option<BlockSums>,
    /// The samples one by one, where they are wanted.
    pub(crate) singles: Option<Vec<RawSingle>>,
    /// Single samples of the rows, where they are wanted.
    pub(crate) examples: Examples,
    pub(crate) first_time: Option<TimestampNs>,
    pub(crate) last_time: Option<TimestampNs>,
    pub(crate) cut_chains: u64,
    max_nodes: usize,
    place_cache: FxHashMap<(SpaceId, ChainEntry), u32>,
    previous: PreviousChain,
    recent: RecentChains,
}

/// The chain before, root first: samples in a row mostly share their outer frames.
#[derive(Debug, Default)]
struct PreviousChain {
    space: Option<SpaceId>,
    entries: Vec<ChainEntry>,
    nodes: Vec<u32>,
}

impl Default for Aggregate {
    fn default() -> Self {
        Aggregate::new(MAX_TREE_NODES)
    }
}

impl Aggregate {
    /// Nothing yet; with weights in blocks of time, single samples, and examples of each row if they are wanted.
    pub(crate) fn for_question(question: &Samples) -> Self {
        Aggregate {
            blocks: question.blocks.then(BlockSums::default),
            singles: question.keeps_singles().then(Vec::new),
            examples: Examples::new(question.examples),
            ..Aggregate::default()
        }
    }

    /// No sums. The call tree may grow to `max_nodes`, and one node for all chains beyond them.
    fn new(max_nodes: usize) -> Self {
        Aggregate {
            places: Interner::default(),
            nodes: Interner::default(),
            threads: Interner::default(),
            facets: Interner::default(),
            texts: Texts::default(),
            merged_facets: 0,
            rows: FxHashMap::default(),
            blocks: None,
            singles: None,
            examples: Examples::default(),
            first_time: None,
            last_time: None,
            cut_chains: 0,
            max_nodes,
            place_cache: FxHashMap::default(),
            previous: PreviousChain::default(),
            recent: RecentChains::default(),
        }
    }

    /// Adds a sample, and gives back the node of its chain. `locate` is asked for the place of entries
    /// that were not seen before.
    pub(crate) fn add(
        &mut self,
        facts: &SampleFacts,
        chain: &[ChainEntry],
        mut locate: impl FnMut(ChainEntry) -> CodePlace,
    ) -> u32 {
        let node = self.node_of(facts.space, chain, &mut locate);
        let key = self.key_of(facts, node);
        let weight = self.rows.entry(key).or_default();
        weight.add(Weight { samples: 1, period: facts.period });
        if let Some(blocks) = &mut self.blocks {
            blocks.add(facts.moment, key.context(), node, facts.period);
        }
        if let Some(singles) = &mut self.singles {
            let SampleFacts { moment: time, cpu, period, .. } = *facts;
            singles.push(RawSingle { time, cpu, period, row: key });
        }
        if let Some(time) = facts.time {
            self.first_time = Some(self.first_time.map_or(time, |first| first.min(time)));
            self.last_time = Some(self.last_time.map_or(time, |last| last.max(time)));
        }
        node
    }

    /// Adds samples of a thread that were all taken in one place, the first and the last of them at these times. Gives
    /// back their row.
    pub(crate) fn add_leaf(
        &mut self,
        facts: &LeafFacts,
        weight: Weight,
        (first, last): (TimestampNs, TimestampNs),
        place: CodePlace,
    ) -> RowKey {
        let place = self.places.intern(place);
        let key = RowKey {
            event: facts.event,
            thread: self.threads.intern((facts.pid, facts.tid)),
            comm: u32::MAX,
            facets: NO_FACETS,
            node: self.nodes.intern(PlaceNode { parent: NO_NODE, place }),
        };
        self.rows.entry(key).or_default().add(weight);
        self.first_time = self.first_time.into_iter().chain([first]).min();
        self.last_time = self.last_time.into_iter().chain([last]).max();
        key
    }

    /// Keeps a sample that was added at `node`.
    pub(crate) fn add_example(&mut self, facts: &SampleFacts, node: u32, cpu: Option<CpuId>) {
        let Some(time) = facts.time else { return };
        let key = self.key_of(facts, node);
        let sample = ExampleSample { time, cpu, pid: facts.pid, tid: facts.tid };
        self.examples.add(key, sample);
    }

    #[inline]
    fn key_of(&mut self, facts: &SampleFacts, node: u32) -> RowKey {
        RowKey {
            event: facts.event,
            thread: self.threads.intern((facts.pid, facts.tid)),
            comm: facts.comm.map_or(u32::MAX, |comm| comm.0),
            facets: facts.facets.unwrap_or(NO_FACETS),
            node,
        }
    }

    /// The number of a sample's facets; that of no facets where there is no room for further ones.
    pub(crate) fn facets_number(&mut self, facets: RawFacets) -> u32 {
        if self.facets.values.len() < MAX_FACETS {
            return self.facets.intern(facets);
        }
        self.facets.get(&facets).unwrap_or_else(|| {
            self.merged_facets += 1;
            NO_FACETS
        })
    }

    /// The number of a place that stands in no chain.
    pub(crate) fn place_number(
        &mut self,
        space: Option<SpaceId>,
        entry: ChainEntry,
        locate: &mut impl FnMut(ChainEntry) -> CodePlace,
    ) -> u32 {
        self.place_of(space, entry, locate)
    }

    /// The node of a chain; adds no sample to it.
    pub(crate) fn node_of(
        &mut self,
        space: Option<SpaceId>,
        chain: &[ChainEntry],
        locate: &mut impl FnMut(ChainEntry) -> CodePlace,
    ) -> u32 {
        if let Some(node) = space.and_then(|space| self.recent.get(space, chain)) {
            return node;
        }
        let shared = if space.is_some() && self.previous.space == space {
            let old = &self.previous.entries;
            old.iter().zip(chain.iter().rev()).take_while(|(old, new)| old == new).count()
        } else {
            0
        };
        self.previous.space = space;
        self.previous.entries.truncate(shared);
        self.previous.nodes.truncate(shared);
        let mut parent = self.previous.nodes.last().copied().unwrap_or(NO_NODE);
        for entry in chain.iter().rev().skip(shared) {
            let Some(node) = self.child(parent, space, *entry, locate) else {
                self.cut_chains += 1;
                break;
            };
            parent = node;
            self.previous.entries.push(*entry);
            self.previous.nodes.push(parent);
        }
        let node = if parent == NO_NODE { self.node_of_nowhere() } else { parent };
        let is_whole = self.previous.entries.len() == chain.len();
        if let Some(space) = space.filter(|_| is_whole) {
            self.recent.put(space, chain, node);
        }
        node
    }

    /// The node of an entry below `parent`; `None` where it would be a new one and there is no
    /// room.
    fn child(
        &mut self,
        parent: u32,
        space: Option<SpaceId>,
        entry: ChainEntry,
        locate: &mut impl FnMut(ChainEntry) -> CodePlace,
    ) -> Option<u32> {
        if self.nodes.values.len() < self.max_nodes {
            let place = self.place_of(space, entry, locate);
            return Some(self.nodes.intern(PlaceNode { parent, place }));
        }
        // Places are not entered either: there may be as many as there are addresses.
        let place = self.places.get(&locate(entry))?;
        self.nodes.get(&PlaceNode { parent, place })
    }

    /// The node of samples whose chain has no address, or whose outermost frame is beyond the bound. They count like
    /// all others.
    fn node_of_nowhere(&mut self) -> u32 {
        let place = self.places.intern(CodePlace::NOWHERE);
        self.nodes.intern(PlaceNode { parent: NO_NODE, place })
    }

    fn place_of(
        &mut self,
        space: Option<SpaceId>,
        entry: ChainEntry,
        locate: &mut impl FnMut(ChainEntry) -> CodePlace,
    ) -> u32 {
        let Some(space) = space else { return self.places.intern(locate(entry)) };
        if let Some(place) = self.place_cache.get(&(space, entry)) {
            return *place;
        }
        let located = locate(entry);
        let place = self.places.intern(located);
        if self.place_cache.len() >= MAX_PLACE_CACHE {
            self.place_cache.clear();
        }
        self.place_cache.insert((space, entry), place);
        place
    }

    /// Takes over the sums of another aggregate. Gives back where each of its nodes went.
    pub(crate) fn merge(&mut self, other: Aggregate) -> Vec<u32> {
        self.merge_with_cuts(other).0
    }

    /// The same, and for each of its nodes whether there was no room for it: it went to one of its callers.
    pub(crate) fn merge_with_cuts(&mut self, other: Aggregate) -> (Vec<u32>, Vec<bool>) {
        let places: Vec<_> =
            other.places.values.iter().map(|place| self.places.intern(*place)).collect();
        let threads: Vec<_> =
            other.threads.values.iter().map(|thread| self.threads.intern(*thread)).collect();
        let texts: Vec<_> = other.texts.values.iter().map(|text| self.texts.intern(text)).collect();
        let renumber = |facets: &RawFacets| {
            let place = |place: u32| places.get(place as usize).copied();
            let text = |text: u32| texts.get(text as usize).copied();
            facets.renumbered(Some, place, text)
        };
        self.merged_facets += other.merged_facets;
        let mut renumbered = Vec::with_capacity(other.facets.values.len());
        for facets in &other.facets.values {
            renumbered.push(self.facets_number(renumber(facets)));
        }
        let mut nodes: Vec<u32> = Vec::with_capacity(other.nodes.values.len());
        let mut is_cut = vec![false; other.nodes.values.len()];
        for node in &other.nodes.values {
            // Parents come before their children, so theirs is known already.
            let parent = if node.parent == NO_NODE { NO_NODE } else { nodes[node.parent as usize] };
            let parent_is_cut = node.parent != NO_NODE && is_cut[node.parent as usize];
            let new = PlaceNode { parent, place: places[node.place as usize] };
            let merged = if parent_is_cut { None } else { self.merged_node(new) };
            is_cut[nodes.len()] = merged.is_none();
            nodes.push(match merged {
                Some(merged) => merged,
                None if parent == NO_NODE => self.node_of_nowhere(),
                None => parent,
            });
        }
        for (key, weight) in other.rows {
            if is_cut[key.node as usize] {
                self.cut_chains += weight.samples;
            }
            let node = nodes[key.node as usize];
            let facets = renumbered.get(key.facets as usize).copied().unwrap_or(NO_FACETS);
            let key = RowKey { thread: threads[key.thread as usize], facets, node, ..key };
            self.rows.entry(key).or_default().add(weight);
        }
        if let Some(singles) = other.singles {
            let row = |key: RowKey| RowKey {
                thread: threads[key.thread as usize],
                facets: renumbered.get(key.facets as usize).copied().unwrap_or(NO_FACETS),
                node: nodes[key.node as usize],
                ..key
            };
            let singles =
                singles.into_iter().map(|single| RawSingle { row: row(single.row), ..single });
            self.singles.get_or_insert_default().extend(singles);
        }
        let (per_row, examples) = other.examples.into_rows();
        if self.examples.is_empty() && per_row > 0 {
            self.examples = Examples::new(per_row);
        }
        for (key, samples) in examples {
            let node = nodes[key.node as usize];
            let facets = renumbered.get(key.facets as usize).copied().unwrap_or(NO_FACETS);
            let key = RowKey { thread: threads[key.thread as usize], facets, node, ..key };
            self.examples.add_all(key, samples);
        }
        if let Some(blocks) = other.blocks {
            self.blocks.get_or_insert_default().merge(blocks, &threads, &renumbered, &nodes);
        }
        self.first_time = self.first_time.into_iter().chain(other.first_time).min();
        self.last_time = self.last_time.into_iter().chain(other.last_time).max();
        self.cut_chains += other.cut_chains;
        (nodes, is_cut)
    }

    fn merged_node(&mut self, node: PlaceNode) -> Option<u32> {
        let is_nowhere = self.places.values[node.place as usize] == CodePlace::NOWHERE;
        if is_nowhere && node.parent == NO_NODE {
            Some(self.node_of_nowhere())
        } else if self.nodes.values.len() < self.max_nodes {
            Some(self.nodes.intern(node))
        } else {
            self.nodes.get(&node)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_chain::chain_entry::Side;
    use crate::machine_model::dso_index::DsoIndex;
    use proptest::prelude::*;
    use whit_types::Avma;

    fn facts(space: u32) -> SampleFacts {
        SampleFacts {
            event: 0,
            pid: Pid(1),
            tid: Tid(1),
            cpu: None,
            comm: None,
            facets: None,
            period: 3,
            time: Some(TimestampNs(5)),
            moment: TimestampNs(5),
            space: Some(SpaceId(space)),
        }
    }

    fn chain(addresses: &[u64]) -> Vec<ChainEntry> {
        let entry = |address: &u64| ChainEntry {
            address: Avma(*address),
            is_return_address: false,
            side: Side::User,
        };
        addresses.iter().map(entry).collect()
    }

    fn locate(entry: ChainEntry) -> CodePlace {
        CodePlace { dso: DsoIndex(2), place: entry.address.0, kernel: false }
    }

    fn stacks(a: &Aggregate) -> Vec<(Vec<u64>, u64)> {
        let mut all: Vec<_> = a
            .rows
            .iter()
            .map(|(key, weight)| {
                let mut addresses = Vec::new();
                let mut at = key.node;
                while at != NO_NODE {
                    let node = a.nodes.values[at as usize];
                    addresses.push(a.places.values[node.place as usize].place);
                    at = node.parent;
                }
                (addresses, weight.samples)
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_full_tree_cuts_chains_and_keeps_samples() {
        let mut a = Aggregate::new(3);
        a.add(&facts(0), &chain(&[3, 2, 1]), locate);
        a.add(&facts(0), &chain(&[4, 2, 1]), locate);
        a.add(&facts(0), &chain(&[3, 2, 1]), locate);
        a.add(&facts(0), &chain(&[9]), locate);
        assert_eq!(stacks(&a), [(vec![0], 1), (vec![2, 1], 1), (vec![3, 2, 1], 2)]);
        assert_eq!(a.cut_chains, 2);
        let mut b = Aggregate::new(3);
        b.add(&facts(0), &chain(&[7, 2, 1]), locate);
        b.add(&facts(0), &chain(&[3, 2, 1]), locate);
        b.merge(a);
        assert_eq!(b.rows.values().map(|weight| weight.samples).sum::<u64>(), 6);
        assert!(b.nodes.values.len() <= 4);
        assert_eq!(b.cut_chains, 2 + 3);
    }

    #[test]
    fn samples_without_a_chain_count() {
        let mut a = Aggregate::default();
        a.add(&SampleFacts { period: u64::MAX, ..facts(0) }, &[], locate);
        a.add(&facts(0), &[], locate);
        assert_eq!(stacks(&a), [(vec![0], 2)]);
        assert_eq!(a.rows.values().next().unwrap().period, u64::MAX);
    }

    #[test]
    fn another_space_shares_nothing() {
        let mut a = Aggregate::default();
        a.add(&facts(0), &chain(&[1, 2]), locate);
        a.add(&facts(1), &chain(&[1, 2]), |entry| CodePlace { dso: DsoIndex(9), ..locate(entry) });
        assert_eq!(a.rows.len(), 2);
    }

    proptest! {
        /// Any split of the samples over threads gives the stacks and counts of a plain count.
        #[test]
        fn equals_a_plain_count(
            chains in prop::collection::vec(prop::collection::vec(0u64..4, 1..6), 0..60),
            split in 0usize..60,
        ) {
            let mut expected = std::collections::BTreeMap::new();
            let (mut a, mut b) = (Aggregate::default(), Aggregate::default());
            for (i, addresses) in chains.iter().enumerate() {
                *expected.entry(addresses.clone()).or_insert(0u64) += 1;
                let part = if i < split { &mut a } else { &mut b };
                part.add(&facts(0), &chain(addresses), locate);
            }
            let nodes: std::collections::BTreeSet<_> =
                chains.iter().flat_map(|chain| (0..chain.len()).map(|at| &chain[at..])).collect();
            a.merge(b);
            prop_assert_eq!(a.nodes.values.len(), nodes.len());
            prop_assert_eq!(stacks(&a), expected.into_iter().collect::<Vec<_>>());
            prop_assert!(a.rows.values().all(|w| w.period == 3 * w.samples));
        }
    }
}
