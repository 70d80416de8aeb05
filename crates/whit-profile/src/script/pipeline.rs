//! Reading, formatting and writing at the same time, in order.
//!
//! One thread reads batches of samples, hands them to the workers in turn, and takes their text
//! back in the same turn; so the text is in order without sorting.

use super::worker::{Job, Work, Worker};
use super::{ScriptError, ScriptSummary};
use crate::describe;
use crate::load::LoadError;
use crate::ordered::OrderedSamples;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Batches that may wait for one worker or for being written.
const JOBS_PER_WORKER: usize = 3;

/// A worker's two ends.
struct Line<'scope> {
    jobs: SyncSender<Job>,
    done: Receiver<Job>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope> Line<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>, work: Work<'scope>) -> Line<'scope> {
        let (jobs, todo) = sync_channel::<Job>(JOBS_PER_WORKER);
        let (finished, done) = sync_channel(JOBS_PER_WORKER);
        let thread = scope.spawn(move || {
            let mut worker = Worker::new(work);
            for mut job in todo {
                worker.run(&mut job);
                if finished.send(job).is_err() {
                    break;
                }
            }
        });
        Line { jobs, done, thread }
    }

    fn end(self) -> Result<(), LoadError> {
        let Line { jobs, done, thread } = self;
        drop((jobs, done));
        thread.join().map_err(|_| LoadError::WorkerDied)
    }
}

/// Formats all samples and writes their text.
pub(super) fn run(
    work: Work<'_>,
    samples: &mut OrderedSamples<'_>,
    out: &mut dyn Write,
    summary: &mut ScriptSummary,
) -> Result<(), ScriptError> {
    let troubles = std::thread::scope(|scope| {
        let lines: Vec<_> = (0..work.options.threads).map(|_| Line::start(scope, work)).collect();
        let troubles = feed(&lines, samples, out, summary);
        let ended: Result<Vec<()>, LoadError> = lines.into_iter().map(Line::end).collect();
        ended?;
        troubles
    })?;
    let mut counted = |count: u64, text: &str| {
        if count > 0 {
            summary.warnings.push(format!("{count} {text}"));
        }
    };
    counted(troubles.unreadable, describe::UNREADABLE_SAMPLES);
    counted(troubles.foreign_stacks, describe::FOREIGN_STACKS);
    counted(samples.disordered(), "samples stand behind later ones: their order needs more memory");
    Ok(())
}

/// Samples that do not show all that they should.
#[derive(Default)]
struct Troubles {
    unreadable: u64,
    foreign_stacks: u64,
}

fn feed(
    lines: &[Line<'_>],
    samples: &mut OrderedSamples<'_>,
    out: &mut dyn Write,
    summary: &mut ScriptSummary,
) -> Result<Troubles, ScriptError> {
    let mut spare = Vec::new();
    let (mut sent, mut written) = (0usize, 0usize);
    let mut troubles = Troubles::default();
    let mut at_end = false;
    loop {
        if !at_end && sent - written < lines.len() * JOBS_PER_WORKER {
            let mut job: Job = spare.pop().unwrap_or_default();
            samples.next_batch(&mut job.samples)?;
            at_end = job.samples.is_empty();
            if !at_end {
                let line = &lines[sent % lines.len()];
                line.jobs.send(job).map_err(|_| LoadError::WorkerDied)?;
                sent += 1;
            }
        } else if written < sent {
            let job = lines[written % lines.len()].done.recv();
            let job = job.map_err(|_| LoadError::WorkerDied)?;
            written += 1;
            summary.samples += job.formatted;
            troubles.unreadable += job.unreadable;
            troubles.foreign_stacks += job.foreign_stacks;
            out.write_all(&job.text)?;
            spare.push(job);
        } else {
            return Ok(troubles);
        }
    }
}
