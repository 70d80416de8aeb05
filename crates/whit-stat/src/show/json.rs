//! Tables as objects, one a line, with the keys of `perf stat -j`.

use std::fmt::Write;

use super::number::plain;
use super::{Moment, Style, View, no_count};
use crate::metric::Metric;
use crate::table::{Aggregation, Row};
use whit_types::{OutsideText, is_escaped};

pub(super) fn table(out: &mut String, view: &View<'_>, style: &Style) {
    for row in &view.table.rows {
        object(out, view, row, style);
    }
}

/// Text as JSON writes it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // None of these lies outside the basic plane.
            c if is_escaped(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The keys that say when and where, with a comma behind.
pub(super) fn front(out: &mut String, view: &View<'_>, row: &Row, style: &Style) {
    if let Moment::Interval(at) = view.moment {
        let _ = write!(out, "\"interval\" : {}.{:09}, ", at.as_secs(), at.subsec_nanos());
    }
    let label = view.table.labels[row.label].exact();
    let key = match style.aggregation {
        Aggregation::Global => return,
        Aggregation::Cpu if !label.starts_with("CPU") => "core",
        Aggregation::Cpu => "cpu",
        Aggregation::Core => "core",
        Aggregation::Cache => "cache",
        Aggregation::Die => "die",
        Aggregation::Socket => "socket",
        Aggregation::Node => "node",
        Aggregation::Thread => "thread",
    };
    let _ = write!(out, "\"{key}\" : {}, ", quoted(label.strip_prefix("CPU").unwrap_or(&label)));
    if style.aggregation.counts_cpus() {
        let _ = write!(out, "\"aggregate-number\" : {}, ", row.places);
    }
}

fn object(out: &mut String, view: &View<'_>, row: &Row, style: &Style) {
    let counter = view.counter(row);
    let event = &counter.event;
    let is_counted = row.is_counted(counter);
    out.push('{');
    front(out, view, row, style);
    let count = match is_counted {
        true => format!("{:.6}", row.count * event.scale),
        false => no_count(counter).to_owned(),
    };
    let (unit, name) = (quoted(&event.unit), quoted(&event.name));
    let _ = write!(out, "\"counter-value\" : \"{count}\", \"unit\" : {unit}, \"event\" : {name}, ");
    if view.has_cgroups() {
        let cgroup = quoted(counter.cgroup.as_ref().map_or("", OutsideText::exact));
        let _ = write!(out, "\"cgroup\" : {cgroup}, ");
    }
    if style.has_noise {
        let _ = write!(out, "\"variance\" : {:.2}, ", row.noise_percent);
    }
    let (running, percent) = (row.reading.running_ns, row.reading.percent_running());
    let percent = plain(percent, 2);
    let _ = write!(out, "\"event-runtime\" : {running}, \"pcnt-running\" : {percent}, ");
    let metrics = match is_counted {
        true => view.derived_metrics.metrics(counter, row.label, row.count),
        false => Vec::new(),
    };
    push_metric(out, metrics.first());
    for metric in metrics.iter().skip(1) {
        out.push('{');
        front(out, view, row, style);
        push_metric(out, Some(metric));
    }
}

fn push_metric(out: &mut String, metric: Option<&Metric>) {
    let value = metric.and_then(|metric| metric.value).unwrap_or(0.0);
    let unit = quoted(metric.map_or("", |metric| &metric.unit));
    let _ = writeln!(out, "\"metric-value\" : {value:.6}, \"metric-unit\" : {unit}}}");
}
