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
    let unreadable = std::thread::scope(|scope| {
        let lines: Vec<_> = (0..work.options.threads).map(|_| Line::start(scope, work)).collect();
        let unreadable = feed(&lines, samples, out, summary);
        let ended: Result<Vec<()>, LoadError> = lines.into_iter().map(Line::end).collect();
        ended?;
        unreadable
    })?;
    let mut counted = |count: u64, text: &str| {
        if count > 0 {
            summary.warnings.push(format!("{count} {text}"));
        }
    };
    counted(unreadable, describe::UNREADABLE_SAMPLES);
    counted(samples.disordered(), "samples stand behind later ones: their order needs more memory");
    Ok(())
}

/// Gives back how many samples could not be read.
fn feed(
    lines: &[Line<'_>],
    samples: &mut OrderedSamples<'_>,
    out: &mut dyn Write,
    summary: &mut ScriptSummary,
) -> Result<u64, ScriptError> {
    let mut spare = Vec::new();
    let (mut sent, mut written, mut unreadable) = (0usize, 0usize, 0);
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
            unreadable += job.unreadable;
            out.write_all(&job.text)?;
            spare.push(job);
        } else {
            return Ok(unreadable);
        }
    }
}
