use super::*;
use SocketStep::{Ended, SendBegins, Sent, SentNothing};
use proptest::prelude::*;
use whit_perfdata::request::Edge;

const READER: u32 = 1;
const WRITER: u32 = 2;
const RECEIVED: SocketStep = SocketStep::Received(1);
const SENT: SocketStep = Sent(1);

/// Time, connection, thread, and its step.
type At = (u64, u64, u32, SocketStep);

fn add(connections: &mut Connections, (time, number, thread, step): At, found: &mut Found<'_>) {
    let of = ConnectionMark { connection: number, step };
    let (time, connection) = (TimestampNs(time), Some(of));
    let edge = if matches!(step, RECEIVED | Ended) { Edge::Begin } else { Edge::End };
    let mark = RequestMark {
        time,
        thread,
        kind: 0,
        edge,
        stack_pointer: None,
        goroutine: None,
        connection,
        key: None,
    };
    connections.add(mark, of, found);
}

fn taken(mut connections: Connections, steps: &[At]) -> (Vec<(u64, u64, u32)>, Counts) {
    let (mut calls, mut counts) = (Vec::new(), Counts::default());
    let mut found = Found { calls: &mut calls, counts: &mut counts };
    steps.iter().for_each(|step| add(&mut connections, *step, &mut found));
    connections.finish(&mut found);
    (calls.iter().map(|call| (call.from.0, call.to.0, call.thread)).collect(), counts)
}

fn all(steps: &[At]) -> (Vec<(u64, u64, u32)>, Counts) {
    taken(Connections::default(), steps)
}

/// With the beginnings of calls that send and without.
fn with_begins_and_without(steps: &[At]) -> (Vec<(u64, u64, u32)>, Counts) {
    let without: Vec<At> = steps.iter().copied().filter(|at| at.3 != SendBegins).collect();
    let result = all(steps);
    assert_eq!(all(&without), result);
    result
}

#[test]
fn a_request_reaches_from_its_first_data_to_the_last_of_its_answer() {
    let steps = [
        (1, 7, READER, RECEIVED),
        (2, 7, READER, RECEIVED),
        (3, 7, READER, SendBegins),
        (4, 7, READER, SENT),
        (5, 7, READER, SendBegins),
        (6, 7, READER, SENT),
        (7, 7, READER, RECEIVED),
        (8, 7, READER, SendBegins),
        (9, 7, READER, SENT),
    ];
    let calls = vec![(1, 6, READER), (7, 9, READER)];
    assert_eq!(with_begins_and_without(&steps), (calls, Counts::default()));
}

#[test]
fn connections_are_apart_from_each_other() {
    let steps = [
        (1, 7, READER, RECEIVED),
        (2, 8, READER, RECEIVED),
        (3, 7, READER, SENT),
        (4, 8, READER, SENT),
    ];
    assert_eq!(with_begins_and_without(&steps).0, [(1, 3, READER), (2, 4, READER)]);
}

#[test]
fn the_thread_that_answers_has_a_request_that_another_one_read() {
    let steps = [(1, 7, READER, RECEIVED), (2, 7, WRITER, SendBegins), (3, 7, WRITER, SENT)];
    let (calls, counts) = all(&steps);
    assert_eq!(calls, [(1, 3, WRITER)]);
    assert_eq!(counts, Counts { handed_over: 1, ..Counts::default() });
}

#[test]
fn the_next_request_may_come_before_the_call_that_answers_has_ended() {
    let counts = Counts { handed_over: 2, ..Counts::default() };
    let steps = [
        (1, 7, READER, RECEIVED),
        (2, 7, READER, RECEIVED),
        (3, 7, WRITER, SendBegins),
        (5, 7, READER, RECEIVED),
        (6, 7, READER, RECEIVED),
        (8, 7, WRITER, SENT),
        (9, 7, WRITER, SendBegins),
        (10, 7, WRITER, SENT),
    ];
    assert_eq!(all(&steps), (vec![(1, 8, WRITER), (5, 10, WRITER)], counts));
    // A third thread even answers it before.
    let steps = [
        (1, 7, READER, RECEIVED),
        (3, 7, WRITER, SendBegins),
        (5, 7, READER, RECEIVED),
        (6, 7, 3, SendBegins),
        (7, 7, 3, SENT),
        (8, 7, WRITER, SENT),
    ];
    assert_eq!(all(&steps), (vec![(5, 7, 3), (1, 8, WRITER)], counts));
}

#[test]
fn without_the_beginning_of_a_call_the_answer_of_another_thread_is_left_out() {
    let steps = [
        (1, 7, READER, RECEIVED),
        (2, 7, WRITER, SENT),
        (3, 7, READER, RECEIVED),
        // The rest of the answer of the first, or all of that of the second.
        (4, 7, WRITER, SENT),
        (5, 7, READER, RECEIVED),
        (6, 7, READER, SENT),
    ];
    assert_eq!(all(&steps), (vec![(5, 6, READER)], Counts { ambiguous: 2, ..Counts::default() }));
    // A thread does one after the other.
    let steps = [(1, 7, READER, RECEIVED), (5, 7, READER, RECEIVED), (8, 7, READER, SENT)];
    assert_eq!(all(&steps), (vec![(1, 8, READER)], Counts::default()));
}

#[test]
fn a_call_that_sends_nothing_is_no_answer() {
    let steps = [
        (1, 7, READER, RECEIVED),
        (2, 7, READER, SendBegins),
        (3, 7, READER, SentNothing),
        (4, 7, READER, RECEIVED),
        (5, 7, READER, SendBegins),
        (6, 7, READER, SENT),
    ];
    assert_eq!(with_begins_and_without(&steps), (vec![(1, 6, READER)], Counts::default()));
    // More of the request came meanwhile.
    let steps = [
        (1, 7, WRITER, RECEIVED),
        (2, 7, WRITER, SendBegins),
        (3, 7, READER, RECEIVED),
        (4, 7, WRITER, SentNothing),
        (5, 7, WRITER, SendBegins),
        (6, 7, WRITER, SENT),
    ];
    assert_eq!(all(&steps), (vec![(1, 6, WRITER)], Counts::default()));
}

#[test]
fn what_is_not_answered_is_open_and_never_long() {
    for rest in [&[][..], &[(2, 7, READER, Ended)], &[(2, 7, READER, SendBegins)]] {
        let steps = [&[(1, 7, READER, RECEIVED)], rest].concat();
        let (calls, counts) = all(&steps);
        assert_eq!((calls, counts.open), (vec![], 1), "{rest:?}");
    }
    // The other end has sent all of its request, and waits for the answer.
    let steps = [(1, 7, READER, RECEIVED), (2, 7, READER, Ended), (3, 7, READER, SENT)];
    assert_eq!(all(&steps), (vec![(1, 3, READER)], Counts::default()));
}

#[test]
fn data_without_a_request_is_counted_once_for_a_connection() {
    let steps = [
        (1, 7, READER, SendBegins),
        (2, 7, READER, SENT),
        (3, 7, READER, SendBegins),
        (4, 7, READER, SENT),
        (5, 7, READER, RECEIVED),
        (6, 7, READER, SendBegins),
        (7, 7, READER, SENT),
        (8, 7, READER, Ended),
    ];
    let counts = Counts { without_begin: 1, ..Counts::default() };
    assert_eq!(with_begins_and_without(&steps), (vec![(5, 7, READER)], counts));
}

const LIVE: Live = Live { connections_max: 8, longest_ns: 10 };

#[test]
fn a_long_request_is_known_at_once_while_it_is_recorded() {
    let mut connections = Connections::live(LIVE);
    let (mut calls, mut counts) = (Vec::new(), Counts::default());
    let mut found = Found { calls: &mut calls, counts: &mut counts };
    let steps = [(1, RECEIVED), (5, SENT), (12, SENT), (13, SENT), (20, RECEIVED), (29, SENT)];
    for (time, step) in steps {
        add(&mut connections, (time, 7, READER, step), &mut found);
    }
    let times: Vec<_> = calls.iter().map(|call| (call.from.0, call.to.0)).collect();
    assert_eq!((times, counts), (vec![(1, 12)], Counts::default()));
}

#[test]
fn a_live_recording_remembers_a_bounded_number_of_connections() {
    let mut connections = Connections::live(LIVE);
    let (mut calls, mut counts) = (Vec::new(), Counts::default());
    let mut found = Found { calls: &mut calls, counts: &mut counts };
    for number in 0..100 {
        add(&mut connections, (number, number, READER, RECEIVED), &mut found);
        add(&mut connections, (number, number, READER, SENT), &mut found);
        assert!(connections.known.len() <= LIVE.connections_max);
    }
    assert_eq!((calls.len(), counts), (0, Counts::default()));
    let open: Vec<_> = (0..9).map(|number| (number, number, READER, RECEIVED)).collect();
    let (calls, counts) = taken(Connections::live(LIVE), &open);
    assert_eq!((calls.len(), counts.left, counts.open), (0, 8, 1));
    let mut connections = Connections::live(LIVE);
    let (mut calls, mut counts) = (Vec::new(), Counts::default());
    let mut found = Found { calls: &mut calls, counts: &mut counts };
    for step in [RECEIVED, SENT, Ended] {
        add(&mut connections, (1, 7, READER, step), &mut found);
    }
    assert!(connections.known.is_empty());
}

proptest! {
    /// Clients that wait for each answer; any thread sends a piece of it, and the call of the last one may end at any time
    /// after that.
    #[test]
    fn every_answer_is_of_its_own_request(
        rounds in prop::collection::vec((0u64..4, 1u64..4, 1u64..4, 0u64..100), 1..100),
    ) {
        let (mut steps, mut wanted, mut time) = (Vec::new(), Vec::new(), 0);
        let mut writer = WRITER;
        for (number, pieces, answers, late) in rounds {
            let from = time + 1;
            for _ in 0..pieces {
                time += 1;
                steps.push((time, number, READER, RECEIVED));
            }
            let mut to = time;
            for answer in 1..=answers {
                // Each by a thread of its own, so that all calls may be late.
                writer += 1;
                time += 2;
                to = time + if answer == answers { 1000 * late } else { 0 };
                steps.extend([(time - 1, number, writer, SendBegins), (to, number, writer, SENT)]);
            }
            wanted.push((from, to, writer));
        }
        // Calls that begin and end at one moment stay in their order.
        steps.sort_by_key(|(time, ..)| *time);
        wanted.sort_unstable();
        let (mut calls, counts) = all(&steps);
        calls.sort_unstable();
        prop_assert_eq!(&calls, &wanted);
        let handed_over = wanted.len() as u64;
        prop_assert_eq!(counts, Counts { handed_over, ..Counts::default() });
    }
}
