use super::*;
use crate::loss_window::LossWindow;
use crate::time_filter::TimeRange;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Features, RecordedSpan};
use whit_perfdata::reader::{Form, Recording};
use whit_perfdata::record::misc;

/// Records of a `cpu-clock` event with switches, in order of time.
struct Bytes {
    events: Vec<EventDesc>,
    bytes: Vec<u8>,
}

const SWITCH: u32 = record_type::SWITCH_CPU_WIDE;

impl Bytes {
    fn new() -> Bytes {
        let sample_type =
            SampleType::IDENTIFIER | SampleType::TID | SampleType::TIME | SampleType::CPU;
        let flags = AttrFlags::SAMPLE_ID_ALL | AttrFlags::CONTEXT_SWITCH;
        let attr = Attr { sample_type, flags, pmu_type: 1, ..Attr::default() };
        let event = EventDesc { attr, ids: vec![1], name: "cpu-clock".into() };
        Bytes { events: vec![event], bytes: Vec::new() }
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn task(tid: u64) -> u64 {
        tid << 32 | 1
    }

    fn sample(&mut self, time: u64, cpu: u64, tid: u64) {
        let body = Bytes::words(&[1, Bytes::task(tid), time, cpu]);
        push_record(&mut self.bytes, record_type::SAMPLE, 0, &body);
    }

    fn switch(&mut self, time: u64, cpu: u64, tid: u64, out: bool) {
        let flags = if out { misc::SWITCH_OUT } else { 0 };
        let body = Bytes::words(&[0, Bytes::task(tid), time, cpu, 1]);
        push_record(&mut self.bytes, SWITCH, flags, &body);
    }

    fn recording(&self) -> Recording {
        Recording {
            path: "x".into(),
            form: Form::File,
            events: self.events.clone(),
            packed: None,
            features: Features::default(),
            streams: Vec::new(),
            size_bytes: 0,
            is_cut: false,
            warnings: Vec::new(),
        }
    }

    /// The parallelism at each sample, and the times.
    fn follow(
        &self,
        spans: &[(u64, u64)],
        losses: &[(u32, u64, u64)],
        range: Option<(u64, u64)>,
    ) -> (Vec<Parallelism>, ParallelismInfo) {
        let window =
            |from: u64, to: u64| LossWindow { from: TimestampNs(from), to: TimestampNs(to) };
        let losses = losses.iter().map(|(cpu, from, to)| RingLoss {
            cpu: Some(CpuId(*cpu)),
            thread: None,
            records: 0,
            window: window(*from, *to),
        });
        self.follow_losses(spans, losses.collect(), range)
    }

    fn follow_losses(
        &self,
        spans: &[(u64, u64)],
        losses: Vec<RingLoss>,
        range: Option<(u64, u64)>,
    ) -> (Vec<Parallelism>, ParallelismInfo) {
        let mut recording = self.recording();
        let span = |(from, to): &(u64, u64)| RecordedSpan {
            from: TimestampNs(*from),
            to: TimestampNs(*to),
        };
        if !spans.is_empty() {
            recording.features.set_recorded_spans(&spans.iter().map(span).collect::<Vec<_>>());
        }
        let events = EventTable::new(&self.events);
        let roles = Roles::of(&recording, &[1]);
        let mut first_seen = FirstSeen::new(&recording, false);
        let mut rest = &self.bytes[..];
        let mut records = Vec::new();
        while let Some((record, tail)) = RawRecord::split(rest) {
            first_seen.see(&events, record);
            records.push(record);
            rest = tail;
        }
        let known = Known {
            events: &events,
            roles: &roles,
            source: Source::Records,
            first_seen,
            cpus: RecordedCpus::Any,
            losses,
            ranges: range.map(|(from, to)| {
                TimeRange { from: TimestampNs(from), to: TimestampNs(to) }.into()
            }),
        };
        let mut follower = Follower::new(ParallelismOf::All, known);
        let mut levels = Vec::new();
        for record in records {
            let time = crate::blocks::stated_time::stated_time(&events, record).unwrap();
            let level = follower.take(record, time);
            levels.extend((record.header.kind == record_type::SAMPLE).then_some(level));
        }
        (levels, follower.finish())
    }
}

fn threads(levels: &[u32]) -> Vec<Parallelism> {
    levels.iter().map(|count| Parallelism::Threads(*count)).collect()
}

/// Thread 1 runs from the beginning on CPU 0, thread 2 on CPU 1 from 20 to 30.
fn two_threads() -> Bytes {
    let mut bytes = Bytes::new();
    bytes.sample(10, 0, 1);
    bytes.sample(15, 0, 1);
    bytes.switch(20, 1, 2, false);
    bytes.sample(25, 0, 1);
    bytes.sample(26, 1, 2);
    bytes.switch(30, 1, 2, true);
    bytes.sample(35, 0, 1);
    bytes.switch(40, 0, 1, true);
    bytes.switch(50, 0, 1, false);
    bytes.sample(55, 0, 1);
    bytes
}

#[test]
fn each_sample_has_the_threads_of_its_time() {
    let (levels, info) = two_threads().follow(&[], &[], None);
    assert_eq!(levels, threads(&[1, 1, 2, 2, 1, 1]));
    assert_eq!((info.recorded_ns, info.ran_ns, info.unknown_ns), (45, 35, 0));
    let (levels, info) = two_threads().follow(&[(5, 60)], &[], Some((38, 52)));
    assert_eq!(levels.len(), 6);
    assert_eq!((info.recorded_ns, info.ran_ns, info.unknown_ns), (14, 4, 0));
}

#[test]
fn the_first_record_of_a_cpu_shows_the_thread_before() {
    let mut bytes = Bytes::new();
    bytes.sample(10, 0, 1);
    bytes.sample(12, 0, 1);
    bytes.switch(20, 1, 2, true);
    bytes.sample(25, 0, 1);
    let (levels, info) = bytes.follow(&[], &[], None);
    assert_eq!(levels, threads(&[2, 2, 1]));
    assert_eq!((info.recorded_ns, info.ran_ns), (15, 15));
}

#[test]
fn losses_make_parallelism_unknown_until_the_next_record_of_the_cpu() {
    let (levels, info) = two_threads().follow(&[], &[(1, 26, 28)], None);
    let [one, two, unknown] =
        [Parallelism::Threads(1), Parallelism::Threads(2), Parallelism::Unknown];
    // The sample at 26 is the last record before the loss.
    assert_eq!(levels, [one, one, two, two, one, one]);
    // Known again from the switch-out at 30 on.
    assert_eq!((info.recorded_ns, info.ran_ns, info.unknown_ns), (45, 31, 4));
    // Nothing follows on CPU 1: unknown to the end.
    let (levels, info) = two_threads().follow(&[], &[(1, 30, 32)], None);
    assert_eq!(levels[3..], [two, unknown, unknown]);
    assert_eq!((info.ran_ns, info.unknown_ns), (20, 25));
    // A loss of another time touches nothing.
    let (levels, _) = two_threads().follow(&[], &[(1, 2, 3)], None);
    assert_eq!(levels, threads(&[1, 1, 2, 2, 1, 1]));
}

/// Records without a CPU: each thread has a place of its own, and one may wait through all of it.
#[test]
fn a_late_switch_in_makes_its_own_thread_uncertain_alone() {
    for cpus in [[u32::MAX; 3], [0, 1, 2]] {
        let cpu = cpus.map(u64::from);
        let mut bytes = Bytes::new();
        bytes.sample(10, cpu[0], 1);
        bytes.switch(20, cpu[0], 1, true);
        bytes.switch(20, cpu[1], 2, false);
        bytes.sample(24, cpu[1], 2);
        bytes.sample(27, cpu[1], 2);
        bytes.switch(30, cpu[2], 3, false);
        bytes.sample(35, cpu[1], 2);
        bytes.sample(36, cpu[2], 3);
        bytes.switch(40, cpu[2], 3, true);
        bytes.sample(45, cpu[1], 2);
        let window = LossWindow { from: TimestampNs(25), to: TimestampNs(30) };
        let cpu = Some(CpuId(cpus[2])).filter(|cpu| cpu.0 != u32::MAX);
        let late = RingLoss { cpu, thread: Some(Tid(3)), records: 0, window };
        let (levels, info) = bytes.follow_losses(&[], vec![late], None);
        let [one, two] = [Parallelism::Threads(1), Parallelism::Threads(2)];
        assert_eq!(levels, [one, one, Parallelism::Unknown, two, two, one], "{cpu:?}");
        assert_eq!((info.recorded_ns, info.ran_ns, info.unknown_ns), (35, 30, 5));
    }
}

#[test]
fn pauses_are_no_time_and_end_with_who_is_there_then() {
    let spans = [(5, 22), (28, 60)];
    let (levels, info) = two_threads().follow(&spans, &[], None);
    let unknown = Parallelism::Unknown;
    let one = Parallelism::Threads(1);
    assert_eq!(levels, [one, one, unknown, unknown, one, one]);
    // From 10 to 22, and from 30 to 60: behind the last record, thread 1 runs on.
    assert_eq!((info.recorded_ns, info.ran_ns, info.unknown_ns), (42, 32, 0));
}
