//! Work on a row of jobs by several threads, with the results in the order of the jobs.
//!
//! Jobs are handed to the workers in turn, and taken back in the same turn; so results are in order
//! without sorting, whichever worker is faster.

use crate::error::LoadError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Jobs that may wait for one worker or for being taken back.
const JOBS_PER_WORKER: usize = 3;

/// Works on jobs. One per thread, made there.
pub(crate) trait Worker {
    /// A piece of work; its memory is used again.
    type Job: Default + Send;
    /// The state of a worker at the end.
    type Rest: Send;

    fn run(&mut self, job: &mut Self::Job);
    fn end(self) -> Self::Rest;
}

/// A worker's two ends.
struct Line<'scope, W: Worker> {
    jobs: SyncSender<W::Job>,
    done: Receiver<W::Job>,
    thread: ScopedJoinHandle<'scope, W::Rest>,
}

impl<'scope, W: Worker> Line<'scope, W>
where
    W::Job: 'scope,
    W::Rest: 'scope,
{
    fn start(
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        make: &'scope (impl Fn(usize) -> W + Sync),
    ) -> Self {
        let (jobs, todo) = sync_channel::<W::Job>(JOBS_PER_WORKER);
        let (finished, done) = sync_channel(JOBS_PER_WORKER);
        let thread = scope.spawn(move || {
            let mut worker = make(number);
            for mut job in todo {
                worker.run(&mut job);
                if finished.send(job).is_err() {
                    break;
                }
            }
            worker.end()
        });
        Line { jobs, done, thread }
    }

    fn end(self) -> Result<W::Rest, LoadError> {
        let Line { jobs, done, thread } = self;
        drop((jobs, done));
        thread.join().map_err(|_| LoadError::WorkerDied)
    }
}

/// Fills jobs until `fill` returns false, has `threads` workers run them, and gives each to `take`,
/// in order. Gives back the rest of each worker.
pub(crate) fn in_turn<W: Worker, E: From<LoadError>>(
    threads: usize,
    make: impl Fn(usize) -> W + Sync,
    fill: impl FnMut(&mut W::Job) -> Result<bool, E>,
    take: impl FnMut(&mut W::Job) -> Result<(), E>,
) -> Result<Vec<W::Rest>, E> {
    std::thread::scope(|scope| {
        let start = |number| Line::start(scope, number, &make);
        let lines: Vec<Line<'_, W>> = (0..threads.max(1)).map(start).collect();
        let fed = feed(&lines, fill, take);
        let rests: Result<Vec<_>, LoadError> = lines.into_iter().map(Line::end).collect();
        let rests = rests?;
        fed.map(|()| rests)
    })
}

fn feed<W: Worker, E: From<LoadError>>(
    lines: &[Line<'_, W>],
    mut fill: impl FnMut(&mut W::Job) -> Result<bool, E>,
    mut take: impl FnMut(&mut W::Job) -> Result<(), E>,
) -> Result<(), E> {
    let mut spare: Vec<W::Job> = Vec::new();
    let (mut sent, mut taken) = (0usize, 0usize);
    let mut at_end = false;
    loop {
        if !at_end && sent - taken < lines.len() * JOBS_PER_WORKER {
            let mut job = spare.pop().unwrap_or_default();
            at_end = !fill(&mut job)?;
            if !at_end {
                let line = &lines[sent % lines.len()];
                line.jobs.send(job).map_err(|_| LoadError::WorkerDied)?;
                sent += 1;
            }
        } else if taken < sent {
            let job = lines[taken % lines.len()].done.recv();
            let mut job = job.map_err(|_| LoadError::WorkerDied)?;
            taken += 1;
            take(&mut job)?;
            spare.push(job);
        } else {
            return Ok(());
        }
    }
}
