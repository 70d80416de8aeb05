//! Readers on threads of their own, which a session gives orders.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::options::Files;
use crate::session::file_watch::FileWatch;
use crate::session::quota::Quota;
use crate::session::reader_event::{ReaderEvent, SessionNotifier};
use crate::session::reader_thread::{DrainError, Order, RunningDrainer, Shared};

/// Each so many samples, the reader is woken.
const EACH: u64 = 4;
/// Turns of samples after which a failure has to be noticed.
const TURNS_MAX: usize = 10_000;
/// Samples of one turn.
const SAMPLES: u64 = 400;

fn start(drainer: RingDrainer, sink: StreamSink) -> (RunningDrainer, Receiver<ReaderEvent>) {
    let (notifier, news) = SessionNotifier::open().unwrap();
    let shared = Shared {
        meter: None,
        events: Arc::default(),
        notifier,
        quota: Arc::new(Quota::new(&Files::default())),
        keeps_journal: Arc::new(AtomicBool::new(false)),
        file_watch: FileWatch::default(),
    };
    (reader(drainer).with_stream(sink).start(0, shared).unwrap(), news)
}

fn emit(kernel: &mut Kernel, reader: &RunningDrainer) {
    for number in 0..SAMPLES {
        kernel.emit(number as usize % 60);
        if number % EACH == 0 {
            reader.order(Order::Write(Vec::new()));
        }
    }
}

#[test]
fn each_record_is_in_one_of_two_outputs() {
    for way in ways() {
        let place = tempfile::tempdir().unwrap();
        let rig = Rig::new(place.path(), &way, |_| Faults::default());
        let Rig { mut kernel, drainer, sink, path, file, outputs, context, meters, .. } = rig;
        let baseline = CostBaseline::open().unwrap();
        let next = outputs.create(&context.plan, baseline, &mut |_| ()).unwrap();
        let (next, mut streams) = next.into_parts();
        let (reader, _news) = start(drainer, sink);
        emit(&mut kernel, &reader);
        let (reply, share) = channel();
        reader.order(Order::Swap(Box::new(streams.remove(0)), reply));
        emit(&mut kernel, &reader);
        let first = share.recv().unwrap();
        emit(&mut kernel, &reader);
        let (reader, result) = reader.join().unwrap();
        result.unwrap();
        let mut way_out = WayOut { outputs, context, meters };
        let mut samples = Vec::new();
        let mut lost = kernel.unreported;
        // The second output has the name, since the first one was moved out of its way.
        let old = path.with_extension("data.old");
        for (file, share, path) in [(file, first, old), (next, reader.into_share(), path)] {
            let (share, ledger, has_failed) = way_out.complete(file, share, None);
            let stored = Stored::read(&path).unwrap();
            assert_law(&share, &stored, &ledger, &way);
            assert!(!has_failed && !stored.samples.is_empty(), "{way:?}");
            lost += stored.lost;
            samples.extend(stored.samples);
        }
        assert!(samples.is_sorted_by(|one, next| one < next), "{way:?}: {samples:?}");
        assert_eq!((samples.len() as u64 + lost, lost), (3 * SAMPLES, kernel.lost), "{way:?}");
    }
}

#[test]
fn a_reader_with_a_failing_disk_ends_and_says_so() {
    for way in ways() {
        let place = tempfile::tempdir().unwrap();
        let size = if way.compression_level.is_some() { 300 } else { 9000 };
        let full_at = |start| Some((start + size, Errno::IO.raw_os_error()));
        let faults = |start| Faults { full_at: full_at(start), ..Faults::default() };
        let rig = Rig::new(place.path(), &way, faults);
        let Rig { mut kernel, drainer, sink, path, file, outputs, context, meters, .. } = rig;
        let (reader, news) = start(drainer, sink);
        emit(&mut kernel, &reader);
        // A write that fails while the reader goes on is noticed at the next one.
        let has_ended = (0..TURNS_MAX).any(|_| {
            emit(&mut kernel, &reader);
            news.try_iter().any(|event| event == ReaderEvent::Ended)
        });
        assert!(has_ended, "{way:?}");
        let (mut reader, result) = reader.join().unwrap();
        let Err(DrainError::Sink(SinkError(error))) = result else { panic!("{way:?}") };
        assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()), "{way:?}");
        reader.finish_stream();
        let mut way_out = WayOut { outputs, context, meters };
        let (share, ledger, has_failed) = way_out.complete(file, reader.into_share(), Some(error));
        assert!(has_failed && share.unwritten.records > 0, "{way:?}");
        assert_law(&share, &Stored::read(&path).unwrap(), &ledger, &way);
    }
}
