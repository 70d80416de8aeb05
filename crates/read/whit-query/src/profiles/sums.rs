//! Sums of samples, and the blocks of time for the scatter of shares.

use std::collections::{BTreeMap, HashMap};
use whit_profile::model::{
    BlockContext, BlockWeight, Blocks, CommId, EventId, EventInfo, FacetsId, NodeId, Profile,
    SampleRow, ThreadId, ThreadInfo,
};
use whit_types::{Pid, Tid};

use super::Sample;

/// As many as reports have.
const MAX_BLOCKS: u64 = 64;
/// As in each profile whose rows nothing else tells apart.
const NO_FACETS: FacetsId = FacetsId(0);
/// The length with which they begin, as a power of two.
const FIRST_SHIFT: u32 = 20;

/// Sums of samples.
#[derive(Default)]
pub(super) struct Sums {
    events: Numbers,
    comms: Numbers,
    /// Samples and periods by event, command name and node.
    rows: BTreeMap<(u32, u32, u32), (u64, u64)>,
    /// Periods by block, then by the same.
    blocks: BTreeMap<u64, BTreeMap<(u32, u32, u32), u64>>,
}

/// Texts in the order in which they came.
#[derive(Default)]
struct Numbers {
    by_text: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Numbers {
    fn of(&mut self, text: &str) -> u32 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.by_text.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}

/// The length of blocks as a power of two: the shortest one that suffices, as reports have it.
pub(super) fn shift(first: u64, last: u64) -> u32 {
    let suffices = |shift: &u32| (last >> shift) - (first >> shift) < MAX_BLOCKS;
    (FIRST_SHIFT..u64::BITS - 1).find(suffices).unwrap_or(u64::BITS - 1)
}

impl Sums {
    pub(super) fn add(&mut self, sample: &Sample<'_>, node: NodeId, shift: u32) {
        let key = (self.events.of(sample.event), self.comms.of(sample.comm), node.0);
        let (samples, period) = self.rows.entry(key).or_default();
        *samples += 1;
        *period = period.saturating_add(sample.weight);
        let block = self.blocks.entry(sample.ts.max(0) as u64 >> shift).or_default();
        let sum = block.entry(key).or_default();
        *sum = sum.saturating_add(sample.weight);
    }

    pub(super) fn finish(self, profile: &mut Profile, shift: u32) {
        profile.events = self
            .events
            .texts
            .iter()
            .map(|name| EventInfo { name: name.as_str().into(), ..EventInfo::default() })
            .collect();
        profile.comms = self.comms.texts.iter().map(|name| name.as_str().into()).collect();
        // Nothing that is drawn here tells threads apart.
        profile.threads = vec![ThreadInfo { pid: Pid(0), tid: Tid(0), comm: CommId(0) }];
        profile.mapped_bytes = vec![None; profile.dsos.len()];
        profile.base_addresses = vec![None; profile.dsos.len()];
        for ((event, comm, node), (samples, period)) in self.rows {
            let info = &mut profile.events[event as usize];
            info.samples += samples;
            info.period = info.period.saturating_add(period);
            profile.rows.push(SampleRow {
                event: EventId(event),
                thread: ThreadId(0),
                comm: CommId(comm),
                facets: NO_FACETS,
                node: NodeId(node),
                samples,
                period,
            });
        }
        profile.stats.samples_by_event = profile.events.iter().map(|event| event.samples).collect();
        profile.blocks = Some(blocks(self.blocks, shift));
    }
}

fn blocks(sums: BTreeMap<u64, BTreeMap<(u32, u32, u32), u64>>, shift: u32) -> Blocks {
    let mut contexts: Vec<BlockContext> = Vec::new();
    let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
    let mut weight = |((event, comm, node), period): ((u32, u32, u32), u64)| {
        let context = *numbers.entry((event, comm)).or_insert_with(|| {
            contexts.push(BlockContext {
                event: EventId(event),
                thread: ThreadId(0),
                comm: CommId(comm),
                facets: NO_FACETS,
            });
            contexts.len() as u32 - 1
        });
        BlockWeight { context, node: NodeId(node), period }
    };
    let weights =
        sums.into_values().map(|block| block.into_iter().map(&mut weight).collect()).collect();
    Blocks { length_ns: 1 << shift, contexts, weights }
}
