//! How long BPF programs run, by the kernel's statistics, for a part of the time.
//!
//! The kernel times all programs of the machine or none, and each run costs some 50 ns more then: a
//! tenth of a recorded switch, and as much for every packet where somebody else's programs filter those.
//! So runs are timed in short windows, and whoever shows the figures says how much of the time these were.

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
static SHARED: Mutex<Weak<RunTimer>> = Mutex::new(Weak::new());

/// Has the kernel time the runs of all BPF programs in windows, until it is dropped.
#[derive(Debug)]
pub struct RunTimer {
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
    /// The timer of this process; its first window begins here if nobody has it yet. Where statistics
    /// are on for everybody (`kernel.bpf_stats_enabled`), all the time is one window.
    ///
    /// # Errors
    ///
    /// `Errno::PERM` without `cap_sys_admin`, `Errno::INVAL` before Linux 5.8.
    pub fn shared(are_on: bool) -> Result<Arc<RunTimer>, Errno> {
        if are_on {
            let windows = Windows { closed: Duration::ZERO, open_since: Some(Instant::now()) };
            let windows = Arc::new(Mutex::new(windows));
            return Ok(Arc::new(RunTimer { windows, stop: None, thread: None }));
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(timer) = shared.upgrade() {
            return Ok(timer);
        }
        let timer = Arc::new(RunTimer::start()?);
        *shared = Arc::downgrade(&timer);
        Ok(timer)
    }

    fn start() -> Result<RunTimer, Errno> {
        let windows = Arc::new(Mutex::new(Windows::default()));
        let (stop, stopped) = channel::<()>();
        let first = open_window(&windows)?;
        let of_thread = windows.clone();
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let thread = thread.spawn(move || {
            let goes_on = |time| stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            let mut window = Some(first);
            while window.is_some() && goes_on(WINDOW) {
                lock(&of_thread).close();
                window = None;
                if goes_on(PAUSE) {
                    // Who may no more leaves it at what was timed.
                    window = open_window(&of_thread).ok();
                }
            }
            lock(&of_thread).close();
        });
        Ok(RunTimer { windows, stop: Some(stop), thread: Some(thread.map_err(|_| Errno::AGAIN)?) })
    }

    /// For how long runs were timed so far.
    pub fn taken(&self) -> Duration {
        lock(&self.windows).taken()
    }
}

impl Drop for RunTimer {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_a_part_of_the_time() {
        let begin = Instant::now();
        let timer = match RunTimer::shared(false) {
            Ok(timer) => timer,
            Err(errno) => return eprintln!("skipped windows_are_a_part_of_the_time: {errno}"),
        };
        assert!(Arc::ptr_eq(&timer, &RunTimer::shared(false).unwrap()));
        // The first one ends, and another one begins.
        let grows_from = |from: Duration| {
            while timer.taken() <= from {
                assert!(begin.elapsed() < Duration::from_secs(60), "{timer:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        grows_from(Duration::ZERO);
        while lock(&timer.windows).open_since.is_some() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let first = timer.taken();
        assert!(first >= WINDOW, "{first:?}");
        grows_from(first);
        assert!(timer.taken() + PAUSE <= begin.elapsed(), "{timer:?}");
        let always = RunTimer::shared(true).unwrap();
        assert!(!Arc::ptr_eq(&timer, &always));
        let before = always.taken();
        std::thread::sleep(Duration::from_millis(2));
        assert!(always.taken() >= before + Duration::from_millis(2));
        drop(timer);
        assert!(SHARED.lock().unwrap().upgrade().is_none());
    }
}
