//! Samples added up, by several threads and in any order.

use super::sample_facts::{FactFinder, Facts, SampleWanted};
use super::{StreamEnd, TableSource};
use crate::blocks::deferred::ChainedBlock;
use crate::blocks::work::WorkQueue;
use crate::call_chain::stops::StopCounts;
use crate::error::LoadError;
use crate::progress::Progress;
use crate::samples::Samples;
use crate::second_pass::aggregate::Aggregate;
use crate::second_pass::sample_sums::{ParsedSample, SampleSums};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::atomic::Ordering;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{Block, BlockReader};
use whit_types::{CpuId, TimestampNs};

/// Memory of one sum of one thread, with its share of the table's empty places and of the result.
const SUM_BYTES: usize = 3 * size_of::<(Key, Weight)>();

/// Sums for which a thread asks for room at once.
const SUMS_AT_ONCE: usize = 1 << 10;

/// The samples that no wanted fact tells apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SampleSum {
    /// Number of the event.
    pub event: u32,
    /// Innermost call site.
    pub callsite: Option<u32>,
    /// Number of the thread.
    pub thread: Option<u32>,
    /// Number of the process.
    pub process: Option<u32>,
    /// Where the samples were taken.
    pub cpu: Option<CpuId>,
    /// Number of the cgroup.
    pub cgroup: Option<u32>,
    /// Number of the command name.
    pub comm: Option<u32>,
    /// Sum of their weights; the largest number where it is larger.
    pub weight: u64,
    /// Their number.
    pub samples: u64,
}

/// The facts by which samples are told apart. The node of a thread's call tree becomes a call site at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    event: u32,
    node: Option<u32>,
    cpu: Option<CpuId>,
    facts: Facts,
}

impl Hash for Key {
    /// Four words, where the derived one has twice as many for the options alone.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Facts { thread, process, cgroup, comm } = self.facts;
        let word = |high: Option<u32>, low: Option<u32>| {
            u64::from(high.unwrap_or(u32::MAX)) << 32 | u64::from(low.unwrap_or(u32::MAX))
        };
        state.write_u64(word(Some(self.event), self.node));
        state.write_u64(word(thread, process));
        state.write_u64(word(cgroup, comm));
        state.write_u32(self.cpu.map_or(u32::MAX, |cpu| cpu.0));
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    weight: u64,
    samples: u64,
}

impl Weight {
    fn add(&mut self, other: Weight) {
        self.weight = self.weight.saturating_add(other.weight);
        self.samples += other.samples;
    }
}

pub(super) type Sums = FxHashMap<Key, Weight>;

/// The sums of one thread, or of all.
pub(super) struct Part {
    pub(super) tree: Aggregate,
    pub(super) sums: Sums,
    stops: StopCounts,
}

/// Asks for more bytes, and says whether they are there.
type HasRoom<'a> = &'a (dyn Fn(usize) -> bool + Sync);

/// True for as long as the work is wanted.
type Continues<'a> = &'a (dyn Fn() -> bool + Sync);

pub(super) struct Worker<'a> {
    source: &'a TableSource,
    wanted: &'a SampleWanted,
    finder: FactFinder<'a>,
    tree: SampleSums<'a>,
    sums: Sums,
    stops: StopCounts,
    /// Sums for which there is room.
    room: usize,
    has_room: HasRoom<'a>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        source: &'a TableSource,
        wanted: &'a SampleWanted,
        has_room: HasRoom<'a>,
    ) -> Self {
        Worker {
            source,
            wanted,
            finder: FactFinder::new(source, wanted),
            tree: SampleSums::new(source.reading(), &Samples::default(), &source.prepared),
            sums: Sums::default(),
            stops: StopCounts::default(),
            room: 0,
            has_room,
        }
    }

    pub(super) fn run(
        mut self,
        queue: &WorkQueue<'_>,
        continues: Continues<'_>,
    ) -> Result<Part, StreamEnd> {
        let progress = Progress::new(0, &|_, _| ());
        let prepared = &self.source.prepared;
        let (mut reader, mut block) = (BlockReader::default(), Block::default());
        while let Some(position) = queue.next(&mut reader, &mut block, &progress)? {
            if !continues() {
                return Err(StreamEnd::Stopped);
            }
            let chains = prepared.deferred.of_block(&prepared.events, &block);
            let whole = ChainedBlock { bytes: &block, chains: &chains };
            let mut rest = &block[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                if record.header.kind == record_type::SAMPLE {
                    let at = block.len() - rest.len();
                    self.sample(record, whole, position + at as u64)?;
                }
                rest = tail;
            }
        }
        self.stops.unreadable_samples = self.tree.unreadable();
        Ok(Part { tree: self.tree.finish().0, sums: self.sums, stops: self.stops })
    }

    fn sample(
        &mut self,
        record: RawRecord<'_>,
        block: ChainedBlock<'_>,
        position: u64,
    ) -> Result<(), StreamEnd> {
        let mut parsed = ParsedSample::empty();
        if self.tree.parse_into(record, block, &mut parsed).is_err() {
            return Ok(());
        }
        let time = parsed.sample.time.unwrap_or(TimestampNs(position));
        if self.wanted.time.is_some_and(|range| !range.contains(time)) {
            return Ok(());
        }
        let Some(facts) = self.finder.find(&parsed, time) else { return Ok(()) };
        let node = self.wanted.stacks.then(|| self.tree.node_of(&parsed, time));
        if self.wanted.stacks {
            let chain = self.tree.chain();
            self.stops.count(chain.stop);
            self.stops.foreign_stacks += u64::from(chain.is_foreign);
        }
        let cpu = parsed.sample.cpu.filter(|_| self.wanted.facts.cpu);
        let key = Key { event: parsed.event as u32, node, cpu, facts };
        let weight = Weight { weight: self.tree.period(&parsed), samples: 1 };
        let nr_sums = self.sums.len();
        match self.sums.entry(key) {
            Entry::Occupied(known) => known.into_mut().add(weight),
            Entry::Vacant(new) => {
                if nr_sums == self.room {
                    if !(self.has_room)(SUMS_AT_ONCE * SUM_BYTES) {
                        return Err(StreamEnd::NoRoom);
                    }
                    self.room += SUMS_AT_ONCE;
                }
                new.insert(weight);
            }
        }
        Ok(())
    }
}

impl Part {
    pub(super) fn merge(&mut self, other: Part) {
        let (nodes, is_cut) = self.tree.merge_with_cuts(other.tree);
        for (key, weight) in other.sums {
            let node = key.node.map(|node| node as usize);
            if node.is_some_and(|node| is_cut[node]) {
                self.tree.cut_chains += weight.samples;
            }
            let key = Key { node: node.map(|node| nodes[node]), ..key };
            self.sums.entry(key).or_default().add(weight);
        }
        self.stops.add(&other.stops);
    }
}

impl TableSource {
    /// Adds samples up. Facts and call chains that are not wanted tell none apart. The order of the sums, and the numbers of
    /// call sites, do not depend on the number of threads. `has_room` is asked for memory before it is taken.
    ///
    /// # Errors
    /// The recording changed, there is no room, or `goes_on` said no.
    pub fn sample_sums(
        &self,
        wanted: &SampleWanted,
        has_room: HasRoom<'_>,
        continues: Continues<'_>,
    ) -> Result<Vec<SampleSum>, StreamEnd> {
        if wanted.stacks {
            self.fetch_companions()?;
        }
        let queue = WorkQueue::within(&self.prepared.scan.plans, wanted.time);
        let work = || Worker::new(self, wanted, has_room).run(&queue, continues);
        let (own, others) = self.prepared.kernel_load.run_during(self.options.threads, work);
        let mut all = own?;
        for other in others {
            all.merge(other.map_err(|_| LoadError::WorkerDied)??);
        }
        self.prepared.check_dumps()?;
        let Part { tree, sums, stops } = all;
        let callsites = self.stacks.adopt_tree(&self.prepared, &tree, self.options.threads);
        self.note_stops(wanted, &tree, &stops);
        Ok(in_order(sums, &callsites))
    }

    fn note_stops(&self, wanted: &SampleWanted, tree: &Aggregate, stops: &StopCounts) {
        let troubles = &self.troubles;
        troubles.unreadable.fetch_max(stops.unreadable_samples, Ordering::Relaxed);
        troubles.foreign_stacks.fetch_max(stops.foreign_stacks, Ordering::Relaxed);
        self.stacks.note_cut(tree.cut_chains);
        if wanted.stacks
            && wanted.is_everything()
            && let Ok(mut ends) = self.unwind_ends.lock()
        {
            let mut all = StopCounts::of_chained(&self.recording.features);
            all.add(stops);
            *ends = Some(all.iter().collect());
        }
    }
}

/// The sums with call sites. Two nodes are one call site where the table of call sites was full.
pub(super) fn in_order(sums: Sums, callsites: &[u32]) -> Vec<SampleSum> {
    let sum = |(key, weight): (Key, Weight)| SampleSum {
        event: key.event,
        callsite: key.node.and_then(|node| callsites.get(node as usize).copied()),
        thread: key.facts.thread,
        process: key.facts.process,
        cpu: key.cpu,
        cgroup: key.facts.cgroup,
        comm: key.facts.comm,
        weight: weight.weight,
        samples: weight.samples,
    };
    let mut sums: Vec<_> = sums.into_iter().map(sum).collect();
    sums.sort_unstable();
    sums
}
