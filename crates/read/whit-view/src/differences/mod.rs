//! Differences of everything that has rows in blocks of time: waits, locks, wall time, requests, counts.
//!
//! Each recording is reduced to a [`Recorded`]: rows with names, and for each row the values of some [`Quantity`]s, by block
//! of time. The comparison knows nothing of their meaning. One recording a side has the error of the scatter between its
//! blocks, several have that between recordings. All tests of a comparison are judged together.

mod compare;
mod json;
mod locks;
mod requests;
mod stat;
mod sums;
mod text;
mod waits;
mod what;

#[cfg(test)]
mod tests;

pub use compare::{Differences, DifferentRow, PerUnits, RowVerdict, compare};
pub use json::{document, write_json};
pub use locks::{LockKey, UnknownLockKey};
pub use requests::{CallsOfName, of_calls, of_requests};
pub use stat::{StatError, of_stat};
pub use sums::quantities;
pub use text::{TextOptions, write_text};
pub use waits::{UnstableKey, WaitOptions, of_waits};
pub use what::machine;

use std::collections::BTreeMap;
use whit_estimate::{Series, Tested};
use whit_types::OutsideText;

/// The source of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Waits of threads.
    Waits,
    /// Waits for locks, and time spent in functions that take them.
    Locks,
    /// Waits and CPU time in one sum.
    Wall,
    /// Calls that were recorded as requests.
    Requests,
    /// Counts of `whit stat`.
    Stat,
}

impl Kind {
    /// The word in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Waits => "waits",
            Kind::Locks => "locks",
            Kind::Wall => "wall",
            Kind::Requests => "requests",
            Kind::Stat => "stat",
        }
    }
}

/// The unit of a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Nanoseconds; printed in milliseconds.
    Time,
    /// Numbers of anything.
    Count,
}

/// The divisor of the sum of a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Divisor {
    /// Recorded time: seconds.
    Time,
    /// Requests of the row.
    Request,
    /// Waits of the row.
    Wait,
    /// Recordings.
    Run,
    /// Nothing: it is a quantile.
    Nothing,
}

/// Something that rows have values of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// A name, such as `waiting`.
    pub name: &'static str,
    /// Unit of its sum.
    pub unit: Unit,
    /// The divisor.
    pub per: Divisor,
    /// The verdicts on less and more of it.
    pub words: [&'static str; 2],
    /// Whether more of it is worse, for `--fail-above`.
    pub is_cost: bool,
}

/// The name of a row: one text for each key.
pub type RowName = Vec<OutsideText>;

/// The values of a quantity in one recording.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Sums by block, each with the divisor's part in the block.
    Sums(Series),
    /// An estimate with its own error.
    Estimate(Tested),
}

/// A quantity of a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// By block, or one estimate.
    pub values: Values,
    /// Waits, samples or the like that they come from.
    pub events: u64,
}

/// One recording, reduced to rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// The file.
    pub path: OutsideText,
    /// The source of its rows.
    pub kind: Kind,
    /// CPU, architecture and kernel.
    pub machine: Vec<(&'static str, OutsideText)>,
    /// The contents of the recording, and the way of recording. Others are not comparable.
    pub what: Vec<(&'static str, String)>,
    /// Reasons to doubt.
    pub notes: Vec<OutsideText>,
    /// Names of the parts of row names.
    pub keys: Vec<&'static str>,
    /// The first one leads.
    pub quantities: Vec<Quantity>,
    /// Rows by name, each with a cell for every quantity.
    pub rows: BTreeMap<RowName, Vec<Cell>>,
    /// All rows together, where they have a sum.
    pub whole: Option<Vec<Cell>>,
    /// For each quantity, how much of its sum may be missing from any row: losses, and waits of uncertain length.
    pub missing: Vec<f64>,
    /// The divisor of sums over time, in seconds by block.
    pub seconds: Vec<f64>,
}

/// Nothing bounds a value that is larger.
const UNBOUNDED: f64 = 1e300;

/// Why recordings cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DifferencesError {
    /// They were recorded in different ways.
    #[error(
        "the recordings differ in what was recorded: {what}: {one} in {path}, {other} in {other_path}; record both in the \
         same way"
    )]
    RecordedDifferently {
        /// The difference.
        what: &'static str,
        /// As it is in the first recording.
        one: String,
        /// The first recording.
        path: OutsideText,
        /// As it is in another one.
        other: String,
        /// Its file.
        other_path: OutsideText,
    },
    /// Nothing has an error.
    #[error(
        "{0} is too short: the scatter between blocks of its time gives the errors, and fewer than two blocks have any; \
         record some seconds, or give several recordings on each side of `--`"
    )]
    TooShort(OutsideText),
    /// Nothing shows how much runs differ.
    #[error(
        "a unit of work costs more in one run than in another, which one recording does not show: give several recordings \
         on each side (BEFORE.. -- AFTER..)"
    )]
    OneRun,
    /// Requests have a divisor of their own.
    #[error("requests are compared per second and per request: leave out --per")]
    NoUnits,
    /// A side without anything.
    #[error("{0} has no {1}: {2}")]
    Nothing(OutsideText, &'static str, &'static str),
}
