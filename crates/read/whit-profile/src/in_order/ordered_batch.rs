//! Records in order of time, and the blocks that they stand in.

use crate::blocks::deferred::{BlockChains, ChainedBlock};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use whit_perfdata::record::{RawRecord, RecordHeader};
use whit_perfdata::stream::Block;
use whit_types::TimestampNs;

/// Bytes of buffers of blocks that are kept to be filled again: memory that is new costs more than a read.
const MAX_SPARE_BYTES: usize = 32 << 20;

/// Memory for blocks: the bytes in use, and spare buffers.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) bytes: AtomicUsize,
    spare: Mutex<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    buffers: Vec<Block>,
    bytes: usize,
}

impl Held {
    /// An empty buffer, or one to be overwritten.
    pub(crate) fn buffer(&self) -> Block {
        let Ok(mut spare) = self.spare.lock() else { return Block::default() };
        let buffer = spare.buffers.pop().unwrap_or_default();
        spare.bytes -= buffer.capacity_bytes();
        buffer
    }
}

/// The bytes of a block, counted for as long as they are held.
#[derive(Debug)]
pub(crate) struct HeldBlock {
    pub(crate) bytes: Block,
    chains: BlockChains,
    held: Arc<Held>,
}

impl HeldBlock {
    pub(crate) fn new(bytes: Block, chains: BlockChains, held: &Arc<Held>) -> HeldBlock {
        held.bytes.fetch_add(bytes.capacity_bytes(), Ordering::Relaxed);
        HeldBlock { bytes, chains, held: held.clone() }
    }
}

impl Drop for HeldBlock {
    fn drop(&mut self) {
        let bytes = self.bytes.capacity_bytes();
        self.held.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Ok(mut spare) = self.held.spare.lock()
            && spare.bytes + bytes <= MAX_SPARE_BYTES
        {
            spare.bytes += bytes;
            spare.buffers.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// The place of a record in its block, and its place among others.
#[derive(Clone, Debug)]
pub(crate) struct PendingRecord {
    pub(crate) time: TimestampNs,
    pub(crate) order: u64,
    pub(crate) header: RecordHeader,
    pub(crate) body: Range<usize>,
}

impl PendingRecord {
    /// By time, and of the same time as they stand in the recording.
    #[inline]
    pub(crate) fn key(&self) -> (TimestampNs, u64) {
        (self.time, self.order)
    }
}

/// A record, and the block that it stands in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingSample<'a> {
    pub(crate) time: TimestampNs,
    pub(crate) header: RecordHeader,
    body: &'a [u8],
    block: &'a HeldBlock,
}

impl<'a> PendingSample<'a> {
    pub(crate) fn record(&self) -> RawRecord<'a> {
        RawRecord { header: self.header, body: self.body }
    }

    /// The block that it stands in.
    pub(crate) fn block(&self) -> ChainedBlock<'a> {
        ChainedBlock { bytes: &self.block.bytes, chains: &self.block.chains }
    }
}

/// Records that are given out together. A batch counts for each of its blocks once: threads that counted for each record
/// would wait for each other's caches.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    records: Vec<(PendingRecord, usize)>,
    blocks: Vec<Arc<HeldBlock>>,
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Lets the records and their blocks go.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.blocks.clear();
    }

    /// Adds a block, and gives its place.
    pub(crate) fn add_block(&mut self, block: &Arc<HeldBlock>) -> usize {
        self.blocks.push(block.clone());
        self.blocks.len() - 1
    }

    /// Adds a record of the block at a place.
    pub(crate) fn push(&mut self, record: PendingRecord, block: usize) {
        self.records.push((record, block));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = PendingSample<'_>> {
        self.records.iter().map(|(record, block)| pending(record, &self.blocks[*block]))
    }

    /// Time, order and block of each record.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<(TimestampNs, u64, usize)> {
        let block = |place: usize| Arc::as_ptr(&self.blocks[place]) as usize;
        self.records.iter().map(|(it, place)| (it.time, it.order, block(*place))).collect()
    }

    /// Keeps the records that are wanted.
    pub(crate) fn retain(&mut self, mut is_wanted: impl FnMut(PendingSample<'_>) -> bool) {
        let blocks = &self.blocks;
        self.records.retain(|(record, block)| is_wanted(pending(record, &blocks[*block])));
    }
}

fn pending<'a>(record: &PendingRecord, block: &'a HeldBlock) -> PendingSample<'a> {
    let body = &block.bytes[record.body.clone()];
    PendingSample { time: record.time, header: record.header, body, block }
}
