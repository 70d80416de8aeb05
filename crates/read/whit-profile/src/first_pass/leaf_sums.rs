//! Samples added up in the first pass, where only the code that was executing counts.
//!
//! The process model is complete behind the first pass alone. So samples are added up by process and address, and each
//! sum knows the times of its first and its last sample. An address is looked up once for each sum then. Where it meant
//! different code between these times, nobody knows which samples belong to which code, and the second pass has to say.

use crate::blocks::deferred::defers;
use crate::call_chain::chain::side_of;
use crate::call_chain::chain_entry::Side;
use crate::interner::Interner;
use crate::precision::records_switches_and_clocks;
use crate::samples::{Counted, Samples};
use crate::selection::Selection;
use crate::sums::block_sums::BlockSums;
use crate::sums::row_key::{Context, NO_FACETS};
use crate::sums::sample_period::period_of;
use whit_perfdata::attr::SampleType;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::{Sample, SampleLayout};
use whit_perfdata::sample_head::{HeadLayout, SampleHead};
use whit_types::{Avma, Pid, Tid, TimestampNs};

/// Sums that all streams together may have. A recording with more is read twice.
const MAX_LEAVES: usize = 1 << 18;

/// Blocks of time tell sums apart by their numbers alone.
const NO_CONTEXT: Context = Context { event: 0, thread: 0, comm: 0, facets: NO_FACETS };

/// Samples with these in common are one sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LeafKey {
    pub(crate) event: u32,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) side: Side,
    pub(crate) ip: Avma,
}

/// Some samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    pub(crate) samples: u64,
    pub(crate) period: u64,
    pub(crate) first: TimestampNs,
    pub(crate) last: TimestampNs,
}

impl Leaf {
    #[inline]
    fn add(&mut self, other: Leaf) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// How samples of an event are read.
#[derive(Clone, Copy, Debug)]
struct LeafEvent {
    /// Where all their fields stand at fixed places.
    head: Option<HeadLayout>,
    /// The count that a sample without a period stands for.
    period: u64,
}

/// All samples.
#[derive(Debug)]
pub(crate) struct Leaves {
    pub(crate) keys: Vec<LeafKey>,
    /// In the order of the keys.
    pub(crate) leaves: Vec<Leaf>,
    /// Nodes are numbers of keys.
    pub(crate) blocks: Option<BlockSums>,
    pub(crate) unreadable: u64,
}

/// The samples of one stream, or of all.
#[derive(Clone, Debug)]
pub(crate) struct LeafSums {
    events: Vec<LeafEvent>,
    keys: Interner<LeafKey>,
    /// By number of the key.
    leaves: Vec<Leaf>,
    /// Where they are wanted; the node is the number of the key.
    blocks: Option<BlockSums>,
    max_leaves: usize,
    /// Samples that are shorter than their fields say.
    unreadable: u64,
    /// The sums do not have all samples.
    is_over: bool,
}

impl LeafSums {
    /// Nothing yet. `None` where the profile needs more of samples than sums tell.
    pub(crate) fn new(
        recording: &Recording,
        events: &EventTable,
        selection: &Selection,
        question: &Samples,
    ) -> Option<LeafSums> {
        let needed = SampleType::IP | SampleType::TID | SampleType::TIME;
        let has_leaf =
            |event: &EventDesc| event.attr.sample_type.contains(needed) && !defers(&event.attr);
        let suffices = wants_sums_alone(selection, question)
            && recording.events.iter().all(has_leaf)
            && !records_switches_and_clocks(recording);
        let of_event = |(number, event): (usize, &EventDesc)| LeafEvent {
            head: events.layout(number).and_then(|layout| HeadLayout::new(layout.sample_type)),
            period: period_of(&event.attr, &Sample::default()),
        };
        suffices.then(|| LeafSums {
            events: recording.events.iter().enumerate().map(of_event).collect(),
            keys: Interner::default(),
            leaves: Vec::new(),
            blocks: question.blocks.then(BlockSums::default),
            max_leaves: MAX_LEAVES / recording.streams.len().max(1),
            unreadable: 0,
            is_over: false,
        })
    }

    /// Adds the samples of known events in a block.
    pub(crate) fn see_block(&mut self, events: &EventTable, block: &[u8]) {
        let mut rest = block;
        while let Some((record, tail)) = RawRecord::split(rest)
            && !self.is_over
        {
            if record.header.kind == record_type::SAMPLE {
                self.see(events, record);
            }
            rest = tail;
        }
    }

    #[inline]
    fn see(&mut self, events: &EventTable, record: RawRecord<'_>) {
        let event = events.event_of_sample(record.body);
        let Some((number, known)) = event.and_then(|event| Some((event, self.events.get(event)?)))
        else {
            return;
        };
        let head = match &known.head {
            Some(head) => head.parse(record.body),
            None => events.layout(number).and_then(|layout| head_of(layout, record.body)),
        };
        let Some(head) = head else {
            self.unreadable += 1;
            return;
        };
        let SampleHead { ip, pid_tid: (pid, tid), time, period } = head;
        let period = period.unwrap_or(known.period);
        let side = side_of(record.header.cpu_mode());
        let key = LeafKey { event: number as u32, pid, tid, side, ip };
        let leaf = Leaf { samples: 1, period, first: time, last: time };
        self.add_leaf(key, leaf);
    }

    #[inline]
    fn add_leaf(&mut self, key: LeafKey, leaf: Leaf) {
        let Some(number) = self.number_of(key, leaf) else {
            self.give_up();
            return;
        };
        if let Some(blocks) = &mut self.blocks {
            blocks.add(leaf.first, NO_CONTEXT, number, leaf.period);
        }
    }

    /// Adds to a sum, and gives back its number. `None` where there is no room for another one.
    #[inline]
    fn number_of(&mut self, key: LeafKey, leaf: Leaf) -> Option<u32> {
        let is_full = self.leaves.len() >= self.max_leaves;
        let number = if is_full { self.keys.get(&key)? } else { self.keys.intern(key) };
        match self.leaves.get_mut(number as usize) {
            Some(known) => known.add(leaf),
            None => self.leaves.push(leaf),
        }
        Some(number)
    }

    fn give_up(&mut self) {
        self.is_over = true;
        (self.keys, self.leaves, self.blocks) = (Interner::default(), Vec::new(), None);
    }

    /// Takes over the samples of another stream.
    pub(crate) fn merge(&mut self, other: LeafSums) {
        self.max_leaves = MAX_LEAVES;
        self.unreadable += other.unreadable;
        let numbers: Option<Vec<u32>> = (!self.is_over && !other.is_over)
            .then(|| {
                let leaves = other.keys.values.iter().zip(&other.leaves);
                leaves.map(|(key, leaf)| self.number_of(*key, *leaf)).collect()
            })
            .flatten();
        let Some(numbers) = numbers else {
            self.give_up();
            return;
        };
        if let (Some(blocks), Some(new)) = (&mut self.blocks, other.blocks) {
            blocks.merge(new, &[NO_CONTEXT.thread], &[], &numbers);
        }
    }

    /// The sums of all samples, where they are all there.
    pub(crate) fn finish(self) -> Option<Leaves> {
        let is_whole = !self.is_over && !self.blocks.as_ref().is_some_and(BlockSums::is_crowded);
        let LeafSums { keys, leaves, blocks, unreadable, .. } = self;
        is_whole.then_some(Leaves { keys: keys.values, leaves, blocks, unreadable })
    }
}

/// The same fields of a sample that has others too. `None` where it is shorter than they all say.
fn head_of(layout: &SampleLayout, body: &[u8]) -> Option<SampleHead> {
    let mut sample = Sample::default();
    layout.parse_into(body, &mut sample)?;
    // The event has all three.
    let Sample { ip: Some(ip), pid_tid: Some(pid_tid), time: Some(time), period, .. } = sample
    else {
        return None;
    };
    Some(SampleHead { ip, pid_tid, time, period })
}

/// Whether weights by thread and place are all that a profile shall have.
fn wants_sums_alone(selection: &Selection, question: &Samples) -> bool {
    question.leaves
        && question.count == Counted::Samples
        && !question.facets.any()
        // Blocks of time divide the time of all samples.
        && !(question.blocks && selection.chooses_tasks())
        && question.singles.is_none()
        && question.examples == 0
        && question.parallelism.is_none()
        && selection.time.is_none()
        && selection.calls.is_none()
        && selection.cpus.is_empty()
        && selection.cgroups.is_empty()
}
