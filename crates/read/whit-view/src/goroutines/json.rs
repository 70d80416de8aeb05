//! Waits of goroutines as JSON.

use super::{no_goroutine, object, remarks, worst};
use crate::json_strings;
use crate::warning::warning_text;
use serde::Serialize;
use std::io::{self, Write};
use whit_profile::tables::{Goroutine, GoroutineWaker};
use whit_why::{GoPart, GoRow, GoWait, GoWaker, Goroutines};

/// Version of the JSON form; see [`write_json`].
pub const VERSION: u32 = 1;

/// Writes all rows and the longest waits as JSON, without a line end after it.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_json(out: &mut impl Write, goroutines: &Goroutines, worst: usize) -> io::Result<()> {
    json_strings::write(out, &Document::of(goroutines, worst))
}

/// `whit goroutines --json`: one object. Members may be added; `version` grows when one changes its meaning or goes
/// away. Times are in nanoseconds by the clock of the recording.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Document {
    /// `whit-goroutines`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    /// Goroutines that waited.
    goroutines: u64,
    /// Ends of waits that began before the recording.
    begun_before: u64,
    /// Waits of Go's runtime that are left out.
    of_runtime: u64,
    /// Waits that are left out: records were lost meanwhile.
    uncertain: u64,
    /// By reason and function, the longest sum first.
    rows: Vec<JsonRow>,
    /// The longest waits, those without an end first: as many as `--worst` says.
    worst: Vec<JsonWait>,
    remarks: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonRow {
    /// As Go's runtime prints it.
    reason: String,
    /// The innermost function of the program; where there is none, the one that the goroutine began with.
    function: Option<String>,
    /// Waits with an end.
    count: u64,
    /// From the park until the goroutine was ready.
    total_ns: u64,
    max_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    /// From there until a thread ran it.
    runnable_ns: u64,
    /// Waits without an end, which are in no other number.
    open: u64,
    /// Goroutines that waited.
    goroutines: u64,
    /// The call chain with the longest sum, innermost first.
    stack: Vec<String>,
    /// Those that ended the waits, the longest sum first.
    wakers: Vec<JsonPart>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonPart {
    /// `goroutine`, `timer`, `scheduler`, `poller` (of the network; or the collector, where polls are not recorded),
    /// `runtime` (without a function that makes a goroutine ready), `unknown` (no debug information).
    kind: &'static str,
    function: Option<String>,
    goroutines: u64,
    count: u64,
    total_ns: u64,
    /// The call chain with the longest sum, innermost first.
    stack: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonWait {
    from_ns: u64,
    /// `null` where the recording ends first.
    duration_ns: Option<u64>,
    runnable_ns: Option<u64>,
    goroutine: JsonGoroutine,
    reason: String,
    function: Option<String>,
    /// A channel or lock by its address, a file by its number.
    object: Option<String>,
    stack: Vec<String>,
    waker: Option<JsonWaker>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonGoroutine {
    /// As Go's runtime prints it; `null` without debug information.
    number: Option<u64>,
    /// That of its `runtime.g`.
    address: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonWaker {
    /// As in `rows`.
    kind: &'static str,
    goroutine: Option<JsonGoroutine>,
    function: Option<String>,
    stack: Vec<String>,
}

impl JsonGoroutine {
    fn of(goroutine: Goroutine) -> JsonGoroutine {
        JsonGoroutine { number: goroutine.number, address: goroutine.address }
    }
}

fn stack(goroutines: &Goroutines, callsite: Option<u32>) -> Vec<String> {
    goroutines.chain(callsite).iter().map(ToString::to_string).collect()
}

fn part(goroutines: &Goroutines, part: &GoPart) -> JsonPart {
    JsonPart {
        kind: no_goroutine(goroutines, part.waker, part.callsite),
        function: part.function.as_deref().map(str::to_owned),
        goroutines: part.goroutines,
        count: part.count,
        total_ns: part.total_ns,
        stack: stack(goroutines, part.callsite),
    }
}

fn row(goroutines: &Goroutines, row: &GoRow) -> JsonRow {
    JsonRow {
        reason: goroutines.reason(row.reason),
        function: row.function.as_deref().map(str::to_owned),
        count: row.waits.count,
        total_ns: row.waits.total_ns,
        max_ns: row.waits.max_ns,
        p50_ns: row.waits.percentile_ns(50),
        p99_ns: row.waits.percentile_ns(99),
        runnable_ns: row.runnable_ns,
        open: row.open,
        goroutines: row.goroutines,
        stack: stack(goroutines, row.callsite),
        wakers: row.wakers.iter().map(|it| part(goroutines, it)).collect(),
    }
}

fn wait(goroutines: &Goroutines, wait: &GoWait) -> JsonWait {
    let function = |callsite| goroutines.function(callsite).as_deref().map(str::to_owned);
    let waker = wait.end.map(|end| {
        let goroutine = match end.waker {
            GoWaker::Ready(GoroutineWaker::Goroutine(it)) => Some(JsonGoroutine::of(it)),
            GoWaker::Ready(_) | GoWaker::NoFunction => None,
        };
        let has_function = matches!(
            end.waker,
            GoWaker::Ready(GoroutineWaker::Goroutine(_) | GoroutineWaker::Unknown)
        );
        JsonWaker {
            kind: no_goroutine(goroutines, end.waker, end.callsite),
            goroutine,
            function: function(end.callsite).filter(|_| has_function),
            stack: stack(goroutines, end.callsite),
        }
    });
    JsonWait {
        from_ns: wait.from.0,
        duration_ns: wait.blocked_ns(),
        runnable_ns: wait.runnable_ns(),
        goroutine: JsonGoroutine::of(wait.goroutine),
        reason: goroutines.reason(wait.reason),
        function: function(wait.callsite),
        object: object(goroutines, wait),
        stack: stack(goroutines, wait.callsite),
        waker,
    }
}

impl Document {
    fn of(goroutines: &Goroutines, count: usize) -> Document {
        Document {
            format: "whit-goroutines",
            version: VERSION,
            goroutines: goroutines.goroutines,
            begun_before: goroutines.begun_before,
            of_runtime: goroutines.of_runtime,
            uncertain: goroutines.uncertain,
            rows: goroutines.rows.iter().map(|it| row(goroutines, it)).collect(),
            worst: worst(goroutines, count).into_iter().map(|it| wait(goroutines, it)).collect(),
            remarks: remarks(goroutines),
            warnings: goroutines
                .warnings()
                .iter()
                .map(|it| warning_text(it).into_exact())
                .collect(),
        }
    }
}
