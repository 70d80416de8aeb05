//! A reader thread waits for its rings, drains them, and reports events to the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use whit_engine_api::DecodeCounts;
use whit_engine_api::open_event::OpenEvent;
use whit_sys::usage::CpuUsage;
use whit_sys::{Waker, affinity, take_short_slices};
use whit_types::CpuId;

use super::budget::ReaderMeter;
use super::file_watch::FileWatch;
use super::quota::Quota;
use super::reader_event::{ReaderEvent, SessionNotifier};
use super::reader_share::ReaderShare;
use super::wait::RingWaiter;
use crate::error::CaptureError;
use crate::ring_drainer::{Pass, RingDrainer};
use crate::stream::{Sink, SinkError, StreamSink};

/// Rings are drained at least this often: a killed recorder loses no more than that.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Readers run often and briefly. A ring overflows when its reader is late, so on busy CPUs readers
/// must not wait for the slices of other threads.
const SLICE_NS: u64 = 100_000;
/// A pass that took more than this is followed by another at once, for rings that hold as much
/// again: the kernel would wake the reader only when a quarter of a ring is new.
const BUSY_BYTES: usize = 64 << 10;
/// Rounds in which the rings are emptied after the events have stopped. One would do; a task on
/// another CPU may just be writing its last record.
const LAST_ROUNDS_MAX: u32 = 1000;

/// A reader that has no stream yet.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) ring_drainer: RingDrainer,
    pub(super) waiter: RingWaiter,
    /// CPUs to run on from the start; `None` leaves it where the process may run.
    pub(super) runs_on: Option<Vec<CpuId>>,
}

impl Reader {
    /// Gives it its stream.
    pub(super) fn with_stream(self, sink: StreamSink) -> ReaderThread {
        let usage = CpuUsage::default();
        ReaderThread { reader: self, sink, wakeups: 0, usage, reported_bytes: 0, metered: (0, 0) }
    }
}

/// A reader with its stream, and the cost of its work.
#[derive(Debug)]
pub(super) struct ReaderThread {
    reader: Reader,
    sink: StreamSink,
    wakeups: u64,
    /// CPU time of its thread; before the thread ends, that up to the present output.
    usage: CpuUsage,
    /// Bytes of the present stream that the quota knows of.
    reported_bytes: u64,
    /// CPU time of the thread and samples of the present stream that the meter knows of.
    metered: (u64, u64),
}

/// An order to a reader at work.
#[derive(Debug)]
pub(super) enum Order {
    /// Go on into this stream; the records in the rings still go into the old one.
    Swap(Box<StreamSink>, Sender<ReaderShare>),
    /// Write these records into the present stream.
    Write(Vec<u8>),
    /// Take the records of the rings that are overwritten.
    Snapshot(Sender<()>),
    /// Empty all rings into the stream, and mark the place with this number.
    Empty(u64, Sender<()>),
}

/// State that all readers share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) events: Arc<Vec<OpenEvent>>,
    pub(super) notifier: SessionNotifier,
    pub(super) quota: Arc<Quota>,
    /// Whether sideband is kept for the next output. The kernel's later records are drained later.
    pub(super) keeps_journal: Arc<AtomicBool>,
    /// Opens files that were mapped just now.
    pub(super) file_watch: FileWatch,
    /// Where readers state their work, if somebody watches its cost.
    pub(super) meter: Option<Arc<ReaderMeter>>,
}

/// How a reader ended.
pub(super) type Drained = (ReaderThread, Result<(), DrainError>);

/// Why a reader ended before its order to end.
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

impl ReaderThread {
    /// Starts to work on a thread of its own.
    pub(super) fn start(
        mut self,
        number: usize,
        shared: Shared,
    ) -> Result<RunningDrainer, CaptureError> {
        let (orders, inbox) = channel();
        let wake = self.reader.waiter.waker();
        let work = move || {
            if let Some(cpus) = &self.reader.runs_on {
                // CPUs that went offline: it runs where it may.
                let _ = affinity::set(0, cpus);
            }
            // A sandbox may forbid it, and real-time readers have no need of it.
            let _ = take_short_slices(SLICE_NS);
            let result = self.work(&inbox, &shared);
            self.usage = CpuUsage::of_thread().unwrap_or_default().since(&self.usage);
            shared.notifier.send(ReaderEvent::Ended);
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
            let gone =
                self.reader.waiter.wait(timeout, &shared.events).map_err(DrainError::Wait)?;
            self.wakeups += 1;
            loop {
                match inbox.try_recv() {
                    Ok(order) => self.obey(order, shared)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return self.last_passes(&shared.events),
                }
            }
            self.reader.ring_drainer.keep_journal(shared.keeps_journal.load(Ordering::SeqCst));
            let bytes = self.reader.ring_drainer.pass(&mut self.sink, pass)?;
            let is_busy = bytes > BUSY_BYTES as u64;
            pass = if is_busy { Pass::AtLeast(BUSY_BYTES) } else { Pass::WorthWhile };
            shared.file_watch.announce(self.reader.ring_drainer.take_fresh_files());
            self.report_size(shared);
            if let Some(meter) = &shared.meter {
                self.report_work(meter);
            }
            if gone && !all_gone {
                all_gone = true;
                shared.notifier.send(ReaderEvent::AllGone);
            }
        }
    }

    fn report_size(&mut self, shared: &Shared) {
        let bytes = self.sink.counts().bytes.saturating_sub(self.reported_bytes);
        self.reported_bytes += bytes;
        if bytes > 0
            && let Some(news) = shared.quota.add(bytes)
        {
            shared.notifier.send(news);
        }
    }

    fn report_work(&mut self, meter: &ReaderMeter) {
        let (cpu_before, samples_before) = self.metered;
        let cpu_ns = CpuUsage::of_thread().unwrap_or_default().total_ns();
        let samples = self.reader.ring_drainer.samples();
        meter.add(cpu_ns.saturating_sub(cpu_before), samples.saturating_sub(samples_before));
        self.metered = (cpu_ns, samples);
    }

    fn obey(&mut self, order: Order, shared: &Shared) -> Result<(), DrainError> {
        match order {
            Order::Swap(sink, reply) => {
                let share = self.swap(*sink, shared)?;
                // The session waits for it, unless another reader has failed.
                let _ = reply.send(share);
            }
            Order::Write(records) => self.sink.records(&records)?,
            Order::Empty(number, reply) => {
                self.empty_rings(number, shared)?;
                let _ = reply.send(());
            }
            Order::Snapshot(reply) => {
                self.reader.ring_drainer.snapshot(&mut self.sink, &shared.events)?;
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    /// Empties the rings, and waits until their records are written.
    fn empty_rings(&mut self, number: u64, shared: &Shared) -> Result<(), DrainError> {
        let drainer = &mut self.reader.ring_drainer;
        drainer.pass(&mut self.sink, Pass::Everything)?;
        drainer.snapshot(&mut self.sink, &shared.events)?;
        drainer.mark(number, &mut self.sink)?;
        self.sink.finish()?;
        self.report_size(shared);
        Ok(())
    }

    /// Empties the rings into the old stream and goes on into the new one.
    fn swap(&mut self, sink: StreamSink, shared: &Shared) -> Result<ReaderShare, DrainError> {
        let drainer = &mut self.reader.ring_drainer;
        drainer.keep_journal(shared.keeps_journal.load(Ordering::SeqCst));
        drainer.pass(&mut self.sink, Pass::Everything)?;
        drainer.snapshot(&mut self.sink, &shared.events)?;
        let sink = std::mem::replace(&mut self.sink, sink);
        drainer.start_stream();
        self.reported_bytes = 0;
        self.metered.1 = 0;
        let journal = drainer.take_journal();
        self.sink.records(&journal.records)?;
        self.sink.flush()?;
        self.report_size(shared);
        let now = CpuUsage::of_thread().unwrap_or_default();
        let usage = now.since(&std::mem::replace(&mut self.usage, now));
        let wakeups = std::mem::take(&mut self.wakeups);
        let drainer = &mut self.reader.ring_drainer;
        let ends = drainer.ring_ends();
        let (rings, mapped) = (drainer.take_counts(), drainer.mapped_files());
        let (clock, journal_cut) = (drainer.clock(), journal.is_cut);
        Ok(ReaderShare { sink, rings, mapped, wakeups, usage, ends, clock, journal_cut })
    }

    /// Empties the rings, now that no event counts any more.
    fn last_passes(&mut self, events: &[OpenEvent]) -> Result<(), DrainError> {
        for _ in 0..LAST_ROUNDS_MAX {
            if self.reader.ring_drainer.pass(&mut self.sink, Pass::Everything)? == 0 {
                break;
            }
        }
        self.reader.ring_drainer.snapshot(&mut self.sink, events)?;
        Ok(self.sink.finish()?)
    }

    /// Its share of the last output. Its reader goes with it no further.
    pub(super) fn into_share(mut self) -> ReaderShare {
        let drainer = &mut self.reader.ring_drainer;
        let (ends, clock) = (drainer.ring_ends(), drainer.clock());
        let (rings, mapped) = (drainer.take_counts(), drainer.mapped_files());
        let ReaderThread { sink, wakeups, usage, .. } = self;
        ReaderShare { sink, rings, mapped, wakeups, usage, ends, clock, journal_cut: false }
    }

    /// Counts of the records that the engine wrote.
    pub(super) fn decode_counts(&self) -> DecodeCounts {
        self.reader.ring_drainer.decode_counts()
    }

    /// Has all of its stream written, after another one has failed: a second error says no more.
    pub(super) fn finish_stream(&mut self) {
        let _ = self.sink.finish();
    }
}

impl RunningDrainer {
    /// Tells the reader what to do. One that has ended does not hear it: the reply is dropped.
    pub(super) fn order(&self, order: Order) {
        self.order_later(order);
        let _ = self.wake.wake();
    }

    /// Tells the reader what to do when it wakes the next time.
    pub(super) fn order_later(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
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
