//! The answer to the question of samples: first pass, process model, second pass, symbols.

use crate::blocks::deferred::ChainedBlock;
use crate::blocks::stream_plan::BlockTimes;
use crate::blocks::work::WorkQueue;
use crate::call_chain::stops::StopCounts;
use crate::error::LoadError;
use crate::first_pass::leaf_sums::LeafSums;
use crate::first_pass::prepare::{Needs, Prepared, prepare};
use crate::model::Profile;
use crate::naming::code::CodeFinder;
use crate::parallelism_pass;
use crate::progress::Progress;
use crate::reading::{Question, Reading, WithCode};
use crate::result::finish::finish;
use crate::samples::Samples;
use crate::second_pass::aggregate::Aggregate;
use crate::second_pass::leaf_places::sums_of;
use crate::second_pass::sample_sums::{ParsedSample, SampleSums};
use crate::second_pass::singles;
use crate::step_watch::StepWatch;
use crate::switches::{Losses, PhaseTest, all_losses};
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{Block, BlockReader};
use whit_types::TimestampNs;

impl Question for Samples {
    type Answer = Profile;
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<Profile, LoadError> {
        self.pass(reading).map(|(profile, _)| profile)
    }
}

impl Question for WithCode<Samples> {
    type Answer = (Profile, CodeFinder);
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<(Profile, CodeFinder), LoadError> {
        self.0.pass(reading).map(|(profile, prepared)| (profile, CodeFinder::new(prepared)))
    }
}

impl Samples {
    fn pass(self, reading: Reading<'_>) -> Result<(Profile, Prepared), LoadError> {
        if let Some(of) = self.parallelism {
            return parallelism_pass::read(reading, self, of);
        }
        let (recording, progress) = (reading.recording, reading.progress(2));
        let block_times = match self.singles {
            Some(_) => BlockTimes::NoteSwitches,
            None => BlockTimes::Skip,
        };
        let mut prepared = prepare(reading, Needs::in_order(self, block_times), &progress)?;
        let question = &singles::decide(self, &prepared);
        if question.singles.is_some() {
            let losses = all_losses(recording, &mut prepared.scan.ring_losses);
            prepared.loss_windows = Losses::new(&losses).windows_of_all_threads().to_vec();
        }
        // A part that could not be read may be an error when it is read again.
        let leaves = prepared.scan.leaves.take().filter(|_| !prepared.scan.has_failed());
        let sums_of_leaves =
            |leaves: LeafSums| sums_of(leaves.finish()?, reading, question, &prepared);
        let Found { sums, stops, phases } = match leaves.and_then(sums_of_leaves) {
            Some((sums, stops)) => Found { sums, stops, phases: PhaseTest::default() },
            None => second_pass(reading, question, &prepared, &progress)?,
        };
        let mut profile = finish(reading, question, &prepared, sums, &stops);
        profile.warnings.extend(phases.warning());
        Ok((profile, prepared))
    }
}

/// Adds all samples up.
pub(crate) fn second_pass(
    reading: Reading<'_>,
    question: &Samples,
    prepared: &Prepared,
    progress: &Progress<'_>,
) -> Result<Found, LoadError> {
    let queue = WorkQueue::new(&prepared.scan.plans);
    let worker = || Worker::new(reading, question, prepared).run(&queue, progress);
    let (own, others) = prepared.kernel_load.run_during(reading.threads(), worker);
    let mut all = own?;
    for other in others {
        let other = other.map_err(|_| LoadError::WorkerDied)??;
        _ = all.sums.merge(other.sums);
        all.stops.add(&other.stops);
        all.phases.merge(&other.phases);
    }
    prepared.check_dumps()?;
    Ok(all)
}

/// The findings of one thread of the second pass, or of all.
pub(crate) struct Found {
    pub(crate) sums: Aggregate,
    stops: StopCounts,
    phases: PhaseTest,
}

/// One thread of the second pass.
struct Worker<'a> {
    prepared: &'a Prepared,
    sums: SampleSums<'a>,
    /// Where the recording has switches.
    steps: Option<StepWatch<'a>>,
}

impl<'a> Worker<'a> {
    fn new(reading: Reading<'a>, question: &Samples, prepared: &'a Prepared) -> Self {
        let steps = StepWatch::new(reading.recording, prepared);
        Worker { prepared, sums: SampleSums::new(reading, question, prepared), steps }
    }

    fn run(mut self, queue: &WorkQueue<'_>, progress: &Progress<'_>) -> Result<Found, LoadError> {
        let (mut reader, mut block) = (BlockReader::default(), Block::default());
        while let Some(position) = queue.next(&mut reader, &mut block, progress)? {
            let chains = self.prepared.deferred.of_block(&self.prepared.events, &block);
            let whole = ChainedBlock { bytes: &block, chains: &chains };
            if let Some(steps) = &mut self.steps {
                steps.forget();
            }
            let mut rest = &block[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                let at = block.len() - rest.len();
                if record.header.kind == record_type::SAMPLE {
                    self.sample(record, whole, position + at as u64);
                } else if let Some(steps) = &mut self.steps {
                    steps.record(record, at);
                }
                rest = tail;
            }
        }
        let (sums, stops) = self.sums.finish();
        let phases = self.steps.map(StepWatch::finish).unwrap_or_default();
        Ok(Found { sums, stops, phases })
    }

    fn sample(&mut self, record: RawRecord<'_>, block: ChainedBlock<'_>, position: u64) {
        let mut parsed = ParsedSample::empty();
        if self.sums.parse_into(record, block, &mut parsed).is_err() {
            return;
        }
        if let Some(steps) = &mut self.steps {
            steps.sample(&parsed, block.bytes);
        }
        let time = parsed.sample.time.unwrap_or(TimestampNs(position));
        if self.sums.wants(&parsed, time)
            && self.prepared.time.as_ref().is_none_or(|ranges| ranges.contains(time))
        {
            self.sums.add(&parsed, time);
        }
    }
}
