//! The records of the last while.

use crate::{Bounds, StreamError, Window};
use std::io::{self, Read, Write};
use std::process::ChildStdin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A target that does nothing has no records: after this time, it is taken for one.
const QUIET_TARGET: Duration = Duration::from_secs(4);

#[derive(Debug)]
struct State {
    window: Window,
    is_over: bool,
    /// When the last bytes came.
    heard: Instant,
    /// When the events of the recording were named.
    announced: Option<Instant>,
    error: Option<StreamError>,
}

/// The way of commands to the recorder.
#[derive(Debug, Default)]
struct Control {
    pipe: Option<ChildStdin>,
    /// The number of the last order to empty the rings.
    asked: u64,
}

/// The records of the last while. Clones share them.
#[derive(Clone, Debug)]
pub struct LiveStream {
    state: Arc<Mutex<State>>,
    /// The stream has a mark more, or has ended.
    marked: Arc<Condvar>,
    control: Arc<Mutex<Control>>,
    /// The moment from which times are counted.
    origin: Instant,
}

impl LiveStream {
    /// Times are counted from `origin`.
    pub fn new(bounds: Bounds, origin: Instant) -> LiveStream {
        let window = Window::new(bounds);
        let (is_over, heard) = (false, Instant::now());
        let state = State { window, is_over, heard, announced: None, error: None };
        let (state, marked) = (Arc::new(Mutex::new(state)), Arc::default());
        LiveStream { state, marked, control: Arc::default(), origin }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commands go this way from now on.
    pub(crate) fn command_by(&self, pipe: Option<ChildStdin>) {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).pipe = pipe;
    }

    /// Has the recorder empty its rings; gives the number of the mark that follows in its stream.
    pub fn ask_to_drain(&self) -> Option<u64> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        control.asked += 1;
        let (number, line) = (control.asked, format!("drain {}\n", control.asked));
        // A pipe takes a line whole.
        let sent =
            control.pipe.as_mut().is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok());
        sent.then_some(number)
    }

    /// Waits until the records of this order are here; false where they do not come in time.
    pub fn wait_for(&self, order: u64, patience: Duration) -> bool {
        let is_waiting = |state: &mut State| {
            !state.is_over && state.window.drained().is_none_or(|drained| drained < order)
        };
        let waited = self.marked.wait_timeout_while(self.lock(), patience, is_waiting);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.window.drained().is_some_and(|drained| drained >= order)
    }

    /// Has the recorder write something, where it still does.
    pub fn ask_for_a_sign(&self) {
        let _ = self.ask_to_drain();
    }

    /// Time since the last bytes came.
    pub fn silent_for(&self) -> Duration {
        self.lock().heard.elapsed()
    }

    /// Uses the records, as they are by now; gives the time from the origin in nanoseconds, too.
    pub fn with_window<T>(&self, use_it: impl FnOnce(&mut Window, u64) -> T) -> T {
        let mut state = self.lock();
        let now_ns = self.now_ns();
        use_it(&mut state.window, now_ns)
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Reads to the end; tells when the recording begins, and when it ends.
    pub(crate) fn read(&self, mut from: impl Read, bytes: &mut [u8], changed: &dyn Fn()) {
        loop {
            let read = match from.read(bytes) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            match self.take(&bytes[..read]) {
                Ok(true) => changed(),
                Ok(false) => {}
                Err(error) => {
                    self.lock().error = Some(error);
                    break;
                }
            }
        }
        self.lock().is_over = true;
        self.marked.notify_all();
        changed();
    }

    /// Takes more of the stream. True where the recording begins by it.
    fn take(&self, bytes: &[u8]) -> Result<bool, StreamError> {
        let mut state = self.lock();
        state.heard = Instant::now();
        let beginning = |window: &Window| (window.has_begun(), window.has_rounds());
        let (before, drained) = (beginning(&state.window), state.window.drained());
        state.window.push(bytes, self.now_ns())?;
        if state.window.drained() != drained {
            self.marked.notify_all();
        }
        if state.announced.is_none() && state.window.has_begun() {
            state.announced = Some(Instant::now());
        }
        Ok(before != beginning(&state.window))
    }

    /// Whether events are recorded by now.
    pub fn has_begun(&self) -> bool {
        let state = self.lock();
        let is_quiet = |since: Instant| since.elapsed() > QUIET_TARGET;
        state.window.has_rounds() || state.announced.is_some_and(is_quiet)
    }

    /// Whether there is a recording at all, if one without records.
    pub fn is_announced(&self) -> bool {
        self.lock().window.has_begun()
    }

    /// Whether the stream has ended.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Why it could not be read on.
    pub fn error(&self) -> Option<StreamError> {
        self.lock().error.clone()
    }
}
