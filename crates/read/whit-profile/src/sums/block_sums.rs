//! Weights of call chains in blocks of time, for the errors of shares.
//!
//! Nobody knows the recorded time before the samples are read, and threads read them in any order. So blocks are short
//! at first, a power of two in nanoseconds, and each pair becomes one block whenever there are too many of them or
//! of their weights. The length at the end is the shortest one that suffices for all samples, whichever came first.

use crate::interner::Interner;
use crate::sums::row_key::{Context, NO_FACETS};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use whit_types::TimestampNs;

/// Most blocks; halving leaves at least half of that where the recording is long enough.
const MAX_BLOCKS: u64 = 64;

/// Most weights in all blocks together, unless one block has more.
const MAX_WEIGHTS: usize = 3 << 20;

/// Blocks begin with this length, as a power of two: about a millisecond.
const FIRST_SHIFT: u32 = 20;

/// And may grow to this one: two blocks for all times that there are.
const LAST_SHIFT: u32 = 63;

/// A call chain in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Chain {
    pub(crate) context: u32,
    pub(crate) node: u32,
}

/// Sums of periods by block and call chain.
#[derive(Clone, Debug)]
pub(crate) struct BlockSums {
    pub(crate) contexts: Interner<Context>,
    blocks: BTreeMap<u64, FxHashMap<Chain, u64>>,
    /// Length of a block as a power of two.
    shift: u32,
    weights: usize,
    max_weights: usize,
    /// Blocks are longer than their number asks for.
    is_crowded: bool,
}

impl Default for BlockSums {
    fn default() -> Self {
        BlockSums {
            contexts: Interner::default(),
            blocks: BTreeMap::new(),
            shift: FIRST_SHIFT,
            weights: 0,
            max_weights: MAX_WEIGHTS,
            is_crowded: false,
        }
    }
}

impl BlockSums {
    /// Adds a sample.
    pub(crate) fn add(&mut self, time: TimestampNs, context: Context, node: u32, period: u64) {
        let context = self.contexts.intern(context);
        if self.add_to(time.0 >> self.shift, Chain { context, node }, period) {
            self.fit();
        }
    }

    /// True where the chain had no weight in the block before.
    fn add_to(&mut self, block: u64, chain: Chain, period: u64) -> bool {
        let before = self.weights;
        let weights = &mut self.weights;
        let sum = self.blocks.entry(block).or_default().entry(chain).or_insert_with(|| {
            *weights += 1;
            0
        });
        *sum = sum.saturating_add(period);
        self.weights > before
    }

    /// Takes over the sums of another reader, whose threads, facets and nodes have other numbers here.
    pub(crate) fn merge(
        &mut self,
        other: BlockSums,
        threads: &[u32],
        facets: &[u32],
        nodes: &[u32],
    ) {
        let renumbered = other.contexts.values.iter().map(|context| {
            let thread = threads[context.thread as usize];
            let facets = facets.get(context.facets as usize).copied().unwrap_or(NO_FACETS);
            self.contexts.intern(Context { thread, facets, ..*context })
        });
        let contexts: Vec<u32> = renumbered.collect();
        while self.shift < other.shift {
            self.join_pairs();
        }
        for (block, sums) in other.blocks {
            for (chain, period) in sums {
                let context = contexts[chain.context as usize];
                let node = nodes[chain.node as usize];
                self.add_to(block >> (self.shift - other.shift), Chain { context, node }, period);
            }
            self.fit();
        }
    }

    fn fit(&mut self) {
        while self.shift < LAST_SHIFT
            && self.blocks.len() > 1
            && (self.weights > self.max_weights || self.span() > MAX_BLOCKS)
        {
            self.is_crowded |= self.weights > self.max_weights;
            self.join_pairs();
        }
    }

    /// Whether blocks became longer because of their weights.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// The weights of each node as those of another one in a context. Nodes without one are left out.
    pub(crate) fn moved(self, nodes: &[Option<(Context, u32)>]) -> BlockSums {
        let mut moved = BlockSums { shift: self.shift, ..BlockSums::default() };
        for (block, sums) in self.blocks {
            for (chain, period) in sums {
                if let Some(Some((context, node))) = nodes.get(chain.node as usize) {
                    let context = moved.contexts.intern(*context);
                    moved.add_to(block, Chain { context, node: *node }, period);
                }
            }
        }
        moved
    }

    /// Blocks from the first to the last one, those without samples too.
    fn span(&self) -> u64 {
        let ends = self.blocks.first_key_value().zip(self.blocks.last_key_value());
        ends.map_or(0, |((first, _), (last, _))| last - first + 1)
    }

    fn join_pairs(&mut self) {
        self.shift += 1;
        self.weights = 0;
        for (block, sums) in std::mem::take(&mut self.blocks) {
            let joined = self.blocks.entry(block >> 1).or_default();
            if joined.is_empty() {
                *joined = sums;
                continue;
            }
            for (chain, period) in sums {
                let sum = joined.entry(chain).or_default();
                *sum = sum.saturating_add(period);
            }
        }
        self.weights = self.blocks.values().map(FxHashMap::len).sum();
    }

    /// Length of a block in nanoseconds.
    pub(crate) fn length_ns(&self) -> u64 {
        1 << self.shift
    }

    /// The sums of each block that has samples, in order of time; each in an order that does not depend on that of the
    /// samples' reading, but for the numbers of nodes and contexts.
    pub(crate) fn into_blocks(self) -> impl Iterator<Item = Vec<(Chain, u64)>> {
        self.blocks.into_values().map(|sums| {
            let mut sums: Vec<_> = sums.into_iter().collect();
            sums.sort_unstable();
            sums
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn context(thread: u32) -> Context {
        Context { event: 0, thread, comm: 0, facets: NO_FACETS }
    }

    fn sums(max_weights: usize) -> BlockSums {
        BlockSums { max_weights, ..BlockSums::default() }
    }

    /// Thread, node and period.
    type Sum = (u32, u32, u64);

    fn blocks(sums: BlockSums) -> (u64, Vec<Vec<Sum>>) {
        let threads: Vec<_> = sums.contexts.values.iter().map(|it| it.thread).collect();
        let length_ns = sums.length_ns();
        let blocks = sums.into_blocks().map(|block| {
            let mut block: Vec<_> = block
                .into_iter()
                .map(|(chain, period)| (threads[chain.context as usize], chain.node, period))
                .collect();
            block.sort_unstable();
            block
        });
        (length_ns, blocks.collect())
    }

    #[test]
    fn a_long_recording_has_between_33_and_64_blocks() {
        let mut sums = sums(MAX_WEIGHTS);
        for second in 0..1000 {
            sums.add(TimestampNs(5_000_000_000 + second * 1_000_000_000), context(0), 1, 7);
        }
        let (_, blocks) = blocks(sums);
        assert!((33..=64).contains(&blocks.len()), "{}", blocks.len());
        assert_eq!(blocks.iter().flatten().map(|sum| sum.2).sum::<u64>(), 7000);
    }

    #[test]
    fn extreme_times_and_periods_are_sums_too() {
        let mut sums = sums(MAX_WEIGHTS);
        for time in [0, u64::MAX, 1, u64::MAX / 2] {
            sums.add(TimestampNs(time), context(0), 1, u64::MAX);
            sums.add(TimestampNs(time), context(0), 1, 1);
        }
        let (_, blocks) = blocks(sums);
        assert!(!blocks.is_empty() && blocks.len() <= 64);
        assert!(blocks.iter().flatten().all(|sum| sum.2 == u64::MAX));
    }

    #[test]
    fn more_weights_than_fit_into_the_longest_blocks_are_kept() {
        let mut sums = sums(2);
        for node in 0..9 {
            sums.add(TimestampNs(u64::from(node % 2) << 63), context(0), node, 1);
        }
        let (length_ns, blocks) = blocks(sums);
        assert_eq!((length_ns, blocks.len()), (1 << 63, 2));
        assert_eq!(blocks.iter().flatten().count(), 9);
    }

    #[test]
    fn many_weights_make_longer_blocks_and_lose_nothing() {
        let mut sums = sums(100);
        for sample in 0..1000u32 {
            sums.add(TimestampNs(u64::from(sample) << FIRST_SHIFT), context(0), sample % 20, 1);
        }
        assert!(sums.weights <= 100);
        let (_, blocks) = blocks(sums);
        assert!((2..=5).contains(&blocks.len()), "{}", blocks.len());
        assert_eq!(blocks.iter().flatten().map(|sum| sum.2).sum::<u64>(), 1000);
    }

    proptest! {
        /// Neither the order of samples nor their split over readers matters.
        #[test]
        fn any_reading_gives_the_same_blocks(
            samples in prop::collection::vec((0u64..1 << 36, 0u32..3, 0u32..4, 1u64..9), 1..120),
            readers in prop::collection::vec(0usize..3, 120),
            max_weights in 4usize..60,
        ) {
            let mut whole = sums(max_weights);
            let mut parts = [sums(max_weights), sums(max_weights), sums(max_weights)];
            for (time, thread, node, period) in &samples {
                whole.add(TimestampNs(*time), context(*thread), *node, *period);
            }
            for ((time, thread, node, period), reader) in samples.iter().zip(&readers).rev() {
                // Each reader has its own numbers for threads and nodes.
                let turned = context(2 - thread);
                parts[*reader].add(TimestampNs(*time), turned, 3 - node, *period);
            }
            let mut merged = sums(max_weights);
            for part in parts {
                merged.merge(part, &[2, 1, 0], &[], &[3, 2, 1, 0]);
            }
            prop_assert_eq!(blocks(whole), blocks(merged));
        }
    }
}
