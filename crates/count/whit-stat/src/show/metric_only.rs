//! Metrics without counts, a line for each place (`--metric-only`).
//!
//! As in perf, rates and utilised CPUs are left out: without the counts they say little.

use std::fmt::Write;

use whit_types::{escape, pad};

use super::{Form, Style, View, csv, json};
use crate::metric::Metric;
use crate::table::Row;

const COLUMN_WIDTH: usize = 20;

/// Metrics of the rows of one label. A row that has none of its metrics has empty ones.
fn of_label(view: &View<'_>, label: usize) -> Vec<(String, Metric)> {
    let rows = view.table.rows.iter().filter(|row| row.label == label);
    let of_row = |row: &Row| {
        let counter = view.counter(row);
        let mut metrics = view.derived_metrics.metrics(counter, label, row.count);
        if !row.is_counted(counter) {
            metrics.iter_mut().for_each(|metric| metric.value = None);
        }
        let name = counter.event.name.clone();
        metrics.into_iter().map(move |metric| (title(&name, &metric), metric)).collect::<Vec<_>>()
    };
    let all = rows.flat_map(of_row);
    all.filter(|(_, metric)| !is_left_out(&metric.unit)).collect()
}

fn is_left_out(unit: &str) -> bool {
    unit.contains("/sec") || unit.contains("CPUs utilized")
}

fn title(event: &str, metric: &Metric) -> String {
    match metric.unit.starts_with("of all") {
        true => format!("{event} {}", metric.unit),
        false => metric.unit.clone(),
    }
}

pub(super) fn table(out: &mut String, view: &View<'_>, style: &Style, with_header: bool) {
    for (number, label) in labels(view).into_iter().enumerate() {
        let Some(row) = view.table.rows.iter().find(|row| row.label == label) else { continue };
        let metrics = of_label(view, label);
        let header = with_header && number == 0;
        match &style.form {
            Form::Text => text(out, view, row, &metrics, header),
            Form::Csv(separator) => {
                if header {
                    csv_header(out, style, &metrics, separator);
                }
                csv::front(out, view, style, separator);
                csv::label(out, view, row, style, separator);
                for (_, metric) in &metrics {
                    let _ = write!(out, "{}{separator}", metric.digits().unwrap_or_default());
                }
                out.push('\n');
            }
            Form::Json => json::metrics_only(out, view, row, style, &metrics),
        }
    }
}

fn labels(view: &View<'_>) -> Vec<usize> {
    let mut labels: Vec<usize> = view.table.rows.iter().map(|row| row.label).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

fn text(
    out: &mut String,
    view: &View<'_>,
    row: &Row,
    metrics: &[(String, Metric)],
    with_header: bool,
) {
    let label = view.table.labels[row.label].to_string();
    let mut front = view.time().unwrap_or_default();
    if !label.is_empty() {
        let _ = write!(front, " {label:<COLUMN_WIDTH$}");
    }
    let width = |title: &str| escape(title).chars().count().max(COLUMN_WIDTH);
    let column = |text: &str, width: usize| format!(" {}", pad::right(escape(text), width));
    if with_header {
        let blank = front.chars().count();
        let titles: String = metrics.iter().map(|(title, _)| column(title, width(title))).collect();
        let _ = writeln!(out, "{}{titles}", pad::blanks(blank));
    }
    let value = |(title, metric): &(String, Metric)| {
        column(metric.text().unwrap_or_default().trim(), width(title))
    };
    let _ = writeln!(out, "{front}{}", metrics.iter().map(value).collect::<String>());
}

fn csv_header(out: &mut String, style: &Style, metrics: &[(String, Metric)], separator: &str) {
    if style.has_intervals {
        let _ = write!(out, "time{separator}");
    }
    if style.aggregation != crate::table::Aggregation::Global {
        let name = format!("{:?}", style.aggregation).to_lowercase();
        let _ = write!(out, "{name}{separator}");
        if style.aggregation.counts_cpus() {
            let _ = write!(out, "cpus{separator}");
        }
    }
    for (title, _) in metrics {
        let _ = write!(out, "{}{separator}", escape(title));
    }
    out.push('\n');
}
