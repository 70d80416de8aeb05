//! Reading, formatting and writing at the same time, in order.

use super::event_switch::SwitchState;
use super::worker::{Job, Work, Worker};
use super::{ScriptError, ScriptSummary, TimeBase};
use crate::call_chain::stops::StopCounts;
use crate::in_order::ordered::OrderedSamples;
use crate::in_order::ordered_pool::in_turn;
use crate::warning::Warning;
use std::io::Write;
use whit_types::TimestampNs;

/// Formats all samples and writes their text.
pub(super) fn run(
    work: Work<'_>,
    samples: &mut OrderedSamples<'_>,
    out: &mut dyn Write,
    summary: &mut ScriptSummary,
) -> Result<(), ScriptError> {
    let mut stops = StopCounts::of_chained(&work.reading.recording.features);
    let mut switches = SwitchState::new(work.format.switches());
    let (of_thread, switches) = (&mut *samples, &mut switches);
    let make_fill = || {
        let mut shown_since = ShownSince::new(work);
        move |job: &mut Job| {
            loop {
                of_thread.next_batch(&mut job.samples)?;
                let is_end = job.samples.is_empty();
                switches.retain(work.prepared, &mut job.samples);
                if is_end || !job.samples.is_empty() {
                    break;
                }
            }
            shown_since.fill(job);
            Ok(!job.samples.is_empty())
        }
    };
    let take = |job: &mut Job| {
        summary.samples += job.formatted;
        stops.unreadable_samples = stops.unreadable_samples.saturating_add(job.unreadable);
        stops.foreign_stacks = stops.foreign_stacks.saturating_add(job.foreign_stacks);
        Ok::<_, ScriptError>(out.write_all(&job.text)?)
    };
    in_turn(work.reading.threads(), |_| Worker::new(work), make_fill, take)?;
    work.prepared.check_dumps()?;
    summary.warnings.extend(stops.warnings());
    if let samples @ 1.. = samples.disordered() {
        summary.warnings.push(Warning::DisorderedSamples { samples });
    }
    Ok(())
}

/// Finds the moment from which each time is shown. It depends on the samples that are printed before, so one thread
/// looks at all of them, but only where it is asked for.
struct ShownSince<'a> {
    base: TimeBase,
    chooser: Option<Worker<'a>>,
    last: Option<TimestampNs>,
}

impl<'a> ShownSince<'a> {
    fn new(work: Work<'a>) -> Self {
        let base = work.format.time_base();
        let chooser = (base != TimeBase::Clock).then(|| Worker::new(work));
        ShownSince { base, chooser, last: None }
    }

    fn fill(&mut self, job: &mut Job) {
        job.shown_since.clear();
        let Some(chooser) = &self.chooser else { return };
        for pending in job.samples.iter() {
            let since = self.last.unwrap_or(pending.time);
            job.shown_since.push(since);
            if chooser.prints(&pending) {
                let is_first = self.base == TimeBase::First;
                self.last = Some(if is_first { since } else { pending.time });
            }
        }
    }
}
