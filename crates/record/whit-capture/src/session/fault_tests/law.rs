//! Any records, any way of writing, any faults.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whit_engine_api::open_event::{ConfiguredEvent, Instance, OpenEvent};

use super::*;

/// Records of one burst, their size, and the pass behind them.
type Burst = (usize, usize, usize);

const PASSES: [Option<Pass>; 4] =
    [None, Some(Pass::WorthWhile), Some(Pass::AtLeast(6000)), Some(Pass::Everything)];

fn way() -> impl Strategy<Value = Streaming> {
    proptest::sample::select(ways())
}

fn faults() -> impl Strategy<Value = Faults> {
    let errno = proptest::sample::select(vec![Errno::NOSPC, Errno::IO]);
    let full_at = option::of((0u64..300_000, errno));
    (full_at, option::of(1usize..40_000), option::of(2u64..7)).prop_map(
        |(full_at, most_bytes, interrupt_each)| Faults {
            full_at: full_at.map(|(at, errno)| (at, errno.raw_os_error())),
            most_bytes,
            interrupt_each,
        },
    )
}

fn record(way: &Streaming, faults: Faults, bursts: &[Burst]) -> Recorded {
    let place = tempfile::tempdir().unwrap();
    let behind =
        |start| Faults { full_at: faults.full_at.map(|(at, errno)| (start + at, errno)), ..faults };
    let mut rig = Rig::new(place.path(), way, behind);
    for &(records, more_words, pass) in bursts {
        (0..records).for_each(|_| rig.kernel.emit(more_words));
        let passed = PASSES[pass].map(|which| rig.pass(which));
        if let Some(Err(SinkError(error))) = passed {
            return rig.end(Some(error));
        }
    }
    rig.end(None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_record_of_the_ring_is_written_or_counted(
        way in way(),
        faults in faults(),
        bursts in vec((0usize..80, 0usize..300, 0usize..PASSES.len()), 1..20),
    ) {
        record(&way, faults, &bursts).assert_law(&(&way, faults));
    }
}

#[test]
fn losses_of_a_full_ring_are_those_of_its_lost_records() {
    for way in ways() {
        // Each burst is larger than the ring.
        let recorded = record(&way, Faults::default(), &[(60, 120, 3); 5]);
        recorded.assert_law(&way);
        assert!(recorded.stored.lost > 0 && recorded.kernel.unreported > 0, "{way:?}");
    }
}

#[test]
fn short_and_interrupted_writes_lose_nothing() {
    let faults = Faults { most_bytes: Some(7), interrupt_each: Some(2), ..Faults::default() };
    for way in ways() {
        let recorded = record(&way, faults, &[(5, 3, 3), (9, 0, 1), (20, 40, 3)]);
        recorded.assert_law(&way);
        assert_eq!((recorded.has_failed, recorded.stored.samples.len()), (false, 34), "{way:?}");
    }
}

/// The kernel writes no such bytes. They end the recording where a reader could go on no further.
#[test]
fn bytes_that_are_no_records_are_counted() {
    for way in ways() {
        let place = tempfile::tempdir().unwrap();
        let mut rig = Rig::new(place.path(), &way, |_| Faults::default());
        (0..3).for_each(|_| rig.kernel.emit(4));
        assert!(rig.kernel.ring.push(&[0; 24]).unwrap());
        rig.pass(Pass::Everything).unwrap();
        let recorded = rig.end(None);
        assert_eq!(recorded.share.taken.unreadable_bytes, 24, "{way:?}");
        assert_eq!((recorded.share.taken.records, recorded.stored.records), (3, 3), "{way:?}");
        assert_eq!((recorded.unread, recorded.ledger.samples), (0, 3), "{way:?}");
    }
}

#[test]
fn rings_that_are_overwritten_give_their_newest_records_once() {
    for way in ways() {
        let (place, mut kernel) = (tempfile::tempdir().unwrap(), Kernel::new());
        let events = [event(&kernel)];
        let ring = kernel.map(true);
        let write = |kernel: &mut Kernel, records: usize| {
            for _ in 0..records {
                let record = kernel.sample(100);
                kernel.ring.push_backward(&record).unwrap();
            }
        };
        write(&mut kernel, 3);
        let mut rig = Rig::with_ring(place.path(), &way, |_| Faults::default(), kernel, ring);
        rig.drainer.snapshot(&mut rig.sink, &events).unwrap();
        write(&mut rig.kernel, 200);
        rig.drainer.snapshot(&mut rig.sink, &events).unwrap();
        // Nothing new.
        rig.drainer.snapshot(&mut rig.sink, &events).unwrap();
        let recorded = rig.end(None);
        let Stored { samples, gaps, records, .. } = &recorded.stored;
        let kept = PAGES * system::page_size() / recorded.kernel.sample_bytes(100);
        assert_eq!(samples[..3], [1, 2, 3], "{way:?}");
        assert_eq!(samples[3..], Vec::from_iter(204 - kept as u64..204), "{way:?}");
        assert_eq!((*gaps, *records), (1, recorded.share.taken.records), "{way:?}");
        assert_eq!(recorded.ledger.samples, samples.len() as u64, "{way:?}");
    }
}

fn event(kernel: &Kernel) -> OpenEvent {
    let fd = PerfEventFd::fake(kernel.ring.descriptor().unwrap());
    let event = ConfiguredEvent::new(EventSpec::new("cpu-clock", pmu_type::SOFTWARE, 0), attr());
    OpenEvent::new(event, vec![Some(Instance { fd, id: ID, cpu: Some(CpuId(0)), tid: None })])
}
