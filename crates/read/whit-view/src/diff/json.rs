//! A comparison as JSON. `docs/schemas/diff.json` is the schema; it comes from the types here.

use std::io::{self, Write};

use serde::Serialize;
use whit_types::OutsideText;

use super::{Diff, EventDiff, FunctionName, Judged, Match, Per, Scatter, SideInfo, Verdict};
use crate::json_strings;

/// Version of the form.
const VERSION: u32 = 1;

/// Writes it, without a line end after it.
///
/// # Errors
/// Those of `out`.
pub fn write_json(out: &mut impl Write, diff: &Diff) -> io::Result<()> {
    json_strings::write(out, &Document::of(diff))
}

/// The same, as a part of another document. Events have so many rows at most, the first ones.
pub fn document(diff: &Diff, max_rows: usize) -> impl Serialize + '_ {
    let mut document = Document::of(diff);
    document.events.iter_mut().for_each(|event| event.rows.truncate(max_rows));
    document
}

/// `whit diff --json`: one object. Members may be added; `version` grows when one changes its meaning or goes away.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    /// `whit-diff`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    /// Paths of the recordings.
    before: Vec<&'a str>,
    /// Paths of the recordings.
    after: Vec<&'a str>,
    /// Divisor of values: `share` (values are percentages of the event), `units` (of work), or `event`.
    per: &'static str,
    /// Units of work in each recording before and after, with `units`.
    units: Option<[f64; 2]>,
    /// The event to divide by, with `event`.
    per_event: Option<&'a str>,
    /// The events that all recordings have.
    events: Vec<Event<'a>>,
    /// Differences of the machines, and warnings of the recordings.
    warnings: Vec<&'a str>,
}

/// One event.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Event<'a> {
    name: &'a str,
    before: Side,
    after: Side,
    /// Tests that were judged together: of the differences that are called, at most 5 in 100 are false on average.
    tests: usize,
    /// All samples of the event; `null` for shares.
    whole: Option<Test>,
    /// Differences first, then the heaviest.
    rows: Vec<Row<'a>>,
}

/// The recordings of one side.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Side {
    samples: u64,
    period: u64,
    /// Samples that may be missing. They widen all intervals.
    lost: u64,
    /// Blocks of time whose scatter gives the errors, for one recording.
    blocks: Option<usize>,
    /// Length of a block.
    block_ns: Option<u64>,
    /// Recordings whose scatter gives the errors, for several of them.
    runs: Option<usize>,
}

/// One function.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    /// Its name after, where it is another one.
    renamed: Option<Name<'a>>,
    /// How the function was found on both sides: `name`, `address` (in the same build), `similar` (a guess), or `alone`.
    matched: &'static str,
    /// The function itself.
    #[serde(rename = "self")]
    own: Test,
    /// With all functions that it calls; `null` without call chains.
    total: Option<Test>,
    /// The function that most of its samples were called from, where the function itself differs: its cost may have
    /// moved there.
    caller: Option<Caller<'a>>,
}

/// A function and its binary.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Name<'a> {
    function: &'a str,
    binary: &'a str,
}

/// The caller that a function's cost may have moved to.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Caller<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    total: Test,
}

/// A tested difference.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Test {
    before: f64,
    after: f64,
    /// Half of the interval of the value before; `null` where nothing bounds it.
    before_plus_minus: Option<f64>,
    /// Half of the interval of the value after; `null` where nothing bounds it.
    after_plus_minus: Option<f64>,
    change: f64,
    /// Lower end of the change's interval, which holds the true one in 95 of 100 cases.
    low: f64,
    /// Its upper end.
    high: f64,
    /// Probability of such a change by chance, before all tests are judged together.
    p: f64,
    /// `faster`, `slower`, `cannot be told`, `only before` or `only after`.
    verdict: &'static str,
    /// The smallest change that would have been called in 80 of 100 cases.
    smallest: f64,
}

impl<'a> Document<'a> {
    fn of(diff: &'a Diff) -> Document<'a> {
        let [before, after] =
            [0, 1].map(|side| diff.paths[side].iter().map(OutsideText::exact).collect());
        let (units, per_event) = match &diff.per {
            Per::Share => (None, None),
            Per::Units(before, after) => (Some([*before, *after]), None),
            Per::Event(event) => (None, Some(event.as_str())),
        };
        Document {
            format: "whit-diff",
            version: VERSION,
            before,
            after,
            per: diff.per.name(),
            units,
            per_event,
            events: diff.events.iter().map(Event::of).collect(),
            warnings: diff.notes.iter().map(OutsideText::exact).collect(),
        }
    }
}

impl<'a> Event<'a> {
    fn of(event: &'a EventDiff) -> Event<'a> {
        Event {
            name: event.name.exact(),
            before: Side::of(&event.before),
            after: Side::of(&event.after),
            tests: event.tests,
            whole: event.whole.as_ref().map(Test::of),
            rows: event.rows.iter().map(Row::of).collect(),
        }
    }
}

impl Side {
    fn of(side: &SideInfo) -> Side {
        let (blocks, block_ns, runs) = match side.scatter {
            Scatter::Blocks(count, length_ns) => (Some(count), Some(length_ns), None),
            Scatter::Runs(runs) => (None, None, Some(runs)),
        };
        let SideInfo { samples, period, lost, .. } = *side;
        Side { samples, period, lost, blocks, block_ns, runs }
    }
}

impl<'a> Row<'a> {
    fn of(row: &'a super::Row) -> Row<'a> {
        let matched = match row.matched {
            Match::Name => "name",
            Match::Address => "address",
            Match::Similar => "similar",
            Match::Alone => "alone",
        };
        let caller = |caller: &'a super::Caller| Caller {
            name: Name::of(&caller.name),
            total: Test::of(&caller.total),
        };
        Row {
            name: Name::of(&row.name),
            renamed: row.renamed.as_ref().map(Name::of),
            matched,
            own: Test::of(&row.own),
            total: row.total.as_ref().map(Test::of),
            caller: row.caller.as_ref().map(caller),
        }
    }
}

impl<'a> Name<'a> {
    fn of(name: &'a FunctionName) -> Name<'a> {
        Name { function: name.function.exact(), binary: name.binary.exact() }
    }
}

/// JSON has no infinite numbers.
fn bounded(half: f64) -> Option<f64> {
    half.is_finite().then_some(half)
}

impl Test {
    fn of(judged: &Judged) -> Test {
        Test {
            before: judged.before,
            after: judged.after,
            before_plus_minus: bounded(judged.halves[0]),
            after_plus_minus: bounded(judged.halves[1]),
            change: judged.difference.change,
            low: judged.difference.interval.0,
            high: judged.difference.interval.1,
            p: judged.difference.p,
            verdict: Verdict::words(judged.verdict),
            smallest: judged.smallest,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<super::Document<'_>>("docs/schemas/diff.json");
    }
}
