//! A reader at work on a thread of its own: waits for its rings, drains them, tells what happens.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whit_sys::usage::CpuUsage;
use whit_sys::{Waker, affinity, take_precedence};

use super::wait::RingWaiter;
use crate::error::CaptureError;
use crate::open::OpenEvent;
use crate::reader::{Pass, Reader};
use crate::stream::{SinkError, StreamSink};

/// Rings are drained at least this often: a killed recorder loses no more than that.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Readers run often and briefly, and what they are late for is lost: on busy CPUs they must not
/// wait for their turn.
const SLICE_NS: u64 = 100_000;
/// A pass that took more than this is followed by another at once.
const BUSY_PASS_BYTES: u64 = 64 << 10;
/// Rounds in which the rings are emptied after the events have stopped. One would do; a task on
/// another CPU may just be writing its last record.
const LAST_ROUNDS_MAX: u32 = 1000;

/// What the session hears of its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// No task is left that could write into the reader's rings.
    AllGone,
    /// The reader has ended: its stream cannot be written, or it could not wait.
    Ended,
}

/// A reader with its stream, and what its work has cost.
#[derive(Debug)]
pub(super) struct Drainer {
    pub(super) reader: Reader,
    pub(super) sink: StreamSink,
    pub(super) waiter: RingWaiter,
    /// CPUs to run on from the start; `None` leaves it where the process may run.
    pub(super) runs_on: Option<Vec<u32>>,
    pub(super) wakeups: u64,
    pub(super) usage: CpuUsage,
    /// When the rings were last drained while events were counting.
    pub(super) last_pass: Instant,
}

/// How a reader ended.
pub(super) type Drained = (Drainer, Result<(), DrainError>);

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
    orders: Option<Sender<()>>,
    wake: Waker,
    thread: Option<JoinHandle<Drained>>,
}

/// Where readers leave their news.
#[derive(Clone, Debug)]
pub(super) struct NewsDesk {
    pub(super) sender: Sender<News>,
    pub(super) wake: Waker,
}

impl NewsDesk {
    pub(super) fn open() -> Result<(NewsDesk, Receiver<News>), CaptureError> {
        let (sender, receiver) = channel();
        let wake = Waker::new().map_err(CaptureError::system("create an event descriptor"))?;
        Ok((NewsDesk { sender, wake }, receiver))
    }

    fn tell(&self, news: News) {
        // The session listens until it has joined the reader.
        let _ = self.sender.send(news);
        let _ = self.wake.wake();
    }
}

impl Drainer {
    /// Starts to work on a thread of its own.
    pub(super) fn start(
        mut self,
        number: usize,
        events: Arc<Vec<OpenEvent>>,
        desk: NewsDesk,
    ) -> Result<RunningDrainer, CaptureError> {
        let (orders, stop) = channel();
        let wake = self.waiter.waker();
        let work = move || {
            if let Some(cpus) = &self.runs_on {
                // CPUs that went offline: it runs where it may.
                let _ = affinity::set(0, cpus);
            }
            // A sandbox may forbid it: the reader then waits for its turn like everybody else.
            let _ = take_precedence(SLICE_NS);
            let result = self.work(&events, &stop, &desk);
            self.usage = CpuUsage::of_thread().unwrap_or_default();
            desk.tell(News::Ended);
            (self, result)
        };
        let name = format!("whit-reader-{number}");
        let thread = std::thread::Builder::new().name(name).spawn(work);
        let thread = thread.map_err(|source| CaptureError::Thread { source })?;
        Ok(RunningDrainer { orders: Some(orders), wake, thread: Some(thread) })
    }

    fn work(
        &mut self,
        events: &[OpenEvent],
        stop: &Receiver<()>,
        desk: &NewsDesk,
    ) -> Result<(), DrainError> {
        let mut all_gone = false;
        let mut timeout = FLUSH_INTERVAL;
        loop {
            let gone = self.waiter.wait(timeout, events).map_err(DrainError::Wait)?;
            self.wakeups += 1;
            if !matches!(stop.try_recv(), Err(TryRecvError::Empty)) {
                return self.last_passes();
            }
            let bytes = self.reader.pass(&mut self.sink, Pass::WorthWhile)?;
            self.last_pass = Instant::now();
            // While records come that fast there is no time to sleep: the ring would wake the
            // reader only at its mark.
            timeout = if bytes > BUSY_PASS_BYTES { Duration::ZERO } else { FLUSH_INTERVAL };
            if gone && !all_gone {
                all_gone = true;
                desk.tell(News::AllGone);
            }
        }
    }

    /// Empties the rings, now that no event counts any more.
    fn last_passes(&mut self) -> Result<(), DrainError> {
        for _ in 0..LAST_ROUNDS_MAX {
            if self.reader.pass(&mut self.sink, Pass::Everything)? == 0 {
                break;
            }
        }
        Ok(self.sink.finish()?)
    }
}

impl RunningDrainer {
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
