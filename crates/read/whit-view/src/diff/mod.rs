//! Comparison of recordings: which functions became faster or slower, and which differences may be chance.
//!
//! Each recording is reduced to a [`Run`] and dropped. Several recordings on a side show how much runs differ by
//! themselves; of one recording, the scatter between its blocks of time gives the error. All tests of one event are
//! judged together (`whit_estimate::discoveries`).

mod json;
mod matching;
mod options;
mod run;
mod side;
mod text;

#[cfg(test)]
mod tests;

use whit_estimate::{Difference, Discoveries, Tested, compare, discoveries};
use whit_types::OutsideText;

pub use json::{document, write_json};
pub use matching::Match;
pub use options::{DiffOptions, Per, is_of_commands};
pub(crate) use run::join_functions;
pub use run::{FunctionName, Run, stable_binary};
pub use side::Scatter;
pub use text::{DiffTextOptions, write_text};

use crate::warning::warning_text;
use matching::{Pair, pairs};
use run::list;
use side::{Function, Side};

/// Functions with fewer samples than that on both sides together are not tested: chance alone makes such differences.
const MIN_SAMPLES: u64 = 10;

/// Why recordings cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// Nothing to compare.
    #[error("{0} has no samples: record again, for longer or at a higher frequency (-F)")]
    NoSamples(OutsideText),
    /// The samples do not spread over blocks of time.
    #[error(
        "{0} is too short: the scatter between blocks of its time gives the error of its shares, and its samples \
         cover fewer than two blocks; record some seconds, or give several recordings on each side of `--`"
    )]
    TooShort(OutsideText),
    /// One recording outweighs all others.
    #[error(
        "{0} and the recordings on its side have too different weights: one of them has nearly all samples; give \
         recordings of about the same length"
    )]
    Unequal(OutsideText),
    /// The two sides have no event in common.
    #[error(
        "the recordings have no event in common: before has {before}, after has {after}; record both with the same -e"
    )]
    NoCommonEvent {
        /// Events of the first side.
        before: OutsideText,
        /// Events of the other side.
        after: OutsideText,
    },
    /// Nothing shows the error of a unit of work.
    #[error(
        "a unit of work costs more in one run than in another, which one recording does not show: give several \
         recordings on each side (whit diff --per N BEFORE.. -- AFTER..), or divide by a recorded event (--per-event)"
    )]
    OneRun,
    /// The event to divide by is not in a recording.
    #[error(
        "{path} has no samples of {event} to divide by, only of {recorded}: name {event} too when you record (-e), or \
         count units of work (--per)"
    )]
    NoSuchEvent {
        /// The recording.
        path: OutsideText,
        /// Its name, as the user gave it.
        event: OutsideText,
        /// Events that the recording has.
        recorded: OutsideText,
    },
}

/// Outcome of a test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// The weight fell.
    Faster,
    /// The weight grew.
    Slower,
    /// The difference may be chance.
    Undecided,
    /// The binary was not mapped after: another program ran.
    OnlyBefore,
    /// The binary was not mapped before.
    OnlyAfter,
}

impl Verdict {
    /// As people and programs read it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Undecided => "cannot be told",
            Verdict::OnlyBefore => "only before",
            Verdict::OnlyAfter => "only after",
        }
    }

    /// True where a test found more than chance.
    pub fn is_difference(self) -> bool {
        matches!(self, Verdict::Faster | Verdict::Slower)
    }
}

/// A value before and after, judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judged {
    /// Before; a share in percent.
    pub before: f64,
    /// After; a share in percent.
    pub after: f64,
    /// Half of the intervals of both, without losses.
    pub halves: [f64; 2],
    /// After less before, with its interval.
    pub difference: Difference,
    /// Whether the difference is more than chance.
    pub verdict: Verdict,
    /// The smallest difference that would have been found in 80 of 100 cases.
    pub smallest: f64,
}

/// The caller of a function whose cost may have moved there.
#[derive(Clone, PartialEq, Debug)]
pub struct Caller {
    /// Function and binary.
    pub name: FunctionName,
    /// Its weight with all functions that it calls.
    pub total: Judged,
}

/// A function on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Name before; or after where it has none before.
    pub name: FunctionName,
    /// Another name after.
    pub renamed: Option<FunctionName>,
    /// How the two were found to be the same.
    pub matched: Match,
    /// Weight of the function itself.
    pub own: Judged,
    /// Weight with all functions that it calls; where there are call chains.
    pub total: Option<Judged>,
    /// Where the function itself differs, the function that most of its samples were called from.
    pub caller: Option<Caller>,
}

/// One side of an event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SideInfo {
    /// Samples of all recordings.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
    /// Samples that may be missing.
    pub lost: u64,
    /// Source of the errors.
    pub scatter: Scatter,
}

/// One event.
#[derive(Clone, PartialEq, Debug)]
pub struct EventDiff {
    /// The event.
    pub name: OutsideText,
    /// The first side.
    pub before: SideInfo,
    /// The other side.
    pub after: SideInfo,
    /// Number of tests that were judged together.
    pub tests: usize,
    /// All samples of the event, unless it is its own divisor.
    pub whole: Option<Judged>,
    /// Differences first, the greatest first; then the others, the heaviest first.
    pub rows: Vec<Row>,
}

/// A comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Diff {
    /// Recordings before and after.
    pub paths: [Vec<OutsideText>; 2],
    /// Divisor of all weights.
    pub per: Per,
    /// Differences of the machines, and other reasons to doubt.
    pub notes: Vec<OutsideText>,
    /// The events that both sides have.
    pub events: Vec<EventDiff>,
}

/// Compares the recordings of two sides; each side has one at least.
///
/// # Errors
/// They cannot be compared.
pub fn diff(before: &[Run], after: &[Run], per: &Per) -> Result<Diff, DiffError> {
    let units = match per {
        Per::Units(before, after) => [*before, *after],
        Per::Share | Per::Event(_) => [1.0; 2],
    };
    if matches!(per, Per::Units(..)) && [before, after].iter().any(|runs| runs.len() < 2) {
        return Err(DiffError::OneRun);
    }
    let mut events = Vec::new();
    for name in common_events(before, after) {
        let (runs_before, runs_after) = (of_event(before, name), of_event(after, name));
        let has_children = [&runs_before, &runs_after]
            .iter()
            .all(|runs| runs.iter().all(|(_, event)| event.has_children));
        let sides = [Side::of(&runs_before, per, units[0])?, Side::of(&runs_after, per, units[1])?];
        let mapped = Mapped([before, after]);
        events.push(event_diff(name, &sides, &mapped, has_children));
    }
    if events.is_empty() {
        let names = |runs: &[Run]| list(runs.iter().flat_map(|run| &run.events).map(|it| &it.name));
        return Err(DiffError::NoCommonEvent { before: names(before), after: names(after) });
    }
    let paths = [before, after].map(|runs| runs.iter().map(|run| run.path.clone()).collect());
    Ok(Diff { paths, per: per.clone(), notes: notes(before, after), events })
}

/// The recordings, each with the event of this name.
fn of_event<'r>(runs: &'r [Run], name: &OutsideText) -> Vec<(&'r Run, &'r run::RunEvent)> {
    runs.iter().filter_map(|run| Some((run, event_of(run, name)?))).collect()
}

fn event_of<'r>(run: &'r Run, name: &OutsideText) -> Option<&'r run::RunEvent> {
    run.events.iter().find(|event| event.name == *name)
}

/// The events of the first recording that all have.
fn common_events<'r>(before: &'r [Run], after: &[Run]) -> Vec<&'r OutsideText> {
    let names = before.first().into_iter().flat_map(|run| &run.events).map(|event| &event.name);
    let all =
        |name: &&OutsideText| before.iter().chain(after).all(|run| event_of(run, name).is_some());
    names.filter(all).collect()
}

/// Properties in which the machines differ, and the recordings' own warnings.
fn notes(before: &[Run], after: &[Run]) -> Vec<OutsideText> {
    let mut notes: Vec<String> = Vec::new();
    let mut runs = before.iter().chain(after);
    if let Some(first) = runs.next() {
        for (place, (what, value)) in first.machine.iter().enumerate() {
            let other = runs.clone().map(|run| &run.machine[place].1).find(|other| *other != value);
            if let Some(other) = other {
                let [value, other] = [value, other].map(OutsideText::exact);
                notes.push(format!(
                    "the recordings come from different machines: {what} `{value}` and `{other}`"
                ));
            }
        }
    }
    for run in before.iter().chain(after) {
        let path = run.path.exact();
        let of_run = run.warnings.iter().map(warning_text);
        notes.extend(of_run.map(|warning| format!("{path}: {}", warning.exact())));
    }
    notes.into_iter().map(OutsideText::from).collect()
}

/// The binaries that the recordings of each side mapped.
struct Mapped<'r>([&'r [Run]; 2]);

impl Mapped<'_> {
    /// The verdict on a function that no test can compare, since no recording of the other side has its binary.
    fn alone(&self, pair: &Pair<'_>) -> Option<Verdict> {
        let [before, after] = self.0;
        let is_absent = |name: &FunctionName, runs: &[Run]| {
            let lacks =
                |run: &Run| run.binaries.as_ref().is_some_and(|it| !it.contains(&name.binary));
            runs.iter().all(lacks)
        };
        match (pair.before, pair.after) {
            (Some(name), None) if is_absent(name, after) => Some(Verdict::OnlyBefore),
            (None, Some(name)) if is_absent(name, before) => Some(Verdict::OnlyAfter),
            _ => None,
        }
    }
}

/// A test of one function before all are judged.
struct Test<'r> {
    pair: Pair<'r>,
    /// The verdict where there is nothing to test.
    alone: Option<Verdict>,
    own: (Tested, Tested, Difference),
    own_samples: u64,
    total: (Tested, Tested, Difference),
    total_samples: u64,
}

impl<'r> Test<'r> {
    fn of(pair: Pair<'r>, [before, after]: &[Side<'r>; 2], mapped: &Mapped<'_>) -> Test<'r> {
        let one = pair.before.and_then(|name| before.functions.get(name));
        let other = pair.after.and_then(|name| after.functions.get(name));
        let test = |value: fn(&Function<'_>) -> Tested| {
            let one = one.map_or_else(|| before.nothing(), value);
            let other = other.map_or_else(|| after.nothing(), value);
            (one, other, compare(&one, &other))
        };
        let samples =
            |value: fn(&Function<'_>) -> u64| one.map_or(0, value) + other.map_or(0, value);
        Test {
            pair,
            alone: mapped.alone(&pair),
            own: test(|function| function.own),
            own_samples: samples(|function| function.own_samples),
            total: test(|function| function.children),
            total_samples: samples(|function| function.children_samples),
        }
    }

    /// The probabilities of those that have samples enough; a function that calls nothing is tested once.
    fn probabilities(&self, has_children: bool) -> impl Iterator<Item = f64> {
        let own = self.is_tested(self.own_samples).then_some(self.own.2.p);
        let is_other = has_children && self.total_samples != self.own_samples;
        let total = (is_other && self.is_tested(self.total_samples)).then_some(self.total.2.p);
        own.into_iter().chain(total)
    }

    fn is_tested(&self, samples: u64) -> bool {
        self.alone.is_none() && samples >= MIN_SAMPLES
    }

    fn judge_own(&self, found: &Discoveries) -> Judged {
        self.judge(&self.own, self.own_samples, found)
    }

    fn judge_total(&self, found: &Discoveries) -> Judged {
        self.judge(&self.total, self.total_samples, found)
    }

    fn judge(
        &self,
        test: &(Tested, Tested, Difference),
        samples: u64,
        found: &Discoveries,
    ) -> Judged {
        let judged = judge(test, self.is_tested(samples), found);
        Judged { verdict: self.alone.unwrap_or(judged.verdict), ..judged }
    }
}

fn judge(
    (before, after, difference): &(Tested, Tested, Difference),
    is_tested: bool,
    found: &Discoveries,
) -> Judged {
    let verdict = match difference.change {
        _ if !is_tested || !found.calls(difference.p) => Verdict::Undecided,
        change if change < 0.0 => Verdict::Faster,
        _ => Verdict::Slower,
    };
    Judged {
        before: before.estimate.value,
        after: after.estimate.value,
        halves: [before, after].map(|side| side.estimate.half_width()),
        difference: *difference,
        verdict,
        smallest: difference.detectable(found.level()),
    }
}

fn event_diff(
    name: &OutsideText,
    sides: &[Side<'_>; 2],
    mapped: &Mapped<'_>,
    has_children: bool,
) -> EventDiff {
    let [before, after] = sides;
    let tests: Vec<Test<'_>> =
        pairs(before, after).into_iter().map(|pair| Test::of(pair, sides, mapped)).collect();
    let whole = before.total.zip(after.total);
    let whole = whole.map(|(before, after)| (before, after, compare(&before, &after)));
    let probabilities: Vec<f64> = tests
        .iter()
        .flat_map(|test| test.probabilities(has_children))
        .chain(whole.iter().map(|(.., difference)| difference.p))
        .collect();
    let found = discoveries(probabilities.iter().copied());
    let row = |test: &Test<'_>| {
        let own = test.judge_own(&found);
        let differs = has_children && own.verdict.is_difference();
        let caller = differs.then(|| caller(test, &tests, sides)).flatten();
        let (first, second) = (test.pair.before, test.pair.after);
        let name = first.or(second)?.clone();
        let renamed = second.filter(|other| **other != name).cloned();
        let caller = caller
            .map(|(name, test)| Caller { name: name.clone(), total: test.judge_total(&found) });
        let total = has_children.then(|| test.judge_total(&found));
        Some(Row { name, renamed, matched: test.pair.by, own, total, caller })
    };
    let mut rows: Vec<Row> = tests.iter().filter_map(row).collect();
    rows.sort_by(|a, b| {
        let (one, other) = (order(a), order(b));
        let heaviest_first = other.0.cmp(&one.0).then(other.1.total_cmp(&one.1));
        heaviest_first.then_with(|| a.name.cmp(&b.name))
    });
    EventDiff {
        name: name.clone(),
        before: before.info(),
        after: after.info(),
        tests: probabilities.len(),
        whole: whole.map(|test| judge(&test, true, &found)),
        rows,
    }
}

/// The function that most samples of a function were called from, before if it is there, and its test.
fn caller<'t, 'r>(
    test: &Test<'r>,
    tests: &'t [Test<'r>],
    [before, after]: &[Side<'r>; 2],
) -> Option<(&'r FunctionName, &'t Test<'r>)> {
    let of = |name: Option<&'r FunctionName>, side: &Side<'r>| {
        side.functions.get(name?)?.of_run.caller.as_ref()
    };
    let (first, second) = (of(test.pair.before, before), of(test.pair.after, after));
    let names = |test: &Test<'_>| match first {
        Some(name) => test.pair.before == Some(name),
        None => second.is_some() && test.pair.after == second,
    };
    Some((first.or(second)?, tests.iter().find(|test| names(test))?))
}

impl Side<'_> {
    fn info(&self) -> SideInfo {
        let (samples, period, lost) = (self.samples, self.period, self.lost);
        SideInfo { samples, period, lost, scatter: self.scatter }
    }
}

/// Rows that differ by themselves, then those that differ with all functions that they call, then the others.
fn order(row: &Row) -> (u8, f64) {
    let change = |judged: &Judged| judged.difference.change.abs();
    let differs = |judged: &Judged| judged.verdict.is_difference();
    match row.total {
        _ if differs(&row.own) => (2, change(&row.own)),
        Some(total) if differs(&total) => (1, change(&total)),
        _ => (0, row.own.before.max(row.own.after)),
    }
}

impl Diff {
    /// Names of events and functions that became slower by more than this share of all weight before, and of functions
    /// in new binaries with more than that.
    pub fn slower_by(&self, percent: f64) -> Vec<OutsideText> {
        let mut names = Vec::new();
        for event in &self.events {
            let limit = percent / 100.0 * self.whole_before(event);
            let is_slower = |judged: &Judged| {
                let is_new =
                    judged.verdict == Verdict::OnlyAfter && judged.difference.interval.0 > 0.0;
                let grew = judged.verdict == Verdict::Slower || is_new;
                grew && judged.difference.change > limit
            };
            if event.whole.as_ref().is_some_and(is_slower) {
                names.push(event.name.clone());
            }
            let rows = event.rows.iter();
            let rows =
                rows.filter(|row| is_slower(&row.own) || row.total.as_ref().is_some_and(is_slower));
            names.extend(rows.map(|row| row.name.function.clone()));
        }
        names
    }

    /// The value of all samples before.
    pub(crate) fn whole_before(&self, event: &EventDiff) -> f64 {
        match &self.per {
            Per::Share => 100.0,
            Per::Units(units, _) => {
                let runs = self.paths[0].len() as f64;
                event.before.period as f64 / (units * runs)
            }
            Per::Event(_) => event.whole.map_or(f64::INFINITY, |whole| whole.before),
        }
    }
}
