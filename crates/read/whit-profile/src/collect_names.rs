//! Collects the names for a recording that is to carry them.
//!
//! Reading a recording asks binaries for names. The symbolizer that the readings of views share notes each answer. This
//! pass looks at each further address that any view may show: call chains, branches, data.

use crate::blocks::deferred::ChainedBlock;
use crate::blocks::work::WorkQueue;
use crate::call_chain::chain::{Chain, ChainMaker, CodePlace};
use crate::call_chain::chain_entry::{ChainEntry, side_of_address};
use crate::error::LoadError;
use crate::facets::{WantedData, WantedTrace};
use crate::first_pass::prepare::{Needs, Prepared, prepare};
use crate::machine_model::binaries::key_of;
use crate::machine_model::dso_table::RecordedKind;
use crate::naming::code::SourceLine;
use crate::naming::lookup::{CodeLookup, Lookup};
use crate::naming::place_names::PlaceNames;
use crate::naming::place_symbols::PlaceNamer;
use crate::progress::Progress;
use crate::reading::{Question, Reading, WHOLE_STACK};
use crate::samples::Samples;
use crate::second_pass::sample_sums::ParsedSample;
use crate::tracepoints::Tracepoints;
use rustc_hash::FxHashSet;
use whit_perfdata::attr::SampleType;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{Block, BlockReader};
use whit_symbolize::NamesWriter;
use whit_types::{Avma, TimestampNs};

/// The names of the frames of all samples, whatever the reading selects, with each other name that earlier readings from
/// the same sources noted ([`ReadOptions::with_notes`](crate::ReadOptions::with_notes)), in the form that recordings
/// carry.
#[derive(Clone, Copy, Debug)]
pub struct NotedNames<'a> {
    /// Texts of source lines to add.
    pub lines: &'a [(SourceLine, String)],
}

impl Question for NotedNames<'_> {
    type Answer = Vec<u8>;
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<Vec<u8>, LoadError> {
        let (recording, progress) = (reading.recording, reading.progress(2));
        let mut samples = Samples::default();
        let has_data = |event: &EventDesc| event.attr.sample_type.contains(SampleType::ADDR);
        if recording.events.iter().any(has_data) {
            samples.facets.data = WantedData::Address;
        }
        let mut prepared = prepare(reading, Needs::of(samples), &progress)?;
        prepared.tracepoints = Tracepoints::of(recording, WantedTrace::Text);
        let places = all_places(reading, &prepared, &progress)?;
        name_all(&prepared, &places);
        let mut writer = NamesWriter::new();
        add_answers(&mut writer, &prepared);
        for (line, text) in self.lines {
            writer.add_line(&line.file, line.line, text);
        }
        Ok(writer.finish())
    }
}

/// The distinct places of all samples, by binary.
fn all_places(
    reading: Reading<'_>,
    prepared: &Prepared,
    progress: &Progress<'_>,
) -> Result<Vec<CodePlace>, LoadError> {
    let queue = WorkQueue::new(&prepared.scan.plans);
    let worker = || Worker::new(reading.recording, prepared).run(&queue, progress);
    let (own, others) = prepared.kernel_load.run_during(reading.threads(), worker);
    let mut places = own?;
    for other in others {
        places.extend(other.map_err(|_| LoadError::WorkerDied)??);
    }
    prepared.check_dumps()?;
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|place| (place.dso, place.place));
    Ok(places)
}

/// Has all places named, so that the answers are noted. Debug information is freed binary by binary.
fn name_all(prepared: &Prepared, places: &[CodePlace]) {
    let namer = PlaceNamer::new(&prepared.dsos, &prepared.binaries);
    for of_binary in places.chunk_by(|a, b| a.dso == b.dso) {
        for place in of_binary {
            let _ = namer.name(place);
        }
        if let Some(binary) = of_binary.first().and_then(|place| prepared.binaries.get(place.dso)) {
            binary.symbols.release_debug_info();
        }
    }
}

/// Adds the answers of all binaries that were asked.
fn add_answers(writer: &mut NamesWriter, prepared: &Prepared) {
    let mut known = FxHashSet::default();
    for (index, dso) in prepared.dsos.iter() {
        let Some(key) = key_of(dso) else { continue };
        // Hints on runtimes ask whether code of a process has names at all.
        let is_compiled = matches!(dso.kind, RecordedKind::Anonymous(_) | RecordedKind::JitDump);
        if is_compiled {
            let _ = prepared.binaries.get(index);
        }
        if let Some(symbols) = prepared.binaries.opened(index)
            && known.insert(key.clone())
        {
            writer.add(&key, &symbols);
        }
    }
}

/// Finds the places of samples. One per thread.
struct Worker<'a> {
    recording: &'a Recording,
    prepared: &'a Prepared,
    maker: ChainMaker<'a>,
    names: PlaceNames<'a>,
    chain: Chain,
    places: FxHashSet<CodePlace>,
    text: Vec<u8>,
}

impl<'a> Worker<'a> {
    fn new(recording: &'a Recording, prepared: &'a Prepared) -> Worker<'a> {
        Worker {
            recording,
            prepared,
            maker: ChainMaker::new(prepared.chain_context(WHOLE_STACK)),
            names: PlaceNames::new(prepared),
            chain: Chain::default(),
            places: FxHashSet::default(),
            text: Vec::new(),
        }
    }

    fn run(
        mut self,
        queue: &WorkQueue<'_>,
        progress: &Progress<'_>,
    ) -> Result<FxHashSet<CodePlace>, LoadError> {
        let (mut reader, mut block) = (BlockReader::default(), Block::default());
        while let Some(position) = queue.next(&mut reader, &mut block, progress)? {
            let chains = self.prepared.deferred.of_block(&self.prepared.events, &block);
            let whole = ChainedBlock { bytes: &block, chains: &chains };
            let mut rest = &block[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                if record.header.kind == record_type::SAMPLE {
                    let at = (block.len() - rest.len()) as u64;
                    self.sample(record, whole, TimestampNs(position + at));
                }
                rest = tail;
            }
        }
        Ok(self.places)
    }

    fn sample(&mut self, record: RawRecord<'_>, block: ChainedBlock<'_>, position: TimestampNs) {
        let prepared = self.prepared;
        let Ok(parsed) = ParsedSample::parse(prepared, record, block) else { return };
        let (pid, sample) = (parsed.pid, &parsed.sample);
        let time = sample.time.unwrap_or(position);
        let chain_time = parsed.deferred.and_then(|chain| chain.time).unwrap_or(time);
        let epoch = prepared.model.space_at(pid, chain_time);
        let attr = &self.recording.events[parsed.event].attr;
        let cpu_mode = parsed.cpu_mode;
        self.maker.make(sample, cpu_mode, attr, epoch, parsed.deferred, &mut self.chain);
        for entry in &self.chain.entries {
            self.places.insert(self.maker.locate(*entry, pid, epoch, chain_time));
        }
        let epoch = prepared.model.space_at(pid, time);
        for branch in sample.branch_stack.iter() {
            for address in [branch.from, branch.to] {
                let entry = ChainEntry::exact(address, side_of_address(address));
                self.places.insert(self.maker.locate(entry, pid, epoch, time));
            }
        }
        let (names, maker) = (&self.names, &self.maker);
        let lookup = Lookup { prepared, names, maker, pid, epoch, time };
        if let Some(address) = sample.addr.filter(|address| *address != 0) {
            let _ = lookup.data_at(Avma(address));
        }
        self.text.clear();
        let function_at = |address| lookup.kernel_function_at(address);
        let raw = sample.raw.unwrap_or_default();
        let _ = prepared.tracepoints.append(parsed.event, raw, &function_at, &mut self.text);
    }
}
