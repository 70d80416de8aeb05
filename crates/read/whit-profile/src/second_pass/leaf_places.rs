//! From the samples of addresses to those of places in binaries, with the whole process model.

use crate::call_chain::chain::{ChainMaker, CodePlace};
use crate::call_chain::chain_entry::{ChainEntry, Side};
use crate::call_chain::stops::StopCounts;
use crate::first_pass::leaf_sums::{Leaf, LeafKey, Leaves};
use crate::first_pass::prepare::Prepared;
use crate::reading::Reading;
use crate::samples::Samples;
use crate::second_pass::aggregate::{Aggregate, LeafFacts, Weight};

/// The sums by code. `None` where they do not tell the code of all samples.
pub(crate) fn sums_of(
    leaves: Leaves,
    reading: Reading<'_>,
    question: &Samples,
    prepared: &Prepared,
) -> Option<(Aggregate, StopCounts)> {
    let selection = reading.selection();
    let maker = ChainMaker::new(prepared.chain_context(reading.options.max_stack));
    let mut sums = Aggregate::for_question(question);
    let mut rows = Vec::with_capacity(leaves.leaves.len());
    for (key, leaf) in leaves.keys.iter().zip(&leaves.leaves) {
        let mut row = None;
        if selection.wants(key.pid, key.tid) {
            let facts = LeafFacts { event: key.event, pid: key.pid, tid: key.tid };
            let weight = Weight { samples: leaf.samples, period: leaf.period };
            let place = place_of(key, leaf, prepared, &maker)?;
            let key = sums.add_leaf(&facts, weight, (leaf.first, leaf.last), place);
            row = Some((key.context(), key.node));
        }
        rows.push(row);
    }
    sums.blocks = leaves.blocks.map(|blocks| blocks.moved(&rows));
    let mut stops = StopCounts::default();
    stops.unreadable_samples = leaves.unreadable;
    Some((sums, stops))
}

/// The code that an address was at all times from the first sample to the last. `None` where it was not always the same.
fn place_of(
    key: &LeafKey,
    leaf: &Leaf,
    prepared: &Prepared,
    maker: &ChainMaker<'_>,
) -> Option<CodePlace> {
    let entry = ChainEntry::exact(key.ip, key.side);
    let locate = |epoch| maker.locate(entry, key.pid, epoch, leaf.first);
    if key.side != Side::User {
        return Some(locate(None));
    }
    // A JIT compiler may have replaced code within an epoch.
    if leaf.first != leaf.last && prepared.binaries.has_jitdump(key.pid) {
        return None;
    }
    let mut epochs = prepared.model.spaces_between(key.pid, leaf.first, leaf.last).iter();
    let place = locate(epochs.next());
    epochs.all(|epoch| locate(Some(epoch)) == place).then_some(place)
}
