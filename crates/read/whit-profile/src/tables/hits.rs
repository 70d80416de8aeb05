//! Hits of tracepoints and probes with their fields, one by one in order of time.

use super::sample_facts::{FactFinder, SampleWanted, WantedFacts};
use super::{StreamEnd, TableSource};
use crate::in_order::ordered::{Batch, OrderedSamples};
use crate::samples::Samples;
use crate::second_pass::sample_sums::{ParsedSample, SampleSums};
use crate::stack_table::NodeAnnouncer;
use std::sync::atomic::Ordering;
use whit_types::TimestampNs;

/// A sample of an event with fields.
pub(super) struct Hit<'a> {
    pub(super) time: TimestampNs,
    /// Number of the event.
    pub(super) event: usize,
    /// Number of the thread.
    pub(super) thread: u32,
    /// The fields, as the event's format describes them.
    pub(super) raw: &'a [u8],
    /// Innermost call site, with stacks.
    pub(super) callsite: Option<u32>,
}

impl TableSource {
    /// Hands the hits of the events to `take` that are true in `wanted`, in order of time.
    pub(super) fn hits(
        &self,
        wanted: &[bool],
        stacks: bool,
        take: &mut dyn FnMut(Hit<'_>),
    ) -> Result<(), StreamEnd> {
        if stacks {
            self.fetch_companions()?;
        }
        let facts = WantedFacts { thread: true, ..WantedFacts::default() };
        let of_thread = SampleWanted { facts, stacks, ..SampleWanted::default() };
        let (reading, prepared) = (self.reading(), &self.prepared);
        let progress = reading.progress(1);
        let mut samples = OrderedSamples::within(prepared, None, reading.threads(), &progress)
            .of_events(Some(wanted.to_vec()));
        let mut sums = SampleSums::new(reading, &Samples::default(), prepared);
        let mut announcer = NodeAnnouncer::new(prepared, &self.stacks);
        let (mut numbers, mut new_nodes) = (Vec::new(), Vec::new());
        let mut finder = FactFinder::new(self, &of_thread);
        let mut batch = Batch::default();
        loop {
            samples.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for pending in batch.iter() {
                let mut parsed = ParsedSample::empty();
                let read = sums.parse_into(pending.record(), pending.block(), &mut parsed);
                let is_wanted = wanted.get(parsed.event).is_some_and(|is_wanted| *is_wanted);
                let (Ok(()), true, Some(raw)) = (read, is_wanted, parsed.sample.raw) else {
                    continue;
                };
                let thread = finder.find(&parsed, pending.time).and_then(|facts| facts.thread);
                let Some(thread) = thread else { continue };
                let node = stacks.then(|| sums.node_of(&parsed, pending.time));
                let callsite = node.and_then(|node| {
                    announcer.announce(sums.sums(), &mut new_nodes);
                    self.stacks.adopt(&mut numbers, &mut new_nodes);
                    numbers.get(node as usize).copied()
                });
                let (time, event) = (pending.time, parsed.event);
                take(Hit { time, event, thread, raw, callsite });
            }
            batch.clear();
        }
        self.troubles.unreadable.fetch_max(sums.unreadable(), Ordering::Relaxed);
        self.stacks.note_cut(sums.sums().cut_chains);
        Ok(())
    }
}
