//! A signal ends a recording that is still being set up.
//!
//! Setting up waits for the kernel: for its verifier, for a pipe that nobody reads yet, for the mappings of all processes.
//! None of these looks for signals that are blocked. So a thread does, and ends the program: nothing has been
//! recorded, the command has not begun, and the output that was created is removed.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use whit_sys::{Errno, Poller, Signal, SignalWatch, Waker};

use super::outcome::EXIT_SIGNAL_BASE;
use crate::error::CaptureError;
use crate::notice::SLOW_SET_UP;
use crate::output::OutputName;

/// Signals that end a recording.
pub(super) const SIGNALS: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
const SIGNALLED: u64 = 0;
const STOP: u64 = 1;

/// The thread. Once this is dropped, signals are the session's.
#[derive(Debug)]
pub(super) struct SetUpWatch {
    stop: Waker,
    created: Arc<Mutex<Option<OutputName>>>,
    thread: Option<JoinHandle<()>>,
}

impl SetUpWatch {
    /// Watches from here on. The signals have to be blocked. `slow` runs where the set-up takes longer than
    /// [`SLOW_SET_UP`].
    pub(super) fn start(slow: Box<dyn FnOnce() + Send>) -> Result<SetUpWatch, CaptureError> {
        let stop = Waker::new().map_err(CaptureError::system("create an event descriptor"))?;
        let created = Arc::new(Mutex::new(None));
        let (stopped, to_remove) = (stop.clone(), created.clone());
        let work = move || {
            // Where waiting fails, signals are seen when everything is set up.
            if let Ok(Some(signal)) = signal_before(&stopped, slow) {
                end_by(signal, &to_remove);
            }
        };
        let thread = std::thread::Builder::new().name("whit-set-up".to_owned()).spawn(work);
        let thread = thread.map_err(|source| CaptureError::Thread { source })?;
        Ok(SetUpWatch { stop, created, thread: Some(thread) })
    }

    /// This is to be removed if recording does not begin.
    pub(super) fn has_created(&self, output: &OutputName) {
        *self.created.lock().unwrap_or_else(PoisonError::into_inner) = Some(output.clone());
    }
}

impl Drop for SetUpWatch {
    fn drop(&mut self) {
        let _ = self.stop.wake();
        // A thread that ends the program never returns, so the join keeps the dropping thread from going on.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The signal that comes before `stop`.
fn signal_before(stop: &Waker, slow: Box<dyn FnOnce() + Send>) -> Result<Option<Signal>, Errno> {
    let signals = SignalWatch::new(&SIGNALS)?;
    let mut poller = Poller::new()?;
    poller.add(stop, STOP)?;
    poller.add(&signals, SIGNALLED)?;
    let mut slow = Some(slow);
    loop {
        let ready = poller.wait(slow.as_ref().map(|_| SLOW_SET_UP))?;
        if ready.is_empty() {
            slow.take().into_iter().for_each(|slow| slow());
        }
        if ready.iter().any(|ready| ready.token == STOP) {
            return Ok(None);
        }
        if let Some(signal) = signals.next()? {
            return Ok(Some(signal));
        }
    }
}

/// Ends the program as if the recording had ended by this signal.
fn end_by(signal: Signal, created: &Mutex<Option<OutputName>>) -> ! {
    if let Some(output) = &*created.lock().unwrap_or_else(PoisonError::into_inner) {
        output.undo();
    }
    std::process::exit(EXIT_SIGNAL_BASE + signal.number())
}
