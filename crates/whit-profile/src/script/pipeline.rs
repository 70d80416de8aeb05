//! Reading, formatting and writing at the same time, in order.

use super::worker::{Job, Work, Worker};
use super::{ScriptError, ScriptSummary};
use crate::describe;
use crate::ordered::OrderedSamples;
use crate::ordered_pool::in_turn;
use std::io::Write;

/// Formats all samples and writes their text.
pub(super) fn run(
    work: Work<'_>,
    samples: &mut OrderedSamples<'_>,
    out: &mut dyn Write,
    summary: &mut ScriptSummary,
) -> Result<(), ScriptError> {
    let mut troubles = Troubles::default();
    let fill = |job: &mut Job| {
        samples.next_batch(&mut job.samples)?;
        Ok(!job.samples.is_empty())
    };
    let take = |job: &mut Job| {
        summary.samples += job.formatted;
        troubles.unreadable += job.unreadable;
        troubles.foreign_stacks += job.foreign_stacks;
        Ok::<_, ScriptError>(out.write_all(&job.text)?)
    };
    in_turn(work.options.threads, |_| Worker::new(work), fill, take)?;
    let mut counted = |count: u64, text: &str| {
        if count > 0 {
            summary.warnings.push(format!("{count} {text}").into());
        }
    };
    counted(troubles.unreadable, describe::UNREADABLE_SAMPLES);
    counted(troubles.foreign_stacks, describe::FOREIGN_STACKS);
    counted(samples.disordered(), describe::DISORDERED_SAMPLES);
    Ok(())
}

/// Samples that do not show all that they should.
#[derive(Default)]
struct Troubles {
    unreadable: u64,
    foreign_stacks: u64,
}
