//! Work on a row of jobs by several threads, with the results in the order of the jobs.
//!
//! Jobs are handed to the workers in turn, and taken back in the same turn; so results are in order
//! without sorting, whichever worker is faster. One thread fills jobs and another takes results: both parts are
//! serial, and neither waits for the other.

use crate::error::LoadError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Jobs of one worker that wait for it, are worked on, or wait for being taken back.
const JOBS_PER_WORKER: usize = 3;

/// Works on jobs. One per thread, made there.
pub(crate) trait Worker {
    /// A piece of work; its memory is used again.
    type Job: Default + Send;
    /// The state of a worker at the end.
    type Rest: Send;

    /// Works on a job. `hand_over` gives a part of its results to be taken at once, where all of them would be large;
    /// it waits while many are not taken yet.
    fn run(&mut self, job: &mut Self::Job, hand_over: &mut dyn FnMut(Self::Job));
    fn end(self) -> Self::Rest;
}

/// A result of a worker.
enum Done<J> {
    /// Further results of the same job follow.
    Part(J),
    Job(J),
}

/// A worker's results.
struct Line<'scope, W: Worker> {
    done: Receiver<Done<W::Job>>,
    thread: ScopedJoinHandle<'scope, W::Rest>,
}

impl<'scope, W: Worker> Line<'scope, W>
where
    W::Job: 'scope,
    W::Rest: 'scope,
{
    /// A worker, and where its jobs go.
    fn start(
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        make: &'scope (impl Fn(usize) -> W + Sync),
    ) -> (Self, SyncSender<W::Job>) {
        // No more jobs are under way, so nobody waits for room.
        let (jobs, todo) = sync_channel::<W::Job>(JOBS_PER_WORKER);
        let (finished, done) = sync_channel(JOBS_PER_WORKER);
        let thread = scope.spawn(move || {
            let mut worker = make(number);
            for mut job in todo {
                // Where nobody takes parts, nobody takes the job.
                worker.run(&mut job, &mut |part| _ = finished.send(Done::Part(part)));
                if finished.send(Done::Job(job)).is_err() {
                    break;
                }
            }
            // Nobody waits for another result while the worker ends.
            drop(finished);
            worker.end()
        });
        (Line { done, thread }, jobs)
    }

    fn end(self) -> Result<W::Rest, LoadError> {
        drop(self.done);
        self.thread.join().map_err(|_| LoadError::WorkerDied)
    }
}

/// Fills jobs until `fill` returns false, has `threads` workers run them, and gives each to `take`,
/// in order. Gives back the rest of each worker. `make_fill` makes `fill` on the thread that calls it.
pub(crate) fn in_turn<W: Worker, F, E: From<LoadError>>(
    threads: usize,
    make: impl Fn(usize) -> W + Sync,
    make_fill: impl FnOnce() -> F + Send,
    take: impl FnMut(&mut W::Job) -> Result<(), E>,
) -> Result<Vec<W::Rest>, E>
where
    F: FnMut(&mut W::Job) -> Result<bool, LoadError>,
{
    std::thread::scope(|scope| {
        let start = |number| Line::start(scope, number, &make);
        let (lines, jobs): (Vec<Line<'_, W>>, Vec<_>) = (0..threads.max(1)).map(start).unzip();
        let jobs_under_way = lines.len() * JOBS_PER_WORKER;
        let (give_back, spare) = sync_channel(jobs_under_way);
        for _ in 0..jobs_under_way {
            _ = give_back.send(W::Job::default());
        }
        let filler = scope.spawn(move || fill_all(&jobs, make_fill(), &spare));
        let taken = take_all(&lines, take, give_back);
        let rests: Result<Vec<_>, LoadError> = lines.into_iter().map(Line::end).collect();
        let filled = filler.join().map_err(|_| LoadError::WorkerDied);
        let rests = rests?;
        // Filling ends early where nobody takes jobs.
        taken?;
        filled??;
        Ok(rests)
    })
}

/// Hands jobs out in turn. Ends where no job comes back any more.
fn fill_all<J>(
    lines: &[SyncSender<J>],
    mut fill: impl FnMut(&mut J) -> Result<bool, LoadError>,
    spare: &Receiver<J>,
) -> Result<(), LoadError> {
    for line in lines.iter().cycle() {
        let mut job = spare.recv().map_err(|_| LoadError::WorkerDied)?;
        if !fill(&mut job)? {
            break;
        }
        line.send(job).map_err(|_| LoadError::WorkerDied)?;
    }
    Ok(())
}

/// Takes jobs back in turn. The first worker without another one has the turn behind the last.
fn take_all<W: Worker, E>(
    lines: &[Line<'_, W>],
    mut take: impl FnMut(&mut W::Job) -> Result<(), E>,
    give_back: SyncSender<W::Job>,
) -> Result<(), E> {
    for line in lines.iter().cycle() {
        let Some(mut job) = whole_job(line, &mut take)? else { break };
        take(&mut job)?;
        _ = give_back.send(job);
    }
    Ok(())
}

/// Takes the parts before a worker's next whole job, which it gives back.
fn whole_job<W: Worker, E>(
    line: &Line<'_, W>,
    take: &mut impl FnMut(&mut W::Job) -> Result<(), E>,
) -> Result<Option<W::Job>, E> {
    while let Ok(done) = line.done.recv() {
        match done {
            Done::Part(mut part) => take(&mut part)?,
            Done::Job(job) => return Ok(Some(job)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use whit_perfdata::stream::StreamError;

    /// Doubles numbers; the number 13 kills it.
    struct Doubler(u64);

    impl Worker for Doubler {
        type Job = u64;
        type Rest = u64;

        fn run(&mut self, job: &mut u64, hand_over: &mut dyn FnMut(u64)) {
            assert!(*job != 13, "a worker that dies");
            // More parts than the line has room for.
            (0..*job / 1_000_000).for_each(hand_over);
            self.0 += 1;
            *job *= 2;
        }

        fn end(self) -> u64 {
            self.0
        }
    }

    fn numbers(from: u64, count: u64) -> impl FnMut(&mut u64) -> Result<bool, LoadError> + Send {
        let mut next = from..from + count;
        move |job| Ok(next.next().map(|number| *job = number).is_some())
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        for threads in 1..5 {
            for count in [0, 1, 2, 7, 100] {
                let mut taken = Vec::new();
                let take = |job: &mut u64| {
                    taken.push(*job);
                    Ok::<_, LoadError>(())
                };
                let rests = in_turn(threads, |_| Doubler(0), || numbers(100, count), take).unwrap();
                assert_eq!(taken, (100..100 + count).map(|it| 2 * it).collect::<Vec<_>>());
                assert_eq!((rests.len(), rests.iter().sum::<u64>()), (threads, count));
            }
        }
    }

    #[test]
    fn parts_come_before_their_job_in_the_turn_of_the_job() {
        let mut taken = Vec::new();
        let take = |job: &mut u64| {
            taken.push(*job);
            Ok::<_, LoadError>(())
        };
        in_turn(2, |_| Doubler(0), || numbers(7_999_999, 3), take).unwrap();
        let mut expected: Vec<u64> = (0..7).chain([15_999_998]).collect();
        expected.extend((0..8).chain([16_000_000]).chain(0..8).chain([16_000_002]));
        assert_eq!(taken, expected);
    }

    /// Jobs that nobody takes hold memory.
    #[test]
    fn few_jobs_are_under_way() {
        let (filled, threads) = (AtomicUsize::new(0), 2);
        let mut source = numbers(100, 500);
        let fill = |job: &mut u64| {
            filled.fetch_add(1, Ordering::SeqCst);
            source(job)
        };
        let mut taken = 0;
        let take = |_: &mut u64| {
            let ahead = filled.load(Ordering::SeqCst) - taken;
            assert!(ahead <= threads * JOBS_PER_WORKER, "{ahead}");
            taken += 1;
            Ok::<_, LoadError>(())
        };
        in_turn(threads, |_| Doubler(0), || fill, take).unwrap();
        assert_eq!(taken, 500);
    }

    #[test]
    fn an_error_of_any_part_ends_all() {
        #[derive(Debug)]
        enum Stopped {
            Load(LoadError),
            Enough,
        }
        impl From<LoadError> for Stopped {
            fn from(error: LoadError) -> Self {
                Stopped::Load(error)
            }
        }
        let mut taken = 0;
        let enough = |_: &mut u64| {
            taken += 1;
            if taken < 3 { Ok(()) } else { Err(Stopped::Enough) }
        };
        let stopped = in_turn(2, |_| Doubler(0), || numbers(100, 1_000_000), enough);
        assert!(matches!(stopped, Err(Stopped::Enough)), "{stopped:?}");

        let changed = || StreamError::BadRecord {
            path: "data".into(),
            offset: 0,
            size_bytes: 0,
            lost_bytes: 0,
        };
        let mut left = 5;
        let fails = |_: &mut u64| {
            left -= 1;
            if left > 0 { Ok(true) } else { Err(LoadError::Changed(changed())) }
        };
        let all = |_: &mut u64| Ok::<_, Stopped>(());
        let failed = in_turn(2, |_| Doubler(0), || fails, all);
        assert!(matches!(failed, Err(Stopped::Load(LoadError::Changed(_)))), "{failed:?}");

        let died = in_turn(2, |_| Doubler(0), || numbers(0, 1_000), all);
        assert!(matches!(died, Err(Stopped::Load(LoadError::WorkerDied))), "{died:?}");
    }
}
