//! Requests on the page: their durations, the slowest calls one by one, and the critical paths of these.
//! `web/src/requests.js` reads what this writes.

use std::collections::HashMap;

use serde::Serialize;
use whit_types::{OutsideText, TimestampNs};
use whit_view::requests::{Columns, remarks};
use whit_view::why::{activity_text, activity_word, explained, hand_over_text, name_text, what};
use whit_why::{Activity, Call, Explained, Place, Places, Requests, RequestsOfName, Why};

use super::columns;
use super::tables::bounded_name;

/// Calls of each name that a page lists, the slowest.
pub const MAX_LISTED_CALLS: usize = 200;
/// Calls of each name that a page has the path of, the slowest.
pub const MAX_PATHS: usize = 20;
/// Pieces of a path that a page draws.
const MAX_PIECES: usize = 5_000;
/// Sums of pieces that are listed.
const MAX_PATH_ROWS: usize = 20;
/// Parts of the slowest calls.
const MAX_PARTS: usize = 12;
/// Bars of the histogram between a duration and twice as much.
const BARS_PER_OCTAVE: f64 = 4.0;

/// The requests of a recording, ready for a page.
#[derive(Clone, Debug, Default)]
pub struct RequestTables {
    /// A table for each name.
    pub names: Vec<RequestTable>,
    /// Why there is no path of any call.
    pub no_paths: Option<String>,
}

/// Requests of one name. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct RequestTable {
    /// As the recorder was given it.
    pub name: String,
    /// Durations of all calls, the shortest first.
    pub durations_ns: Vec<u64>,
    /// Sentences about calls that are in no number.
    pub remarks: Vec<String>,
    /// Names of quantiles, with the duration and the split of the call at each.
    pub quantiles: Vec<(&'static str, u64, Split)>,
    /// Calls of the slowest hundredth, and of the middle half.
    pub tail_calls: (u64, u64),
    /// Parts of the time of the slowest calls, the largest difference first.
    pub tail: Vec<TailRow>,
    /// The slowest calls, the slowest first.
    pub calls: Vec<CallRow>,
}

/// Time on a CPU, in the run queue, throttled, waiting, and unknown; in nanoseconds.
pub type Split = [u64; 5];

/// A part of the time of the slowest calls. Means of a call, in nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TailRow {
    /// Activity and place.
    pub what: String,
    /// In the slowest calls.
    pub slow_ns: f64,
    /// In those of the middle.
    pub middle_ns: f64,
    /// Ends of the 95 % interval of the difference.
    pub interval_ns: Option<(f64, f64)>,
}

/// A request, and the parts of its time.
#[derive(Clone, Debug, Default)]
pub struct CallRow {
    /// Its beginning, by the clock of the recording.
    pub from: TimestampNs,
    /// Its length in nanoseconds.
    pub duration_ns: u64,
    /// Process and thread.
    pub thread: (i32, Option<i32>),
    /// Name and number of the thread.
    pub thread_name: String,
    /// Its key as text.
    pub key: Option<String>,
    /// Where its time is.
    pub split: Split,
    /// The critical path, for the slowest calls.
    pub path: Option<PathData>,
}

/// The critical path of a call. Its pieces follow each other from the beginning of the call to its end.
#[derive(Clone, Debug, Default)]
pub struct PathData {
    /// Threads, by the time that the path comes to them first: process, thread, name.
    pub lanes: Vec<(i32, Option<i32>, String)>,
    /// None where there are too many.
    pub pieces: Vec<PathPiece>,
    /// How many there are.
    pub pieces_count: usize,
    /// Pieces added up, the longest first.
    pub rows: Vec<PathRow>,
    /// Sums beyond those.
    pub rows_left_out: usize,
}

/// One thread, one activity.
#[derive(Clone, Debug, Default)]
pub struct PathPiece {
    /// Its length in nanoseconds.
    pub duration_ns: u64,
    /// The thread, by its place among the lanes.
    pub lane: usize,
    /// The class of a wait, or the word for another activity.
    pub kind: &'static str,
    /// The activity in words.
    pub text: String,
    /// The wait that it explains, in words.
    pub explains: Option<String>,
}

/// Pieces of one kind.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PathRow {
    /// Their length in nanoseconds.
    pub duration_ns: u64,
    /// How many there are.
    pub pieces: u64,
    /// Threads, activity and place.
    pub what: String,
    /// The wait that they explain.
    pub explains: Option<String>,
}

fn bounded(text: impl Into<OutsideText>) -> String {
    bounded_name(&text.into()).into_owned()
}

impl RequestTables {
    /// Tables of all names. `paths` has the paths of the slowest calls of each name, [`MAX_PATHS`] at most, each with
    /// groups of its own; or the reason why there is none.
    pub fn new(requests: &Requests, paths: &Result<Vec<Option<Why>>, String>) -> RequestTables {
        let table = |index: usize| {
            let why = paths.as_ref().ok().and_then(|paths| paths.get(index)?.as_ref());
            RequestTable::new(requests, index, why)
        };
        RequestTables {
            names: (0..requests.names.len()).map(table).collect(),
            no_paths: paths.as_ref().err().cloned(),
        }
    }

    /// The first moment of all listed calls.
    fn first(&self) -> Option<TimestampNs> {
        self.names.iter().flat_map(|table| &table.calls).map(|call| call.from).min()
    }
}

impl RequestTable {
    fn new(requests: &Requests, index: usize, why: Option<&Why>) -> RequestTable {
        let RequestsOfName { name, calls, quantiles, tail, .. } = &requests.names[index];
        let mut paths = why.map(|why| (why, Places::default()));
        let rows = calls.iter().rev().take(MAX_LISTED_CALLS).enumerate().map(|(rank, call)| {
            let path = paths.as_mut().and_then(|(why, places)| {
                let of_call = why.intervals.get(rank)?;
                // Both are sorted by duration and beginning.
                // Goroutines have numbers of their own in each answer.
                let is_it = of_call.from == call.from
                    && why.thread_name(of_call.thread) == requests.caller(call);
                is_it.then(|| PathData::new(why, places, of_call))
            });
            CallRow { path, ..CallRow::new(requests, call) }
        });
        let mean = |ns: u64, calls: u64| ns as f64 / calls.max(1) as f64;
        let tail_row = |it: &whit_why::TailPart| TailRow {
            what: bounded(activity_text(it.part.activity, &it.part.place)),
            slow_ns: mean(it.slow_ns, tail.slow),
            middle_ns: mean(it.middle_ns, tail.middle),
            interval_ns: it.difference.map(|difference| difference.interval),
        };
        RequestTable {
            name: bounded(&**name),
            durations_ns: calls.iter().map(Call::duration_ns).collect(),
            remarks: remarks(requests, index),
            quantiles: quantiles
                .iter()
                .map(|it| (it.name, it.duration_ns, split(Columns::of(&it.parts))))
                .collect(),
            tail_calls: (tail.slow, tail.middle),
            tail: tail.parts.iter().take(MAX_PARTS).map(tail_row).collect(),
            calls: rows.collect(),
        }
    }
}

fn split(columns: Columns) -> Split {
    let Columns { on_cpu_ns, run_queue_ns, throttled_ns, waiting_ns, unknown_ns } = columns;
    [on_cpu_ns, run_queue_ns, throttled_ns, waiting_ns, unknown_ns]
}

impl CallRow {
    fn new(requests: &Requests, call: &Call) -> CallRow {
        let caller = requests.caller(call);
        CallRow {
            from: call.from,
            duration_ns: call.duration_ns(),
            thread: (caller.pid.0, caller.tid()),
            thread_name: bounded(name_text(&caller)),
            key: call.key.as_ref().map(|key| bounded(key.to_string())),
            split: split(Columns::of(&requests.parts(call))),
            path: None,
        }
    }
}

impl PathData {
    fn new(why: &Why, places: &mut Places, of: &Explained) -> PathData {
        let mut lanes: Vec<u32> = Vec::new();
        let mut lane_of = |thread: u32| {
            let found = lanes.iter().position(|lane| *lane == thread);
            found.unwrap_or_else(|| {
                lanes.push(thread);
                lanes.len() - 1
            })
        };
        // The thread of the call is above those that it waited for.
        lane_of(of.thread);
        let all = &of.path.pieces;
        let shown = if all.len() <= MAX_PIECES { &all[..] } else { &[] };
        let pieces = shown.iter().map(|piece| {
            let place = match piece.activity {
                Activity::RunQueue(_) | Activity::Throttled | Activity::Runnable => {
                    Place::default()
                }
                _ => places.of(&why.source, piece.site),
            };
            let hand_over = of.path.hand_over_of(piece);
            PathPiece {
                duration_ns: piece.duration_ns(),
                lane: lane_of(piece.thread),
                kind: activity_word(piece.activity),
                text: bounded(activity_text(piece.activity, &place)),
                explains: hand_over.map(|it| bounded(hand_over_text(why, places, &it))),
            }
        });
        let pieces = pieces.collect();
        let rows = of.groups.iter().take(MAX_PATH_ROWS).map(|group| PathRow {
            duration_ns: group.duration_ns,
            pieces: group.pieces,
            what: bounded(what(why, group)),
            explains: explained(why, group).map(bounded),
        });
        let lane = |thread: &u32| {
            let thread = why.thread_name(*thread);
            (thread.pid.0, thread.tid(), bounded(name_text(&thread)))
        };
        PathData {
            pieces,
            pieces_count: all.len(),
            rows: rows.collect(),
            rows_left_out: of.groups.len().saturating_sub(MAX_PATH_ROWS),
            lanes: lanes.iter().map(lane).collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestBlock<'a> {
    names: Vec<NameBlock<'a>>,
    /// Texts of pieces.
    texts: Vec<&'a str>,
    no_paths: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NameBlock<'a> {
    name: &'a str,
    count: usize,
    remarks: &'a [String],
    quantiles: &'a [(&'static str, u64, Split)],
    tail_calls: (u64, u64),
    tail: &'a [TailRow],
    histogram: Histogram,
    calls: Vec<CallBlock<'a>>,
}

/// Calls by duration. Bar `i` begins at `2^((first + i) / per_octave)` nanoseconds.
#[derive(Serialize, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Histogram {
    per_octave: f64,
    first: usize,
    counts: Vec<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallBlock<'a> {
    /// Since the first moment of the page; before it where negative.
    from_ns: i64,
    duration_ns: u64,
    pid: i32,
    /// `None` for goroutines.
    tid: Option<i32>,
    thread: &'a str,
    key: Option<&'a str>,
    split: Split,
    path: Option<PathBlock<'a>>,
}

/// Columns (see [`columns`]) of pieces in order of time; `explains` 0 is none, others are one more.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PathBlock<'a> {
    lanes: &'a [(i32, Option<i32>, String)],
    duration_ns: String,
    lane: String,
    kind: String,
    text: String,
    explains: String,
    pieces_count: usize,
    rows: &'a [PathRow],
    rows_left_out: usize,
}

/// Texts, each with its number.
#[derive(Default)]
struct Texts<'a> {
    numbers: HashMap<&'a str, u64>,
    list: Vec<&'a str>,
}

impl<'a> Texts<'a> {
    fn number(&mut self, text: &'a str) -> u64 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() as u64 - 1
        })
    }

    fn path(&mut self, path: &'a PathData) -> PathBlock<'a> {
        let pieces = || path.pieces.iter();
        PathBlock {
            lanes: &path.lanes,
            duration_ns: columns::plain(pieces().map(|it| it.duration_ns)),
            lane: columns::plain(pieces().map(|it| it.lane as u64)),
            kind: columns::plain(pieces().map(|it| self.number(it.kind))),
            text: columns::plain(pieces().map(|it| self.number(&it.text))),
            explains: columns::plain(
                pieces().map(|it| it.explains.as_deref().map_or(0, |text| self.number(text) + 1)),
            ),
            pieces_count: path.pieces_count,
            rows: &path.rows,
            rows_left_out: path.rows_left_out,
        }
    }
}

/// The block of a page whose first moment is `begin`; without one, times are since the first call.
pub(crate) fn block(tables: &RequestTables, begin: Option<TimestampNs>) -> RequestBlock<'_> {
    let begin = begin.or_else(|| tables.first()).unwrap_or_default();
    let mut texts = Texts::default();
    let names = tables.names.iter().map(|table| NameBlock {
        name: &table.name,
        count: table.durations_ns.len(),
        remarks: &table.remarks,
        quantiles: &table.quantiles,
        tail_calls: table.tail_calls,
        tail: &table.tail,
        histogram: histogram(&table.durations_ns),
        calls: table.calls.iter().map(|call| call_block(&mut texts, call, begin)).collect(),
    });
    let names = names.collect();
    RequestBlock { names, texts: texts.list, no_paths: tables.no_paths.as_deref() }
}

fn call_block<'a>(texts: &mut Texts<'a>, call: &'a CallRow, begin: TimestampNs) -> CallBlock<'a> {
    CallBlock {
        from_ns: call.from.0.wrapping_sub(begin.0) as i64,
        duration_ns: call.duration_ns,
        pid: call.thread.0,
        tid: call.thread.1,
        thread: &call.thread_name,
        key: call.key.as_deref(),
        split: call.split,
        path: call.path.as_ref().map(|path| texts.path(path)),
    }
}

/// Bars from the shortest to the longest of sorted durations.
fn histogram(sorted_ns: &[u64]) -> Histogram {
    let bar = |ns: u64| ((ns.max(1) as f64).log2() * BARS_PER_OCTAVE) as usize;
    let mut histogram = Histogram { per_octave: BARS_PER_OCTAVE, first: 0, counts: Vec::new() };
    let (Some(first), Some(last)) = (sorted_ns.first(), sorted_ns.last()) else { return histogram };
    histogram.first = bar(*first);
    histogram.counts = vec![0; bar(*last) - histogram.first + 1];
    for ns in sorted_ns {
        histogram.counts[bar(*ns) - histogram.first] += 1;
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::super::columns::decode;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bars_are_quarters_of_octaves() {
        let histogram = histogram(&[1000, 1024, 1217, 1218, 4096]);
        assert_eq!((histogram.first, histogram.counts.len()), (39, 10));
        assert_eq!(histogram.counts, [1, 2, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert!(super::histogram(&[]).counts.is_empty());
    }

    #[test]
    fn texts_are_numbered_once_and_times_are_since_the_first_moment() {
        let piece = |duration_ns, text: &str, explains: Option<&str>| PathPiece {
            duration_ns,
            kind: "lock",
            text: text.into(),
            explains: explains.map(Into::into),
            ..PathPiece::default()
        };
        let pieces = vec![piece(3, "a", None), piece(4, "b", Some("a")), piece(5, "a", None)];
        let path = PathData { pieces, pieces_count: 3, ..PathData::default() };
        let call = |from| CallRow { from: TimestampNs(from), ..CallRow::default() };
        let calls = vec![CallRow { path: Some(path), ..call(110) }, call(90)];
        let table = RequestTable { calls, ..RequestTable::default() };
        let tables = RequestTables { names: vec![table], no_paths: None };
        let block_since = |begin: Option<u64>| block(&tables, begin.map(TimestampNs));
        let block = block_since(Some(100));
        assert_eq!(block.texts, ["lock", "a", "b"]);
        let [first, second] = &block.names[0].calls[..] else { panic!("two calls") };
        assert_eq!((first.from_ns, second.from_ns), (10, -10));
        let path = first.path.as_ref().expect("a path");
        assert_eq!(decode::plain(&path.duration_ns), [3, 4, 5]);
        assert_eq!(decode::plain(&path.text), [1, 2, 1]);
        assert_eq!(decode::plain(&path.explains), [0, 2, 0]);
        assert_eq!(block_since(None).names[0].calls[0].from_ns, 20);
    }

    proptest! {
        #[test]
        fn every_call_is_in_a_bar(mut durations_ns: Vec<u64>) {
            durations_ns.sort_unstable();
            let histogram = histogram(&durations_ns);
            prop_assert_eq!(histogram.counts.iter().sum::<u64>(), durations_ns.len() as u64);
            // 64 octaves.
            prop_assert!(histogram.counts.len() <= 257);
        }
    }
}
