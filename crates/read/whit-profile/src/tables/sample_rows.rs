//! Samples as a stream, in order of time.

use super::sample_facts::{FactFinder, SampleWanted};
use super::{StreamEnd, TableSource};
use crate::call_chain::stops::StopCounts;
use crate::in_order::ordered::{Batch, OrderedSamples, PendingSample};
use crate::in_order::ordered_pool::{self, in_turn};
use crate::samples::Samples;
use crate::second_pass::sample_sums::{ParsedSample, SampleSums};
use crate::stack_table::{NewNode, NodeAnnouncer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use whit_types::{CpuId, TimestampNs};
use whit_unwind::StopReason;

/// The moment at which an event's period ended, as far as tables show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleEntry {
    /// By the clock of the recording; its position in the recording where it has none.
    pub time: TimestampNs,
    /// Number of the event.
    pub event: u32,
    /// Number of the thread; absent where the sample does not say.
    pub thread: Option<u32>,
    /// Number of the thread's process.
    pub process: Option<u32>,
    /// Where the sample was taken.
    pub cpu: Option<CpuId>,
    /// `PERF_RECORD_MISC_CPUMODE_*`.
    pub cpu_mode: u16,
    /// The count that the sample stands for.
    pub weight: u64,
    /// Number of the cgroup.
    pub cgroup: Option<u32>,
    /// Number of the command name that the thread had at the time.
    pub comm: Option<u32>,
    /// Innermost call site.
    pub callsite: Option<u32>,
    /// Why unwinding ended, where a stack was unwound.
    pub unwind_end: Option<StopReason>,
}

#[derive(Default)]
struct Job {
    samples: Batch,
    rows: Vec<SampleEntry>,
    new_nodes: Vec<NewNode>,
    worker: usize,
    unreadable: u64,
    foreign_stacks: u64,
    cut_chains: u64,
}

struct Worker<'a> {
    number: usize,
    wanted: &'a SampleWanted,
    finder: FactFinder<'a>,
    sums: SampleSums<'a>,
    announcer: NodeAnnouncer<'a>,
    foreign_stacks: u64,
}

impl ordered_pool::Worker for Worker<'_> {
    type Job = Job;
    type Rest = ();

    fn run(&mut self, job: &mut Job, _: &mut dyn FnMut(Job)) {
        job.rows.clear();
        for pending in job.samples.iter() {
            job.rows.extend(self.row(&pending));
        }
        self.announcer.announce(self.sums.sums(), &mut job.new_nodes);
        job.worker = self.number;
        job.unreadable = self.sums.unreadable();
        job.foreign_stacks = self.foreign_stacks;
        job.cut_chains = self.sums.sums().cut_chains;
        // The blocks that the samples stand in are free again.
        job.samples.clear();
    }

    fn end(self) {}
}

impl Worker<'_> {
    fn row(&mut self, pending: &PendingSample<'_>) -> Option<SampleEntry> {
        let mut parsed = ParsedSample::empty();
        self.sums.parse_into(pending.record(), pending.block(), &mut parsed).ok()?;
        let (wanted, time) = (self.wanted, pending.time);
        let facts = self.finder.find(&parsed, time)?;
        let node = wanted.stacks.then(|| self.sums.node_of(&parsed, time));
        let chain = self.sums.chain();
        if wanted.stacks {
            self.foreign_stacks += u64::from(chain.is_foreign);
        }
        Some(SampleEntry {
            time,
            event: parsed.event as u32,
            thread: facts.thread,
            process: facts.process,
            cpu: parsed.sample.cpu,
            cpu_mode: parsed.cpu_mode,
            weight: self.sums.period(&parsed),
            cgroup: facts.cgroup,
            comm: facts.comm,
            callsite: node,
            unwind_end: chain.stop.filter(|_| wanted.stacks),
        })
    }
}

impl TableSource {
    /// Hands batches of samples to `take`, in order of time, until it says no.
    ///
    /// # Errors
    /// The recording changed, or `take` said no.
    pub fn samples(
        &self,
        wanted: &SampleWanted,
        take: &mut dyn FnMut(&mut Vec<SampleEntry>) -> bool,
    ) -> Result<(), StreamEnd> {
        if wanted.stacks {
            self.fetch_companions()?;
        }
        let (reading, prepared) = (self.reading(), &self.prepared);
        let (threads, progress) = (reading.threads(), reading.progress(1));
        let mut samples = OrderedSamples::within(prepared, wanted.time, threads, &progress)
            .of_events(wanted.events_of(&self.recording));
        let make = |number| Worker {
            number,
            wanted,
            finder: FactFinder::new(self, wanted),
            sums: SampleSums::new(reading, &Samples::default(), prepared),
            announcer: NodeAnnouncer::new(prepared, &self.stacks),
            foreign_stacks: 0,
        };
        let fill = |job: &mut Job| {
            samples.next_batch(&mut job.samples)?;
            Ok(!job.samples.is_empty())
        };
        let workers = threads.max(1);
        let mut numbers: Vec<Vec<u32>> = vec![Vec::new(); workers];
        let mut sums = vec![(0, 0, 0); workers];
        let mut stops = StopCounts::of_chained(&self.recording.features);
        let take_job = |job: &mut Job| {
            let numbers = &mut numbers[job.worker];
            self.stacks.adopt(numbers, &mut job.new_nodes);
            for row in &mut job.rows {
                row.callsite = row.callsite.and_then(|node| numbers.get(node as usize).copied());
                stops.count(row.unwind_end);
            }
            sums[job.worker] = (job.unreadable, job.foreign_stacks, job.cut_chains);
            if job.rows.is_empty() || take(&mut job.rows) {
                Ok(())
            } else {
                Err(StreamEnd::Stopped)
            }
        };
        in_turn(workers, make, || fill, take_job)?;
        prepared.check_dumps()?;
        let unreadable = sums.iter().map(|sums| sums.0).sum();
        self.troubles.unreadable.fetch_max(unreadable, Ordering::Relaxed);
        let foreign_stacks = sums.iter().map(|sums| sums.1).sum();
        self.troubles.foreign_stacks.fetch_max(foreign_stacks, Ordering::Relaxed);
        self.troubles.disordered.fetch_max(samples.disordered(), Ordering::Relaxed);
        self.stacks.note_cut(sums.iter().map(|sums| sums.2).sum());
        if wanted.stacks
            && wanted.is_everything()
            && let Ok(mut ends) = self.unwind_ends.lock()
        {
            *ends = Some(stops.iter().collect());
        }
        Ok(())
    }

    /// A command name by its number.
    pub fn comm_name(&self, number: u32) -> Option<&Arc<str>> {
        self.prepared.model.comm_names().get(number as usize)
    }
}
