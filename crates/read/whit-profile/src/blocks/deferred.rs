//! User call chains in records of their own, joined to the samples that await them.
//!
//! Mostly sample and record stand in one block of the recording, which is read as a whole: the
//! chain is taken from there. The first pass notes the samples whose block lacks the record
//! ([`AwaitedChains`]). Only for them the recording is read once more, and their records are kept.
//! So memory grows with the edges of blocks and with threads that stay in the kernel, up to
//! [`MAX_APART_BYTES`], and the order of blocks and streams plays no part.

use crate::blocks::stream_plan::StreamPlan;
use crate::blocks::work::WorkQueue;
use crate::error::LoadError;
use crate::progress::Progress;
use crate::warning::Warning;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use whit_perfdata::attr::{Attr, AttrFlags};
use whit_perfdata::deferred::DeferredChain;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::{Sample, Words};
use whit_perfdata::stream::{Block, BlockReader};
use whit_types::{Tid, TimestampNs};

/// Memory for chains that stand apart from their samples.
const MAX_APART_BYTES: usize = 256 << 20;

/// Memory of such a chain beside its addresses.
const APART_OVERHEAD_BYTES: usize = 96;

/// Words of a chain that are markers; the kernel allows eight.
const MAX_MARKERS: usize = 8;

/// Which chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ChainKey {
    tid: Tid,
    cookie: u64,
}

impl ChainKey {
    /// The chain that a sample awaits.
    pub(crate) fn of(sample: &Sample<'_>) -> Option<ChainKey> {
        let tid = sample.pid_tid.map_or(Tid(-1), |(_, tid)| tid);
        Some(ChainKey { tid, cookie: sample.deferred_cookie()? })
    }
}

/// The user's part of a call chain, and when the kernel took it: after the sample, in the address
/// space of that moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UserChain<'a> {
    pub(crate) time: Option<TimestampNs>,
    pub(crate) addresses: Words<'a>,
}

/// The key and the chain of a record.
fn keyed<'r>(events: &EventTable, record: RawRecord<'r>) -> Option<(ChainKey, UserChain<'r>)> {
    let is_chain = record.header.kind == record_type::CALLCHAIN_DEFERRED;
    let chain = is_chain.then(|| DeferredChain::parse(record.body)).flatten()?;
    let id = events.parse_id_trailer(record);
    let tid = id.pid_tid.map_or(Tid(-1), |(_, tid)| tid);
    let key = ChainKey { tid, cookie: chain.cookie };
    Some((key, UserChain { time: id.time, addresses: chain.addresses }))
}

/// Whether samples of an event may await chains.
pub(crate) fn defers(attr: &Attr) -> bool {
    attr.has(AttrFlags::DEFER_CALLCHAIN)
}

/// Where in a block its chains stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockChains(FxHashMap<ChainKey, Range<usize>>);

impl BlockChains {
    fn of(events: &EventTable, block: &[u8]) -> BlockChains {
        let mut chains = FxHashMap::default();
        let mut rest = block;
        while let Some((record, tail)) = RawRecord::split(rest) {
            if let Some((key, _)) = keyed(events, record) {
                let end = block.len() - tail.len();
                let whole = end - usize::from(record.header.size_bytes)..end;
                // Where several events take the records, each wrote the same.
                chains.entry(key).or_insert(whole);
            }
            rest = tail;
        }
        BlockChains(chains)
    }
}

/// A block of records, and where its chains stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainedBlock<'b> {
    pub(crate) bytes: &'b Block,
    pub(crate) chains: &'b BlockChains,
}

/// Samples and chains that do not meet in a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct AwaitedChains {
    /// Samples that await a chain.
    samples: u64,
    /// Chains that stand outside the blocks of their samples, and the number of those samples.
    awaited: FxHashMap<ChainKey, u64>,
    /// Chains outside the blocks of their samples, or without any.
    unclaimed: FxHashSet<ChainKey>,
    /// Samples and chains beyond the bound.
    beyond_bound: u64,
    max_keys: usize,
}

impl AwaitedChains {
    /// For one of `streams` that share the bound.
    pub(crate) fn new(streams: usize, max_stack: usize) -> AwaitedChains {
        let max_keys = MAX_APART_BYTES / apart_bytes(max_stack) / streams.max(1);
        AwaitedChains { max_keys, ..AwaitedChains::default() }
    }

    /// Takes the samples and chains of a block.
    pub(crate) fn see_block(&mut self, events: &EventTable, block: &[u8]) {
        let BlockChains(chains) = BlockChains::of(events, block);
        let mut claimed = FxHashSet::default();
        let mut rest = block;
        while let Some((record, tail)) = RawRecord::split(rest) {
            rest = tail;
            if record.header.kind != record_type::SAMPLE {
                continue;
            }
            let layout = events.event_of_sample(record.body).and_then(|e| events.layout(e));
            let sample = layout.and_then(|layout| layout.parse(record.body));
            let Some(key) = sample.as_ref().and_then(ChainKey::of) else { continue };
            self.samples += 1;
            if chains.contains_key(&key) {
                claimed.insert(key);
            } else {
                self.await_chain(key);
            }
        }
        for key in chains.into_keys().filter(|key| !claimed.contains(key)) {
            if self.unclaimed.len() < self.max_keys {
                self.unclaimed.insert(key);
            } else {
                self.beyond_bound += 1;
            }
        }
    }

    fn await_chain(&mut self, key: ChainKey) {
        let is_full = self.awaited.len() >= self.max_keys;
        match self.awaited.entry(key) {
            Entry::Occupied(mut samples) => *samples.get_mut() += 1,
            Entry::Vacant(entry) if !is_full => _ = entry.insert(1),
            Entry::Vacant(_) => self.beyond_bound += 1,
        }
    }

    /// Adds those of another stream.
    pub(crate) fn add(&mut self, other: AwaitedChains) {
        self.samples += other.samples;
        self.beyond_bound += other.beyond_bound;
        self.unclaimed.extend(other.unclaimed);
        for (key, samples) in other.awaited {
            *self.awaited.entry(key).or_default() += samples;
        }
    }
}

fn apart_bytes(max_stack: usize) -> usize {
    max_stack.saturating_mul(8).saturating_add(APART_OVERHEAD_BYTES)
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ApartChain {
    time: Option<TimestampNs>,
    addresses: Box<[u8]>,
}

/// How many samples and chains did not meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeferredLoss {
    /// Samples that await a chain.
    pub(crate) samples: u64,
    /// The ones among them whose chain the recording does not have.
    pub(crate) samples_without_chain: u64,
    /// Chains that no sample awaits.
    pub(crate) chains_without_sample: u64,
    /// Samples and chains that were not joined because the bound was reached.
    pub(crate) beyond_bound: u64,
}

impl DeferredLoss {
    pub(crate) fn warnings(self) -> impl Iterator<Item = Warning> {
        let DeferredLoss { samples, samples_without_chain, chains_without_sample, beyond_bound } =
            self;
        let without_chain = (samples_without_chain > 0)
            .then_some(Warning::ChainsMissing { without_chain: samples_without_chain, samples });
        let without_sample = (chains_without_sample > 0)
            .then_some(Warning::ChainsUnclaimed { chains: chains_without_sample });
        let beyond = (beyond_bound > 0).then_some(Warning::ChainsBeyondBound {
            left_apart: beyond_bound,
            bound_bytes: MAX_APART_BYTES,
        });
        [without_chain, without_sample, beyond].into_iter().flatten()
    }
}

/// The user call chains of a recording that were recorded apart from their samples.
#[derive(Debug, Default)]
pub(crate) struct DeferredChains {
    is_recorded: bool,
    apart: FxHashMap<ChainKey, ApartChain>,
    pub(crate) loss: DeferredLoss,
}

impl DeferredChains {
    /// Reads the recording once more where samples await chains of other blocks.
    pub(crate) fn join(
        plans: &[StreamPlan],
        events: &EventTable,
        awaited: Option<AwaitedChains>,
        recorded_chains: u64,
        (threads, max_stack): (usize, usize),
    ) -> Result<DeferredChains, LoadError> {
        let Some(mut awaited) = awaited else {
            // No event asked for them.
            let loss =
                DeferredLoss { chains_without_sample: recorded_chains, ..DeferredLoss::default() };
            return Ok(DeferredChains { loss, ..DeferredChains::default() });
        };
        let apart = Mutex::new(FxHashMap::default());
        if !awaited.awaited.is_empty() {
            let search = Search { events, awaited: &awaited.awaited, apart: &apart, max_stack };
            search.run(plans, threads)?;
        }
        let apart = apart.into_inner().unwrap_or_else(PoisonError::into_inner);
        awaited.unclaimed.retain(|key| !awaited.awaited.contains_key(key));
        awaited.awaited.retain(|key, _| !apart.contains_key(key));
        let loss = DeferredLoss {
            samples: awaited.samples,
            samples_without_chain: awaited.awaited.values().sum(),
            chains_without_sample: awaited.unclaimed.len() as u64,
            beyond_bound: awaited.beyond_bound,
        };
        Ok(DeferredChains { is_recorded: true, apart, loss })
    }

    /// The chains of a block.
    pub(crate) fn of_block(&self, events: &EventTable, block: &[u8]) -> BlockChains {
        if self.is_recorded { BlockChains::of(events, block) } else { BlockChains::default() }
    }

    /// The chain that a sample of `block` awaits.
    pub(crate) fn find<'r>(
        &'r self,
        events: &EventTable,
        sample: &Sample<'_>,
        block: ChainedBlock<'r>,
    ) -> Option<UserChain<'r>> {
        let key = self.is_recorded.then(|| ChainKey::of(sample)).flatten()?;
        if let Some(whole) = block.chains.0.get(&key) {
            let (record, _) = RawRecord::split(block.bytes.get(whole.clone())?)?;
            return keyed(events, record).map(|(_, chain)| chain);
        }
        let apart = self.apart.get(&key)?;
        Some(UserChain { time: apart.time, addresses: Words::new(&apart.addresses) })
    }
}

/// Looks for awaited chains.
struct Search<'a> {
    events: &'a EventTable,
    awaited: &'a FxHashMap<ChainKey, u64>,
    apart: &'a Mutex<FxHashMap<ChainKey, ApartChain>>,
    max_stack: usize,
}

impl Search<'_> {
    fn run(&self, plans: &[StreamPlan], threads: usize) -> Result<(), LoadError> {
        let queue = WorkQueue::new(plans);
        // Users see the progress of the other passes; this one mostly reads cached pages.
        let progress = Progress::new(0, &|_, _| ());
        let worker = || {
            let (mut reader, mut block) = (BlockReader::default(), Block::default());
            while queue.next(&mut reader, &mut block, &progress)?.is_some() {
                self.block(&block);
            }
            Ok::<_, LoadError>(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
            worker()?;
            others.into_iter().try_for_each(|o| o.join().map_err(|_| LoadError::WorkerDied)?)
        })
    }

    fn block(&self, block: &[u8]) {
        let mut rest = block;
        while let Some((record, tail)) = RawRecord::split(rest) {
            if let Some((key, chain)) = keyed(self.events, record)
                && self.awaited.contains_key(&key)
            {
                self.keep(key, &chain);
            }
            rest = tail;
        }
    }

    /// Keeps the least of several chains of a key, which does not depend on the order of reading.
    fn keep(&self, key: ChainKey, chain: &UserChain<'_>) {
        let max_words = self.max_stack.saturating_add(MAX_MARKERS);
        let words = chain.addresses.iter().take(max_words);
        let addresses = words.flat_map(u64::to_le_bytes).collect();
        let new = ApartChain { time: chain.time, addresses };
        let mut apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        match apart.entry(key) {
            Entry::Occupied(mut kept) if new < *kept.get() => _ = kept.insert(new),
            Entry::Occupied(_) => {}
            Entry::Vacant(entry) => _ = entry.insert(new),
        }
    }
}
