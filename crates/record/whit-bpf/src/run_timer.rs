//! How long BPF programs run, by the kernel's statistics, for a part of the time.
//!
//! The kernel times all programs of the machine or none, and each run costs some 50 ns more then: a tenth
//! of a recorded switch, and as much for every packet where somebody else's programs filter those. So runs
//! are timed in short windows, and a figure comes with the share of the time that these windows cover.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whit_sys::Errno;
use whit_sys::bpf::enable_run_statistics;

/// How long a window is: the shortest recordings are timed as a whole.
const WINDOW: Duration = Duration::from_millis(50);
/// How long nothing is timed then. To switch takes the kernel 0.1 to 0.2 ms and an interrupt of each CPU.
const PAUSE: Duration = Duration::from_millis(450);
/// Name of the thread.
const THREAD: &str = "whit-run-timer";

/// The one of this process.
static SHARED: Mutex<Weak<AllWindows>> = Mutex::new(Weak::new());

/// Has the kernel time the runs of all BPF programs, in the windows of this process's timer, until it is
/// dropped. Where statistics are on for everybody, all the time is one window.
#[derive(Debug)]
pub struct RunTimer {
    windows: Arc<AllWindows>,
    /// Time in earlier windows.
    before: Duration,
}

/// The windows of a process, and the thread that opens and closes them if there is one.
#[derive(Debug)]
struct AllWindows {
    windows: Arc<Mutex<Windows>>,
    /// Dropped, it ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The windows so far.
#[derive(Debug, Default)]
struct Windows {
    closed: Duration,
    open_since: Option<Instant>,
}

impl Windows {
    fn taken(&self) -> Duration {
        self.closed + self.open_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn close(&mut self) {
        self.closed = self.taken();
        self.open_since = None;
    }
}

impl RunTimer {
    /// Begins a window if nobody in this process has a timer yet. `are_on`: statistics are on for
    /// everybody (`kernel.bpf_stats_enabled`).
    ///
    /// # Errors
    ///
    /// `Errno::PERM` without `cap_sys_admin`, `Errno::INVAL` before Linux 5.8.
    pub fn start(are_on: bool) -> Result<RunTimer, Errno> {
        let windows = if are_on { Arc::new(AllWindows::always()) } else { AllWindows::shared()? };
        let before = windows.taken();
        Ok(RunTimer { windows, before })
    }

    /// For how long runs were timed since it was started.
    pub fn timed(&self) -> Duration {
        self.windows.taken() - self.before
    }
}

impl AllWindows {
    fn always() -> AllWindows {
        let windows = Windows { closed: Duration::ZERO, open_since: Some(Instant::now()) };
        AllWindows { windows: Arc::new(Mutex::new(windows)), stop: None, thread: None }
    }

    fn shared() -> Result<Arc<AllWindows>, Errno> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(timer) = shared.upgrade() {
            return Ok(timer);
        }
        let timer = Arc::new(AllWindows::start()?);
        *shared = Arc::downgrade(&timer);
        Ok(timer)
    }

    fn start() -> Result<AllWindows, Errno> {
        let windows = Arc::new(Mutex::new(Windows::default()));
        let (stop, stopped) = channel::<()>();
        let first = open_window(&windows)?;
        let of_thread = windows.clone();
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let thread = thread.spawn(move || {
            let continues = |time| stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            let mut window = Some(first);
            while window.is_some() && continues(WINDOW) {
                lock(&of_thread).close();
                window = None;
                if continues(PAUSE) {
                    // A process that has lost the right keeps the sums so far.
                    window = open_window(&of_thread).ok();
                }
            }
            lock(&of_thread).close();
        });
        let thread = Some(thread.map_err(|_| Errno::AGAIN)?);
        Ok(AllWindows { windows, stop: Some(stop), thread })
    }

    fn taken(&self) -> Duration {
        lock(&self.windows).taken()
    }
}

impl Drop for AllWindows {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

/// Runs are timed as long as the descriptor is open.
fn open_window(windows: &Mutex<Windows>) -> Result<OwnedFd, Errno> {
    let window = enable_run_statistics()?;
    lock(windows).open_since = Some(Instant::now());
    Ok(window)
}

fn lock(windows: &Mutex<Windows>) -> MutexGuard<'_, Windows> {
    windows.lock().unwrap_or_else(PoisonError::into_inner)
}
