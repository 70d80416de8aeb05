//! Adding up samples: one thread's part.

use crate::aggregate::{Aggregate, SampleFacts};
use crate::chain::{Chain, ChainMaker};
use crate::facets::{Facets, RawCgroup, RawFacets};
use crate::options::LoadOptions;
use crate::parallelism::Parallelism;
use crate::prepare::Prepared;
use crate::process::Epoch;
use crate::stops::StopCounts;
use whit_perfdata::attr::{Attr, AttrFlags};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::RawRecord;
use whit_perfdata::sample::Sample;
use whit_types::{Pid, Tid, TimestampNs};

/// A sample of a known event.
pub(crate) struct ParsedSample<'r> {
    /// Index of the event.
    pub(crate) event: usize,
    pub(crate) cpu_mode: u16,
    pub(crate) pid: Pid,
    pub(crate) tid: Tid,
    pub(crate) sample: Sample<'r>,
    /// Where the reader knows it.
    pub(crate) parallelism: Option<Parallelism>,
}

/// Makes call chains of samples, and adds them up.
pub(crate) struct SampleSums<'a> {
    recording: &'a Recording,
    options: &'a LoadOptions,
    prepared: &'a Prepared,
    maker: ChainMaker<'a>,
    chain: Chain,
    sums: Aggregate,
    stops: StopCounts,
}

impl<'a> SampleSums<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        options: &'a LoadOptions,
        prepared: &'a Prepared,
    ) -> Self {
        SampleSums {
            recording,
            options,
            prepared,
            maker: ChainMaker::new(prepared.chain_context(options.max_stack)),
            chain: Chain::default(),
            sums: Aggregate::with_blocks(options.blocks),
            stops: StopCounts::default(),
        }
    }

    /// Decodes a sample. One that is shorter than its fields say is counted.
    pub(crate) fn parse<'r>(&mut self, record: RawRecord<'r>) -> Option<ParsedSample<'r>> {
        let events = &self.prepared.events;
        let event = events.event_of_sample(record.body)?;
        let sample = events.layout(event)?.parse(record.body);
        self.stops.unreadable_samples += u64::from(sample.is_none());
        let sample = sample?;
        let (pid, tid) = sample.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        let cpu_mode = record.header.cpu_mode();
        Some(ParsedSample { event, cpu_mode, pid, tid, sample, parallelism: None })
    }

    /// Whether a sample passes the filters by process, thread, CPU and cgroup.
    pub(crate) fn wants(&self, parsed: &ParsedSample<'_>, time: TimestampNs) -> bool {
        let prepared = self.prepared;
        self.options.wants(parsed.pid, parsed.tid)
            && prepared.filter.wants(&parsed.sample, time, &prepared.cgroups)
    }

    /// Adds a sample, and gives back the node of its call chain.
    pub(crate) fn add(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> u32 {
        let prepared = self.prepared;
        let ParsedSample { event, pid, tid, ref sample, .. } = *parsed;
        let (attr, epoch) = self.make_chain(parsed, time);
        self.stops.count(self.chain.stop);
        self.stops.foreign_stacks += u64::from(self.chain.is_foreign);
        self.stops.continued += u64::from(self.chain.is_continued);
        let is_jitted = prepared.binaries.has_jitdump(pid);
        let fixed_period = !attr.has(AttrFlags::FREQ);
        let facts = SampleFacts {
            event: event as u32,
            pid,
            tid,
            comm: prepared.model.comm_at(pid, tid, time),
            facets: self.options.facets.any().then(|| self.facets(parsed, time)),
            period: sample.period.unwrap_or(if fixed_period {
                attr.sample_period_or_freq
            } else {
                1
            }),
            time: sample.time,
            moment: time,
            space: epoch.map(|epoch| epoch.id).filter(|_| !is_jitted),
        };
        let maker = &self.maker;
        self.sums.add(&facts, &self.chain.entries, |entry| maker.locate(entry, pid, epoch, time))
    }

    /// The wanted ones.
    fn facets(&self, parsed: &ParsedSample<'_>, time: TimestampNs) -> RawFacets {
        let sample = &parsed.sample;
        let wanted = self.options.facets;
        let cgroup = sample.cgroup.filter(|_| wanted.cgroup).map(|number| {
            let named = self.prepared.cgroups.at(number, time);
            named.map_or(RawCgroup::Unnamed(number), RawCgroup::Named)
        });
        Facets {
            cpu: sample.cpu.filter(|_| wanted.cpu),
            cgroup,
            time: wanted
                .time_quantum_ns
                .zip(sample.time)
                .map(|(quantum, time)| TimestampNs(time.0 - time.0 % quantum)),
            weight: sample.weight.filter(|_| wanted.weight),
            parallelism: parsed.parallelism.filter(|_| wanted.parallelism),
        }
    }

    /// The node of a sample's call chain, without counting the sample.
    pub(crate) fn node_of(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> u32 {
        let pid = parsed.pid;
        let (_, epoch) = self.make_chain(parsed, time);
        let is_jitted = self.prepared.binaries.has_jitdump(pid);
        let space = epoch.map(|epoch| epoch.id).filter(|_| !is_jitted);
        let maker = &self.maker;
        let mut locate = |entry| maker.locate(entry, pid, epoch, time);
        self.sums.node_of(space, &self.chain.entries, &mut locate)
    }

    fn make_chain(
        &mut self,
        parsed: &ParsedSample<'_>,
        time: TimestampNs,
    ) -> (&'a Attr, Option<&'a Epoch>) {
        let attr = &self.recording.events[parsed.event].attr;
        let epoch = self.prepared.model.space_at(parsed.pid, time);
        self.maker.make(&parsed.sample, parsed.cpu_mode, attr, epoch, &mut self.chain);
        (attr, epoch)
    }

    /// The sums, and why unwinding ended.
    pub(crate) fn finish(self) -> (Aggregate, StopCounts) {
        (self.sums, self.stops)
    }
}
