//! Adding up samples: one thread's part.

use crate::aggregate::{Aggregate, SampleFacts};
use crate::chain::{Chain, ChainMaker};
use crate::deferred::{ChainedBlock, UserChain};
use crate::facets::{Facets, RawCgroup, RawFacets};
use crate::options::LoadOptions;
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
    /// The user's part of the call chain, where it was recorded apart.
    pub(crate) deferred: Option<UserChain<'r>>,
}

/// Why a record is no sample that can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unparsed {
    /// It belongs to no event.
    NoEvent,
    /// It is shorter than its fields say.
    Unreadable,
}

impl<'r> ParsedSample<'r> {
    /// Decodes a sample of `block`.
    pub(crate) fn parse(
        prepared: &'r Prepared,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<ParsedSample<'r>, Unparsed> {
        let events = &prepared.events;
        let event = events.event_of_sample(record.body).ok_or(Unparsed::NoEvent)?;
        let layout = events.layout(event).ok_or(Unparsed::NoEvent)?;
        let sample = layout.parse(record.body).ok_or(Unparsed::Unreadable)?;
        let (pid, tid) = sample.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        let deferred = prepared.deferred_chain(&sample, block);
        Ok(ParsedSample { event, cpu_mode: record.header.cpu_mode(), pid, tid, sample, deferred })
    }
}

/// Where the addresses of a sample's call chain stand.
struct ChainPlace<'a> {
    attr: &'a Attr,
    epoch: Option<&'a Epoch>,
    time: TimestampNs,
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
    pub(crate) fn parse<'r>(
        &mut self,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<ParsedSample<'r>, Unparsed>
    where
        'a: 'r,
    {
        let parsed = ParsedSample::parse(self.prepared, record, block);
        let is_unreadable = matches!(parsed, Err(Unparsed::Unreadable));
        self.stops.unreadable_samples += u64::from(is_unreadable);
        parsed
    }

    /// Adds a sample, and gives back the node of its call chain.
    pub(crate) fn add(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> u32 {
        let prepared = self.prepared;
        let ParsedSample { event, pid, tid, ref sample, .. } = *parsed;
        let place = self.make_chain(parsed, time);
        let ChainPlace { attr, epoch, .. } = place;
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
            facets: self.options.facets.any().then(|| self.facets(sample, time)),
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
        let locate = |entry| maker.locate(entry, pid, epoch, place.time);
        self.sums.add(&facts, &self.chain.entries, locate)
    }

    /// The wanted ones.
    fn facets(&self, sample: &Sample<'_>, time: TimestampNs) -> RawFacets {
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
        }
    }

    /// The node of a sample's call chain, without counting the sample.
    pub(crate) fn node_of(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> u32 {
        let pid = parsed.pid;
        let ChainPlace { epoch, time, .. } = self.make_chain(parsed, time);
        let is_jitted = self.prepared.binaries.has_jitdump(pid);
        let space = epoch.map(|epoch| epoch.id).filter(|_| !is_jitted);
        let maker = &self.maker;
        let mut locate = |entry| maker.locate(entry, pid, epoch, time);
        self.sums.node_of(space, &self.chain.entries, &mut locate)
    }

    fn make_chain(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> ChainPlace<'a> {
        let attr = &self.recording.events[parsed.event].attr;
        // An exec may lie between a sample and the return to user mode.
        let deferred = parsed.deferred;
        let time = deferred.and_then(|chain| chain.time).unwrap_or(time);
        let epoch = self.prepared.model.space_at(parsed.pid, time);
        let ParsedSample { sample, cpu_mode, .. } = parsed;
        self.maker.make(sample, *cpu_mode, attr, epoch, deferred, &mut self.chain);
        ChainPlace { attr, epoch, time }
    }

    /// The sums, and why unwinding ended.
    pub(crate) fn finish(self) -> (Aggregate, StopCounts) {
        (self.sums, self.stops)
    }
}
