//! Tables for people.

use std::fmt::Write;

use whit_types::{escape, pad};

use super::number::decimals;
use super::{Style, View, named, no_count};
use crate::counter::Counter;
use crate::metric::{Grade, Metric};
use crate::table::{Aggregation, Label, Row};

/// Widths are perf's.
const COUNT_WIDTH: usize = 18;
const UNIT_WIDTH: usize = 4;
const NAME_WIDTH: usize = 32;
const METRIC_WIDTH: usize = 35;

/// The column before the counts: width of labels, and the header of the interval's table.
fn label_header(aggregation: Aggregation) -> &'static str {
    match aggregation {
        Aggregation::Global => "",
        Aggregation::Cpu => "CPU        ",
        Aggregation::Core => "core            cpus ",
        Aggregation::Cache => "cache               cpus ",
        Aggregation::Die => "die          cpus ",
        Aggregation::Socket => "socket cpus ",
        Aggregation::Node => "node   cpus ",
        Aggregation::Thread => "            comm-pid      ",
    }
}

fn label(row: &Row, view: &View<'_>, style: &Style) -> String {
    let label = &view.table.labels[row.label];
    let width = match (label, style.aggregation) {
        (Label::Everything, Aggregation::Global) => return String::new(),
        (Label::Thread { tid, comm, .. }, _) => return format!("{comm:>16}-{tid:<8} "),
        (_, Aggregation::Cpu) => return format!("{:<10} ", label.to_string()),
        (_, Aggregation::Core) => 15,
        (_, Aggregation::Cache) => 19,
        (_, Aggregation::Die) => 12,
        _ => 6,
    };
    format!("{} {:>4} ", pad::left(label, width), row.places)
}

/// Columns whose width depends on the table.
struct Widths {
    unit: usize,
    cgroup: usize,
}

impl Widths {
    fn of(view: &View<'_>) -> Widths {
        let unit = |counter: &Counter| escape(&counter.event.unit).chars().count();
        let cgroup = |counter: &Counter| named(&counter.cgroup).chars().count();
        Widths {
            unit: view.counters.iter().map(unit).max().unwrap_or(0).max(UNIT_WIDTH),
            cgroup: view.counters.iter().map(cgroup).max().unwrap_or(0),
        }
    }
}

pub(super) fn interval_header(out: &mut String, view: &View<'_>, style: &Style) {
    let unit = Widths::of(view).unit;
    let label = label_header(style.aggregation);
    let unit = pad::left("unit", unit);
    let _ = writeln!(out, "#           time {label}            counts {unit} events");
}

pub(super) fn table(out: &mut String, view: &View<'_>, style: &Style) {
    let widths = Widths::of(view);
    for row in &view.table.rows {
        let mut lines = lines(row, view, style, &widths);
        for line in &mut lines {
            line.truncate(line.trim_end().len());
            out.push_str(line);
            out.push('\n');
        }
    }
}

/// The row, and a line for each metric beyond the first.
fn lines(row: &Row, view: &View<'_>, style: &Style, widths: &Widths) -> Vec<String> {
    let counter = view.counter(row);
    let event = &counter.event;
    let is_counted = row.is_counted(counter);
    let time = view.time().map(|time| format!("{time} ")).unwrap_or_default();
    let front = format!("{time}{}", label(row, view, style));
    let count = match is_counted {
        true => style.numbers.fixed(row.count * event.scale, decimals(event.scale), COUNT_WIDTH),
        false => format!("{:>COUNT_WIDTH$}", no_count(counter)),
    };
    let mut line = format!(
        "{front}{count} {} {:<NAME_WIDTH$}",
        pad::left(escape(&event.unit), widths.unit),
        escape(&event.name)
    );
    if view.has_cgroups() {
        let _ = write!(line, " {}", pad::left(named(&counter.cgroup), widths.cgroup));
    }
    let metrics = match is_counted {
        true => view.derived_metrics.metrics(counter, row.label, row.count),
        false => Vec::new(),
    };
    let indent = line.chars().count() - front.chars().count();
    let mut lines: Vec<String> = Vec::with_capacity(1);
    push_metric(&mut line, metrics.first(), style);
    lines.push(line);
    for metric in metrics.iter().skip(1) {
        let mut line = format!("{front}{}", pad::blanks(indent));
        push_metric(&mut line, Some(metric), style);
        lines.push(line);
    }
    if let Some(last) = lines.last_mut() {
        push_measure(last, row, style);
    }
    lines
}

fn push_metric(line: &mut String, metric: Option<&Metric>, style: &Style) {
    let Some((metric, text)) = metric.and_then(|metric| Some((metric, metric.text()?))) else {
        let _ = write!(line, "{:METRIC_WIDTH$}", "");
        return;
    };
    let (text, unit) = (escape(&text), escape(&metric.unit));
    let width = METRIC_WIDTH.saturating_sub(3 + text.chars().count() + 1);
    let (on, off) = if style.colours { colour(metric.grade) } else { ("", "") };
    let _ = write!(line, " # {on}{text}{off} {}", pad::left(unit, width));
}

/// How far the count may be off, and the share of the time that was seen.
fn push_measure(line: &mut String, row: &Row, style: &Style) {
    if style.has_noise && row.noise_percent != 0.0 {
        let _ = write!(line, "  ( +-{:6.2}% )", row.noise_percent);
    }
    if row.reading.running_ns != row.reading.enabled_ns {
        let _ = write!(line, "  ({:.2}%)", row.reading.percent_running());
    }
}

fn colour(grade: Grade) -> (&'static str, &'static str) {
    match grade {
        Grade::Plain => ("", ""),
        Grade::Notable => ("\x1b[33m", "\x1b[m"),
        Grade::Middling => ("\x1b[35m", "\x1b[m"),
        Grade::Bad => ("\x1b[31m", "\x1b[m"),
    }
}
