//! Proofs for waits, locks and requests on recordings of programs that do not exist.
//!
//! A program has places at which it waits, or requests that it serves. How often, and how long on average, is known; each
//! wait or call is drawn: lengths have a heavy tail (lognormal), and come in bursts that last for several blocks of time.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use serde::Serialize;
use whit_estimate::Series;
use whit_types::TimestampNs;
use whit_view::differences::{
    self, CallsOfName, Cell, Differences, Kind, Recorded, Values, compare, of_calls, quantities,
};
use whit_why::Call;

use super::{FalseCalls, SEVERAL};
use crate::error::Error;
use crate::random::Random;

/// The change that is planted.
const PLANTED: f64 = 1.05;

const NS_PER_SECOND: f64 = 1e9;
const BLOCKS: usize = 48;

/// Bursts begin and end a few times in each second.
const BURST_CHANGES_PER_SECOND: f64 = 4.0;

/// How often waits come in a burst, against other times.
const BURST: f64 = 3.0;

/// By how much runs differ as a whole, as the standard deviation of a factor.
const RUN_SCATTER: f64 = 0.01;

/// The places and requests with a planted change.
const CASES: [Case; 3] = [
    Case { of: "one lock", kind: Kind::Locks, per_second: 400.0, mean_ns: 4e5, sigma: 0.6 },
    Case { of: "one read", kind: Kind::Waits, per_second: 600.0, mean_ns: 2e5, sigma: 0.9 },
    Case { of: "one query", kind: Kind::Requests, per_second: 500.0, mean_ns: 1e6, sigma: 0.7 },
];

/// Proofs of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OfKind {
    /// The thing that became slower.
    pub(crate) of: &'static str,
    /// `locks`, `waits` or `requests`.
    pub(crate) kind: &'static str,
    pub(crate) per_second: f64,
    pub(crate) mean_ns: f64,
    /// Equal recordings, one on each side.
    pub(crate) single: FalseCalls,
    /// Three on each side, which differ as a whole.
    pub(crate) several: FalseCalls,
    pub(crate) planted: Found,
}

/// How often a planted change was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Found {
    pub(crate) pairs: usize,
    /// Pairs in which its row was called.
    pub(crate) found: usize,
    /// Pairs in which it was the first row.
    pub(crate) first: usize,
}

/// A place with a planted change.
struct Case {
    of: &'static str,
    kind: Kind,
    per_second: f64,
    mean_ns: f64,
    /// Standard deviation of the logarithm of lengths.
    sigma: f64,
}

/// A place or a request.
struct Place {
    name: String,
    per_second: f64,
    mean_ns: f64,
    sigma: f64,
}

impl Case {
    /// The places of a program: the planted one, and others that wait less and less often, with ever heavier tails.
    fn places(&self, factor: f64) -> Vec<Place> {
        let planted = Place {
            name: "planted".to_owned(),
            per_second: self.per_second,
            mean_ns: self.mean_ns * factor,
            sigma: self.sigma,
        };
        let other = |rank: usize| Place {
            name: format!("other-{rank}"),
            per_second: self.per_second / rank as f64,
            mean_ns: self.mean_ns * (1.0 + rank as f64 / 4.0),
            sigma: 0.5 + rank as f64 / 10.0,
        };
        std::iter::once(planted).chain((1..12).map(other)).collect()
    }

    fn recorded(
        &self,
        factor: f64,
        run_scatter: f64,
        seconds: f64,
        random: &mut Random,
    ) -> Recorded {
        let places = self.places(factor);
        let of_run = (run_scatter * normal(random)).exp();
        let events = |random: &mut Random| -> Vec<Vec<(f64, f64)>> {
            places.iter().map(|place| place.events(of_run, seconds, random)).collect()
        };
        let events = events(random);
        match self.kind {
            Kind::Requests => of_requests(&places, &events, seconds),
            kind => of_waits(kind, &places, &events, seconds),
        }
    }
}

impl Place {
    /// Moments and lengths.
    fn events(&self, of_run: f64, seconds: f64, random: &mut Random) -> Vec<(f64, f64)> {
        let mut events = Vec::new();
        let (mut time, mut bursts) = (0.0, random.unit() < 0.5);
        let mut change = exponential(1.0 / BURST_CHANGES_PER_SECOND, random);
        // A half of the time is in bursts.
        let base = self.per_second * 2.0 / (1.0 + BURST);
        let mean_of_log = (self.mean_ns * of_run).ln() - self.sigma * self.sigma / 2.0;
        loop {
            let rate = if bursts { base * BURST } else { base };
            let next = time + exponential(1.0 / rate, random);
            if next > change {
                time = change;
                (bursts, change) =
                    (!bursts, change + exponential(1.0 / BURST_CHANGES_PER_SECOND, random));
                if time >= seconds {
                    return events;
                }
                continue;
            }
            time = next;
            if time >= seconds {
                return events;
            }
            events.push((time, (mean_of_log + self.sigma * normal(random)).exp()));
        }
    }
}

fn exponential(mean: f64, random: &mut Random) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

/// By Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - random.unit()).ln()).sqrt(), TAU * random.unit());
    radius * angle.cos()
}

fn of_waits(kind: Kind, places: &[Place], events: &[Vec<(f64, f64)>], seconds: f64) -> Recorded {
    let quantities = quantities(kind);
    let block = seconds / BLOCKS as f64;
    let cells = |events: &Vec<(f64, f64)>| -> Vec<Cell> {
        let sums = |value: fn(f64) -> f64| {
            let mut sums = vec![0.0; BLOCKS];
            for (time, ns) in events {
                sums[((time / block) as usize).min(BLOCKS - 1)] += value(*ns);
            }
            Values::Sums(Series::new(sums.into_iter().map(|sum| (block, sum))))
        };
        let count = events.len() as u64;
        let mut lengths = vec![(0.0, 0.0); BLOCKS];
        for (time, ns) in events {
            let part: &mut (f64, f64) = &mut lengths[((time / block) as usize).min(BLOCKS - 1)];
            *part = (part.0 + 1.0, part.1 + ns);
        }
        let lengths = Values::Sums(Series::new(lengths));
        let of_waits = [sums(|ns| ns), sums(|_| 1.0), lengths];
        let of_waits = of_waits.map(|values| Cell { values, events: count });
        let nothing = || Cell { values: sums(|_| 0.0), events: 0 };
        of_waits.into_iter().chain(std::iter::repeat_with(nothing)).take(quantities.len()).collect()
    };
    Recorded {
        path: "simulated".into(),
        kind,
        machine: Vec::new(),
        what: Vec::new(),
        notes: Vec::new(),
        keys: vec!["place"],
        missing: vec![0.0; quantities.len()],
        rows: places
            .iter()
            .zip(events)
            .map(|(place, events)| (vec![place.name.as_str().into()], cells(events)))
            .collect(),
        whole: None,
        seconds: vec![block; BLOCKS],
        quantities,
    }
}

fn of_requests(places: &[Place], events: &[Vec<(f64, f64)>], seconds: f64) -> Recorded {
    let calls = |events: &Vec<(f64, f64)>| -> Vec<Call> {
        let call = |(time, ns): &(f64, f64)| {
            let from = TimestampNs((time * NS_PER_SECOND) as u64);
            let to = TimestampNs(from.0 + *ns as u64);
            Call { thread: 0, goroutine: None, from, to, depth: 0, key: None }
        };
        let mut calls: Vec<Call> = events.iter().map(call).collect();
        calls.sort_by_key(Call::duration_ns);
        calls
    };
    let calls: BTreeMap<&str, Vec<Call>> =
        places.iter().zip(events).map(|(place, events)| (&*place.name, calls(events))).collect();
    let names =
        calls.iter().map(|(name, calls)| CallsOfName { name, calls, uncertain: 0, columns: None });
    let names: Vec<CallsOfName<'_>> = names.collect();
    let to = TimestampNs((seconds * NS_PER_SECOND) as u64);
    let span = whit_perfdata::feature::RecordedSpan { from: TimestampNs(1), to };
    of_calls(&names, Some(vec![span]), false)
}

/// Compares equal programs, and programs with a slower place.
pub(super) fn measures(
    pairs: usize,
    planted_pairs: usize,
    seconds: f64,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<OfKind>, Error> {
    let mut kinds = Vec::new();
    for (number, case) in (1..).zip(&CASES) {
        say(&format!("simulated {}: {}", case.kind.name(), case.of));
        let mut random = Random::new(0x2545_f491_4f6c_dd1d ^ number << 40);
        let mut side = |count: usize, factor: f64| -> Vec<Recorded> {
            let scatter = if count > 1 { RUN_SCATTER } else { 0.0 };
            (0..count).map(|_| case.recorded(factor, scatter, seconds, &mut random)).collect()
        };
        let mut equal = |count: usize| -> Result<FalseCalls, Error> {
            let mut calls = FalseCalls::default();
            for _ in 0..pairs {
                count_false(&mut calls, &compare(&side(count, 1.0), &side(count, 1.0), None)?);
            }
            Ok(calls)
        };
        let (single, several) = (equal(1)?, equal(SEVERAL)?);
        let mut planted = Found::default();
        for _ in 0..planted_pairs {
            let found = compare(&side(1, 1.0), &side(1, PLANTED), None)?;
            planted.add(&found, "planted");
        }
        kinds.push(OfKind {
            of: case.of,
            kind: case.kind.name(),
            per_second: case.per_second,
            mean_ns: case.mean_ns,
            single,
            several,
            planted,
        });
    }
    Ok(kinds)
}

fn count_false(calls: &mut FalseCalls, found: &Differences) {
    calls.pairs += 1;
    calls.tests += found.tests;
    calls.wrong += usize::from(found.rows.iter().any(differences::DifferentRow::differs));
}

impl Found {
    fn add(&mut self, found: &Differences, name: &str) {
        let is_planted = |row: &differences::DifferentRow| row.name[0] == *name;
        // Only its length changed, and it grew.
        let grew = |row: &differences::DifferentRow| {
            row.verdicts.iter().any(|it| {
                let is_more = it.judged.verdict == whit_view::diff::Verdict::Slower;
                is_more && found.quantities[it.quantity].is_cost
            })
        };
        self.pairs += 1;
        self.found += usize::from(found.rows.iter().any(|row| is_planted(row) && grew(row)));
        self.first +=
            usize::from(found.rows.first().is_some_and(|row| is_planted(row) && grew(row)));
    }
}
