//! A disk that takes nothing for a while.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Samples of 4 KiB: the stall shall not need many.
const MORE_WORDS: usize = 500;
/// Samples while the disk stalls.
const SAMPLES: u64 = 3000;
/// More than all blocks and the ring hold.
const TAKEN_MAX: u64 = 600;

#[test]
fn records_that_find_no_room_while_the_disk_stalls_are_counted_by_the_ring() {
    for way in ways() {
        let place = tempfile::tempdir().unwrap();
        let mut rig = Rig::new(place.path(), &way, |_| Faults::default());
        let disk = rig.disk.clone();
        disk.stall();
        rig.kernel.emit(MORE_WORDS);
        let is_over = AtomicBool::new(false);
        let Rig { kernel, drainer, sink, .. } = &mut rig;
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    drainer.pass(sink, Pass::Everything).unwrap();
                }
            });
            disk.wait_for_stalled_write();
            // The reader goes on as long as it has blocks; then the ring fills.
            (0..SAMPLES).for_each(|_| kernel.emit(MORE_WORDS));
            disk.resume();
            is_over.store(true, Ordering::SeqCst);
            reader.join().unwrap();
        });
        rig.pass(Pass::Everything).unwrap();
        // The next sample reports the loss.
        rig.kernel.emit(0);
        let recorded = rig.end(None);
        recorded.assert_law(&way);
        assert_eq!(recorded.stored.lost, recorded.kernel.lost, "{way:?}");
        let lost = recorded.kernel.lost;
        assert!(!recorded.has_failed && lost >= SAMPLES - TAKEN_MAX, "{way:?}: {lost}");
    }
}

#[test]
fn a_disk_that_fails_after_a_stall_loses_every_block_behind_the_failure() {
    for way in ways() {
        let place = tempfile::tempdir().unwrap();
        // Two samples; of compressed ones not even the first.
        let (size, kept) = if way.compression_level.is_some() { (60, 0) } else { (9000, 2) };
        let full_at = |start| Some((start + size, Errno::NOSPC.raw_os_error()));
        let faults = |start| Faults { full_at: full_at(start), ..Faults::default() };
        let mut rig = Rig::new(place.path(), &way, faults);
        let disk = rig.disk.clone();
        if way.async_blocks > 0 {
            disk.stall();
        }
        let mut failed = None;
        // As many passes as there may be blocks under way: the next one would wait.
        for _ in 0..way.async_blocks.max(1) {
            (0..5).for_each(|_| rig.kernel.emit(MORE_WORDS));
            failed = failed.or(rig.pass(Pass::Everything).err().map(|error| error.0));
        }
        disk.resume();
        let recorded = rig.end(failed);
        recorded.assert_law(&way);
        assert!(recorded.has_failed, "{way:?}");
        assert_eq!(recorded.stored.samples, Vec::from_iter(1..=kept), "{way:?}");
    }
}
