//! Adding up samples: one thread's part.

use crate::blocks::deferred::{ChainedBlock, UserChain};
use crate::call_chain::chain::{Chain, ChainMaker};
use crate::call_chain::chain_entry::{ChainEntry, side_of_address};
use crate::call_chain::stops::StopCounts;
use crate::facets::{
    BranchFacet, DataPlace, Facets, RawCgroup, RawFacets, WantedData, WantedTrace,
};
use crate::first_pass::prepare::Prepared;
use crate::machine_model::process::{Epoch, SpaceId};
use crate::model::DsoId;
use crate::naming::lookup::{CodeLookup, Lookup};
use crate::naming::place_names::PlaceNames;
use crate::parallelism::Parallelism;
use crate::reading::Reading;
use crate::samples::{Counted, Samples};
use crate::second_pass::aggregate::{Aggregate, NO_NODE, SampleFacts};
use crate::selection::Selection;
use crate::sums::sample_period::period_of;
use whit_perfdata::attr::Attr;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, misc};
use whit_perfdata::sample::{BranchEntry, Sample};
use whit_types::{Avma, Pid, Tid, TimestampNs};

/// Size of a line of the cache on the machines that whit knows.
const CACHE_LINE_BYTES: u64 = 64;

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
    /// To decode into.
    #[inline]
    pub(crate) fn empty() -> ParsedSample<'r> {
        ParsedSample {
            event: 0,
            cpu_mode: 0,
            pid: Pid(-1),
            tid: Tid(-1),
            sample: Sample::default(),
            parallelism: None,
            deferred: None,
        }
    }

    /// Decodes a sample of `block` into an empty one, which stays where it is: a move copies some 450 bytes.
    #[inline]
    pub(crate) fn parse_into(
        &mut self,
        prepared: &'r Prepared,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<(), Unparsed> {
        let events = &prepared.events;
        let event = events.event_of_sample(record.body).ok_or(Unparsed::NoEvent)?;
        let layout = events.layout(event).ok_or(Unparsed::NoEvent)?;
        self.event = event;
        self.cpu_mode = record.header.cpu_mode();
        layout.parse_into(record.body, &mut self.sample).ok_or(Unparsed::Unreadable)?;
        block.bytes.complete(&mut self.sample);
        if let Some((pid, tid)) = self.sample.pid_tid {
            (self.pid, self.tid) = (pid, tid);
        }
        self.deferred = prepared.deferred_chain(&self.sample, block);
        Ok(())
    }

    /// Decodes a sample of `block`.
    #[inline]
    pub(crate) fn parse(
        prepared: &'r Prepared,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<ParsedSample<'r>, Unparsed> {
        let mut parsed = ParsedSample::empty();
        parsed.parse_into(prepared, record, block)?;
        Ok(parsed)
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
    selection: &'a Selection,
    question: Samples,
    prepared: &'a Prepared,
    maker: ChainMaker<'a>,
    chain: Chain,
    sums: Aggregate,
    stops: StopCounts,
    wants_facets: bool,
    /// Where facets name data or kernel functions.
    names: Option<PlaceNames<'a>>,
    text: Vec<u8>,
}

impl<'a> SampleSums<'a> {
    pub(crate) fn new(reading: Reading<'a>, question: &Samples, prepared: &'a Prepared) -> Self {
        SampleSums {
            recording: reading.recording,
            selection: reading.selection(),
            question: *question,
            prepared,
            maker: ChainMaker::new(prepared.chain_context(reading.options.max_stack)),
            chain: Chain::default(),
            sums: Aggregate::for_question(question),
            stops: StopCounts::default(),
            wants_facets: question.facets.any(),
            names: question.facets.needs_names().then(|| PlaceNames::new(prepared)),
            text: Vec::new(),
        }
    }

    /// Decodes a sample into an empty one. One that is shorter than its fields say is counted.
    #[inline]
    pub(crate) fn parse_into<'r>(
        &mut self,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
        parsed: &mut ParsedSample<'r>,
    ) -> Result<(), Unparsed>
    where
        'a: 'r,
    {
        parsed.parse_into(self.prepared, record, block).inspect_err(|error| {
            self.stops.unreadable_samples += u64::from(*error == Unparsed::Unreadable);
        })
    }

    /// Decodes a sample.
    #[inline]
    pub(crate) fn parse<'r>(
        &mut self,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<ParsedSample<'r>, Unparsed>
    where
        'a: 'r,
    {
        let mut parsed = ParsedSample::empty();
        self.parse_into(record, block, &mut parsed)?;
        Ok(parsed)
    }

    /// Whether a sample passes the filters by process, thread, call, CPU and cgroup.
    pub(crate) fn wants(&self, parsed: &ParsedSample<'_>, time: TimestampNs) -> bool {
        let prepared = self.prepared;
        self.selection.wants(parsed.pid, parsed.tid)
            && self.selection.wants_moment(parsed.tid, time)
            && prepared.filter.wants(&parsed.sample, time, &prepared.cgroups)
    }

    /// Adds a sample, and gives back the node of its call chain.
    pub(crate) fn add(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> u32 {
        match self.question.count {
            Counted::Branches => self.add_branches(parsed, time),
            Counted::Blocks => self.add_blocks(parsed, time),
            _ => return self.add_chain(parsed, time),
        }
        NO_NODE
    }

    fn add_chain(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> u32 {
        let ParsedSample { pid, .. } = *parsed;
        let place = self.make_chain(parsed, time);
        let ChainPlace { attr, epoch, .. } = place;
        self.stops.count(self.chain.stop);
        self.stops.foreign_stacks += u64::from(self.chain.is_foreign);
        self.stops.continued += u64::from(self.chain.is_continued);
        let facets = self.facets_number(parsed, time, epoch);
        let facts = self.facts(parsed, time, attr, epoch, facets);
        let maker = &self.maker;
        let locate = |entry| maker.locate(entry, pid, epoch, place.time);
        let node = self.sums.add(&facts, &self.chain.entries, locate);
        if self.question.examples > 0 {
            self.sums.add_example(&facts, node, parsed.sample.cpu);
        }
        node
    }

    #[inline]
    fn facts(
        &self,
        parsed: &ParsedSample<'_>,
        time: TimestampNs,
        attr: &Attr,
        epoch: Option<&Epoch>,
        facets: Option<u32>,
    ) -> SampleFacts {
        let ParsedSample { event, pid, tid, ref sample, .. } = *parsed;
        let period = match self.question.count {
            Counted::Branches | Counted::Blocks => 1,
            Counted::Weights => sample.weight.filter(|weight| *weight > 0).unwrap_or(1),
            Counted::Samples => period_of(attr, sample),
        };
        SampleFacts {
            event: event as u32,
            pid,
            tid,
            cpu: sample.cpu,
            comm: self.prepared.model.comm_at(pid, tid, time),
            facets,
            period,
            time: sample.time,
            moment: time,
            space: self.remembered_space(pid, epoch),
        }
    }

    #[inline]
    fn facets_number(
        &mut self,
        parsed: &ParsedSample<'_>,
        time: TimestampNs,
        epoch: Option<&'a Epoch>,
    ) -> Option<u32> {
        if !self.wants_facets {
            return None;
        }
        let facets = self.facets(parsed, time, epoch);
        Some(self.sums.facets_number(facets))
    }

    /// The state of the address space, where no JIT compiler may have replaced code.
    #[inline]
    fn remembered_space(&self, pid: Pid, epoch: Option<&Epoch>) -> Option<SpaceId> {
        let is_jitted = self.prepared.binaries.has_jitdump(pid);
        epoch.map(|epoch| epoch.id).filter(|_| !is_jitted)
    }

    /// Adds each branch of a sample.
    fn add_branches(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) {
        let ParsedSample { event, pid, ref sample, .. } = *parsed;
        let attr = &self.recording.events[event].attr;
        let epoch = self.prepared.model.space_at(pid, time);
        let space = self.remembered_space(pid, epoch);
        let wanted = self.question.facets.branches;
        let mut facets = self.facets(parsed, time, epoch);
        // perf weighs all branches of a sample by the cycles of the first.
        facets.weight = facets
            .weight
            .or(self.question.facets.weight.then_some(0))
            .map(|_| sample.branch_stack.iter().next().map_or(0, BranchEntry::cycles).max(1));
        let maker = &self.maker;
        let mut locate = |entry: ChainEntry| maker.locate(entry, pid, epoch, time);
        for branch in sample.branch_stack.iter() {
            let [from, to] = [branch.from, branch.to]
                .map(|address| ChainEntry::exact(address, side_of_address(address)));
            let mut number = |entry, is_wanted: bool| {
                is_wanted.then(|| self.sums.place_number(space, entry, &mut locate))
            };
            facets.branch = Some(BranchFacet {
                from: number(from, wanted.from),
                to: number(to, wanted.to),
                flags: branch.flags & wanted.flags,
            });
            let number = self.wants_facets.then(|| self.sums.facets_number(facets));
            let facts = self.facts(parsed, time, attr, epoch, number);
            self.sums.add(&facts, &[to], &mut locate);
        }
    }

    /// Adds the code in front of each branch of a sample whose cycles are known.
    fn add_blocks(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) {
        let ParsedSample { event, pid, ref sample, .. } = *parsed;
        let attr = &self.recording.events[event].attr;
        let epoch = self.prepared.model.space_at(pid, time);
        let space = self.remembered_space(pid, epoch);
        let maker = &self.maker;
        let mut locate = |entry: ChainEntry| maker.locate(entry, pid, epoch, time);
        // The newest branch stands first.
        let older = sample.branch_stack.iter().skip(1).map(Some).chain([None]);
        for (branch, before) in sample.branch_stack.iter().zip(older) {
            if branch.cycles() == 0 {
                continue;
            }
            let mut number = |address| {
                let entry = ChainEntry::exact(address, side_of_address(address));
                self.sums.place_number(space, entry, &mut locate)
            };
            let (end, start) = (number(branch.from), before.map(|before| number(before.to)));
            let branch_facet = BranchFacet { from: Some(end), to: start, flags: 0 };
            let facets = RawFacets { branch: Some(branch_facet), ..RawFacets::default() };
            let facets = Some(self.sums.facets_number(facets));
            let facts = self.facts(parsed, time, attr, epoch, facets);
            let facts = SampleFacts { period: branch.cycles(), ..facts };
            let entry = ChainEntry::exact(branch.from, side_of_address(branch.from));
            self.sums.add(&facts, &[entry], &mut locate);
        }
    }

    /// The facets of a sample that the rows are told apart by.
    fn facets(
        &mut self,
        parsed: &ParsedSample<'_>,
        time: TimestampNs,
        epoch: Option<&'a Epoch>,
    ) -> RawFacets {
        let wanted = self.question.facets;
        let sample = &parsed.sample;
        let cgroup = sample.cgroup.filter(|_| wanted.cgroup).map(|number| {
            let named = self.prepared.cgroups.at(number, time);
            named.map_or(RawCgroup::Unnamed(number), RawCgroup::Named)
        });
        let trace = (wanted.trace != WantedTrace::Nothing)
            .then(|| self.trace(parsed, time, epoch))
            .flatten();
        let data = (wanted.data != WantedData::Nothing).then(|| self.data(parsed, time, epoch));
        Facets {
            cpu: sample.cpu.filter(|_| wanted.cpu),
            cgroup,
            time: wanted
                .time_quantum_ns
                .zip(sample.time)
                .map(|(quantum, time)| TimestampNs(time.0 - time.0 % quantum)),
            weight: sample.weight.filter(|_| wanted.weight),
            parallelism: parsed.parallelism.filter(|_| wanted.parallelism),
            instruction_latency: wanted.instruction_latency.then_some(sample.instruction_latency),
            transaction: sample.transaction.filter(|_| wanted.transaction),
            code_page_size_bytes: sample.code_page_size_bytes.filter(|_| wanted.code_page_size),
            address: sample.ip.filter(|_| wanted.address),
            trace,
            data: data.flatten(),
            data_src: sample
                .data_src
                .filter(|_| wanted.data_src != 0)
                .map(|bits| bits & wanted.data_src),
            phys_addr: sample.phys_addr.filter(|_| wanted.phys_addr),
            data_page_size_bytes: sample.data_page_size_bytes.filter(|_| wanted.data_page_size),
            branch: None,
        }
    }

    fn lookup(&self, pid: Pid, time: TimestampNs, epoch: Option<&'a Epoch>) -> Option<Lookup<'_>> {
        let (prepared, maker) = (self.prepared, &self.maker);
        let names = self.names.as_ref()?;
        Some(Lookup { prepared, names, maker, pid, epoch, time })
    }

    /// The text of a tracepoint's record.
    fn trace(
        &mut self,
        parsed: &ParsedSample<'_>,
        time: TimestampNs,
        epoch: Option<&'a Epoch>,
    ) -> Option<u32> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let lookup = self.lookup(parsed.pid, time, epoch);
        let function_at = |address| lookup.as_ref()?.kernel_function_at(address);
        let tracepoints = &self.prepared.tracepoints;
        let raw = parsed.sample.raw.unwrap_or_default();
        let is_known = tracepoints.append(parsed.event, raw, &function_at, &mut text);
        let number = is_known.then(|| self.sums.texts.intern(&String::from_utf8_lossy(&text)));
        self.text = text;
        number
    }

    /// The data that a sample accessed.
    fn data(
        &mut self,
        parsed: &ParsedSample<'_>,
        time: TimestampNs,
        epoch: Option<&'a Epoch>,
    ) -> Option<DataPlace<u32>> {
        let address = match self.question.facets.data {
            WantedData::CacheLine => parsed.sample.addr? & !(CACHE_LINE_BYTES - 1),
            _ => parsed.sample.addr?,
        };
        let found = self.lookup(parsed.pid, time, epoch)?.data_at(Avma(address));
        let by_address = self.question.facets.data != WantedData::Dso;
        let symbol = found.function.filter(|_| by_address);
        Some(DataPlace {
            address: if by_address { address } else { 0 },
            dso: found.dso_index.map(|dso| DsoId(dso.0)),
            offset: if symbol.is_some() { found.function_offset } else { 0 },
            symbol: symbol.map(|symbol| self.sums.texts.intern(symbol.exact())),
            kernel: parsed.cpu_mode == misc::KERNEL,
            is_code: by_address && epoch.is_some_and(|e| e.map.find(Avma(address)).is_some()),
        })
    }

    /// The node of a sample's call chain, without counting the sample.
    pub(crate) fn node_of(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> u32 {
        let pid = parsed.pid;
        let ChainPlace { epoch, time, .. } = self.make_chain(parsed, time);
        let space = self.remembered_space(pid, epoch);
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
        match sample.ip.filter(|_| self.question.leaves) {
            Some(ip) => self.chain.set_leaf(ip, *cpu_mode),
            None => self.maker.make(sample, *cpu_mode, attr, epoch, deferred, &mut self.chain),
        }
        ChainPlace { attr, epoch, time }
    }

    /// The call chain that was made last.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The sums so far.
    pub(crate) fn sums(&self) -> &Aggregate {
        &self.sums
    }

    /// The count that a sample stands for.
    pub(crate) fn period(&self, parsed: &ParsedSample<'_>) -> u64 {
        period_of(&self.recording.events[parsed.event].attr, &parsed.sample)
    }

    /// Samples that are shorter than their fields say.
    pub(crate) fn unreadable(&self) -> u64 {
        self.stops.unreadable_samples
    }

    /// The sums, and why unwinding ended.
    pub(crate) fn finish(self) -> (Aggregate, StopCounts) {
        (self.sums, self.stops)
    }
}
