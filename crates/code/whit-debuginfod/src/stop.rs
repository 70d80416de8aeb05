//! The wish to end, which comes from a key or from whit.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use whit_sys::{Errno, Poller, Signal, SignalWatch};

/// Whether somebody wants an end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Watches standard input, whose requests were read, and `SIGINT`, which is blocked.
    pub(crate) fn watch() -> Result<Stop, Errno> {
        let stop = Stop::default();
        let (signals, mut poller) = (SignalWatch::new(&[Signal::Interrupt])?, Poller::new()?);
        poller.add(&signals, 0)?;
        let by_signal = stop.clone();
        std::thread::spawn(move || {
            let came = poller.wait(None);
            // Open until then.
            drop(signals);
            if came.is_ok() {
                by_signal.stop();
            }
        });
        let by_end = stop.clone();
        std::thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            while matches!(stdin.read(&mut [0; 64]), Ok(1..)) {}
            by_end.stop();
        });
        Ok(stop)
    }

    pub(crate) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
