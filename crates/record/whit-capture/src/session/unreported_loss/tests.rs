use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use whit_engine_api::event::{EventSpec, software};
use whit_engine_api::open_event::{ConfiguredEvent, Instance, InstanceIndex};
use whit_engine_api::ring_slices::RingSlices;
use whit_host::open::{EventTarget, Tasks};
use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::loss::PausedTime;
use whit_perfdata::record::{RawRecord, SideBand};
use whit_sys::usage::CpuUsage;
use whit_sys::{OpenFlags, PerfEventFd, Ring};
use whit_testing::{Skip, check};

use super::*;
use crate::mapped_files::MappedFiles;
use crate::ring_clock::RecordClock;
use crate::stream::{StreamFile, StreamOptions, StreamSink};

/// COMM records that a ring of one page has no room for, all of them.
const RENAMES: u64 = 300;
const CPU: CpuId = CpuId(1);

fn attr(read_format: ReadFormat) -> Attr {
    Attr {
        pmu_type: pmu_type::SOFTWARE,
        config: software::DUMMY,
        sample_type: SampleType::TIME | SampleType::IDENTIFIER | SampleType::CPU,
        flags: AttrFlags::COMM | AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
        read_format: read_format | ReadFormat::ID,
        ..Attr::default()
    }
}

/// Opens events of this thread that count nothing, all in the group of the first one where the format says so.
fn open(formats: &[ReadFormat]) -> Result<Vec<OpenEvent>, Skip> {
    let mut events: Vec<OpenEvent> = Vec::new();
    for &read_format in formats {
        let attr = attr(read_format);
        let is_group = read_format.contains(ReadFormat::GROUP);
        let leader = events.first().filter(|_| is_group).map(|event| &event.instances[0].fd);
        let fd = PerfEventFd::open(&attr.to_bytes(), 0, -1, leader, OpenFlags::default()).map_err(
            |errno| Skip(format!("no event with lost counts opens (Linux 6.0): {errno}")),
        )?;
        let target = EventTarget { cpu: None, tasks: Tasks::Own };
        let instance = Instance::new(fd, target).expect("an id");
        let mut spec = EventSpec::new("dummy", attr.pmu_type, attr.config);
        spec.leader = is_group.then_some(0);
        let event = ConfiguredEvent::new(spec, attr);
        events.push(OpenEvent::new(event, vec![Some(instance)]));
    }
    Ok(events)
}

/// Makes the ring of an event too full. Gives the number of records that the kernel dropped.
fn overflow(event: &OpenEvent) -> u64 {
    let mut ring = Ring::map(&event.instances[0].fd, 1).expect("a ring of one page");
    let name = rustix::thread::name().expect("a name");
    for _ in 0..RENAMES {
        rustix::thread::set_name(&name).expect("the same name");
    }
    let kept = ring.drain(|slices| RingSlices(slices).records_from(0).count());
    RENAMES - kept.expect("records") as u64
}

/// A ring that the first event writes into, drained `drained_ns` after `begin`.
fn end(begin: Instant, drained_ns: Option<u64>) -> RingEnd {
    RingEnd {
        members: vec![InstanceIndex { event: 0, instance: 0 }],
        cpu: Some(CPU),
        is_backward: false,
        reported: 0,
        last_record: TimestampNs(1_200),
        drained: drained_ns.map(|ns| begin + Duration::from_nanos(ns)),
        paused: PausedTime::default(),
        lost_switches: 0,
        last_switch: None,
    }
}

/// A reader with these rings. A record of time 1000 was read at `begin`.
fn share(begin: Instant, ends: Vec<RingEnd>) -> (ReaderShare, Arc<File>) {
    let file = Arc::new(tempfile::tempfile().unwrap());
    let stream = StreamFile::seekable(file.clone(), 0);
    let (sink, _) = StreamSink::new(stream, &StreamOptions::default()).unwrap();
    let mut clock = RecordClock::default();
    clock.see(begin, TimestampNs(1_000));
    let share = ReaderShare {
        sink,
        rings: Vec::new(),
        mapped: MappedFiles::default(),
        wakeups: 0,
        usage: CpuUsage::default(),
        ends,
        clock,
        journal_cut: false,
    };
    (share, file)
}

#[test]
fn drops_behind_the_last_record_are_the_kernels_and_last_until_the_ring_was_drained() {
    check("drops_behind_the_last_record", || {
        let events = open(&[ReadFormat::LOST])?;
        let id = events[0].instances[0].id;
        let dropped = overflow(&events[0]);
        let of_engine = EngineLosses::default();
        let losses = Losses { events: &events, of_engine: &of_engine };
        let begin = Instant::now();
        let stopped = begin + Duration::from_nanos(900);
        let stated = |end: RingEnd| {
            let (quiet, _) = share(begin, Vec::new());
            let (share, _) = share(begin, vec![end]);
            let all = losses.unreported(&[quiet, share], stopped);
            let stated = |one: &UnreportedLoss| {
                let UnreportedLoss { ring_drainer, lost, paused_ns, since, id, cpu } = *one;
                (ring_drainer, lost, paused_ns, since.0, id, cpu)
            };
            all.iter().map(stated).collect::<Vec<_>>()
        };
        let kept = end(begin, Some(500));
        // By the clock of the records, the ring was drained at 1500 and all stopped at 1900.
        assert_eq!(stated(kept.clone()), [(1, dropped, 300, 1_200, id, CPU)]);
        for drained_ns in [None, Some(5_000)] {
            assert_eq!(stated(end(begin, drained_ns)), [(1, dropped, 700, 1_200, id, CPU)]);
        }
        // Until 1300 it was known to be full.
        let mut known = kept.clone();
        known.paused.add(TimestampNs(1_100), TimestampNs(1_300));
        assert_eq!(stated(known), [(1, dropped, 200, 1_200, id, CPU)]);
        // Nobody knows how long.
        let backward = RingEnd { is_backward: true, ..kept.clone() };
        assert_eq!(stated(backward), [(1, dropped, 0, 1_200, id, CPU)]);
        let empty = RingEnd { last_record: TimestampNs(0), ..kept.clone() };
        assert_eq!(stated(empty), [(1, dropped, 0, 0, id, CPU)]);
        let any_cpu = RingEnd { cpu: None, ..kept.clone() };
        assert_eq!(stated(any_cpu), [(1, dropped, 300, 1_200, id, ANY_CPU)]);
        // A LOST record reports some, or all.
        let some = RingEnd { reported: dropped - 1, ..kept.clone() };
        assert_eq!(stated(some), [(1, 1, 300, 1_200, id, CPU)]);
        assert_eq!(stated(RingEnd { reported: dropped, ..kept.clone() }), []);
        // Nobody writes into it.
        assert_eq!(stated(RingEnd { members: Vec::new(), ..kept }), []);
        Ok(())
    });
}

#[test]
fn groups_are_read_once_and_events_without_lost_counts_are_not_read() {
    check("groups_are_read_once", || {
        let group = ReadFormat::GROUP | ReadFormat::LOST;
        let events = open(&[group, group])?;
        let dropped = overflow(&events[1]);
        let private = BTreeMap::from([(1, 7)]);
        let of_engine = EngineLosses { private, ..EngineLosses::default() };
        let counted = Losses { events: &events, of_engine: &of_engine }.counted();
        let ids: Vec<u64> = events.iter().map(|event| event.instances[0].id).collect();
        assert_eq!(counted.by_id, HashMap::from([(ids[0], 0), (ids[1], dropped)]));
        assert_eq!(*counted.wakeup_events, of_engine.private);
        let events = open(&[ReadFormat::GROUP, ReadFormat::GROUP])?;
        let counted = Losses { events: &events, of_engine: &of_engine }.counted();
        assert_eq!(counted.by_id, HashMap::new());
        Ok(())
    });
}

#[test]
fn records_that_only_wake_the_reader_are_no_loss() {
    let wakeup_events = BTreeMap::from([(1, 4)]);
    let by_id = HashMap::from([(7, 10), (8, 5), (9, 100)]);
    let counted = Counted { by_id, wakeup_events: &wakeup_events };
    let unreported = |ids: &[u64], reported: u64, cpu: Option<CpuId>| {
        let end = RingEnd { reported, cpu, ..end(Instant::now(), None) };
        counted.unreported(ids.iter().copied(), &end)
    };
    assert_eq!(unreported(&[7, 8, 6], 0, None), 15);
    assert_eq!(unreported(&[7, 8], 12, None), 3);
    assert_eq!(unreported(&[7, 8], 12, Some(CpuId(0))), 3);
    assert_eq!(unreported(&[7, 8], 12, Some(CPU)), 7);
    assert_eq!(unreported(&[7, 8], 3, Some(CPU)), 15);
    assert_eq!(unreported(&[7, 8], 20, Some(CPU)), 0);
}

#[test]
fn an_output_that_others_follow_ends_in_doubt() {
    check("an_output_that_others_follow", || {
        let events = open(&[ReadFormat::LOST])?;
        let dropped = overflow(&events[0]);
        let of_engine = EngineLosses { outside_rings: vec![9, 3], ..EngineLosses::default() };
        let losses = Losses { events: &events, of_engine: &of_engine };
        let begin = Instant::now();
        let since = |reported: u64, lost_switches: u64, last_switch: Option<u64>, cpu: u32| {
            let last_switch = last_switch.map(TimestampNs);
            let cpu = Some(CpuId(cpu));
            let end = RingEnd { reported, lost_switches, last_switch, cpu, ..end(begin, None) };
            let (share, _) = share(begin, vec![end]);
            let doubtful = losses.doubtful(&[share]);
            assert!(doubtful.iter().all(|one| (one.lost, one.paused_ns) == (0, 0)));
            doubtful.iter().map(|one| one.since.0).collect::<Vec<_>>()
        };
        assert_eq!(since(dropped, 3, Some(1_100), 1), [] as [u64; 0]);
        assert_eq!(since(dropped, 2, Some(1_100), 1), [1_100]);
        assert_eq!(since(dropped, 3, Some(1_100), 0), [1_100]);
        assert_eq!(since(dropped, 2, None, 1), [] as [u64; 0]);
        assert_eq!(since(dropped, 0, Some(1_100), 2), [] as [u64; 0]);
        assert_eq!(since(dropped - 1, 3, Some(1_100), 1), [1_200]);
        assert_eq!(since(0, 0, Some(1_100), 1), [1_200, 1_100]);
        Ok(())
    });
}

#[test]
fn losses_are_written_into_the_streams_of_their_readers() {
    check("losses_are_written_into_the_streams", || {
        let events = open(&[ReadFormat::LOST])?;
        let id = events[0].instances[0].id;
        let of_engine = EngineLosses::default();
        let losses = Losses { events: &events, of_engine: &of_engine };
        let begin = Instant::now();
        let (first, first_file) = share(begin, vec![end(begin, None)]);
        let (second, second_file) = share(begin, vec![end(begin, None)]);
        let of_ring = losses.behind(1, &second.ends[0]);
        let mut of_cpu = losses.nothing_of(CpuId(5));
        assert_eq!((of_ring.since, of_cpu.since), (TimestampNs(1_200), TimestampNs(0)));
        of_cpu.begin_at_least(TimestampNs(1));
        let mut of_none = UnreportedLoss { ring_drainer: 2, lost: 3, ..of_ring };
        of_none.begin_at_least(TimestampNs(1));
        assert_eq!(of_none.since, TimestampNs(1_200));
        let all = [UnreportedLoss { lost: 12, ..of_ring }, of_cpu, of_none];
        losses.write(&mut [first, second], &all).unwrap();
        assert_eq!(losses_in(&first_file, id), [(0, 1, 5)]);
        assert_eq!(losses_in(&second_file, id), [(12, 1_200, CPU.0)]);
        Ok(())
    });
}

/// Lost samples, since when, and the CPU, for each record of a stream.
fn losses_in(file: &File, id: u64) -> Vec<(u64, u64, u32)> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let attr = attr(ReadFormat::LOST);
    let table = EventTable::new(&[EventDesc { attr, ids: vec![id], name: "dummy".into() }]);
    let (mut rest, mut all) = (&bytes[..], Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        let Some(SideBand::LostSamples { lost }) = SideBand::parse(record) else {
            panic!("{record:?}")
        };
        let trailer = table.parse_id_trailer(record);
        assert_eq!((trailer.id, trailer.time), (Some(id), Some(TimestampNs(0))));
        let since = table.loss_since(record).expect("a time");
        all.push((lost, since.0, trailer.cpu.expect("a CPU").0));
        rest = tail;
    }
    all
}
