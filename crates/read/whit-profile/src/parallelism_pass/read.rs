//! The samples of a recording with the parallelism at each.
//!
//! One thread reads records in order of time and follows who runs; it gives each sample its parallelism. Threads
//! then make the call chains of batches of them and add them up, in any order.

use super::follower::{Follower, Known, Source};
use crate::blocks::stream_plan::BlockTimes;
use crate::call_chain::stops::StopCounts;
use crate::error::LoadError;
use crate::first_pass::prepare::{Needs, Prepared, prepare};
use crate::first_pass::ring_losses::RecordedCpus;
use crate::in_order::ordered::{Batch, OrderedSamples, PendingSample};
use crate::in_order::ordered_pool::{self, in_turn};
use crate::model::Profile;
use crate::parallelism::{Parallelism, ParallelismOf};
use crate::reading::Reading;
use crate::result::finish::finish;
use crate::samples::Samples;
use crate::second_pass::aggregate::Aggregate;
use crate::second_pass::sample_sums::SampleSums;
use crate::switches::{Roles, all_losses};
use crate::warning::Warning;
use whit_perfdata::record::record_type::{SAMPLE, SWITCH, SWITCH_CPU_WIDE};

/// Samples, each with its parallelism.
#[derive(Default)]
struct Job {
    records: Batch,
    levels: Vec<Parallelism>,
}

/// Reads the samples. Without context switches in it, the profile says nothing of parallelism.
pub(crate) fn read(
    reading: Reading<'_>,
    question: Samples,
    of: ParallelismOf,
) -> Result<(Profile, Prepared), LoadError> {
    let (recording, progress) = (reading.recording, reading.progress(2));
    let takes = BlockTimes::NoteSwitches;
    let mut prepared = prepare(reading, Needs::in_order(question, takes), &progress)?;
    let roles = Roles::of(recording, &prepared.scan.samples_by_event);
    let switches = prepared.scan.counts.of(SWITCH) + prepared.scan.counts.of(SWITCH_CPU_WIDE);
    let sources = roles.sources(recording, switches);
    let first_seen = prepared.scan.first_seen.take().unwrap_or_default();
    let source = match (sources.records, sources.tracepoint && first_seen.saw_idle()) {
        (true, _) => Some(Source::Records),
        (false, true) => Some(Source::Tracepoint),
        (false, false) => None,
    };
    let losses = all_losses(recording, &mut prepared.scan.ring_losses);
    let cpus = std::mem::replace(&mut prepared.scan.recorded_cpus, RecordedCpus::Any);
    let known = Known {
        events: &prepared.events,
        roles: &roles,
        source: source.unwrap_or(Source::Records),
        first_seen,
        cpus,
        losses,
        ranges: prepared.time.clone(),
    };
    let mut follower = Follower::new(of, known);
    let mut records = OrderedSamples::new(&prepared, takes, reading.threads(), &progress);
    let fill = |job: &mut Job| {
        records.next_batch(&mut job.records)?;
        let level = |pending: PendingSample<'_>| follower.take(pending.record(), pending.time);
        job.levels.extend(job.records.iter().map(level));
        Ok(!job.records.is_empty())
    };
    let decoder =
        |_| Decoder { prepared: &prepared, sums: SampleSums::new(reading, &question, &prepared) };
    let parts = in_turn(reading.threads(), decoder, || fill, |_| Ok::<_, LoadError>(()))?;
    prepared.check_dumps()?;
    let disordered = records.disordered();
    let info = follower.finish();
    let (mut sums, mut stops) = (Aggregate::for_question(&question), StopCounts::default());
    for (part, part_stops) in parts {
        _ = sums.merge(part);
        stops.add(&part_stops);
    }
    let mut profile = finish(reading, &question, &prepared, sums, &stops);
    profile.parallelism = source.map(|_| info);
    if source == Some(Source::Tracepoint) {
        profile.warnings.extend(roles.warnings.iter().cloned());
    }
    if let samples @ 1.. = disordered {
        profile.warnings.push(Warning::DisorderedSamples { samples });
    }
    Ok((profile, prepared))
}

/// One thread of the second pass.
struct Decoder<'a> {
    prepared: &'a Prepared,
    sums: SampleSums<'a>,
}

impl ordered_pool::Worker for Decoder<'_> {
    type Job = Job;
    type Rest = (Aggregate, StopCounts);

    fn run(&mut self, job: &mut Job, _: &mut dyn FnMut(Job)) {
        for (pending, level) in job.records.iter().zip(&job.levels) {
            let record = pending.record();
            if record.header.kind != SAMPLE {
                continue;
            }
            let Ok(mut parsed) = self.sums.parse(record, pending.block()) else { continue };
            parsed.parallelism = Some(*level);
            if self.sums.wants(&parsed, pending.time)
                && self.prepared.time.as_ref().is_none_or(|ranges| ranges.contains(pending.time))
            {
                self.sums.add(&parsed, pending.time);
            }
        }
        // The blocks that the records stand in are free again.
        job.records.clear();
        job.levels.clear();
    }

    fn end(self) -> (Aggregate, StopCounts) {
        self.sums.finish()
    }
}
