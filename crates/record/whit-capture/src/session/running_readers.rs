//! All readers at work: their news, and orders to them.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

use whit_sys::scheduling;

use super::reader_event::ReaderEvent;
use super::reader_share::ReaderShare;
use super::reader_thread::{DrainError, Order, ReaderThread, RunningDrainer, Shared};
use crate::error::CaptureError;
use crate::stream::{SinkError, StreamSink};

/// The readers, each on its thread.
pub(super) struct RunningReaders {
    running: Vec<RunningDrainer>,
    /// Readers whose tasks have not all exited.
    alive: usize,
    shared: Shared,
    news: Receiver<ReaderEvent>,
}

impl RunningReaders {
    /// Starts them, as `SCHED_FIFO` where a priority is given.
    pub(super) fn start(
        reader_threads: Vec<ReaderThread>,
        shared: Shared,
        news: Receiver<ReaderEvent>,
        realtime_priority: Option<i32>,
    ) -> Result<RunningReaders, CaptureError> {
        if let Some(priority) = realtime_priority {
            // Threads inherit it; the session itself is in no hurry.
            scheduling::set_fifo(priority)
                .map_err(|source| CaptureError::Realtime { priority, source })?;
        }
        let mut running = Vec::with_capacity(reader_threads.len());
        for (number, reader_thread) in reader_threads.into_iter().enumerate() {
            running.push(reader_thread.start(number, shared.clone())?);
        }
        if realtime_priority.is_some() {
            scheduling::set_normal().map_err(CaptureError::system("leave real-time priority"))?;
        }
        Ok(RunningReaders { alive: running.len(), running, shared, news })
    }

    /// The next news, where there is any.
    pub(super) fn next_event(&mut self) -> Option<ReaderEvent> {
        let event = self.news.try_recv().ok()?;
        if event == ReaderEvent::AllGone {
            self.alive -= 1;
        }
        Some(event)
    }

    /// Whether no task is left that could write into any ring.
    pub(super) fn all_gone(&self) -> bool {
        self.alive == 0
    }

    /// Has these records written by a reader.
    pub(super) fn write(&self, records: Vec<u8>) {
        if let Some(reader) = self.running.first().filter(|_| !records.is_empty()) {
            reader.order(Order::Write(records));
        }
    }

    /// Has records written at the next round. A round of their own at the begin would part the first samples from the
    /// names of their threads, which `--tail-synthesize` writes at the end: stock perf sorts within a round.
    pub(super) fn write_later(&self, records: Vec<u8>) {
        if let Some(reader) = self.running.first().filter(|_| !records.is_empty()) {
            reader.order_later(Order::Write(records));
        }
    }

    /// Has the rings that are overwritten read, and waits until they are.
    pub(super) fn snapshot(&self) {
        self.order_and_wait(Order::Snapshot);
    }

    /// Has all rings emptied, and waits until their records are in the output. The number marks the place where one
    /// reader writes it all.
    pub(super) fn empty_rings(&self, number: u64) {
        self.order_and_wait(|reply| Order::Empty(number, reply));
    }

    fn order_and_wait(&self, order: impl Fn(Sender<()>) -> Order) {
        let order = |reader: &RunningDrainer| {
            let (reply, done) = channel();
            reader.order(order(reply));
            done
        };
        let replies: Vec<_> = self.running.iter().map(order).collect();
        // A reader that drops the reply has ended, and says so itself.
        for done in replies {
            let _ = done.recv();
        }
    }

    /// Has sideband kept for the next output, or no longer.
    pub(super) fn keep_journal(&self, keep: bool) {
        self.shared.keeps_journal.store(keep, Ordering::SeqCst);
    }

    /// Counts bytes from zero, for the next output.
    pub(super) fn begin_output(&self) {
        self.shared.quota.next_part();
    }

    /// Gives every reader its new stream. Returns the share of each in the old output, and the first error.
    pub(super) fn change_over(
        &mut self,
        streams: Vec<StreamSink>,
    ) -> (Vec<ReaderShare>, Option<io::Error>) {
        let order = |(reader, stream): (&RunningDrainer, StreamSink)| {
            let (reply, share) = channel();
            reader.order(Order::Swap(Box::new(stream), reply));
            share
        };
        let replies: Vec<_> = self.running.iter().zip(streams).map(order).collect();
        let mut shares = Vec::with_capacity(replies.len());
        let mut failed = None;
        let mut remaining = Vec::with_capacity(replies.len());
        for (reader, reply) in std::mem::take(&mut self.running).into_iter().zip(replies) {
            if let Ok(share) = reply.recv() {
                shares.push(share);
                remaining.push(reader);
                continue;
            }
            match reader.join() {
                Ok((reader_thread, result)) => {
                    shares.push(reader_thread.into_share());
                    let error = result.err().map(reason);
                    failed = failed.or(error).or(Some(io::Error::other("a reader ended early")));
                }
                Err(panicked) => failed = failed.or(Some(io::Error::other(panicked))),
            }
        }
        self.running = remaining;
        (shares, failed)
    }

    /// Lets the readers empty the rings, and takes them back. Gives the first error that one of
    /// them had.
    pub(super) fn drain(mut self) -> (Vec<ReaderThread>, Option<io::Error>) {
        // All of them at once, before the first one is waited for.
        self.running.iter_mut().for_each(RunningDrainer::stop);
        let (mut reader_threads, mut failed) = (Vec::with_capacity(self.running.len()), None);
        for reader in self.running {
            match reader.join() {
                Ok((reader_thread, result)) => {
                    reader_threads.push(reader_thread);
                    failed = failed.or(result.err().map(reason));
                }
                Err(panicked) => failed = failed.or(Some(io::Error::other(panicked))),
            }
        }
        if failed.is_some() {
            // Where one stream has ended early, the others are written all the same.
            reader_threads.iter_mut().for_each(ReaderThread::finish_stream);
        }
        (reader_threads, failed)
    }
}

fn reason(error: DrainError) -> io::Error {
    match error {
        DrainError::Sink(SinkError(error)) => error,
        DrainError::Wait(error) => io::Error::other(error),
    }
}
