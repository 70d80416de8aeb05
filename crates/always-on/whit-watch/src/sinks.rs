//! Where windows go. Each sink has a thread and a queue; a slow one delays neither the recorder nor other sinks.

mod push;
mod recordings;

pub(crate) use push::{Push, SharedPusher};
pub use recordings::Recordings;
pub(crate) use recordings::SharedStore;

use crate::log::Log;
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Windows that wait for one sink.
pub const QUEUE_WINDOWS_MAX: usize = 4;
/// Time that sinks have for their queues when the service ends.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes windows. Methods are called from the thread of the sink, but for [`Sink::status`].
pub trait Sink: Send + Sync {
    /// In messages and figures: `recordings`, `push.main`.
    fn name(&self) -> String;

    /// Takes a window. It may take long; the queue waits.
    ///
    /// # Errors
    /// The window is lost for this sink. The text is said once.
    fn accept(&self, window: &Window) -> Result<(), String>;

    /// Does what time asks for: retention, another try to send. Gives the time until it wants to be called again;
    /// `None` waits for the next window.
    fn idle(&self) -> Option<Duration> {
        None
    }

    /// The service ends: nothing comes any more.
    fn finish(&self) {}

    /// The place of its data, and its losses by the names of bounds. Called from other threads at any time: it does not
    /// wait for [`Sink::accept`].
    fn status(&self) -> serde_json::Value;
}

/// Counters of a sink's queue.
#[derive(Debug, Default)]
struct Counters {
    accepted: AtomicU64,
    failed: AtomicU64,
    dropped_by_queue: AtomicU64,
    waiting: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// The state of a sink, for `whit watch status`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SinkStatus {
    /// As in messages.
    pub name: String,
    /// Windows that it took.
    pub accepted: u64,
    /// Windows that it could not take.
    pub failed: u64,
    /// Windows that its queue did not take (`QUEUE_WINDOWS_MAX`).
    pub dropped_by_queue: u64,
    /// Windows in its queue.
    pub waiting: u64,
    /// The last failure.
    pub last_error: Option<String>,
    /// The sink's own.
    pub detail: serde_json::Value,
}

struct Running {
    sink: Arc<dyn Sink>,
    queue: Option<SyncSender<Arc<Window>>>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
    is_done: Arc<AtomicBool>,
}

/// All sinks.
pub struct Sinks {
    running: Vec<Running>,
    log: Log,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sinks").field("running", &self.running.len()).finish_non_exhaustive()
    }
}

impl Sinks {
    /// Starts a thread for each.
    pub fn start(sinks: Vec<Arc<dyn Sink>>, log: &Log) -> Sinks {
        let running = sinks.into_iter().map(|sink| Running::start(sink, log)).collect();
        Sinks { running, log: log.clone() }
    }

    /// Whether nobody takes windows.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Gives a window to each sink that has room for it.
    pub fn give(&self, window: &Arc<Window>) {
        for running in &self.running {
            running.give(window, &self.log);
        }
    }

    /// A list that other threads can ask.
    pub fn statuses(&self) -> SinkStatuses {
        let all = self.running.iter();
        SinkStatuses(all.map(|it| (it.sink.clone(), it.counters.clone())).collect())
    }

    /// Waits until all windows are taken, for some time.
    pub fn end(mut self) {
        self.running.iter_mut().for_each(|running| running.queue = None);
        let until = Instant::now() + END_TIMEOUT;
        for running in &mut self.running {
            while !running.is_done.load(Ordering::Acquire) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            let name = running.sink.name();
            match running.is_done.load(Ordering::Acquire) {
                true => drop(running.thread.take().map(JoinHandle::join)),
                false => self.log.say_always(format_args!(
                    "{name} did not take the last windows within {} s: they are lost",
                    END_TIMEOUT.as_secs()
                )),
            }
        }
    }
}

/// The sinks that are asked for their state.
#[derive(Clone, Default)]
pub struct SinkStatuses(Vec<(Arc<dyn Sink>, Arc<Counters>)>);

impl std::fmt::Debug for SinkStatuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SinkStatuses").field(&self.0.len()).finish()
    }
}

impl SinkStatuses {
    /// The state of each.
    pub fn get(&self) -> Vec<SinkStatus> {
        let of = |(sink, counters): &(Arc<dyn Sink>, Arc<Counters>)| SinkStatus {
            name: sink.name(),
            accepted: counters.accepted.load(Ordering::Relaxed),
            failed: counters.failed.load(Ordering::Relaxed),
            dropped_by_queue: counters.dropped_by_queue.load(Ordering::Relaxed),
            waiting: counters.waiting.load(Ordering::Relaxed),
            last_error: counters.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            detail: sink.status(),
        };
        self.0.iter().map(of).collect()
    }
}

impl Running {
    fn start(sink: Arc<dyn Sink>, log: &Log) -> Running {
        let (queue, windows) = sync_channel(QUEUE_WINDOWS_MAX);
        let (counters, is_done) = (Arc::<Counters>::default(), Arc::<AtomicBool>::default());
        let own = (sink.clone(), counters.clone(), log.clone(), is_done.clone());
        let thread = std::thread::spawn(move || {
            let (sink, counters, log, is_done) = own;
            take_all(&*sink, &windows, &counters, &log);
            is_done.store(true, Ordering::Release);
        });
        Running { sink, queue: Some(queue), counters, thread: Some(thread), is_done }
    }

    fn give(&self, window: &Arc<Window>, log: &Log) {
        let Some(queue) = &self.queue else { return };
        self.counters.waiting.fetch_add(1, Ordering::Relaxed);
        match queue.try_send(window.clone()) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.counters.waiting.fetch_sub(1, Ordering::Relaxed);
                self.counters.dropped_by_queue.fetch_add(1, Ordering::Relaxed);
                log.say(format_args!(
                    "{} is too slow: {QUEUE_WINDOWS_MAX} windows wait for it, and the newest one is dropped",
                    self.sink.name()
                ));
            }
        }
    }
}

/// The thread of a sink.
fn take_all(sink: &dyn Sink, windows: &Receiver<Arc<Window>>, counters: &Counters, log: &Log) {
    loop {
        let next = match sink.idle() {
            Some(wait) => windows.recv_timeout(wait),
            None => windows.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let window = match next {
            Ok(window) => window,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        counters.waiting.fetch_sub(1, Ordering::Relaxed);
        match sink.accept(&window) {
            Ok(()) => drop(counters.accepted.fetch_add(1, Ordering::Relaxed)),
            Err(reason) => {
                counters.failed.fetch_add(1, Ordering::Relaxed);
                log.say(format_args!("{}: a window is lost: {reason}", sink.name()));
                *counters.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            }
        }
    }
    sink.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::HeldBytes;
    use std::sync::Barrier;
    use std::time::SystemTime;
    use whit_live::Lost;
    use whit_profile::KeptSymbols;

    /// Waits within each window until the test lets it go on.
    struct Slow {
        gate: Barrier,
        fails: bool,
    }

    impl Sink for Slow {
        fn name(&self) -> String {
            "slow".to_owned()
        }

        fn accept(&self, _: &Window) -> Result<(), String> {
            self.gate.wait();
            if self.fails { Err("no room".to_owned()) } else { Ok(()) }
        }

        fn status(&self) -> serde_json::Value {
            serde_json::Value::Null
        }
    }

    fn window(number: u64) -> Arc<Window> {
        let (held, symbols) = (HeldBytes::default(), KeptSymbols::default());
        let now = SystemTime::now();
        let made = Window::make(number, (now, now), (&held, &symbols), |_| Ok(Lost::default()));
        Arc::new(made.unwrap())
    }

    fn taken(fails: bool) -> SinkStatus {
        let log = Log::new(Box::new(std::io::sink()));
        let slow = Arc::new(Slow { gate: Barrier::new(2), fails });
        let sinks = Sinks::start(vec![slow.clone()], &log);
        let statuses = sinks.statuses();
        sinks.give(&window(0));
        // The thread holds the first one; the queue gets the others.
        while statuses.get()[0].waiting > 0 {
            std::thread::yield_now();
        }
        for number in 1..=QUEUE_WINDOWS_MAX as u64 + 3 {
            sinks.give(&window(number));
        }
        assert_eq!(statuses.get()[0].dropped_by_queue, 3);
        let opener = std::thread::spawn(move || {
            for _ in 0..=QUEUE_WINDOWS_MAX {
                slow.gate.wait();
            }
        });
        sinks.end();
        opener.join().unwrap();
        statuses.get().remove(0)
    }

    #[test]
    fn a_slow_sink_loses_what_its_queue_does_not_take_and_counts_it() {
        let status = taken(false);
        assert_eq!((status.accepted, status.failed, status.waiting), (5, 0, 0));
        assert_eq!(status.last_error, None);
    }

    #[test]
    fn a_failing_sink_continues_and_its_reason_is_shown() {
        let status = taken(true);
        assert_eq!((status.accepted, status.failed), (0, 5));
        assert_eq!(status.last_error.as_deref(), Some("no room"));
    }
}
