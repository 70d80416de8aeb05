//! Samples with counts of other events become samples of those events, in both passes.
//!
//! The period of such a sample is the count less the one before, and the second pass reads blocks in any order. So the
//! first pass keeps the last counts in front of each block, for the ids that the block has. An id belongs to one ring, and
//! a ring to one stream; so the order of the stream is that of the id's counts.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_perfdata::read_split::{CountKey, ReadSplit, SplitCounts};
use whit_perfdata::stream::{Block, BlockInfo};

/// The last counts in front of a block.
type CountsBefore = Box<[(CountKey, u64)]>;

/// Splits the samples of one stream, block by block.
pub(crate) struct SplitStream {
    split: Arc<ReadSplit>,
    counted: FxHashMap<CountKey, u64>,
    before: FxHashMap<u64, CountsBefore>,
    /// The position of the next block.
    next: Option<u64>,
    /// A buffer.
    out: Vec<u8>,
}

/// Splits the samples of the same blocks again, in any order.
#[derive(Debug)]
pub(crate) struct SplitBlocks {
    split: Arc<ReadSplit>,
    /// By position.
    before: FxHashMap<u64, CountsBefore>,
}

/// The difference to the last count: as in perf, modulo 2⁶⁴, and for the first count all of it.
fn since(counted: &mut FxHashMap<CountKey, u64>, key: CountKey, count: u64) -> u64 {
    count.wrapping_sub(counted.insert(key, count).unwrap_or(0))
}

impl SplitStream {
    pub(crate) fn new(split: Arc<ReadSplit>) -> SplitStream {
        SplitStream {
            split,
            counted: FxHashMap::default(),
            before: FxHashMap::default(),
            next: None,
            out: Vec::new(),
        }
    }

    /// Splits the samples of the next block. Its position becomes that of its first record among the split ones.
    pub(crate) fn split(&mut self, info: &mut BlockInfo, block: &mut Vec<u8>) -> SplitCounts {
        let (counted, mut before) = (&mut self.counted, FxHashMap::default());
        self.out.clear();
        let mut since = |key, count| {
            before.entry(key).or_insert_with(|| counted.get(&key).copied().unwrap_or(0));
            since(counted, key, count)
        };
        let counts = self.split.split(block, &mut since, &mut self.out);
        std::mem::swap(block, &mut self.out);
        info.position = self.next.unwrap_or(info.position);
        // An empty block has a position of its own, too.
        self.next = Some(info.position + block.len().max(1) as u64);
        self.before.insert(info.position, before.into_iter().collect());
        counts
    }

    pub(crate) fn finish(self) -> SplitBlocks {
        SplitBlocks { split: self.split, before: self.before }
    }
}

impl SplitBlocks {
    /// Splits the samples of the block at a position as the first pass did.
    pub(crate) fn split(&self, position: u64, block: &mut Block) {
        let before = self.before.get(&position).into_iter().flatten();
        let mut counted: FxHashMap<_, _> = before.copied().collect();
        let mut since = |key, count| since(&mut counted, key, count);
        let mut out = Vec::with_capacity(block.len());
        self.split.split(block, &mut since, &mut out);
        *block = Block::from(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use whit_perfdata::attr::{Attr, ReadFormat, SampleType};
    use whit_perfdata::encode::push_record;
    use whit_perfdata::feature::EventDesc;
    use whit_perfdata::record::{RawRecord, record_type};

    /// Two events of a group, each with an id for either of two CPUs: 1 and 2, 3 and 4.
    fn group() -> Arc<ReadSplit> {
        let sample_type = SampleType::IDENTIFIER | SampleType::TIME | SampleType::READ;
        let read_format = ReadFormat::GROUP | ReadFormat::ID;
        let attr = Attr { sample_type, read_format, ..Attr::default() };
        let event = |ids: [u64; 2]| EventDesc {
            attr: attr.clone(),
            ids: ids.to_vec(),
            name: "event".to_owned(),
        };
        Arc::new(ReadSplit::of(&[event([1, 2]), event([3, 4])]).unwrap())
    }

    /// A block with a sample for each of these: on the second CPU or the first one, and the counts of both events.
    fn block(samples: &[(bool, u64, u64)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (on_second, leader, member) in samples {
            let cpu = u64::from(*on_second);
            let words = [1 + cpu, 99, 2, *leader, 1 + cpu, *member, 3 + cpu];
            let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            push_record(&mut block, record_type::SAMPLE, 0, &body);
        }
        block
    }

    /// Ids and periods.
    fn samples(block: &[u8]) -> Vec<(u64, u64)> {
        let (mut rest, mut found) = (block, Vec::new());
        while let Some((record, tail)) = RawRecord::split(rest) {
            let sample = group().events().layout(0).unwrap().parse(record.body).unwrap();
            found.push((sample.id.unwrap(), sample.period.unwrap()));
            rest = tail;
        }
        found
    }

    fn at(position: u64) -> BlockInfo {
        BlockInfo { position, start: 0, range: None }
    }

    #[test]
    fn counts_continue_across_blocks() {
        let mut stream = SplitStream::new(group());
        let blocks = [&[(false, 10, 1), (true, 7, 2)][..], &[(false, 15, 1)], &[(true, 9, 8)]];
        let expected = [&[(1, 10), (3, 1), (2, 7), (4, 2)][..], &[(1, 5)], &[(2, 2), (4, 6)]];
        for (recorded, expected) in blocks.iter().zip(expected) {
            let mut block = block(recorded);
            stream.split(&mut at(0), &mut block);
            assert_eq!(samples(&block), expected);
        }
    }

    #[test]
    fn each_block_has_a_position_of_its_own() {
        let mut stream = SplitStream::new(group());
        let mut positions = Vec::new();
        // Nothing was counted between the first two samples, so nothing is left of the second block.
        for recorded in [[(false, 1, 1)], [(false, 1, 1)], [(false, 2, 1)]] {
            let (mut info, mut block) = (at(100), block(&recorded));
            stream.split(&mut info, &mut block);
            positions.push((info.position, samples(&block).len()));
        }
        let size = (8 + 3 * 8) as u64;
        assert_eq!(positions, [(100, 2), (100 + 2 * size, 0), (101 + 2 * size, 1)]);
    }

    proptest! {
        /// In any order, and several times.
        #[test]
        fn blocks_that_are_read_again_become_the_same(
            recorded in prop::collection::vec(
                prop::collection::vec((any::<bool>(), 0u64..4, any::<u64>()), 0..5), 1..8),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut stream = SplitStream::new(group());
            let mut first = Vec::new();
            for recorded in &recorded {
                let (mut info, mut block) = (at(50), block(recorded));
                stream.split(&mut info, &mut block);
                first.push((info.position, block));
            }
            let blocks = stream.finish();
            for index in order {
                let index = index.index(first.len());
                let (position, expected) = &first[index];
                let mut again = Block::from(block(&recorded[index]));
                blocks.split(*position, &mut again);
                prop_assert_eq!(&again[..], &expected[..]);
            }
        }
    }
}
