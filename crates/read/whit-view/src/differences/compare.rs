//! The comparison.

use super::sums::WAITS;
use super::{Cell, DifferencesError, Divisor, Kind, Quantity, Recorded, RowName, Values};
use crate::diff::{Judged, Scatter, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use whit_estimate::{
    Difference, Estimate, Series, Tested, combined, compare as compare_tested, compare_resampled,
    discoveries, discoveries_within,
};
use whit_types::OutsideText;

/// Quantities with fewer waits, calls or the like than that on both sides together are not tested: chance alone makes such
/// differences.
const MIN_EVENTS: u64 = 10;

/// So many units of work in each recording before, and in each after.
pub type PerUnits = Option<[f64; 2]>;

/// The verdict on one quantity of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RowVerdict {
    /// Index into [`Differences::quantities`].
    pub quantity: usize,
    /// Values, interval, verdict.
    pub judged: Judged,
}

/// A row on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct DifferentRow {
    /// One text for each key.
    pub name: RowName,
    /// One for each quantity that the row has; the leading one first.
    pub verdicts: Vec<RowVerdict>,
}

impl DifferentRow {
    /// True where any quantity differs.
    pub fn differs(&self) -> bool {
        self.verdicts.iter().any(|it| it.judged.verdict.is_difference())
    }
}

/// A comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Differences {
    /// The source of rows.
    pub kind: Kind,
    /// Recordings before and after.
    pub paths: [Vec<OutsideText>; 2],
    /// The divisor of all sums, where it is not the quantity's own.
    pub units: PerUnits,
    /// Sources of the errors.
    pub scatter: [Scatter; 2],
    /// Recorded seconds of each side; `None` for counts of whole runs.
    pub seconds: [Option<f64>; 2],
    /// Whether losses and waits of uncertain length widen the intervals of a side.
    pub is_widened: [bool; 2],
    /// Differences of the machines, and other reasons to doubt.
    pub notes: Vec<OutsideText>,
    /// Names of the keys.
    pub keys: Vec<&'static str>,
    /// The values of rows.
    pub quantities: Vec<Quantity>,
    /// Tests that were judged together.
    pub tests: usize,
    /// All rows together.
    pub whole: Option<DifferentRow>,
    /// Differences first, the greatest first; then the others, the heaviest first.
    pub rows: Vec<DifferentRow>,
}

/// Compares the recordings of two sides; each side has one at least, and all are of one kind.
///
/// # Errors
/// They cannot be compared.
pub fn compare(
    before: &[Recorded],
    after: &[Recorded],
    units: PerUnits,
) -> Result<Differences, DifferencesError> {
    let all = || before.iter().chain(after);
    let Some(first) = all().next() else {
        return Err(DifferencesError::TooShort(OutsideText::default()));
    };
    check(first, all(), units)?;
    if units.is_some() && [before, after].iter().any(|runs| runs.len() < 2) {
        return Err(DifferencesError::OneRun);
    }
    let quantities: Vec<Quantity> = first.quantities.iter().map(|of| per(*of, units)).collect();
    let side = |runs, units: Option<f64>| Side { runs, units };
    let sides = [side(before, units.map(|it| it[0])), side(after, units.map(|it| it[1]))];
    sides.iter().try_for_each(Side::check)?;
    let names: BTreeSet<&RowName> = all().flat_map(|run| run.rows.keys()).collect();
    let mut tests = Vec::new();
    for name in names {
        tests.push((name.clone(), of_row(&sides, quantities.len(), |run| run.rows.get(name))));
    }
    let of_all = all().all(|run| run.whole.is_some());
    let whole = of_all.then(|| of_row(&sides, quantities.len(), |run| run.whole.as_ref()));
    let of_rows = || tests.iter().map(|(_, tests)| tests).chain(&whole);
    let nr_tests = of_rows().flatten().filter(|test| test.is_tested()).count();
    // A row is judged as a whole first, and then each of its values.
    let found = discoveries(of_rows().filter_map(|tests| {
        let tested = tests.iter().filter(|test| test.is_tested()).map(|test| test.difference.p);
        tested.clone().next().map(|_| combined(tested))
    }));
    let judge = |(name, tests): (RowName, Vec<Test>)| {
        let tested = || tests.iter().filter(|test| test.is_tested());
        let is_called = found.calls(combined(tested().map(|test| test.difference.p)));
        let within = discoveries_within(&found, tested().map(|test| test.difference.p));
        let level = found.level() / tested().count().max(1) as f64;
        let judge = |test: &Test| test.judge(is_called && within.calls(test.difference.p), level);
        DifferentRow { name, verdicts: tests.iter().map(judge).collect() }
    };
    let mut rows: Vec<DifferentRow> = tests.into_iter().map(judge).collect();
    rows.sort_by(|a, b| {
        let (one, other) = (order(a, &quantities), order(b, &quantities));
        let heaviest = other.partial_cmp(&one).unwrap_or(std::cmp::Ordering::Equal);
        heaviest.then_with(|| a.name.cmp(&b.name))
    });
    Ok(Differences {
        kind: first.kind,
        paths: [before, after].map(|runs| runs.iter().map(|run| run.path.clone()).collect()),
        units,
        scatter: [sides[0].scatter(), sides[1].scatter()],
        seconds: [before, after].map(|runs| {
            let has_time = first.quantities.iter().all(|quantity| quantity.per != Divisor::Run);
            has_time.then(|| runs.iter().flat_map(|run| &run.seconds).sum())
        }),
        is_widened: [before, after]
            .map(|runs| runs.iter().flat_map(|run| &run.missing).any(|it| *it > 0.0)),
        notes: notes(first, all()),
        keys: first.keys.clone(),
        quantities,
        tests: nr_tests,
        whole: whole.map(|tests| judge((Vec::new(), tests))),
        rows,
    })
}

/// Sums over time are per unit of work where units are counted.
fn per(quantity: Quantity, units: PerUnits) -> Quantity {
    match units {
        Some(_) if quantity.per == Divisor::Time => Quantity { per: Divisor::Run, ..quantity },
        _ => quantity,
    }
}

/// Refuses recordings with different contents.
fn check<'r>(
    first: &Recorded,
    mut others: impl Iterator<Item = &'r Recorded>,
    units: PerUnits,
) -> Result<(), DifferencesError> {
    if units.is_some() && first.kind == Kind::Requests {
        return Err(DifferencesError::NoUnits);
    }
    others.try_for_each(|other| {
        let pairs = first.what.iter().zip(&other.what);
        let misfit = pairs.into_iter().find(|(one, other)| one != other);
        misfit.map_or(Ok(()), |((what, one), (_, of_other))| {
            Err(DifferencesError::RecordedDifferently {
                what,
                one: one.clone(),
                path: first.path.clone(),
                other: of_other.clone(),
                other_path: other.path.clone(),
            })
        })
    })
}

fn notes<'r>(
    first: &Recorded,
    all: impl Iterator<Item = &'r Recorded> + Clone,
) -> Vec<OutsideText> {
    let mut notes: Vec<OutsideText> = Vec::new();
    for (place, (what, value)) in first.machine.iter().enumerate() {
        let others = all.clone().filter_map(|run| run.machine.get(place));
        if let Some((_, other)) = others.clone().find(|(_, other)| other != value) {
            let [value, other] = [value, other].map(OutsideText::exact);
            notes.push(
                format!(
                    "the recordings come from different machines: {what} `{value}` and `{other}`"
                )
                .into(),
            );
        }
    }
    for run in all {
        let path = run.path.exact();
        notes.extend(run.notes.iter().map(|note| format!("{path}: {}", note.exact()).into()));
    }
    notes
}

/// The recordings of one side.
struct Side<'r> {
    runs: &'r [Recorded],
    /// Units of work in each of them.
    units: Option<f64>,
}

/// One side of a test.
struct Value {
    tested: Tested,
    /// The values that scatter; absent of estimates.
    series: Option<Series>,
    events: u64,
    /// Sum of the divisors.
    weight: f64,
}

impl Side<'_> {
    fn check(&self) -> Result<(), DifferencesError> {
        match self.runs {
            [one] if one.seconds.iter().filter(|seconds| **seconds > 0.0).count() < 2 => {
                Err(DifferencesError::TooShort(one.path.clone()))
            }
            _ => Ok(()),
        }
    }

    fn scatter(&self) -> Scatter {
        match self.runs {
            [one] => {
                let seconds = one.seconds.iter().filter(|seconds| **seconds > 0.0);
                let (count, longest) =
                    (seconds.clone().count(), seconds.fold(0.0, |a: f64, b| a.max(*b)));
                Scatter::Blocks(count, (longest * 1e9) as u64)
            }
            runs => Scatter::Runs(runs.len()),
        }
    }

    /// The values of a quantity of a row. `None` where nothing gives an error.
    fn value<'a>(
        &'a self,
        quantity: usize,
        row: impl Fn(&'a Recorded) -> Option<&'a Vec<Cell>>,
    ) -> Option<Value> {
        let cells: Vec<Option<&Cell>> =
            self.runs.iter().map(|run| row(run).and_then(|cells| cells.get(quantity))).collect();
        let events = cells.iter().flatten().map(|cell| cell.events).sum();
        let missing: f64 = self.runs.iter().filter_map(|run| run.missing.get(quantity)).sum();
        if let Some(estimate) = estimates(&cells) {
            return Some(Value { tested: estimate?, series: None, events, weight: 1.0 });
        }
        let is_own_divisor = self
            .runs
            .iter()
            .any(|run| run.quantities.get(quantity).is_some_and(|it| it.per == Divisor::Request));
        let of_run = |(run, cell): (&Recorded, &Option<&Cell>)| match cell {
            Some(Cell { values: Values::Sums(series), .. }) => series.clone(),
            // Without requests and waits, nothing has a cost per request or wait.
            _ if is_own_divisor => Series::default(),
            _ => Series::new(run.seconds.iter().map(|seconds| (*seconds, 0.0))),
        };
        let of_runs: Vec<Series> = self.runs.iter().zip(&cells).map(of_run).collect();
        let (series, least) = match &of_runs[..] {
            [one] => (one.clone(), 0.0),
            _ => {
                let sums = |of: &Series| {
                    let (weight, value) = of.sums();
                    (self.units.filter(|_| !is_own_divisor).unwrap_or(weight), value)
                };
                let series = Series::new(of_runs.iter().map(sums));
                let weight = series.sums().0;
                // Recordings scatter by chance too little now and then; never truly less than their own blocks do.
                let of_blocks =
                    |of: &Series| of.estimate().map_or(0.0, |it| it.variance * of.sums().0.powi(2));
                let least = of_runs.iter().map(of_blocks).sum::<f64>() / weight.powi(2);
                (series, least)
            }
        };
        let estimate = series.estimate()?.with_least_variance(least);
        let weight = series.sums().0;
        let range = (estimate.value, estimate.value + missing / weight);
        Some(Value { tested: Tested { estimate, range }, series: Some(series), events, weight })
    }
}

/// The estimate of a side from those of its recordings; `None` where they are no estimates.
fn estimates(cells: &[Option<&Cell>]) -> Option<Option<Tested>> {
    let tested = cells.iter().flatten().filter_map(|cell| match &cell.values {
        Values::Estimate(tested) => Some(*tested),
        Values::Sums(_) => None,
    });
    let all: Vec<Tested> = tested.collect();
    match &all[..] {
        [] => None,
        [one] => Some((cells.len() == 1).then_some(*one)),
        several => {
            let count = several.len() as f64;
            let series = Series::new(several.iter().map(|it| (1.0, it.estimate.value)));
            let within: f64 = several.iter().map(|it| it.estimate.variance).sum();
            let mean = |of: fn(&Tested) -> f64| several.iter().map(of).sum::<f64>() / count;
            let range = (mean(|it| it.range.0), mean(|it| it.range.1));
            Some(series.estimate().map(|estimate| Tested {
                estimate: estimate.with_least_variance(within / (count * count)),
                range,
            }))
        }
    }
}

/// A test before all are judged.
struct Test {
    quantity: usize,
    sides: [Tested; 2],
    difference: Difference,
    events: u64,
}

/// The tests of a row, one for each quantity that has an error on both sides.
fn of_row<'a>(
    sides: &'a [Side<'a>; 2],
    quantities: usize,
    row: impl Fn(&'a Recorded) -> Option<&'a Vec<Cell>>,
) -> Vec<Test> {
    let test = |quantity: usize| {
        let [before, after] = [0, 1].map(|side: usize| sides[side].value(quantity, &row));
        let (before, after) = (before?, after?);
        let events = before.events + after.events;
        // A row without any event may have been missed by chance: it has the error of one.
        let sum = |of: &Value| of.tested.estimate.value * of.weight;
        let one = if events == 0 { 0.0 } else { (sum(&before) + sum(&after)) / events as f64 };
        let least = |of: &Value| match of.series {
            Some(_) => with_least(of.tested, (one / of.weight).powi(2)),
            None => of.tested,
        };
        let tested = [least(&before), least(&after)];
        let difference = match (&before.series, &after.series) {
            (Some(one), Some(other)) if events >= MIN_EVENTS => {
                compare_resampled((&tested[0], one), (&tested[1], other))
            }
            _ => compare_tested(&tested[0], &tested[1]),
        };
        Some(Test { quantity, sides: tested, difference, events })
    };
    (0..quantities).filter_map(test).collect()
}

fn with_least(tested: Tested, variance: f64) -> Tested {
    let estimate: Estimate = tested.estimate.with_least_variance(variance);
    Tested { estimate, ..tested }
}

impl Test {
    fn is_tested(&self) -> bool {
        self.events >= MIN_EVENTS
    }

    fn judge(&self, is_called: bool, level: f64) -> RowVerdict {
        let Test { quantity, sides: [before, after], difference, .. } = self;
        let verdict = match difference.change {
            _ if !self.is_tested() || !is_called => Verdict::Undecided,
            change if change < 0.0 => Verdict::Faster,
            _ => Verdict::Slower,
        };
        let judged = Judged {
            before: before.estimate.value,
            after: after.estimate.value,
            halves: [before, after].map(|side| side.estimate.half_width()),
            difference: *difference,
            verdict,
            smallest: difference.detectable(level),
        };
        RowVerdict { quantity: *quantity, judged }
    }
}

/// Rows with a difference are first, by the change that is certain at least: in the unit of the leading value where a value has
/// that, else its part of the value, times the weight of the row. The others follow by weight.
fn order(row: &DifferentRow, quantities: &[Quantity]) -> (bool, f64) {
    let value = |it: &RowVerdict| it.judged.before.max(it.judged.after);
    let Some(lead) = row.verdicts.first() else { return (false, 0.0) };
    let of = |it: &RowVerdict| &quantities[it.quantity];
    // The time of all requests of a row.
    let rates = row.verdicts.iter().filter(|it| of(it).per == Divisor::Time);
    let weight = match of(lead).per {
        Divisor::Request => value(lead) * rates.map(value).next().unwrap_or(1.0),
        _ => value(lead),
    };
    let certain = |it: &RowVerdict| {
        let (low, high) = it.judged.difference.interval;
        let change = if low > 0.0 { low } else { (-high).max(0.0) };
        let is_of_lead = (of(it).unit, of(it).per) == (of(lead).unit, of(lead).per);
        match of(lead).per {
            Divisor::Time | Divisor::Run if is_of_lead => change,
            _ => weight * change / value(it).max(f64::MIN_POSITIVE),
        }
    };
    let differing = row.verdicts.iter().filter(|it| it.judged.verdict.is_difference());
    let largest = differing.map(certain).reduce(f64::max);
    (largest.is_some(), largest.unwrap_or(weight))
}

impl Differences {
    /// Names of rows that have more of a cost, by more than this share of the value of all rows before, or of the row's own where
    /// rows have no sum.
    pub fn worse_by(&self, percent: f64) -> Vec<OutsideText> {
        let whole = |quantity: usize, own: f64| {
            let of_all = self.whole.iter().flat_map(|row| &row.verdicts);
            let mut of_all = of_all.filter(|it| it.quantity == quantity);
            of_all.next().map_or(own, |it| it.judged.before)
        };
        let is_worse = |it: &RowVerdict| {
            let Judged { before, verdict, difference, .. } = it.judged;
            let limit = percent / 100.0 * whole(it.quantity, before);
            self.quantities[it.quantity].is_cost
                && verdict == Verdict::Slower
                && difference.change > limit
        };
        let rows = self.whole.iter().chain(&self.rows);
        rows.filter(|row| row.verdicts.iter().any(is_worse)).map(|row| self.row_name(row)).collect()
    }

    /// The name of a row in one line.
    pub fn row_name(&self, row: &DifferentRow) -> OutsideText {
        match &row.name[..] {
            [] => format!("[all {}]", self.kind.name()).into(),
            [one] => one.clone(),
            [function, binary] if self.keys[1] == "binary" => {
                format!("{} ({})", function.exact(), binary.exact()).into()
            }
            several => several.iter().map(OutsideText::exact).collect::<Vec<_>>().join("  ").into(),
        }
    }

    /// The verdict on a row: those of all quantities that differ.
    pub fn words(&self, row: &DifferentRow) -> String {
        let words = row.verdicts.iter().filter_map(|it| self.word(it));
        match &words.collect::<Vec<_>>()[..] {
            [] => Verdict::Undecided.words().to_owned(),
            words => words.join(", "),
        }
    }

    /// The verdict on one quantity; `None` where it does not differ.
    pub fn word(&self, of: &RowVerdict) -> Option<&'static str> {
        let [less, more] = self.quantities[of.quantity].words;
        match of.judged.verdict {
            Verdict::Faster => Some(less),
            Verdict::Slower => Some(more),
            _ => None,
        }
    }
}

/// Cells of rows that are added up by name and block.
#[derive(Debug, Default)]
pub(super) struct BlockRows {
    rows: BTreeMap<RowName, Vec<(Vec<f64>, u64)>>,
}

impl BlockRows {
    /// Adds a value and its events to a quantity of a row.
    pub(super) fn add(
        &mut self,
        name: &RowName,
        at: (usize, usize),
        blocks: (usize, usize),
        (value, events): (f64, u64),
    ) {
        let (quantity, quantities) = at;
        let (block, count) = blocks;
        if value == 0.0 && events == 0 {
            return;
        }
        let cells = match self.rows.get_mut(name) {
            Some(cells) => cells,
            None => self
                .rows
                .entry(name.clone())
                .or_insert_with(|| vec![(vec![0.0; count], 0); quantities]),
        };
        if let Some(sum) = cells[quantity].0.get_mut(block) {
            *sum += value;
        }
        cells[quantity].1 += events;
    }

    /// With the divisors of each block.
    pub(super) fn into_rows(
        self,
        seconds: &[f64],
        quantities: &[Quantity],
    ) -> BTreeMap<RowName, Vec<Cell>> {
        let row = |(name, cells): (RowName, Vec<(Vec<f64>, u64)>)| {
            let waits = quantities.iter().zip(&cells).find(|(of, _)| **of == WAITS);
            let waits = waits.map_or(seconds, |(_, (values, _))| values);
            let cell = |(quantity, (values, events)): (&Quantity, &(Vec<f64>, u64))| {
                let series = match quantity.per {
                    Divisor::Wait => of_waits(waits, values),
                    _ => Series::new(seconds.iter().copied().zip(values.iter().copied())),
                };
                Cell { values: Values::Sums(series), events: *events }
            };
            let cells = quantities.iter().zip(&cells).map(cell).collect();
            (name, cells)
        };
        self.rows.into_iter().map(row).collect()
    }
}

/// Lengths by the number of waits. The part of a wait in a block without a beginning belongs to the last one that has any.
pub(super) fn of_waits(waits: &[f64], lengths: &[f64]) -> Series {
    let mut parts: Vec<(f64, f64)> = Vec::new();
    for (waits, length) in waits.iter().zip(lengths) {
        match parts.last_mut() {
            Some(last) if *waits == 0.0 => last.1 += length,
            _ => parts.push((*waits, *length)),
        }
    }
    Series::new(parts)
}
