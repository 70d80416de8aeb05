//! Loading a recording: first pass, process model, second pass, symbols.

use crate::blocks::deferred::ChainedBlock;
use crate::blocks::stream_plan::BlockTimes;
use crate::blocks::work::WorkQueue;
use crate::call_chain::stops::StopCounts;
use crate::error::LoadError;
use crate::first_pass::prepare::{Prepared, prepare};
use crate::model::Profile;
use crate::naming::code::CodeFinder;
use crate::options::LoadOptions;
use crate::parallelism;
use crate::progress::Progress;
use crate::result::finish::finish;
use crate::second_pass::aggregate::Aggregate;
use crate::second_pass::leaf_places::sums_of;
use crate::second_pass::sample_sums::{ParsedSample, SampleSums};
use crate::second_pass::singles;
use crate::step_watch::StepWatch;
use crate::switches::{Losses, PhaseTest, all_losses};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{Block, BlockReader};
use whit_types::TimestampNs;

/// Loads a whole recording into a profile.
pub fn load(
    recording: &Recording,
    options: &LoadOptions,
    report_progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Profile, LoadError> {
    let progress = progress_of(recording, report_progress);
    if let Some(of) = options.parallelism {
        return parallelism::load(recording, options, of, &progress);
    }
    load_prepared(recording, options, &progress).map(|(profile, _)| profile)
}

/// The same, with the code that the profile's addresses lie in. Rows have no call chains.
///
/// # Errors
/// The recording changed while it was read.
pub fn load_code(
    recording: &Recording,
    options: &LoadOptions,
    report_progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Profile, CodeFinder), LoadError> {
    let mut options = LoadOptions { leaves: true, ..options.clone() };
    // The finder looks lines up, of the code that is shown.
    (options.symbols.inlines, options.symbols.lines) = (false, false);
    load_with_code(recording, &options, report_progress)
}

/// Loads a recording into a profile with call chains, and the code that its addresses lie in.
///
/// # Errors
/// The recording changed while it was read.
pub fn load_with_code(
    recording: &Recording,
    options: &LoadOptions,
    report_progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Profile, CodeFinder), LoadError> {
    let progress = progress_of(recording, report_progress);
    let (profile, prepared) = load_prepared(recording, options, &progress)?;
    Ok((profile, CodeFinder::new(prepared)))
}

fn progress_of<'a>(
    recording: &Recording,
    report_progress: &'a (dyn Fn(u64, u64) + Sync),
) -> Progress<'a> {
    let stream_bytes: u64 = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    Progress::new(2 * stream_bytes, report_progress)
}

fn load_prepared(
    recording: &Recording,
    options: &LoadOptions,
    progress: &Progress<'_>,
) -> Result<(Profile, Prepared), LoadError> {
    let takes = if options.singles.is_some() { BlockTimes::NoteSwitches } else { BlockTimes::Skip };
    let mut prepared = prepare(recording, options, takes, progress)?;
    let options = &*singles::decide(options, &prepared);
    if options.singles.is_some() {
        let losses = all_losses(recording, &mut prepared.scan.ring_losses);
        prepared.loss_windows = Losses::new(&losses).windows_of_all_threads().to_vec();
    }
    // A part that could not be read may be an error when it is read again.
    let leaves = prepared.scan.leaves.take().filter(|_| !prepared.scan.has_failed());
    let Found { sums, stops, phases } =
        match leaves.and_then(|leaves| sums_of(leaves.finish()?, options, &prepared)) {
            Some((sums, stops)) => Found { sums, stops, phases: PhaseTest::default() },
            None => second_pass(recording, options, &prepared, progress)?,
        };
    let mut profile = finish(recording, options, &prepared, sums, &stops);
    profile.warnings.extend(phases.warning());
    Ok((profile, prepared))
}

/// Adds all samples up.
pub(crate) fn second_pass(
    recording: &Recording,
    options: &LoadOptions,
    prepared: &Prepared,
    progress: &Progress<'_>,
) -> Result<Found, LoadError> {
    let queue = WorkQueue::new(&prepared.scan.plans);
    let worker = || Worker::new(recording, options, prepared).run(&queue, progress);
    let (own, others) = prepared.kernel_load.run_during(options.threads, worker);
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
    fn new(recording: &'a Recording, options: &'a LoadOptions, prepared: &'a Prepared) -> Self {
        let steps = StepWatch::new(recording, prepared);
        Worker { prepared, sums: SampleSums::new(recording, options, prepared), steps }
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
