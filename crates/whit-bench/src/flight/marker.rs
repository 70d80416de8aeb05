//! A thread that sleeps and wakes, and counts its own context switches by `/proc`.

use std::collections::VecDeque;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use whit_sys::clock::ClockId;
use whit_sys::system::thread_id;

/// Between two readings; each is at least one switch.
const INTERVAL: Duration = Duration::from_millis(2);
/// Readings that are kept: a minute or more.
const READINGS_MAX: usize = 40_000;

type Readings = Arc<Mutex<VecDeque<(u64, u64)>>>;

/// The thread; it ends with this.
pub(super) struct Marker {
    tid: i32,
    /// Times, and the number of switches so far.
    readings: Readings,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The clock of the recordings.
pub(super) fn now_ns() -> u64 {
    ClockId::MONOTONIC.now_ns().unwrap_or_default()
}

impl Marker {
    pub(super) fn start() -> Marker {
        let (readings, is_over) = (Readings::default(), Arc::new(AtomicBool::new(false)));
        let (sender, receiver) = channel();
        let (into, until) = (readings.clone(), is_over.clone());
        let thread = std::thread::spawn(move || {
            let _ = sender.send(thread_id());
            while !until.load(Ordering::Relaxed) {
                std::thread::sleep(INTERVAL);
                take(&into);
            }
        });
        let tid = receiver.recv().unwrap_or_default();
        Marker { tid, readings, is_over, thread: Some(thread) }
    }

    pub(super) fn tid(&self) -> i32 {
        self.tid
    }

    /// The first and the last reading within these times, and the number of switches between them.
    pub(super) fn counted(&self, from_ns: u64, to_ns: u64) -> Option<(u64, u64, u64)> {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut within = readings.iter().filter(|(at, _)| (from_ns..to_ns).contains(at));
        let (first_ns, first) = within.next()?;
        let (last_ns, last) = within.next_back()?;
        Some((*first_ns, *last_ns, last - first))
    }
}

/// A moment between two switches: the count is the same before and behind it.
fn take(readings: &Readings) {
    let Some(before) = switches() else { return };
    let at_ns = now_ns();
    if switches() == Some(before) {
        let mut readings = readings.lock().unwrap_or_else(PoisonError::into_inner);
        if readings.len() >= READINGS_MAX {
            readings.pop_front();
        }
        readings.push_back((at_ns, before));
    }
}

/// Switches of the calling thread, of both kinds.
fn switches() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/status").ok()?;
    let counts = text.lines().filter(|line| line.contains("voluntary_ctxt_switches:"));
    counts.map(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()).sum()
}

impl Drop for Marker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_counted() {
        let begin = now_ns();
        let marker = Marker::start();
        assert!(marker.tid() > 0 && marker.tid() != thread_id());
        std::thread::sleep(Duration::from_millis(300));
        let (first, last, counted) = marker.counted(begin, now_ns()).unwrap();
        assert!(begin <= first && first < last, "{first} {last}");
        assert!(counted >= 5, "{counted}");
        assert_eq!(marker.counted(0, begin), None);
    }
}
