//! Counts written bytes, and notices when an output or the whole recording reaches its limit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::reader_event::ReaderEvent;
use crate::options::{Files, SwitchOutput};

/// Counts what all readers have written.
#[derive(Debug)]
pub(super) struct Quota {
    /// Into the present output.
    part_bytes: AtomicU64,
    /// Into all outputs.
    total_bytes: AtomicU64,
    switch_at: u64,
    stop_at: u64,
    switch_reported: AtomicBool,
    stop_reported: AtomicBool,
}

impl Quota {
    /// As the options have it.
    pub(super) fn new(files: &Files) -> Quota {
        let switch_at = match files.switch {
            Some(SwitchOutput::AtBytes(bytes)) => bytes,
            _ => u64::MAX,
        };
        Quota {
            part_bytes: AtomicU64::new(0),
            total_bytes: AtomicU64::new(0),
            switch_at,
            stop_at: files.max_bytes.unwrap_or(u64::MAX),
            switch_reported: AtomicBool::new(false),
            stop_reported: AtomicBool::new(false),
        }
    }

    /// Counts written bytes. Gives an event when they reach a limit, once for each limit. Relaxed ordering is enough,
    /// because the receiver of the event reads nothing else.
    pub(super) fn add(&self, bytes: u64) -> Option<ReaderEvent> {
        let total = self.total_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let output_file = self.part_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if total >= self.stop_at && !self.stop_reported.swap(true, Ordering::Relaxed) {
            return Some(ReaderEvent::SizeReached);
        }
        if output_file >= self.switch_at && !self.switch_reported.swap(true, Ordering::Relaxed) {
            return Some(ReaderEvent::SwitchDue);
        }
        None
    }

    /// A new output begins.
    pub(super) fn next_part(&self) {
        self.part_bytes.store(0, Ordering::Relaxed);
        self.switch_reported.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_reported_once_and_again_for_the_next_output() {
        let files = Files {
            switch: Some(SwitchOutput::AtBytes(100)),
            max_bytes: Some(250),
            ..Files::default()
        };
        let quota = Quota::new(&files);
        assert_eq!(
            (quota.add(99), quota.add(1), quota.add(50)),
            (None, Some(ReaderEvent::SwitchDue), None)
        );
        quota.next_part();
        assert_eq!((quota.add(50), quota.add(50)), (None, Some(ReaderEvent::SizeReached)));
        assert_eq!((quota.add(1), quota.add(1)), (Some(ReaderEvent::SwitchDue), None));
        let none = Quota::new(&Files::default());
        assert_eq!(none.add(u64::MAX / 2), None);
    }
}
