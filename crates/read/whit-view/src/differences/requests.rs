//! Rows of requests: how many, how long, and where their time is.

use super::what;
use super::{Cell, Divisor, Kind, Quantity, Recorded, RowName, Unit, Values};
use crate::requests::Columns;
use crate::warning::warning_text;
use std::collections::BTreeMap;
use whit_estimate::{Series, quantile};
use whit_perfdata::feature::RecordedSpan;
use whit_types::{OutsideText, TimestampNs};
use whit_why::{Call, Requests};

/// Blocks of the recorded time.
const BLOCKS: usize = 48;

const fn per_request(name: &'static str) -> Quantity {
    let words = match name.as_bytes() {
        b"duration" => ["faster", "slower"],
        b"running" => ["runs less", "runs more"],
        b"run queue" => ["queues less", "queues more"],
        _ => ["waits less", "waits more"],
    };
    Quantity { name, unit: Unit::Time, per: Divisor::Request, words, is_cost: true }
}

const fn of_ranks(name: &'static str, words: [&'static str; 2]) -> Quantity {
    Quantity { name, unit: Unit::Time, per: Divisor::Nothing, words, is_cost: true }
}

const REQUESTS: Quantity = Quantity {
    name: "requests",
    unit: Unit::Count,
    per: Divisor::Time,
    words: ["fewer", "more"],
    is_cost: false,
};

/// Quantiles by order statistics, with their shares.
const QUANTILES: [(Quantity, f64); 3] = [
    (of_ranks("p50", ["p50 falls", "p50 grows"]), 0.5),
    (of_ranks("p90", ["p90 falls", "p90 grows"]), 0.9),
    (of_ranks("p99", ["p99 falls", "p99 grows"]), 0.99),
];

/// A column of the time of a request.
type Column = fn(&Columns) -> u64;

/// Columns of the time of requests, where switches were recorded.
const COLUMNS: [(Quantity, Column); 3] = [
    (per_request("running"), |it| it.on_cpu_ns),
    (per_request("run queue"), |it| it.run_queue_ns + it.throttled_ns),
    (per_request("waiting"), |it| it.waiting_ns),
];

/// Reduces the requests of a recording.
pub fn of_requests(requests: &Requests) -> Recorded {
    let (source, info) = (&requests.source, requests.source.info());
    let has_switches = requests.has_switches();
    let calls = requests.names.iter().map(|of_name| {
        let columns = |call: &Call| Columns::of(&requests.parts(call));
        CallsOfName {
            name: &of_name.name,
            calls: &of_name.calls,
            uncertain: of_name.counts.uncertain,
            columns: has_switches.then(|| of_name.calls.iter().map(columns).collect()),
        }
    });
    let calls: Vec<CallsOfName<'_>> = calls.collect();
    let has = |is_there: bool| if is_there { "recorded" } else { "not recorded" }.to_owned();
    let mut of_calls = of_calls(&calls, source.recording().features.recorded_spans(), has_switches);
    of_calls.notes.extend(requests.warnings().iter().map(warning_text));
    Recorded {
        path: info.path.clone(),
        machine: what::machine(&info),
        what: vec![
            ("context switches", has(has_switches)),
            ("wake-ups", has(source.has_wakeups())),
            ("events", what::events(&info)),
        ],
        ..of_calls
    }
}

/// Calls of one request.
pub struct CallsOfName<'a> {
    /// As `--request` gave it.
    pub name: &'a str,
    /// Calls in the order of their durations.
    pub calls: &'a [Call],
    /// Calls whose duration is not known, since records were lost.
    pub uncertain: u64,
    /// Where the time of each call is, if switches were recorded.
    pub columns: Option<Vec<Columns>>,
}

/// Reduces calls alone. Without `spans`, they were recorded from the first beginning to the last end.
pub fn of_calls(
    names: &[CallsOfName<'_>],
    spans: Option<Vec<RecordedSpan>>,
    has_columns: bool,
) -> Recorded {
    let mut quantities = vec![per_request("duration"), REQUESTS];
    quantities.extend(QUANTILES.iter().map(|(quantity, _)| *quantity));
    if has_columns {
        quantities.extend(COLUMNS.iter().map(|(quantity, _)| *quantity));
    }
    let blocks = Blocks::of(spans, names);
    let uncertain = names.iter().map(|of| of.uncertain).sum::<u64>();
    let missing = quantities.iter().map(|quantity| match *quantity == REQUESTS {
        true => uncertain as f64,
        false => 0.0,
    });
    let note = format!(
        "{uncertain} requests are in no mean and no part, since records were lost meanwhile"
    );
    let row = |of: &CallsOfName<'_>| (vec![OutsideText::from(of.name)], cells(of, &blocks));
    Recorded {
        path: OutsideText::default(),
        kind: Kind::Requests,
        machine: Vec::new(),
        what: Vec::new(),
        notes: (uncertain > 0).then(|| note.into()).into_iter().collect(),
        keys: vec!["request"],
        missing: missing.collect(),
        quantities,
        rows: names.iter().map(row).collect::<BTreeMap<RowName, Vec<Cell>>>(),
        whole: None,
        seconds: blocks.seconds(),
    }
}

/// Values of [`of_calls`]'s quantities.
fn cells(of: &CallsOfName<'_>, blocks: &Blocks) -> Vec<Cell> {
    let calls = of.calls;
    let events = calls.len() as u64;
    let counts = blocks.sum(calls, |_, _| 1.0);
    let per_call = |value: &dyn Fn(usize, &Call) -> f64| {
        let sums = blocks.sum(calls, value);
        Cell { values: Values::Sums(Series::new(counts.iter().copied().zip(sums))), events }
    };
    let rate = Series::new(blocks.seconds().into_iter().zip(counts.iter().copied()));
    let mut cells = vec![
        per_call(&|_, call| call.duration_ns() as f64),
        Cell { values: Values::Sums(rate), events },
    ];
    let durations: Vec<f64> = calls.iter().map(|call| call.duration_ns() as f64).collect();
    for (_, share) in QUANTILES {
        let rank = (share * events as f64).ceil().max(1.0) as usize;
        let limit = durations.get(rank - 1).copied().unwrap_or_default();
        let is_below = |_, call: &Call| f64::from(u8::from(call.duration_ns() as f64 <= limit));
        let below = counts.iter().copied().zip(blocks.sum(calls, is_below));
        let found = quantile(&durations, share, &Series::new(below), of.uncertain);
        cells.push(match found {
            Some(tested) => Cell { values: Values::Estimate(tested), events },
            None => Cell { values: Values::Sums(Series::default()), events: 0 },
        });
    }
    if let Some(columns) = &of.columns {
        cells.extend(COLUMNS.map(|(_, column)| per_call(&|at, _| column(&columns[at]) as f64)));
    }
    cells
}

/// Parts of the recorded time of equal length; a call is in that in which it ended.
struct Blocks {
    begins: Vec<TimestampNs>,
    end: TimestampNs,
}

impl Blocks {
    fn of(spans: Option<Vec<RecordedSpan>>, names: &[CallsOfName<'_>]) -> Blocks {
        let calls = || names.iter().flat_map(|of_name| of_name.calls);
        let first = calls().map(|call| call.from).min().unwrap_or(TimestampNs(0));
        let last = calls().map(|call| call.to).max().unwrap_or(first);
        let spans = spans.unwrap_or_default();
        let is_known = |time: &TimestampNs| time.0 > 0 && time.0 < u64::MAX;
        let from = spans.iter().map(|span| span.from).min().filter(is_known).unwrap_or(first);
        let to = spans.iter().map(|span| span.to).max().filter(is_known).unwrap_or(last);
        let (from, to) = (from.min(first), to.max(last));
        let step = to.since(from) as f64 / BLOCKS as f64;
        let begin = |block: usize| TimestampNs(from.0 + (step * block as f64) as u64);
        Blocks { begins: (0..BLOCKS).map(begin).collect(), end: to }
    }

    fn number(&self, call: &Call) -> usize {
        self.begins.partition_point(|begin| *begin <= call.to).saturating_sub(1)
    }

    fn seconds(&self) -> Vec<f64> {
        let ends = self.begins.iter().skip(1).chain([&self.end]);
        ends.zip(&self.begins).map(|(end, begin)| end.since(*begin) as f64 / 1e9).collect()
    }

    fn sum(&self, calls: &[Call], value: impl Fn(usize, &Call) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.begins.len()];
        let calls = calls.iter().enumerate();
        calls.for_each(|(at, call)| sums[self.number(call)] += value(at, call));
        sums
    }
}
