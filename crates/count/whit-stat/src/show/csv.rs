//! Tables as fields between separators: `perf-stat(1)`, "CSV FORMAT".
//!
//! As there, nothing is quoted: choose a separator that no name holds. Control characters in names are
//! escaped, so that no name makes a line.

use std::fmt::Write;

use whit_types::escape;

use super::number::{decimals, plain};
use super::{Moment, Style, View, named, no_count};
use crate::metric::Metric;
use crate::table::{Aggregation, Row};

/// Fields that a line of another metric leaves empty: count, unit, event; and, as perf has it,
/// once more those that name the place.
const EMPTY_FIELDS: usize = 3;

pub(super) fn table(out: &mut String, view: &View<'_>, style: &Style, separator: &str) {
    let csv = Csv { view, style, separator };
    for row in &view.table.rows {
        csv.row(out, row);
    }
}

/// In front of the rows of a moment.
pub(super) fn front(out: &mut String, view: &View<'_>, style: &Style, separator: &str) {
    if let Some(time) = view.time() {
        let _ = write!(out, "{time}{separator}");
    } else if view.moment == Moment::Summary && style.marks_summary {
        let _ = write!(out, "{:>16}{separator}", "summary");
    }
}

/// The fields that name the place of a row.
pub(super) fn label(out: &mut String, view: &View<'_>, row: &Row, style: &Style, separator: &str) {
    if style.aggregation == Aggregation::Global {
        return;
    }
    let _ = write!(out, "{}{separator}", view.table.labels[row.label]);
    if style.aggregation.counts_cpus() {
        let _ = write!(out, "{}{separator}", row.places);
    }
}

struct Csv<'a> {
    view: &'a View<'a>,
    style: &'a Style,
    separator: &'a str,
}

impl Csv<'_> {
    fn row(&self, out: &mut String, row: &Row) {
        let Csv { view, style, separator } = *self;
        let counter = view.counter(row);
        let event = &counter.event;
        let is_counted = row.is_counted(counter);
        self.front(out, row);
        let decimals = decimals(event.scale);
        let _ = match is_counted {
            true => write!(out, "{}", plain(row.count * event.scale, decimals)),
            false => write!(out, "{}", no_count(counter)),
        };
        let _ = write!(out, "{separator}{}{separator}{}", escape(&event.unit), escape(&event.name));
        if view.has_cgroups() {
            let _ = write!(out, "{separator}{}", named(&counter.cgroup));
        }
        if style.has_noise {
            let _ = write!(out, "{separator}{:.2}%", row.noise_percent);
        }
        let (running, percent) = (row.reading.running_ns, row.reading.percent_running());
        let _ = write!(out, "{separator}{running}{separator}{}", plain(percent, 2));
        let metrics = match is_counted {
            true => view.derived_metrics.metrics(counter, row.label, row.count),
            false => Vec::new(),
        };
        self.metric(out, metrics.first());
        for metric in metrics.iter().skip(1) {
            self.front(out, row);
            let cgroup = usize::from(counter.cgroup.is_some());
            let place = match style.aggregation {
                Aggregation::Global => 0,
                Aggregation::Cpu | Aggregation::Thread => 1,
                _ => 2,
            };
            let _ = write!(out, "{}", separator.repeat(EMPTY_FIELDS + place + cgroup));
            self.metric(out, Some(metric));
        }
    }

    fn front(&self, out: &mut String, row: &Row) {
        front(out, self.view, self.style, self.separator);
        label(out, self.view, row, self.style, self.separator);
    }

    fn metric(&self, out: &mut String, metric: Option<&Metric>) {
        let separator = self.separator;
        let shown = metric.and_then(|metric| Some((metric.digits()?, &metric.unit)));
        let _ = match shown {
            Some((digits, unit)) => writeln!(out, "{separator}{digits}{separator}{}", escape(unit)),
            None => writeln!(out, "{separator}{separator}"),
        };
    }
}
