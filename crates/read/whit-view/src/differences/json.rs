//! Differences as JSON. `docs/schemas/differences.json` is the schema; it comes from the types here.

use super::{Differences, DifferentRow, Divisor, RowVerdict, UNBOUNDED, Unit};
use crate::diff::{Scatter, Verdict};
use crate::json_strings;
use serde::Serialize;
use std::io::{self, Write};
use whit_types::OutsideText;

/// Version of the form.
const VERSION: u32 = 1;

/// Writes them, without a line end after them.
///
/// # Errors
/// Those of `out`.
pub fn write_json(out: &mut impl Write, of: &Differences) -> io::Result<()> {
    json_strings::write(out, &Document::of(of))
}

/// The same, as a part of another document; so many rows at most, the first ones.
pub fn document(of: &Differences, max_rows: usize) -> impl Serialize + '_ {
    let mut document = Document::of(of);
    document.rows.truncate(max_rows);
    document
}

/// `whit diff --waits --json` and the like: one object. Members may be added; `version` grows when one changes its meaning or
/// goes away.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    /// `whit-differences`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    /// The source of rows: `waits`, `locks`, `wall`, `requests` or `stat`.
    kind: &'static str,
    before: Side<'a>,
    after: Side<'a>,
    /// Units of work in each recording before and after (`--per`).
    units: Option<[f64; 2]>,
    /// The parts of the names of rows.
    keys: &'a [&'static str],
    /// The values that rows have.
    quantities: Vec<JsonQuantity>,
    /// Tests that were judged together: of the differences that are called, at most 5 in 100 are false on average.
    tests: usize,
    /// All rows together; `null` where rows have no sum.
    whole: Option<Row<'a>>,
    /// Differences first, then the heaviest.
    rows: Vec<Row<'a>>,
    /// Differences of the machines, and warnings of the recordings.
    warnings: Vec<&'a str>,
}

/// The recordings of one side.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Side<'a> {
    paths: Vec<&'a str>,
    /// Recorded time of all of them; `null` for counts of whole runs.
    seconds: Option<f64>,
    /// Blocks of time whose scatter gives the errors, for one recording.
    blocks: Option<usize>,
    /// Length of a block.
    block_ns: Option<u64>,
    /// Recordings whose scatter gives the errors, for several of them.
    runs: Option<usize>,
    /// Losses, and waits of uncertain length, widen the intervals.
    is_widened: bool,
}

/// Something that rows have values of.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonQuantity {
    name: &'static str,
    /// `ns` or `count`.
    unit: &'static str,
    /// The divisor: `second`, `request`, `wait`, `run` (with `units`, a unit of work), or `null` for quantiles.
    per: Option<&'static str>,
}

/// One row.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row<'a> {
    /// One text for each key.
    name: Vec<&'a str>,
    /// `cannot be told`, or the verdicts on all quantities that differ, with commas between them.
    verdict: String,
    /// In the order of the quantities; those that have no error on both sides are left out.
    values: Vec<Value>,
}

/// A tested difference of one quantity.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Value {
    /// Its name.
    quantity: &'static str,
    before: f64,
    after: f64,
    /// Half of the interval of the value before; `null` where nothing bounds it.
    before_plus_minus: Option<f64>,
    /// Half of the interval of the value after; `null` where nothing bounds it.
    after_plus_minus: Option<f64>,
    change: f64,
    /// Lower end of the change's interval, which holds the true one in 95 of 100 cases; `null` where nothing bounds it.
    low: Option<f64>,
    /// Its upper end.
    high: Option<f64>,
    /// Probability of such a change by chance, before all tests are judged together.
    p: f64,
    /// `cannot be told`, or that there is less or more, such as `waits more`.
    verdict: &'static str,
    /// The smallest change that would have been called in 80 of 100 cases; `null` where none would.
    smallest: Option<f64>,
}

impl<'a> Document<'a> {
    fn of(of: &'a Differences) -> Document<'a> {
        let quantity = |quantity: &super::Quantity| JsonQuantity {
            name: quantity.name,
            unit: match quantity.unit {
                Unit::Time => "ns",
                Unit::Count => "count",
            },
            per: match quantity.per {
                Divisor::Time => Some("second"),
                Divisor::Request => Some("request"),
                Divisor::Wait => Some("wait"),
                Divisor::Run => Some("run"),
                Divisor::Nothing => None,
            },
        };
        Document {
            format: "whit-differences",
            version: VERSION,
            kind: of.kind.name(),
            before: Side::of(of, 0),
            after: Side::of(of, 1),
            units: of.units,
            keys: &of.keys,
            quantities: of.quantities.iter().map(quantity).collect(),
            tests: of.tests,
            whole: of.whole.as_ref().map(|row| Row::of(of, row)),
            rows: of.rows.iter().map(|row| Row::of(of, row)).collect(),
            warnings: of.notes.iter().map(OutsideText::exact).collect(),
        }
    }
}

impl<'a> Side<'a> {
    fn of(of: &'a Differences, side: usize) -> Side<'a> {
        let (blocks, block_ns, runs) = match of.scatter[side] {
            Scatter::Blocks(count, length_ns) => (Some(count), Some(length_ns), None),
            Scatter::Runs(runs) => (None, None, Some(runs)),
        };
        let paths = of.paths[side].iter().map(OutsideText::exact).collect();
        let (seconds, is_widened) = (of.seconds[side], of.is_widened[side]);
        Side { paths, seconds, blocks, block_ns, runs, is_widened }
    }
}

impl<'a> Row<'a> {
    fn of(of: &'a Differences, row: &'a DifferentRow) -> Row<'a> {
        Row {
            name: row.name.iter().map(OutsideText::exact).collect(),
            verdict: of.words(row),
            values: row.verdicts.iter().map(|it| Value::of(of, it)).collect(),
        }
    }
}

/// JSON has no infinite numbers.
fn bounded(value: f64) -> Option<f64> {
    (value.abs() < UNBOUNDED).then_some(value)
}

impl Value {
    fn of(of: &Differences, it: &RowVerdict) -> Value {
        let judged = &it.judged;
        Value {
            quantity: of.quantities[it.quantity].name,
            before: judged.before,
            after: judged.after,
            before_plus_minus: bounded(judged.halves[0]),
            after_plus_minus: bounded(judged.halves[1]),
            change: judged.difference.change,
            low: bounded(judged.difference.interval.0),
            high: bounded(judged.difference.interval.1),
            p: judged.difference.p,
            verdict: of.word(it).unwrap_or(Verdict::Undecided.words()),
            smallest: bounded(judged.smallest),
        }
    }
}

#[cfg(test)]
mod schema_tests {
    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<super::Document<'_>>("docs/schemas/differences.json");
    }
}
