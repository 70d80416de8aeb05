//! Tables as text, CSV and JSON: perf's columns and keys.
//!
//! The forms are those of `tools/perf/util/stat-display.c` of 6.1, compared with the installed perf by tests. whit
//! differs on purpose: it leaves out blanks at the ends of lines, escapes names in JSON, and escapes control characters
//! in all names ([`OutsideText`]). A missing metric has an empty unit in JSON, where perf 6.1 prints `(null)`. Names of
//! cgroups in text are aligned.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use whit_types::OutsideText;

use crate::counter::Counter;
use crate::derived_metrics::DerivedMetrics;
use crate::table::{Aggregation, Row, Table};

mod csv;
mod footer;
mod json;
mod metric_only;
mod number;
mod text;

pub use footer::{Footer, absences, elapsed, heading, notes, raw_counts, reasons, started_on};
pub use number::NumberStyle;

/// In which form counts are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// For people.
    #[default]
    Text,
    /// With this separator.
    Csv(String),
    /// An object per line.
    Json,
}

/// How tables are printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Style {
    /// In which form.
    pub form: Form,
    /// The places that one row sums up.
    pub aggregation: Aggregation,
    /// Metrics alone, in a line.
    pub metric_only: bool,
    /// There are intervals.
    pub has_intervals: bool,
    /// There are several runs, and with them a spread.
    pub has_noise: bool,
    /// `summary` stands before the lines of a summary in CSV.
    pub marks_summary: bool,
    /// Numbers in text.
    pub numbers: NumberStyle,
    /// Grades are coloured.
    pub colours: bool,
}

/// The time that a table covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The interval that ended so long after the start.
    Interval(Duration),
    /// All intervals together.
    Summary,
    /// The whole count, from start to end.
    Total,
}

/// A table with all that is needed to print it.
pub struct View<'a> {
    /// The counters, in the order of [`Row::counter`].
    pub counters: &'a [Counter],
    /// The rows.
    pub table: &'a Table,
    /// Metrics from several counters of a row.
    pub derived_metrics: &'a DerivedMetrics,
    /// The time that the table covers.
    pub moment: Moment,
}

impl View<'_> {
    fn counter(&self, row: &Row) -> &Counter {
        &self.counters[row.counter]
    }

    fn has_cgroups(&self) -> bool {
        self.counters.iter().any(|counter| counter.cgroup.is_some())
    }

    /// Seconds since the start as perf prints them, in front of the lines of an interval.
    fn time(&self) -> Option<String> {
        match self.moment {
            Moment::Interval(at) => Some(format!("{:6}.{:09}", at.as_secs(), at.subsec_nanos())),
            Moment::Summary | Moment::Total => None,
        }
    }
}

/// The cgroup's name as it is printed; nothing where everything is counted.
fn named(cgroup: &Option<OutsideText<Arc<str>>>) -> Cow<'_, str> {
    cgroup.as_ref().map(OutsideText::escaped).unwrap_or_default()
}

/// The text in place of a missing count.
fn no_count(counter: &Counter) -> &'static str {
    match counter.absence.is_some_and(|absence| absence.is_unsupported()) {
        true => "<not supported>",
        false => "<not counted>",
    }
}

/// Prints tables.
#[derive(Debug)]
pub struct Printer {
    style: Style,
    /// Intervals that were printed since the last header.
    since_header: usize,
}

/// Intervals between two headers.
const HEADER_EVERY: usize = 25;

impl Printer {
    /// In this style.
    pub fn new(style: Style) -> Printer {
        Printer { style, since_header: 0 }
    }

    /// Form and columns, as the options chose them.
    pub fn style(&self) -> &Style {
        &self.style
    }

    /// The lines of a table, with a header where one is due.
    pub fn table(&mut self, view: &View<'_>) -> String {
        let mut out = String::new();
        let is_interval = matches!(view.moment, Moment::Interval(_));
        let header_due = self.since_header == 0;
        self.since_header = match is_interval {
            true => (self.since_header + 1) % HEADER_EVERY,
            false => 0,
        };
        if self.style.metric_only {
            metric_only::table(&mut out, view, &self.style, header_due || !is_interval);
            return out;
        }
        match &self.style.form {
            Form::Text => {
                if is_interval && header_due {
                    text::interval_header(&mut out, view, &self.style);
                }
                text::table(&mut out, view, &self.style);
            }
            Form::Csv(separator) => csv::table(&mut out, view, &self.style, separator),
            Form::Json => json::table(&mut out, view, &self.style),
        }
        out
    }

    /// The next interval has a header.
    pub fn repeat_header(&mut self) {
        self.since_header = 0;
    }
}

#[cfg(test)]
mod tests;
