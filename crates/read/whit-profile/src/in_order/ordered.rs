//! Samples in order of time, as `whit script` prints them, and the records of context switches among them, as
//! `whit switches` takes them.
//!
//! Rings are drained one after the other, so a recording is ordered only roughly. The first pass
//! notes the time span of each block; here blocks are read [as they come due](BlockOrder), and a
//! sample is given out once every block that could hold an earlier one has been read. Memory is
//! bounded by the overlap of blocks in time: about the size of all rings together. Where they overlap
//! further, as a single wrong time stamp makes them do, order is given up, not memory: samples are
//! then given out before earlier ones are found, and counted.

use crate::blocks::stated_time::stated_time;
use crate::blocks::stream_plan::BlockTimes;
use crate::error::LoadError;
use crate::first_pass::prepare::Prepared;
use crate::in_order::block_order::BlockOrder;
pub(crate) use crate::in_order::ordered_batch::{Batch, PendingSample};
use crate::in_order::ordered_batch::{Held, HeldBlock, PendingRecord};
use crate::progress::Progress;
use crate::time_filter::{TimeRange, TimeRanges};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use whit_perfdata::record::{RawRecord, record_type};
use whit_types::TimestampNs;

/// Samples that are given out together.
pub(crate) const BATCH_SAMPLES: usize = 256;

/// Other records that take the place of a sample in a batch: there is less to do for each.
const RECORDS_PER_SAMPLE: usize = 4;

/// Lists of the samples of blocks that are kept to be filled again.
const MAX_SPARE_LISTS: usize = 16;

/// Bytes of blocks that are held while earlier samples may still come.
const MAX_PENDING_BYTES: usize = 256 << 20;

/// The samples of a block that were not given out yet, in order. Rings are drained one after the other, so
/// a block is a few ascending rows, which sort quickly. The next sample in time mostly stands in the same block,
/// so a heap of blocks moves fewer entries than a heap of samples.
#[derive(Debug)]
struct PendingBlock {
    /// Those that were given out, and the others behind them.
    samples: Vec<PendingRecord>,
    /// The place of the first of the others.
    next: usize,
    /// Time and order of that one.
    key: (TimestampNs, u64),
    block: Arc<HeldBlock>,
    /// Number of the batch that got the block last, and its place there.
    given: (u64, usize),
}

impl PendingBlock {
    fn new(block: Arc<HeldBlock>, mut samples: Vec<PendingRecord>) -> Option<PendingBlock> {
        // Stable: of the same time, the one that stands earlier goes first.
        samples.sort_by_key(|sample| sample.time);
        let key = samples.first()?.key();
        Some(PendingBlock { samples, next: 0, key, block, given: (0, 0) })
    }
}

impl PartialEq for PendingBlock {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PendingBlock {}

impl PartialOrd for PendingBlock {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PendingBlock {
    /// The earliest is the greatest: the heap gives out its greatest first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key.cmp(&self.key)
    }
}

/// Samples of several blocks, the earliest first.
#[derive(Debug, Default)]
struct Pending {
    blocks: BinaryHeap<PendingBlock>,
    /// Lists to be filled again.
    spare: Vec<Vec<PendingRecord>>,
}

impl Pending {
    fn add(&mut self, block: Arc<HeldBlock>, samples: Vec<PendingRecord>) {
        self.blocks.extend(PendingBlock::new(block, samples));
    }

    /// An empty list.
    fn list(&mut self) -> Vec<PendingRecord> {
        self.spare.pop().unwrap_or_default()
    }

    /// The time of the earliest.
    fn first_time(&self) -> Option<TimestampNs> {
        self.blocks.peek().map(|block| block.key.0)
    }

    /// Its part of a batch.
    fn first_cost(&self) -> usize {
        let kind = self.blocks.peek().map(|block| block.samples[block.next].header.kind);
        if kind == Some(record_type::SAMPLE) { RECORDS_PER_SAMPLE } else { 1 }
    }

    /// Moves the earliest into the batch with this number.
    fn give_out(&mut self, batch: &mut Batch, number: u64) {
        let Some(mut block) = self.blocks.peek_mut() else { return };
        if block.given.0 != number {
            block.given = (number, batch.add_block(&block.block));
        }
        batch.push(block.samples[block.next].clone(), block.given.1);
        match block.samples.get(block.next + 1).map(PendingRecord::key) {
            Some(key) => {
                block.next += 1;
                block.key = key;
            }
            None => {
                let mut samples = PeekMut::pop(block).samples;
                samples.clear();
                if self.spare.len() < MAX_SPARE_LISTS {
                    self.spare.push(samples);
                }
            }
        }
    }
}

/// Gives out samples in order of time.
pub(crate) struct OrderedSamples<'p> {
    prepared: &'p Prepared,
    takes: BlockTimes,
    /// Records of context switches are given out whatever their time.
    ranges: Option<TimeRanges>,
    /// By event, whether its samples are wanted; all of them without.
    events: Option<Vec<bool>>,
    blocks: BlockOrder<'p>,
    pending: Pending,
    order: u64,
    /// Number of the batch that is filled.
    batch: u64,
    held: Arc<Held>,
    max_held_bytes: usize,
    /// Time of the last sample that was given out.
    last_time: TimestampNs,
    disordered: u64,
}

impl<'p> OrderedSamples<'p> {
    /// Reads a recording that was prepared with the same `takes`. Decompresses with up to `threads`
    /// threads.
    pub(crate) fn new(
        prepared: &'p Prepared,
        takes: BlockTimes,
        threads: usize,
        progress: &'p Progress<'p>,
    ) -> Self {
        OrderedSamples {
            prepared,
            takes,
            ranges: prepared.time.clone(),
            events: None,
            blocks: BlockOrder::new(&prepared.scan.plans, threads, None, progress),
            pending: Pending::default(),
            order: 0,
            batch: 0,
            held: Arc::default(),
            max_held_bytes: MAX_PENDING_BYTES,
            last_time: TimestampNs(0),
            disordered: 0,
        }
    }

    /// The samples in a range of time; blocks without any are not read.
    pub(crate) fn within(
        prepared: &'p Prepared,
        range: Option<TimeRange>,
        threads: usize,
        progress: &'p Progress<'p>,
    ) -> Self {
        let blocks = BlockOrder::new(&prepared.scan.plans, threads, range, progress);
        let all = OrderedSamples::new(prepared, BlockTimes::Note, threads, progress);
        OrderedSamples { ranges: range.map(TimeRanges::from), blocks, ..all }
    }

    /// Only the samples of some events.
    pub(crate) fn of_events(self, events: Option<Vec<bool>>) -> Self {
        OrderedSamples { events, ..self }
    }

    fn wants(&self, record: RawRecord<'_>) -> bool {
        let Some(wanted) =
            self.events.as_ref().filter(|_| record.header.kind == record_type::SAMPLE)
        else {
            return true;
        };
        let event = self.prepared.events.event_of_sample(record.body);
        event.and_then(|event| wanted.get(event)).is_some_and(|is_wanted| *is_wanted)
    }

    /// Samples that were given out behind later ones because memory did not suffice.
    pub(crate) fn disordered(&self) -> u64 {
        self.disordered
    }

    /// Adds the next samples to `batch`, which then has at most [`BATCH_SAMPLES`], or more records of other types; it
    /// stays empty at the end.
    pub(crate) fn next_batch(&mut self, batch: &mut Batch) -> Result<(), LoadError> {
        self.batch += 1;
        let mut unread = self.blocks.earliest_unread();
        let mut room = (BATCH_SAMPLES * RECORDS_PER_SAMPLE).saturating_sub(batch.len());
        while room > 0 {
            let is_full = self.held.bytes.load(Ordering::Relaxed) >= self.max_held_bytes;
            let ready = self.pending.first_time().is_some_and(|first| {
                // Samples with equal times keep the order of the recording: an unread block may hold the earlier one.
                is_full || unread.is_none_or(|unread| first < unread)
            });
            if ready {
                room = room.saturating_sub(self.pending.first_cost());
                self.give_out(batch);
            } else if unread.is_some() {
                self.read_block()?;
                unread = self.blocks.earliest_unread();
            } else {
                break;
            }
        }
        Ok(())
    }

    fn give_out(&mut self, batch: &mut Batch) {
        if let Some(time) = self.pending.first_time() {
            self.disordered += u64::from(time < self.last_time);
            self.last_time = self.last_time.max(time);
        }
        self.pending.give_out(batch, self.batch);
    }

    fn read_block(&mut self) -> Result<(), LoadError> {
        let mut block = self.held.buffer();
        if let Some(position) = self.blocks.next(&mut block)? {
            let chains = self.prepared.deferred.of_block(&self.prepared.events, &block);
            let held = HeldBlock::new(block, chains, &self.held);
            self.take_samples(position, Arc::new(held));
        }
        Ok(())
    }

    fn take_samples(&mut self, position: u64, block: Arc<HeldBlock>) {
        let (mut at, mut samples) = (0, self.pending.list());
        while let Some((record, tail)) = RawRecord::split(&block.bytes[at..]) {
            let end = block.bytes.len() - tail.len();
            let kind = record.header.kind;
            if self.takes.takes(kind) && self.wants(record) {
                let stated = stated_time(&self.prepared.events, record);
                // Samples without a time stand in the order of the recording.
                let by_position =
                    (kind == record_type::SAMPLE).then_some(TimestampNs(position + at as u64));
                let lists_records = matches!(self.takes, BlockTimes::NoteRecords(_));
                // Records of older processes have no time: they come first.
                let before = lists_records.then_some(TimestampNs(0));
                let time = stated.or(by_position).or(before);
                // Runs and waits reach into the wanted range from outside; of records, as in perf, only samples are
                // chosen by time.
                let all = self.takes == BlockTimes::NoteSwitches
                    || (lists_records && kind != record_type::SAMPLE);
                if let Some(time) = time
                    && (all || self.ranges.as_ref().is_none_or(|ranges| ranges.contains(time)))
                {
                    self.order += 1;
                    samples.push(PendingRecord {
                        time,
                        order: self.order,
                        header: record.header,
                        body: end - record.body.len()..end,
                    });
                }
            }
            at = end;
        }
        self.pending.add(block, samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::deferred::BlockChains;
    use proptest::prelude::*;
    use whit_perfdata::record::RecordHeader;
    use whit_perfdata::stream::Block;

    proptest! {
        /// By time, and of the same time as they stand in the recording, whenever blocks come.
        #[test]
        fn blocks_are_merged(
            blocks in prop::collection::vec(prop::collection::vec(0u64..20, 0..12), 0..8),
            taken_between in 0usize..6,
        ) {
            let (mut pending, mut order, mut held, mut taken) = (Pending::default(), 0, Vec::new(), Vec::new());
            let mut kept = Vec::new();
            let header = RecordHeader { kind: record_type::SAMPLE, misc: 0, size_bytes: 8 };
            let mut number = 0;
            let mut pop = |pending: &mut Pending, count: usize| {
                number += 1;
                let mut batch = Batch::default();
                (0..count).for_each(|_| pending.give_out(&mut batch, number));
                batch.keys()
            };
            for times in blocks {
                let sample = |time| {
                    order += 1;
                    PendingRecord { time: TimestampNs(time), order, header, body: 0..0 }
                };
                let samples: Vec<_> = times.into_iter().map(sample).collect();
                let block = HeldBlock::new(Block::default(), BlockChains::default(), &Arc::default());
                let block = Arc::new(block);
                let key = |it: &PendingRecord| (it.time, it.order, Arc::as_ptr(&block) as usize);
                held.extend(samples.iter().map(key));
                pending.add(block.clone(), samples);
                kept.push(block);
                held.sort_unstable();
                prop_assert_eq!(pending.first_time(), held.first().map(|first| first.0));
                let first: Vec<_> = held.drain(..taken_between.min(held.len())).collect();
                prop_assert_eq!(pop(&mut pending, taken_between), first);
            }
            taken.extend(pop(&mut pending, held.len() + 1));
            prop_assert_eq!(taken, held);
        }
    }
}
