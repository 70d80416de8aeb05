//! A recording whose stack dumps are unwound once and written back as call chains.
//!
//! Blocks keep their order, and all records but the samples with dumps stay as they are, so ledger, losses, switches
//! and mappings are those of the original. A reader makes the same chain of the new sample that it makes of the dump.

use crate::blocks::stream_plan::PlannedBlock;
use crate::blocks::work::Run;
use crate::call_chain::chain::{Chain, ChainMaker};
use crate::call_chain::chain_entry::{ChainEntry, Side};
use crate::call_chain::stops::StopCounts;
use crate::error::LoadError;
use crate::first_pass::prepare::{Needs, Prepared, prepare};
use crate::in_order::ordered_pool::{self, in_turn};
use crate::progress::Progress;
use crate::reading::{Question, Reading};
use crate::samples::Samples;
use crate::warning::Warning;
use std::io;
use whit_perfdata::chained::{ChainedForm, UserAddress};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::context;
use whit_perfdata::stream::{Block, BlockRange, BlockReader};
use whit_perfdata::unwound::Unwound;
use whit_types::{Pid, TimestampNs};

/// Why a recording could not be written with call chains.
#[derive(Debug, thiserror::Error)]
pub enum ChainedError {
    /// The recording could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The output could not be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// It has something that would be lost.
    #[error("the recording has AUX area data, which cannot be written again")]
    Aux,
}

/// Counts of a written recording.
#[derive(Clone, Debug, Default)]
pub struct Chained {
    /// Written records.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Samples of events with dumps, which have chains now.
    pub samples: u64,
    /// How unwinding went; what the recording says of earlier unwinding is part of it.
    pub unwound: Unwound,
    /// Losses and defects of the original.
    pub warnings: Vec<Warning>,
}

/// The records of a whole recording with call chains in the place of stack dumps, whatever the reading selects. Samples
/// have the form of [`chained_events`](whit_perfdata::chained::chained_events).
pub struct ChainedRecords<'a> {
    /// Takes the records block by block, with the number of their stream; the streams one after the other.
    pub put: &'a mut dyn FnMut(usize, &[u8]) -> io::Result<()>,
}

impl Question for ChainedRecords<'_> {
    type Answer = Chained;
    type Error = ChainedError;

    fn read(self, reading: Reading<'_>) -> Result<Chained, ChainedError> {
        let (recording, progress) = (reading.recording, reading.progress(2));
        let samples = Samples { names_kernel: false, ..Samples::default() };
        let needs = Needs { keeps_reads_whole: true, ..Needs::of(samples) };
        let prepared = prepare(reading, needs, &progress)?;
        if prepared.scan.wrapped.auxtrace > 0 {
            return Err(ChainedError::Aux);
        }
        let mut blocks = Blocks::new(&prepared);
        let mut chained = Chained::default();
        let make = |_| Worker::new(recording, &prepared, reading.options.max_stack);
        let fill = |job: &mut Job| blocks.next(job, &progress);
        let take = |job: &mut Job| {
            job.failed.take().map_or(Ok(()), Err)?;
            chained.records += job.records;
            chained.bytes += job.out.len() as u64;
            Ok::<_, ChainedError>((self.put)(job.stream, &job.out)?)
        };
        let rests = in_turn(reading.threads(), make, || fill, take)?;
        prepared.check_dumps()?;
        let mut stops = StopCounts::of_chained(&recording.features);
        for (of_worker, samples) in rests {
            stops.add(&of_worker);
            chained.samples += samples;
        }
        chained.unwound = stops.as_unwound();
        chained.warnings = crate::result::describe::scan_warnings(recording, &prepared);
        chained.warnings.extend(stops.warnings());
        Ok(chained)
    }
}

/// The blocks of all streams, in their order.
struct Blocks<'p> {
    prepared: &'p Prepared,
    stream: usize,
    rest: &'p [PlannedBlock],
    /// Blocks that can only be read one behind the other.
    run: Option<Run<'p>>,
}

impl<'p> Blocks<'p> {
    fn new(prepared: &'p Prepared) -> Blocks<'p> {
        let rest = prepared.scan.plans.first().map_or(&[][..], |plan| &plan.blocks);
        Blocks { prepared, stream: 0, rest, run: None }
    }

    /// Says which block is next, and reads it where no other thread can. `false` behind the last.
    fn next(&mut self, job: &mut Job, progress: &Progress<'_>) -> Result<bool, LoadError> {
        while self.rest.is_empty() {
            self.stream += 1;
            let Some(plan) = self.prepared.scan.plans.get(self.stream) else { return Ok(false) };
            self.rest = &plan.blocks;
        }
        let Some((block, rest)) = self.rest.split_first() else { return Ok(false) };
        let plan = &self.prepared.scan.plans[self.stream];
        job.stream = self.stream;
        job.unread = block.info.range;
        if let Some(range) = block.info.range {
            progress.advance(u64::from(range.size_bytes));
        } else {
            let mut run = self.run.take().unwrap_or_else(|| {
                let mut runs = self.rest.chunk_by(PlannedBlock::is_followed_in_run);
                Run::new(plan, runs.next().unwrap_or_default())
            });
            run.next(&mut job.block, progress)?;
            self.run = Some(run).filter(|run| !run.is_read());
        }
        self.rest = rest;
        Ok(true)
    }
}

/// A block, and its records as they are written.
#[derive(Default)]
struct Job {
    stream: usize,
    /// Where the block is to be read from, unless it is there.
    unread: Option<BlockRange>,
    block: Block,
    out: Vec<u8>,
    records: u64,
    failed: Option<LoadError>,
}

/// Unwinds the dumps of blocks. One per thread.
struct Worker<'p> {
    prepared: &'p Prepared,
    recording: &'p Recording,
    /// By event.
    forms: Vec<Option<ChainedForm>>,
    reader: BlockReader,
    maker: ChainMaker<'p>,
    chain: Chain,
    words: Vec<u64>,
    stops: StopCounts,
    samples: u64,
}

impl<'p> Worker<'p> {
    fn new(recording: &'p Recording, prepared: &'p Prepared, max_stack: usize) -> Worker<'p> {
        Worker {
            prepared,
            recording,
            forms: recording.events.iter().map(|event| ChainedForm::new(&event.attr)).collect(),
            reader: BlockReader::default(),
            maker: ChainMaker::new(prepared.chain_context(max_stack)),
            chain: Chain::default(),
            words: Vec::new(),
            stops: StopCounts::default(),
            samples: 0,
        }
    }

    fn block(&mut self, block: &Block, out: &mut Vec<u8>) -> u64 {
        let (mut at, mut copied, mut records) = (0, 0, 0);
        let chains = self.prepared.deferred.of_block(&self.prepared.events, block);
        let chained = crate::blocks::deferred::ChainedBlock { bytes: block, chains: &chains };
        while let Some((record, tail)) = RawRecord::split(&block[at..]) {
            let end = block.len() - tail.len();
            records += 1;
            if let Some((event, form)) = self.form(record) {
                out.extend_from_slice(&block[copied..at]);
                copied = end;
                records -= u64::from(!self.sample(record, (event, form), chained, out));
            }
            at = end;
        }
        out.extend_from_slice(&block[copied..at]);
        records
    }

    /// The event of a sample with a dump, and its new form.
    fn form(&self, record: RawRecord<'_>) -> Option<(usize, ChainedForm)> {
        if record.header.kind != record_type::SAMPLE {
            return None;
        }
        let event = self.prepared.events.event_of_sample(record.body)?;
        self.forms.get(event).copied().flatten().map(|form| (event, form))
    }

    /// Appends a sample with its chain. `false` where it cannot be read.
    fn sample(
        &mut self,
        record: RawRecord<'_>,
        (event, form): (usize, ChainedForm),
        block: crate::blocks::deferred::ChainedBlock<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let prepared = self.prepared;
        let layout = prepared.events.layout(event);
        let Some(mut sample) = layout.and_then(|layout| layout.parse(record.body)) else {
            self.stops.unreadable_samples += 1;
            return false;
        };
        block.bytes.complete(&mut sample);
        let deferred = prepared.deferred_chain(&sample, block);
        let pid = sample.pid_tid.map_or(Pid(-1), |(pid, _)| pid);
        let time = deferred.and_then(|chain| chain.time).or(sample.time);
        let epoch = prepared.model.space_at(pid, time.unwrap_or(TimestampNs(0)));
        let (attr, mode) = (&self.recording.events[event].attr, record.header.cpu_mode());
        self.maker.make(&sample, mode, attr, epoch, deferred, &mut self.chain);
        self.stops.count(self.chain.stop);
        self.stops.foreign_stacks += u64::from(self.chain.is_foreign);
        self.stops.continued += u64::from(self.chain.is_continued);
        self.samples += 1;
        as_recorded(&self.chain.entries, &mut self.words);
        form.push(record, &self.words, out)
    }
}

impl<'p> ordered_pool::Worker for Worker<'p> {
    type Job = Job;
    type Rest = (StopCounts, u64);

    fn run(&mut self, job: &mut Job, _: &mut dyn FnMut(Job)) {
        job.out.clear();
        if let Some(range) = job.unread.take()
            && let plan = &self.prepared.scan.plans[job.stream]
            && let Err(error) = self.reader.read(&plan.stream, range, &mut job.block)
        {
            job.failed = Some(error.into());
            return;
        }
        job.records = self.block(&job.block, &mut job.out);
    }

    fn end(self) -> (StopCounts, u64) {
        (self.stops, self.samples)
    }
}

/// A chain in the form of the kernel's. Behind a marker stands an address that was executing, not one behind a call: at
/// the beginning, and at each frame that a signal interrupted.
fn as_recorded(entries: &[ChainEntry], words: &mut Vec<u64>) {
    words.clear();
    let mut side = None;
    for entry in entries {
        let written = match entry.side {
            Side::User if entry.is_return_address => UserAddress::to_written(entry.address.0),
            _ => entry.address.0,
        };
        // It would be read as a marker.
        if written >= context::MAX {
            continue;
        }
        if side != Some(entry.side) || !entry.is_return_address {
            side = Some(entry.side);
            words.push(match entry.side {
                Side::Kernel => context::KERNEL,
                Side::User => context::USER,
                Side::Guest => context::GUEST,
            });
        }
        words.push(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_types::Avma;

    #[test]
    fn interrupted_frames_follow_a_marker_of_their_own() {
        let entry = |address, is_return_address, side| ChainEntry {
            address: Avma(address),
            is_return_address,
            side,
        };
        let entries = [
            entry(1, false, Side::Kernel),
            entry(2, true, Side::Kernel),
            entry(3, false, Side::User),
            entry(4, true, Side::User),
            entry(5, false, Side::User),
            entry(u64::MAX, true, Side::User),
            entry(6, true, Side::User),
        ];
        let mut words = Vec::new();
        as_recorded(&entries, &mut words);
        let (kernel, user) = (context::KERNEL, context::USER);
        assert_eq!(words, [kernel, 1, 2, user, 3, 3, user, 5, 5]);
    }
}
