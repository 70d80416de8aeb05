//! A reader at work on a thread of its own: waits for its rings, drains them, tells what happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use whit_engine::open_event::OpenEvent;
use whit_sys::usage::CpuUsage;
use whit_sys::{Waker, affinity, take_short_slices};
use whit_types::CpuId;

use super::quota::Quota;
use super::wait::RingWaiter;
use crate::error::CaptureError;
use crate::loss::RingCounts;
use crate::mapped_files::MappedFiles;
use crate::ring_clock::RecordClock;
use crate::ring_drainer::{Pass, RingDrainer, RingEnd};
use crate::stream::{Sink, SinkError, StreamSink};

/// Rings are drained at least this often: a killed recorder loses no more than that.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Readers run often and briefly, and what they are late for is lost: on busy CPUs they are not to
/// wait for others' slices.
const SLICE_NS: u64 = 100_000;
/// A pass that took more than this is followed by another at once, for rings that hold as much
/// again: the kernel would wake the reader only when a quarter of a ring is new.
const BUSY_BYTES: usize = 64 << 10;
/// Rounds in which the rings are emptied after the events have stopped. One would do; a task on
/// another CPU may just be writing its last record.
const LAST_ROUNDS_MAX: u32 = 1000;

/// What the session hears of its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderEvent {
    /// As much has been written as one output is to hold.
    SwitchDue,
    /// As much has been written as all of the recording may.
    SizeReached,
    /// No task is left that could write into the reader's rings.
    AllGone,
    /// The reader has ended: its stream cannot be written, or it could not wait.
    Ended,
}

/// A reader with its stream, and what its work has cost.
#[derive(Debug)]
pub(super) struct ReaderThread {
    pub(super) ring_drainer: RingDrainer,
    pub(super) sink: StreamSink,
    pub(super) waiter: RingWaiter,
    /// CPUs to run on from the start; `None` leaves it where the process may run.
    pub(super) runs_on: Option<Vec<CpuId>>,
    pub(super) wakeups: u64,
    /// CPU time of its thread; before the thread ends, that up to the present output.
    pub(super) usage: CpuUsage,
    /// Bytes of the present stream that the quota knows of.
    pub(super) told_bytes: u64,
}

/// What a reader did for one output.
#[derive(Debug)]
pub(super) struct ReaderShare {
    /// The stream.
    pub(super) sink: StreamSink,
    /// What passed through each ring.
    pub(super) rings: Vec<RingCounts>,
    /// Files that were mapped as code up to its end.
    pub(super) mapped: MappedFiles,
    pub(super) wakeups: u64,
    pub(super) usage: CpuUsage,
    /// Each ring as its records left it.
    pub(super) ends: Vec<RingEnd>,
    /// The clock of the records.
    pub(super) clock: RecordClock,
    /// Side band that belongs into the next output as well was too much to be kept.
    pub(super) journal_cut: bool,
}

/// What a reader is told while it works.
#[derive(Debug)]
pub(super) enum Order {
    /// Go on into this stream; what is in the rings still goes into the old one.
    Swap(Box<StreamSink>, Sender<ReaderShare>),
    /// Write these records into the present stream.
    Write(Vec<u8>),
    /// Take what is in the rings that are overwritten.
    Snapshot(Sender<()>),
}

/// What all readers share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) events: Arc<Vec<OpenEvent>>,
    pub(super) notifier: SessionNotifier,
    pub(super) quota: Arc<Quota>,
    /// Whether side band is kept for the next output. What the kernel writes after this was set is
    /// drained after it was set.
    pub(super) keeps_journal: Arc<AtomicBool>,
}

/// How a reader ended.
pub(super) type Drained = (ReaderThread, Result<(), DrainError>);

/// Why a reader ended before it was told to.
#[derive(Debug)]
pub(super) enum DrainError {
    /// Its stream cannot be written.
    Sink(SinkError),
    /// It could not wait.
    Wait(CaptureError),
}

impl From<SinkError> for DrainError {
    fn from(error: SinkError) -> Self {
        DrainError::Sink(error)
    }
}

/// A reader's thread.
#[derive(Debug)]
pub(super) struct RunningDrainer {
    orders: Option<Sender<Order>>,
    wake: Waker,
    thread: Option<JoinHandle<Drained>>,
}

/// Where readers leave their news.
#[derive(Clone, Debug)]
pub(super) struct SessionNotifier {
    pub(super) sender: Sender<ReaderEvent>,
    pub(super) wake: Waker,
}

impl SessionNotifier {
    pub(super) fn open() -> Result<(SessionNotifier, Receiver<ReaderEvent>), CaptureError> {
        let (sender, receiver) = channel();
        let wake = Waker::new().map_err(CaptureError::system("create an event descriptor"))?;
        Ok((SessionNotifier { sender, wake }, receiver))
    }

    pub(super) fn tell(&self, news: ReaderEvent) {
        // The session listens until it has joined the reader.
        let _ = self.sender.send(news);
        let _ = self.wake.wake();
    }
}

impl ReaderThread {
    /// Starts to work on a thread of its own.
    pub(super) fn start(
        mut self,
        number: usize,
        shared: Shared,
    ) -> Result<RunningDrainer, CaptureError> {
        let (orders, inbox) = channel();
        let wake = self.waiter.waker();
        let work = move || {
            if let Some(cpus) = &self.runs_on {
                // CPUs that went offline: it runs where it may.
                let _ = affinity::set(0, cpus);
            }
            // A sandbox may forbid it, and real-time readers have no need of it.
            let _ = take_short_slices(SLICE_NS);
            let result = self.work(&inbox, &shared);
            self.usage = CpuUsage::of_thread().unwrap_or_default().since(&self.usage);
            shared.notifier.tell(ReaderEvent::Ended);
            (self, result)
        };
        let name = format!("whit-reader-{number}");
        let thread = std::thread::Builder::new().name(name).spawn(work);
        let thread = thread.map_err(|source| CaptureError::Thread { source })?;
        Ok(RunningDrainer { orders: Some(orders), wake, thread: Some(thread) })
    }

    fn work(&mut self, inbox: &Receiver<Order>, shared: &Shared) -> Result<(), DrainError> {
        let mut all_gone = false;
        let mut pass = Pass::WorthWhile;
        loop {
            let timeout = if pass == Pass::WorthWhile { FLUSH_INTERVAL } else { Duration::ZERO };
            let gone = self.waiter.wait(timeout, &shared.events).map_err(DrainError::Wait)?;
            self.wakeups += 1;
            loop {
                match inbox.try_recv() {
                    Ok(order) => self.obey(order, shared)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.last_passes(&shared.events),
                }
            }
            self.ring_drainer.keep_journal(shared.keeps_journal.load(Ordering::SeqCst));
            let bytes = self.ring_drainer.pass(&mut self.sink, pass)?;
            let is_busy = bytes > BUSY_BYTES as u64;
            pass = if is_busy { Pass::AtLeast(BUSY_BYTES) } else { Pass::WorthWhile };
            self.report_size(shared);
            if gone && !all_gone {
                all_gone = true;
                shared.notifier.tell(ReaderEvent::AllGone);
            }
        }
    }

    fn report_size(&mut self, shared: &Shared) {
        let bytes = self.sink.counts().bytes.saturating_sub(self.told_bytes);
        self.told_bytes += bytes;
        if bytes > 0
            && let Some(news) = shared.quota.add(bytes)
        {
            shared.notifier.tell(news);
        }
    }

    fn obey(&mut self, order: Order, shared: &Shared) -> Result<(), DrainError> {
        match order {
            Order::Swap(sink, reply) => {
                let share = self.swap(*sink, shared)?;
                // The session waits for it, unless another reader has failed.
                let _ = reply.send(share);
            }
            Order::Write(records) => self.sink.records(&records)?,
            Order::Snapshot(reply) => {
                self.ring_drainer.snapshot(&mut self.sink, &shared.events)?;
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    /// Empties the rings into the old stream and goes on into the new one.
    fn swap(&mut self, sink: StreamSink, shared: &Shared) -> Result<ReaderShare, DrainError> {
        self.ring_drainer.keep_journal(shared.keeps_journal.load(Ordering::SeqCst));
        self.ring_drainer.pass(&mut self.sink, Pass::Everything)?;
        self.ring_drainer.snapshot(&mut self.sink, &shared.events)?;
        let sink = std::mem::replace(&mut self.sink, sink);
        self.ring_drainer.start_stream();
        self.told_bytes = 0;
        let journal = self.ring_drainer.take_journal();
        self.sink.records(&journal.records)?;
        self.sink.flush()?;
        self.report_size(shared);
        let now = CpuUsage::of_thread().unwrap_or_default();
        let usage = now.since(&std::mem::replace(&mut self.usage, now));
        let wakeups = std::mem::take(&mut self.wakeups);
        let ends = self.ring_drainer.ring_ends();
        let (rings, mapped) = (self.ring_drainer.take_counts(), self.ring_drainer.mapped_files());
        let (clock, journal_cut) = (self.ring_drainer.clock(), journal.is_cut);
        Ok(ReaderShare { sink, rings, mapped, wakeups, usage, ends, clock, journal_cut })
    }

    /// Empties the rings, now that no event counts any more.
    fn last_passes(&mut self, events: &[OpenEvent]) -> Result<(), DrainError> {
        for _ in 0..LAST_ROUNDS_MAX {
            if self.ring_drainer.pass(&mut self.sink, Pass::Everything)? == 0 {
                break;
            }
        }
        self.ring_drainer.snapshot(&mut self.sink, events)?;
        Ok(self.sink.finish()?)
    }

    /// What it has done for the last output. Its reader goes with it no further.
    pub(super) fn into_share(mut self) -> ReaderShare {
        let ends = self.ring_drainer.ring_ends();
        let (rings, mapped) = (self.ring_drainer.take_counts(), self.ring_drainer.mapped_files());
        let clock = self.ring_drainer.clock();
        let ReaderThread { sink, wakeups, usage, .. } = self;
        ReaderShare { sink, rings, mapped, wakeups, usage, ends, clock, journal_cut: false }
    }
}

impl RunningDrainer {
    /// Tells the reader what to do. One that has ended does not hear it: the reply is dropped.
    pub(super) fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
        let _ = self.wake.wake();
    }

    /// Tells the reader to empty its rings for the last time.
    pub(super) fn stop(&mut self) {
        self.orders = None;
        // It looks at its orders at least once a second anyway.
        let _ = self.wake.wake();
    }

    /// Waits for the reader to end.
    pub(super) fn join(mut self) -> Result<Drained, CaptureError> {
        self.stop();
        let thread = self.thread.take().and_then(|thread| thread.join().ok());
        thread.ok_or(CaptureError::ReaderPanicked)
    }
}

impl Drop for RunningDrainer {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // Only where setting up or controlling the recording has failed: that is reported.
            let _ = thread.join();
        }
    }
}
