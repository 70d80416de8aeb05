//! Loading a recording together with its context switches.
//!
//! Switches need each thread's records in order of time, and a thread moves from CPU to CPU. So the
//! second pass reads as `whit script` does, in order: records come merged over all streams, threads
//! decode batches of them and make their call chains, and one thread takes the switch events in order
//! and follows the intervals. Reading and following are serial, each on its own thread, and follow no
//! chain: some numbers per record.

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
use crate::first_pass::prepare::prepare;
use crate::first_pass::ring_losses::RecordedCpus;
use crate::in_order::ordered::OrderedSamples;
use crate::in_order::ordered_pool::in_turn;
use crate::loss_window::{LossWindow, RingLoss};
use crate::model::Profile;
use crate::naming::code::CodeFinder;
use crate::options::LoadOptions;
use crate::progress::Progress;
use crate::second_pass::companion_fetch;
use crate::second_pass::singles;
use crate::warning::Warning;
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type::{SWITCH, SWITCH_CPU_WIDE};
use whit_types::TimestampNs;

/// Whether a recording may have context switches: an event records them.
pub fn may_show(recording: &Recording) -> bool {
    recording.events.iter().any(|event| {
        event.attr.has(AttrFlags::CONTEXT_SWITCH) || event.name.starts_with("sched:sched_switch")
    })
}

/// Loads a recording into a profile, and its context switches.
///
/// # Errors
/// The recording changed while it was read.
pub fn load(
    recording: &Recording,
    options: &LoadOptions,
    wanted: SwitchOptions,
    report_progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Profile, Switches), LoadError> {
    let loaded = load_with_code(recording, options, wanted, report_progress);
    loaded.map(|(profile, switches, _)| (profile, switches))
}

/// The same, with the code that the profile's addresses lie in.
///
/// # Errors
/// The recording changed while it was read.
pub fn load_with_code(
    recording: &Recording,
    options: &LoadOptions,
    wanted: SwitchOptions,
    report_progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Profile, Switches, CodeFinder), LoadError> {
    let stream_bytes: u64 = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    let progress = Progress::new(2 * stream_bytes, report_progress);
    let takes = BlockTimes::NoteSwitches;
    let mut prepared = prepare(recording, options, takes, &progress)?;
    let options = &*singles::decide(options, &prepared);
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
    let mut totals = SwitchTotals::new(
        options,
        &prepared.model,
        SwitchOptions { max_worst: wanted.max_worst.min(SwitchOptions::MAX_WORST), ..wanted },
    );
    let cpus = std::mem::replace(&mut prepared.scan.recorded_cpus, RecordedCpus::Any);
    let spans = RecordedSpans::new(recording.features.recorded_spans());
    let mut intervals = Intervals::new(&losses, cpus, switches.sources.records, spans);
    let mut records = OrderedSamples::new(&prepared, takes, options.threads, &progress);
    let fill = |job: &mut Job| {
        records.next_batch(&mut job.records)?;
        Ok(!job.records.is_empty())
    };
    let ranges = prepared.time.as_ref();
    let take = |job: &mut Job| {
        for contention in &job.contentions {
            if ranges.is_none_or(|ranges| ranges.contains(contention.time)) {
                totals.contention(contention, &losses);
            }
        }
        for timed_event in &job.timed_events {
            intervals.take(timed_event, &mut Cut::new(ranges, &mut totals));
        }
        Ok::<_, LoadError>(())
    };
    let decoder = |number| {
        let stacks = TreeStacks::new(number, recording, options, &prepared);
        Decoder::new(&prepared, &roles, stacks).keeping_stated(recording)
    };
    let parts = in_turn(options.threads, decoder, || fill, take)?;
    let disordered = records.disordered();
    // Its buffers are not needed any more.
    drop(records);
    prepared.check_dumps()?;
    let (inconsistencies, recorded) = intervals.finish(&mut Cut::new(ranges, &mut totals));
    let recorded = recorded_in(ranges, recorded);
    let step = totals.phase_test.warning();
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
    let fetched = companion_fetch::fetch(&prepared, options, &sums, &raw.waits(&node));
    let name = |builder: &mut crate::result::finish::Builder| {
        super::finish::name(raw, &node, wanted.max_spans, builder, &mut switches);
    };
    let (mut profile, ()) =
        crate::result::finish::finish_with(recording, options, &prepared, sums, &stops, name);
    profile.warnings.extend(fetched);
    profile.is_part |= wanted.waits != WaitFilter::default();
    facts.cgroups.enter(&profile.threads, &paths, &mut switches);
    if let Some(stated) = &facts.stated {
        thread_cgroups::keep_stated(stated, &profile.threads, &mut switches);
    }
    profile.warnings.extend(keep_cgroups(options, &mut switches));
    wanted.waits.leave_out_idle(&mut switches);
    wanted.waits.leave_out_classes(&profile, &mut switches);
    profile.warnings.extend(roles.warnings);
    profile.warnings.extend(impossible_cpu_time(recording, &switches, &recorded));
    profile.warnings.extend(step);
    if let samples @ 1.. = disordered {
        profile.warnings.push(Warning::DisorderedSamples { samples });
    }
    Ok((profile, switches, CodeFinder::new(prepared)))
}

/// Leaves out threads that the filter by cgroup does not let pass. A warning where the cgroup of some is unknown.
fn keep_cgroups(options: &LoadOptions, switches: &mut Switches) -> Option<Warning> {
    if options.cgroups.is_empty() {
        return None;
    }
    let untold = thread_cgroups::keep_named(&options.cgroups, switches);
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
