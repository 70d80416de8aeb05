//! Adding samples up: a call tree of code places, and weights at its nodes.
//!
//! Each thread of the second pass has an [`Aggregate`] of its own; they are merged at the end.
//! Memory grows with the number of distinct call chains, which [`MAX_TREE_NODES`] bounds.

use crate::chain::{ChainEntry, CodePlace};
use crate::process::{CommIndex, SpaceId};
use rustc_hash::FxHashMap;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// Nodes of one thread's call tree. A chain that would need more is cut at its inner end, and
/// counted.
pub(crate) const MAX_TREE_NODES: usize = 2 << 20;

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

/// What tells rows apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) event: u32,
    pub(crate) thread: u32,
    /// `u32::MAX` where the thread has no name.
    pub(crate) comm: u32,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) node: u32,
}

/// Sum of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) samples: u64,
    pub(crate) period: u64,
}

/// Everything about a sample but its chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleFacts {
    pub(crate) event: u32,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) comm: Option<CommIndex>,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) period: u64,
    pub(crate) time: Option<TimestampNs>,
    /// The state of the address space, if an address means the same code all through it. Absent
    /// where a JIT compiler may have replaced code: nothing is remembered then.
    pub(crate) space: Option<SpaceId>,
}

/// Sums over some of the samples.
#[derive(Debug, Default)]
pub(crate) struct Aggregate {
    pub(crate) places: Interner<CodePlace>,
    pub(crate) nodes: Interner<PlaceNode>,
    pub(crate) threads: Interner<(Pid, Tid)>,
    pub(crate) rows: FxHashMap<RowKey, Weight>,
    pub(crate) first_time: Option<TimestampNs>,
    pub(crate) last_time: Option<TimestampNs>,
    pub(crate) cut_chains: u64,
    place_cache: FxHashMap<(SpaceId, ChainEntry), u32>,
    previous: PreviousChain,
}

/// The chain before, root first: samples in a row mostly share their outer frames.
#[derive(Debug, Default)]
struct PreviousChain {
    space: Option<SpaceId>,
    entries: Vec<ChainEntry>,
    nodes: Vec<u32>,
}

/// Gives each distinct value a number.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    pub(crate) values: Vec<T>,
    by_value: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { values: Vec::new(), by_value: FxHashMap::default() }
    }
}

impl<T: Copy + Eq + std::hash::Hash> Interner<T> {
    #[inline]
    pub(crate) fn intern(&mut self, value: T) -> u32 {
        *self.by_value.entry(value).or_insert_with(|| {
            self.values.push(value);
            (self.values.len() - 1) as u32
        })
    }

    fn get(&self, value: &T) -> Option<u32> {
        self.by_value.get(value).copied()
    }
}

impl Aggregate {
    /// Adds a sample. `locate` is asked for the place of entries that were not seen before.
    pub(crate) fn add(
        &mut self,
        facts: &SampleFacts,
        chain: &[ChainEntry],
        mut locate: impl FnMut(ChainEntry) -> CodePlace,
    ) {
        let node = self.node_of(facts.space, chain, &mut locate);
        let key = RowKey {
            event: facts.event,
            thread: self.threads.intern((facts.pid, facts.tid)),
            comm: facts.comm.map_or(u32::MAX, |comm| comm.0),
            cpu: facts.cpu,
            node,
        };
        let weight = self.rows.entry(key).or_default();
        weight.samples += 1;
        weight.period += facts.period;
        if let Some(time) = facts.time {
            self.first_time = Some(self.first_time.map_or(time, |first| first.min(time)));
            self.last_time = Some(self.last_time.map_or(time, |last| last.max(time)));
        }
    }

    fn node_of(
        &mut self,
        space: Option<SpaceId>,
        chain: &[ChainEntry],
        locate: &mut impl FnMut(ChainEntry) -> CodePlace,
    ) -> u32 {
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
            let place = self.place_of(space, *entry, locate);
            let node = PlaceNode { parent, place };
            if self.nodes.values.len() >= MAX_TREE_NODES && self.nodes.get(&node).is_none() {
                self.cut_chains += 1;
                break;
            }
            parent = self.nodes.intern(node);
            self.previous.entries.push(*entry);
            self.previous.nodes.push(parent);
        }
        parent
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

    /// Takes over the sums of another aggregate.
    pub(crate) fn merge(&mut self, other: Aggregate) {
        let places: Vec<_> =
            other.places.values.iter().map(|place| self.places.intern(*place)).collect();
        let threads: Vec<_> =
            other.threads.values.iter().map(|thread| self.threads.intern(*thread)).collect();
        let mut nodes: Vec<u32> = Vec::with_capacity(other.nodes.values.len());
        for node in &other.nodes.values {
            // Parents come before their children, so theirs is known already.
            let parent = if node.parent == NO_NODE { NO_NODE } else { nodes[node.parent as usize] };
            let place = places[node.place as usize];
            nodes.push(self.nodes.intern(PlaceNode { parent, place }));
        }
        for (key, weight) in other.rows {
            let node = if key.node == NO_NODE { NO_NODE } else { nodes[key.node as usize] };
            let key = RowKey { thread: threads[key.thread as usize], node, ..key };
            let sum = self.rows.entry(key).or_default();
            sum.samples += weight.samples;
            sum.period += weight.period;
        }
        self.first_time = self.first_time.into_iter().chain(other.first_time).min();
        self.last_time = self.last_time.into_iter().chain(other.last_time).max();
        self.cut_chains += other.cut_chains;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Side;
    use crate::dso_table::DsoIndex;
    use proptest::prelude::*;
    use whit_types::Avma;

    fn facts(space: u32) -> SampleFacts {
        SampleFacts {
            event: 0,
            pid: Pid(1),
            tid: Tid(1),
            comm: None,
            cpu: None,
            period: 3,
            time: Some(TimestampNs(5)),
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
            a.merge(b);
            prop_assert_eq!(stacks(&a), expected.into_iter().collect::<Vec<_>>());
            prop_assert!(a.rows.values().all(|w| w.period == 3 * w.samples));
        }
    }
}
