//! Requests of streams whose records are made here.

use super::*;
use proptest::prelude::*;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::{RecordEncoder, finished_round};
use whit_perfdata::record::Task;
use whit_perfdata::request::{Edge, event_name};
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_types::{CpuId, Tid};

const TOP: u64 = 0x7fff_0000;

struct Stream {
    slow: SlowRequests,
    encoder: RecordEncoder,
    found: Vec<(u64, u64)>,
}

impl Stream {
    fn new(longest_ns: u64) -> Stream {
        let sample_type = SampleType::TIME | SampleType::TID | SampleType::CPU | SampleType::ID;
        let attr = Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
        let event = |(edge, id)| {
            let name = event_name("query", edge);
            EventDesc { attr: attr.clone(), ids: vec![id], name }
        };
        let events = [(Edge::Begin, 1), (Edge::End, 2)].map(event);
        let limits = [("other", Duration::ZERO), ("query", Duration::from_nanos(longest_ns))];
        let slow = SlowRequests::new(&events, &Features::default(), &limits);
        let encoder = RecordEncoder::new(SampleLayout::new(&attr));
        Stream { slow, encoder, found: Vec::new() }
    }

    fn mark(&mut self, time: u64, thread: u32, edge: Edge, depth: u64) {
        let below = if edge == Edge::End { 8 } else { 0 };
        let stack_pointer = Some(TOP - 64 * depth + below);
        let time = TimestampNs(time);
        let mark = RequestMark {
            time,
            thread,
            kind: 0,
            edge,
            stack_pointer,
            goroutine: None,
            connection: None,
            key: None,
        };
        self.slow.add(time, News::Mark(Pid(1), mark));
    }

    fn records(&mut self, bytes: &[u8]) {
        let (record, _) = RawRecord::split(bytes).expect("a record");
        self.slow.take(record, &mut |it| self.found.push((it.call.from.0, it.call.to.0)));
    }

    fn end_round(&mut self) {
        self.records(&finished_round());
    }

    fn id(time: u64, thread: i32) -> SampleId {
        let pid_tid = Some((Pid(1), Tid(thread)));
        let (time, cpu) = (Some(TimestampNs(time)), Some(CpuId(0)));
        SampleId { pid_tid, time, id: Some(1), cpu }
    }

    fn exit(&mut self, time: u64, thread: i32) {
        let (pid, tid) = (Pid(1), Tid(thread));
        let task = Task { pid, parent_pid: pid, tid, parent_tid: Tid(1), time };
        let mut out = Vec::new();
        self.encoder.exit(&mut out, &task, Stream::id(time, thread));
        self.records(&out);
    }

    fn loss(&mut self, since: Option<u64>, time: u64) {
        let mut out = Vec::new();
        self.encoder.lost(&mut out, 1, 5, since.map(TimestampNs), Stream::id(time, 1));
        self.records(&out);
    }

    fn finish(mut self) -> (Vec<(u64, u64)>, u64) {
        self.end_round();
        self.end_round();
        (self.found, self.slow.uncertain())
    }
}

#[test]
fn requests_above_the_limit_are_found_when_no_older_record_can_come() {
    let mut stream = Stream::new(10);
    // The end is in the ring of another CPU, which was read first.
    stream.mark(15, 7, Edge::End, 0);
    stream.end_round();
    stream.mark(2, 7, Edge::Begin, 0);
    stream.end_round();
    assert_eq!(stream.found, [(2, 15)]);
    stream.mark(20, 7, Edge::Begin, 0);
    stream.mark(30, 7, Edge::End, 0);
    stream.mark(40, 8, Edge::Begin, 0);
    assert_eq!(stream.finish(), (vec![(2, 15)], 0), "10 ns are no slow request");
}

#[test]
fn a_call_within_another_is_a_part_of_it() {
    let mut stream = Stream::new(10);
    for (time, edge, depth) in
        [(1, Edge::Begin, 0), (2, Edge::Begin, 1), (50, Edge::End, 1), (51, Edge::End, 0)]
    {
        stream.mark(time, 7, edge, depth);
    }
    assert_eq!(stream.finish(), (vec![(1, 51)], 0));
}

#[test]
fn threads_that_get_the_number_of_one_that_ended_have_their_own_requests() {
    let mut stream = Stream::new(10);
    stream.mark(1, 7, Edge::Begin, 0);
    stream.exit(5, 7);
    stream.mark(100, 7, Edge::End, 0);
    assert_eq!(stream.finish(), (vec![], 0));
}

#[test]
fn requests_that_a_loss_touches_are_not_slow() {
    let lost = |since, marks: [(u64, Edge); 2]| {
        let mut stream = Stream::new(10);
        stream.mark(1, 9, Edge::Begin, 0);
        stream.end_round();
        marks.into_iter().for_each(|(time, edge)| stream.mark(time, 7, edge, 0));
        stream.loss(since, 50);
        stream.finish()
    };
    let call = |from, to| [(from, Edge::Begin), (to, Edge::End)];
    // That of thread 9 is uncertain in each case.
    assert_eq!(lost(Some(40), call(2, 39)), (vec![(2, 39)], 1), "before the loss");
    assert_eq!(lost(Some(40), call(2, 45)), (vec![], 2), "it ends within the loss");
    assert_eq!(lost(Some(20), call(21, 45)), (vec![], 2), "within the loss");
    assert_eq!(lost(Some(40), call(2, 70)), (vec![], 2), "around the loss");
    assert_eq!(lost(Some(40), call(45, 70)), (vec![], 2), "it begins within the loss");
    assert_eq!(lost(Some(40), call(51, 70)), (vec![(51, 70)], 1), "behind the loss");
    assert_eq!(lost(None, call(2, 39)), (vec![], 2), "the loss says no time");
}

#[test]
fn more_hits_than_memory_may_take_are_uncertain() {
    let mut stream = Stream::new(10);
    stream.mark(1, 7, Edge::Begin, 0);
    stream.end_round();
    stream.mark(2, 8, Edge::Begin, 0);
    stream.end_round();
    (0..WAITING_MAX as u64).for_each(|at| stream.mark(3 + at, 9, Edge::Begin, 0));
    stream.mark(1 << 40, 7, Edge::End, 0);
    let (found, uncertain) = stream.finish();
    assert!(found.is_empty() && uncertain >= 1, "{found:?} {uncertain}");
}

proptest! {
    /// Rings are read one after the other, in rounds of any length: the result is that of the order of time.
    #[test]
    fn the_order_of_rings_does_not_matter(
        calls in prop::collection::vec((0u64..4, 1u64..40, 1u64..40, 0u64..3, 0u64..3), 1..60),
        rounds in prop::collection::vec(7u64..100, 1..30),
    ) {
        // Thread, time, edge and ring of each hit; the wanted calls.
        let (mut hits, mut wanted, mut clocks) = (Vec::new(), Vec::new(), [0; 4]);
        for (thread, gap, duration, begins_on, ends_on) in calls {
            let clock = &mut clocks[thread as usize];
            let from = *clock + gap;
            *clock = from + duration;
            hits.push((from, thread, Edge::Begin, begins_on));
            hits.push((*clock, thread, Edge::End, ends_on));
            if duration > 10 {
                wanted.push((from, *clock));
            }
        }
        let mut stream = Stream::new(10);
        let mut now = 0;
        for length in rounds.into_iter().chain([u64::MAX / 2]) {
            // A ring is read until a moment of its own, which no ring of the next round is behind.
            for ring in [2, 0, 1] {
                let until = now + length + 3 * ring;
                let (mut read, rest): (Vec<_>, Vec<_>) =
                    hits.into_iter().partition(|hit| hit.3 == ring && hit.0 <= until);
                hits = rest;
                read.sort_by_key(|(time, _, edge, _)| (*time, *edge));
                for (time, thread, edge, _) in read {
                    stream.mark(time, thread as u32, edge, 0);
                }
            }
            now += length;
            stream.end_round();
        }
        let (mut found, uncertain) = stream.finish();
        found.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!((found, uncertain), (wanted, 0));
    }
}
