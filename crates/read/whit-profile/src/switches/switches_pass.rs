//! Samples together with context switches.
//!
//! Switches need each thread's records in order of time, and a thread moves from CPU to CPU. So the
//! second pass reads as `whit script` does, in order: records come merged over all streams, threads
//! decode batches of them and make their call chains, and one thread takes the switch events in order
//! and follows the intervals. Reading and following are serial, each on its own thread, and follow no
//! chain: some numbers per record.

use super::cpu_parts::{CpuSums, CpuWall};
use super::cut::{Cut, recorded_in};
use super::decode::{Decoder, Job, TreeStacks};
use super::finish::Trees;
use super::intervals::{Intervals, RecordedTotals};
use super::losses::Losses;
use super::model::Switches;
use super::options::SwitchOptions;
use super::recorded_spans::RecordedSpans;
use super::roles::Roles;
use super::sums::SwitchTotals;
use super::switch_event::StackRef;
use super::thread_cgroups;
use super::wait_filter::WaitFilter;
use crate::blocks::stream_plan::BlockTimes;
use crate::error::LoadError;
use crate::first_pass::prepare::{Needs, Prepared, prepare};
use crate::first_pass::ring_losses::RecordedCpus;
use crate::in_order::ordered::OrderedSamples;
use crate::in_order::ordered_pool::in_turn;
use crate::loss_window::{LossWindow, RingLoss};
use crate::model::Profile;
use crate::naming::code::CodeFinder;
use crate::reading::{Question, Reading, WithCode};
use crate::samples::Samples;
use crate::second_pass::companion_fetch;
use crate::second_pass::singles;
use crate::selection::Selection;
use crate::time_filter::{TimeRange, TimeRanges};
use crate::warning::Warning;
use rustc_hash::FxHashMap;
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::feature::RecordedSpan;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type::{SWITCH, SWITCH_CPU_WIDE};
use whit_types::{CpuId, TimestampNs};

/// Whether a recording may have context switches: an event records them.
pub fn may_show(recording: &Recording) -> bool {
    recording.events.iter().any(|event| {
        event.attr.has(AttrFlags::CONTEXT_SWITCH) || event.name.starts_with("sched:sched_switch")
    })
}

/// The samples of a recording, and its context switches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SamplesAndSwitches {
    /// How samples are summed up.
    pub samples: Samples,
    /// How much of switches is kept.
    pub switches: SwitchOptions,
}

impl Question for SamplesAndSwitches {
    type Answer = (Profile, Switches);
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<(Profile, Switches), LoadError> {
        pass(reading, self).map(|(profile, switches, _)| (profile, switches))
    }
}

impl Question for WithCode<SamplesAndSwitches> {
    type Answer = (Profile, Switches, CodeFinder);
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<(Profile, Switches, CodeFinder), LoadError> {
        pass(reading, self.0)
            .map(|(profile, switches, prepared)| (profile, switches, CodeFinder::new(prepared)))
    }
}

fn pass(
    reading: Reading<'_>,
    question: SamplesAndSwitches,
) -> Result<(Profile, Switches, Prepared), LoadError> {
    let (recording, progress) = (reading.recording, reading.progress(2));
    let SamplesAndSwitches { samples, switches: wanted } = question;
    let takes = BlockTimes::NoteSwitches;
    let mut prepared = prepare(reading, Needs::in_order(samples, takes), &progress)?;
    let samples = &singles::decide(samples, &prepared);
    let losses = Losses::new(&all_losses(recording, &mut prepared.scan.ring_losses));
    prepared.loss_windows = losses.windows_of_all_threads().to_vec();
    let roles = Roles::of(recording, &prepared.scan.samples_by_event);
    let mut switches = Switches {
        sources: roles.sources(
            recording,
            prepared.scan.counts.of(SWITCH) + prepared.scan.counts.of(SWITCH_CPU_WIDE),
        ),
        loss_windows: losses.windows().to_vec(),
        ..Switches::default()
    };
    let parts = prepared.scan.recorded_parts;
    (switches.sources.interrupts, switches.sources.stolen) = (parts.interrupts, parts.stolen);
    let mut totals = SwitchTotals::new(
        reading.selection(),
        &prepared.model,
        SwitchOptions {
            max_worst: wanted.max_worst.min(SwitchOptions::MAX_WORST),
            objects: wanted.objects || !wanted.waits.objects.is_empty(),
            ..wanted.clone()
        },
    );
    let cpus = std::mem::replace(&mut prepared.scan.recorded_cpus, RecordedCpus::Any);
    let spans = RecordedSpans::new(recording.features.recorded_spans());
    let mut intervals = Intervals::new(&losses, cpus, switches.sources.records, spans)
        .with_objects(&prepared.wait_objects);
    let mut records = OrderedSamples::new(&prepared, takes, reading.threads(), &progress);
    let fill = |job: &mut Job| {
        records.next_batch(&mut job.records)?;
        Ok(!job.records.is_empty())
    };
    let selection = reading.selection();
    let blocks = wanted.blocks.then(|| blocks(recording, &prepared));
    totals.block_begins =
        blocks.iter().flat_map(TimeRanges::iter).map(|block| block.from).collect();
    let ranges = blocks.as_ref().or(prepared.time.as_ref());
    let take = |job: &mut Job| {
        for contention in &job.contentions {
            let is_in_range = ranges.is_none_or(|ranges| ranges.contains(contention.time));
            if is_in_range && selection.wants_moment(contention.task.tid, contention.time) {
                totals.contention(contention, &losses);
            }
        }
        for timed_event in &job.timed_events {
            let mut of_calls = Cut::to_calls(selection.calls.as_ref(), &mut totals);
            intervals.take(timed_event, &mut Cut::to_ranges(ranges, &mut of_calls));
        }
        Ok::<_, LoadError>(())
    };
    let decoder = |number| {
        let stacks = TreeStacks::new(number, reading, samples, &prepared);
        Decoder::new(&prepared, &roles, stacks).keeping_stated(recording)
    };
    let parts = in_turn(reading.threads(), decoder, || fill, take)?;
    let disordered = records.disordered();
    // Its buffers are not needed any more.
    drop(records);
    prepared.check_dumps()?;
    let mut of_calls = Cut::to_calls(selection.calls.as_ref(), &mut totals);
    let (inconsistencies, recorded) = intervals.finish(&mut Cut::to_ranges(ranges, &mut of_calls));
    let block_ns = blocks.iter().flat_map(TimeRanges::iter);
    let block_ns =
        block_ns.map(|block| recorded_in(Some(&block.into()), recorded.clone()).recorded_ns());
    switches.block_ns = block_ns.collect();
    let recorded = recorded_in(ranges, recorded);
    let step = totals.phase_test.warning();
    let counts = &prepared.scan.counts;
    let is_of_all = ranges.is_none() && selection.calls.is_none();
    if is_of_all && counts.of(SWITCH_CPU_WIDE) > 0 && counts.of(SWITCH) == 0 {
        switches.cpus = cpu_walls(&totals.cpus, &recorded, &losses);
    }
    (switches.inconsistencies, switches.span) = (inconsistencies, recorded.span());
    switches.recorded_ns = recorded.recorded_ns();
    switches.locks.kernel_recorded = roles.has_contention();
    let mut trees = Trees::merge(parts);
    let raw = super::finish::take_apart(totals, &mut trees, &recorded.spans, &prepared);
    let Trees { sums, stops, facts, nodes } = trees;
    let paths = prepared.cgroups.paths().to_vec();
    let node = |stack: StackRef| {
        nodes.get(stack.worker as usize).and_then(|of_worker| of_worker.get(stack.node as usize))
    };
    let companions = &reading.options.names.companions;
    let fetched = companion_fetch::fetch(&prepared, companions, &sums, &raw.waits(&node));
    let name = |builder: &mut crate::result::finish::Builder| {
        super::finish::name(raw, &node, wanted.max_spans, builder, &mut switches);
    };
    let (mut profile, ()) =
        crate::result::finish::finish_with(reading, samples, &prepared, sums, &stops, name);
    profile.warnings.extend(fetched);
    profile.is_part |= wanted.waits != WaitFilter::default();
    facts.cgroups.enter(&profile.threads, &paths, &mut switches);
    if let Some(stated) = &facts.stated {
        thread_cgroups::keep_stated(stated, &profile.threads, &mut switches);
    }
    profile.warnings.extend(keep_cgroups(reading.selection(), &mut switches));
    wanted.waits.leave_out_idle(&mut switches);
    wanted.waits.leave_out_classes(&profile, &mut switches);
    profile.warnings.extend(wanted.waits.leave_out_objects(&mut switches));
    profile.warnings.extend(roles.warnings);
    profile.warnings.extend(impossible_cpu_time(recording, &switches, &recorded));
    profile.warnings.extend(step);
    if let samples @ 1.. = disordered {
        profile.warnings.push(Warning::DisorderedSamples { samples });
    }
    Ok((profile, switches, prepared))
}

/// Blocks of the recorded time that the user wants.
fn blocks(recording: &Recording, prepared: &Prepared) -> TimeRanges {
    let (first, last) = prepared.span.unwrap_or((TimestampNs(0), TimestampNs(u64::MAX)));
    let all = || vec![RecordedSpan { from: first, to: last }];
    let spans = recording.features.recorded_spans().unwrap_or_else(all);
    // An open end lies outside of all records.
    let from = |span: &RecordedSpan| if span.from == TimestampNs(0) { first } else { span.from };
    let to = |span: &RecordedSpan| if span.to == TimestampNs(u64::MAX) { last } else { span.to };
    let recorded = spans.iter().map(|span| (from(span), to(span)));
    let recorded: Vec<_> = recorded.filter(|(from, to)| from < to).collect();
    let ranges = match &prepared.time {
        None => TimeRanges::new(recorded.into_iter().map(|(from, to)| TimeRange { from, to })),
        Some(time) => TimeRanges::new(recorded.into_iter().flat_map(|(from, to)| {
            let wanted = time.meeting(TimeRange { from, to });
            wanted.map(move |range| TimeRange { from: range.from.max(from), to: range.to.min(to) })
        })),
    };
    ranges.cut_into(SwitchOptions::BLOCKS)
}

/// The time of each CPU, by its number.
fn cpu_walls(
    cpus: &FxHashMap<CpuId, CpuSums>,
    recorded: &RecordedTotals,
    losses: &Losses,
) -> Vec<CpuWall> {
    let elapsed_ns = recorded.recorded_ns();
    let wall = |(cpu, sums): (&CpuId, &CpuSums)| {
        sums.wall(*cpu, elapsed_ns, losses.lost_ns(*cpu, &recorded.spans))
    };
    let mut walls: Vec<_> = cpus.iter().map(wall).collect();
    walls.sort_unstable_by_key(|wall| wall.cpu);
    walls
}

/// Leaves out threads that the filter by cgroup does not let pass. A warning where the cgroup of some is unknown.
fn keep_cgroups(selection: &Selection, switches: &mut Switches) -> Option<Warning> {
    if selection.cgroups.is_empty() {
        return None;
    }
    let untold = thread_cgroups::keep_named(&selection.cgroups, switches);
    (untold > 0).then_some(Warning::UnknownCgroups { threads: untold })
}

/// CPU clocks and the recorder's own differ by microseconds: times that are only this much beyond a bound,
/// in parts of the bound, do not contradict it.
const CLOCK_TOLERANCE: u64 = 1000;

/// A warning where threads took more CPU time than there was, which no recording can truly say.
fn impossible_cpu_time(
    recording: &Recording,
    switches: &Switches,
    recorded: &RecordedTotals,
) -> Option<Warning> {
    let of_machine = recording.features.nr_cpus().map_or(0, |(online, _)| online as usize);
    let nr_cpus = of_machine.max(recorded.nr_cpus).max(1) as u64;
    let available_ns = recorded.recorded_ns().saturating_mul(nr_cpus);
    let taken_ns = switches.rows.iter().fold(0u64, |sum, row| {
        sum.saturating_add(row.sums.cpu_ns).saturating_add(row.sums.lossy_cpu_ns)
    });
    let bound_ns = available_ns.saturating_add(available_ns / CLOCK_TOLERANCE);
    (taken_ns > bound_ns).then_some(Warning::ImpossibleCpuTime { taken_ns, nr_cpus, available_ns })
}

/// Losses of rings, and a window over all time where the recorder could not write some records.
pub(crate) fn all_losses(recording: &Recording, of_rings: &mut Vec<RingLoss>) -> Vec<RingLoss> {
    let mut losses = std::mem::take(of_rings);
    if recording.features.ledger().is_some_and(|ledger| ledger.unwritten_records > 0) {
        let window = LossWindow { from: TimestampNs(0), to: TimestampNs(u64::MAX) };
        losses.push(RingLoss::of_ring(None, window.from, window.to, 0));
    }
    losses
}
