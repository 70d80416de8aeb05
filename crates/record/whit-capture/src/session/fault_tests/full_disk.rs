//! A disk that is full, or breaks, at each place of a small recording.

use super::*;

const PASSES: usize = 4;

/// A small recording, with losses of the ring in the middle, on a disk that ends so far behind the header.
fn record(way: &Streaming, end: Option<(u64, Errno)>) -> (Recorded, u64) {
    let place = tempfile::tempdir().unwrap();
    let mut rig = Rig::new(place.path(), way, |start| Faults {
        full_at: end.map(|(end, errno)| (start + end, errno.raw_os_error())),
        ..Faults::default()
    });
    let (start, disk) = (rig.start, rig.disk.clone());
    let mut failed = None;
    for pass in 0..PASSES {
        if pass == 1 {
            rig.kernel.unreported += 2;
            rig.kernel.lost += 2;
            rig.kernel.samples += 2;
        }
        (0..3).for_each(|more_words| rig.kernel.emit(more_words));
        failed = rig.pass(Pass::Everything).err().map(|error| error.0);
        if failed.is_some() {
            break;
        }
    }
    let recorded = rig.end(failed);
    // The features stand behind the records; they were not written through this disk.
    let written = recorded.ledger.written_bytes;
    assert!(disk.contents().unwrap().len() as u64 >= start + written);
    (recorded, written)
}

#[test]
fn a_full_disk_costs_the_records_that_it_does_not_hold_and_no_others() {
    for way in ways() {
        let (whole, size) = record(&way, None);
        whole.assert_law(&way);
        assert!(!whole.has_failed && whole.stored.samples.len() == 3 * PASSES, "{way:?}");
        let mut fewest = 0;
        // Records begin at multiples of eight bytes.
        for end in (0..size).filter(|end| matches!(end % 8, 0 | 1 | 7)) {
            let errno = if end % 2 == 0 { Errno::NOSPC } else { Errno::IO };
            let (recorded, written) = record(&way, Some((end, errno)));
            recorded.assert_law(&(&way, end));
            assert!(recorded.has_failed && written <= end, "{way:?}, {end}");
            let stored = recorded.stored.samples.len();
            assert_eq!(recorded.stored.samples, whole.stored.samples[..stored], "{way:?}, {end}");
            assert!(stored >= fewest, "{way:?}: a larger disk holds more, {end}");
            fewest = stored;
        }
        // Only the last pass is lost where a byte is missing.
        assert!(fewest >= 3 * (PASSES - 1), "{way:?}: {fewest}");
        let (fits, _) = record(&way, Some((size, Errno::NOSPC)));
        assert!(!fits.has_failed && fits.stored.samples == whole.stored.samples, "{way:?}");
    }
}
