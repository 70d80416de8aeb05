//! Requests as JSON.

use super::{Columns, remarks};
use crate::json_strings;
use crate::warning::warning_text;
use crate::why::{activity_name, class, reason};
use serde::Serialize;
use std::io::{self, Write};
use whit_profile::tables::RequestKey;
use whit_why::{Call, Part, Parts, Requests, RequestsOfName, TailPart};

/// Version of the JSON form; see [`write_json`].
pub const VERSION: u32 = 1;

/// Writes all calls, the slowest first, as JSON, without a line end after it.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_json(out: &mut impl Write, requests: &Requests, slowest: usize) -> io::Result<()> {
    json_strings::write(out, &Document::of(requests, slowest))
}

/// `whit requests --json`: one object. Members may be added; `version` grows when one changes its meaning or goes away.
/// Times are in nanoseconds by the clock of the recording.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Document {
    /// `whit-requests`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    requests: Vec<OfName>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfName {
    name: String,
    /// Calls with a duration.
    count: u64,
    /// Calls within others of the same name, where they are left out.
    nested: u64,
    /// Calls that are left out: another key, or shorter.
    not_asked: u64,
    /// Calls that had not ended when the recording ended.
    open: u64,
    /// Calls that ended without a return.
    left: u64,
    /// Ends of calls whose beginning is not recorded.
    without_begin: u64,
    /// Calls that are left out: records were lost meanwhile.
    uncertain: u64,
    /// Calls that are left out: another thread answered than the one that read them, and the kernel does not say when its
    /// call began.
    ambiguous: u64,
    /// Calls with a duration that one thread read from a connection and another one answered.
    handed_over: u64,
    quantiles: Vec<JsonQuantile>,
    tail: JsonTail,
    /// The slowest calls, the slowest first: as many as `--slowest` says.
    slowest: Vec<JsonCall>,
    remarks: Vec<String>,
}

/// Where the time of a call is. The members add up to the duration.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Split {
    on_cpu_ns: u64,
    run_queue_ns: u64,
    throttled_ns: u64,
    waiting_ns: u64,
    unknown_ns: u64,
}

/// A part of the time of a call.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonPart {
    duration_ns: u64,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct What {
    /// `running`, `preempted`, `throttled`, `run-queue`, `waiting`, `still-waiting`, `unknown`.
    activity: &'static str,
    /// Class of a wait.
    class: Option<&'static str>,
    /// Why it is unknown.
    reason: Option<&'static str>,
    /// The function in which the thread waits.
    place: Option<String>,
    /// The file, socket, lock or the like that is waited for.
    object: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonQuantile {
    /// `p50`, `p90`, `p99`, `p99.9`, `max`.
    name: &'static str,
    duration_ns: u64,
    /// The parts of the call at this rank.
    split: Split,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonTail {
    /// Calls among the slowest hundredth.
    slow_calls: u64,
    /// Calls in the middle half.
    middle_calls: u64,
    /// The largest difference first.
    parts: Vec<JsonTailPart>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonTailPart {
    #[serde(flatten)]
    what: What,
    /// In all of the slow calls.
    slow_ns: u64,
    /// In all calls of the middle.
    middle_ns: u64,
    /// Difference of the means, and its 95% interval; `null` where a group has one call.
    difference_ns: Option<f64>,
    interval_ns: Option<(f64, f64)>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonCall {
    pid: i32,
    /// For a goroutine, its number.
    tid: i64,
    /// Last command name of the thread.
    thread: Option<String>,
    goroutine: bool,
    from_ns: u64,
    duration_ns: u64,
    /// Calls of the same name that it is within.
    depth: u32,
    /// A number, a text, or `null`.
    #[cfg_attr(test, schemars(with = "Option<serde_json::Value>"))]
    key: Option<serde_json::Value>,
    split: Split,
    /// The largest first. They add up to the duration.
    parts: Vec<JsonPart>,
}

fn what(part: &Part) -> What {
    let text = |name: &Option<std::sync::Arc<str>>| name.as_deref().map(str::to_owned);
    What {
        activity: activity_name(part.activity),
        class: class(part.activity),
        reason: reason(part.activity),
        place: text(&part.place.function),
        object: text(&part.place.object),
    }
}

fn split(parts: &Parts) -> Split {
    let Columns { on_cpu_ns, run_queue_ns, throttled_ns, waiting_ns, unknown_ns } =
        Columns::of(parts);
    Split { on_cpu_ns, run_queue_ns, throttled_ns, waiting_ns, unknown_ns }
}

fn call(requests: &Requests, call: &Call) -> JsonCall {
    let caller = requests.caller(call);
    let parts = requests.parts(call);
    let mut rows: Vec<_> =
        parts.0.iter().map(|(part, ns)| JsonPart { duration_ns: *ns, what: what(part) }).collect();
    rows.sort_by_key(|part| std::cmp::Reverse(part.duration_ns));
    JsonCall {
        pid: caller.pid.0,
        tid: caller.number,
        thread: caller.name.as_deref().map(str::to_owned),
        goroutine: caller.is_goroutine,
        from_ns: call.from.0,
        duration_ns: call.duration_ns(),
        depth: call.depth,
        key: call.key.as_ref().map(|key| match key {
            RequestKey::Number(number) => (*number).into(),
            RequestKey::Text(text) => (**text).into(),
        }),
        split: split(&parts),
        parts: rows,
    }
}

fn tail_part(part: &TailPart) -> JsonTailPart {
    JsonTailPart {
        what: what(&part.part),
        slow_ns: part.slow_ns,
        middle_ns: part.middle_ns,
        difference_ns: part.difference.map(|it| it.change),
        interval_ns: part.difference.map(|it| it.interval),
    }
}

fn of_name(requests: &Requests, index: usize, slowest: usize) -> OfName {
    let RequestsOfName { name, calls, counts, nested, not_asked, quantiles, tail } =
        &requests.names[index];
    OfName {
        name: name.to_string(),
        count: calls.len() as u64,
        nested: *nested,
        not_asked: *not_asked,
        open: counts.open,
        left: counts.left,
        without_begin: counts.without_begin,
        uncertain: counts.uncertain,
        ambiguous: counts.ambiguous,
        handed_over: counts.handed_over,
        quantiles: quantiles
            .iter()
            .map(|it| JsonQuantile {
                name: it.name,
                duration_ns: it.duration_ns,
                split: split(&it.parts),
            })
            .collect(),
        tail: JsonTail {
            slow_calls: tail.slow,
            middle_calls: tail.middle,
            parts: tail.parts.iter().map(tail_part).collect(),
        },
        slowest: calls.iter().rev().take(slowest).map(|it| call(requests, it)).collect(),
        remarks: remarks(requests, index),
    }
}

impl Document {
    fn of(requests: &Requests, slowest: usize) -> Document {
        let of_name = |index| of_name(requests, index, slowest);
        Document {
            format: "whit-requests",
            version: VERSION,
            requests: (0..requests.names.len()).map(of_name).collect(),
            warnings: requests.warnings().iter().map(|it| warning_text(it).into_exact()).collect(),
        }
    }
}
