//! The columns of numbers in front of instructions.

use std::fmt::Write as _;

use whit_annotate::{AnnotatedFunction, EventWeights, Weight};
use whit_profile::SourceLine;
use whit_profile::model::EventId;
use whit_types::Svma;

use super::intervals::{FunctionIntervals, PartIntervals};
use super::{AnnotateOptions, Annotated};
use crate::hists::EventGroup;

/// Width of a percentage, as perf has it.
const PERCENT_WIDTH: usize = 8;
const PLUS_MINUS_WIDTH: usize = 6;
const SAMPLES_WIDTH: usize = 9;
const PERIOD_WIDTH: usize = 15;

/// The columns of one event.
struct EventColumns {
    event: EventId,
    whole: Weight,
    intervals: Option<FunctionIntervals>,
}

/// A part of a function that has weights.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// An instruction, by its address.
    Row(Svma),
    Line(&'a Option<SourceLine>),
}

/// The columns of a table.
pub(super) struct Table<'a> {
    events: Vec<EventColumns>,
    options: &'a AnnotateOptions,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        annotated: &Annotated<'_>,
        function: &AnnotatedFunction,
        group: &EventGroup,
        options: &'a AnnotateOptions,
    ) -> Table<'a> {
        let wants = options.intervals && options.percent_type.is_period();
        let columns = |event: EventId| EventColumns {
            event,
            whole: annotated.whole_of(options.percent_type, &function.chosen.weights, event),
            intervals: wants.then(|| {
                FunctionIntervals::new(annotated.profile, annotated.weights, function, event)
            }),
        };
        let events = [group.leader].into_iter().chain(group.members.iter().copied());
        Table { events: events.map(columns).collect(), options }
    }

    /// The interval of the function's share of the first event.
    pub(super) fn own(&self) -> Option<crate::hists::ShareInterval> {
        self.events.first()?.intervals.as_ref()?.own
    }

    pub(super) fn has_intervals(&self) -> bool {
        self.events.iter().any(|column| column.intervals.is_some())
    }

    pub(super) fn width(&self) -> usize {
        let options = self.options;
        let one = |column: &EventColumns| {
            let plus_minus = if column.intervals.is_some() { PLUS_MINUS_WIDTH } else { 0 };
            let samples = if options.show_samples { SAMPLES_WIDTH } else { 0 };
            let period = if options.show_period { PERIOD_WIDTH } else { 0 };
            PERCENT_WIDTH + plus_minus + samples + period
        };
        self.events.iter().map(one).sum()
    }

    pub(super) fn heading(&self) -> String {
        let mut text = String::new();
        for column in &self.events {
            // Writing to a String cannot fail.
            let _ = write!(text, "{:>PERCENT_WIDTH$}", "Percent");
            if column.intervals.is_some() {
                let _ = write!(text, "{:>PLUS_MINUS_WIDTH$}", "±");
            }
            if self.options.show_samples {
                let _ = write!(text, "{:>SAMPLES_WIDTH$}", "Samples");
            }
            if self.options.show_period {
                let _ = write!(text, "{:>PERIOD_WIDTH$}", "Period");
            }
        }
        text
    }

    pub(super) fn percent(&self, weights: &EventWeights) -> f64 {
        let first = self.events.first();
        first.map_or(0.0, |column| self.percent_of(column, weights))
    }

    fn percent_of(&self, column: &EventColumns, weights: &EventWeights) -> f64 {
        self.options.percent_type.percent(weights.of(column.event), column.whole)
    }

    /// Appends the numbers of a part.
    pub(super) fn append(&self, part: Part<'_>, weights: &EventWeights, out: &mut String) {
        for column in &self.events {
            let percent = self.percent_of(column, weights);
            let text = format!("{percent:>PERCENT_WIDTH$.2}");
            let _ = write!(out, "{}", self.options.colour.percent(percent, text));
            let weight = weights.of(column.event);
            if let Some(intervals) = &column.intervals {
                let half = self.interval(intervals, part).filter(|_| weight.samples > 0);
                let half = half.map(|half| format!("{half:.2}")).unwrap_or_default();
                let _ = write!(out, "{half:>PLUS_MINUS_WIDTH$}");
            }
            if self.options.show_samples {
                let _ = write!(out, "{:>SAMPLES_WIDTH$}", weight.samples);
            }
            if self.options.show_period {
                let _ = write!(out, "{:>PERIOD_WIDTH$}", weight.period);
            }
        }
    }

    fn interval(&self, intervals: &FunctionIntervals, part: Part<'_>) -> Option<f64> {
        let PartIntervals { local, global } = match part {
            Part::Row(address) => intervals.row(address),
            Part::Line(line) => intervals.line(line),
        };
        let chosen = if self.options.percent_type.is_local() { local } else { global };
        chosen.map(|interval| interval.plus_minus())
    }
}
