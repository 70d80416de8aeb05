//! Tables as objects, one a line, with the keys and blanks of `perf stat -j`. `docs/schemas/stat.json` is the
//! schema of a line; it comes from the types here.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::value::RawValue;

use whit_types::{OutsideText, is_escaped};

use super::number::plain;
use super::{Moment, Style, View, no_count};
use crate::metric::Metric;
use crate::table::{Aggregation, Row};

/// A line of `whit stat -j`. Keys are those of `perf stat -j`.
#[derive(Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Line<'a> {
    Count(CountLine<'a>),
    Metric(MetricLine<'a>),
    MetricsOnly(MetricsOnlyLine<'a>),
}

/// A count with its first metric.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountLine<'a> {
    #[serde(flatten)]
    front: Front<'a>,
    /// A number, `<not counted>` or `<not supported>`.
    counter_value: String,
    unit: &'a str,
    event: &'a str,
    /// Where cgroups are counted; empty for everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
    /// In percent of the count; where there are several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    variance: Option<Digits>,
    /// Nanoseconds.
    event_runtime: u64,
    /// Share of the time during which the event counted.
    pcnt_running: Digits,
    #[serde(flatten)]
    metric: MetricValue<'a>,
}

/// A further metric of the count in the line before.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MetricLine<'a> {
    #[serde(flatten)]
    front: Front<'a>,
    #[serde(flatten)]
    metric: MetricValue<'a>,
}

/// All metrics of a place by their units (`--metric-only`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MetricsOnlyLine<'a> {
    #[serde(flatten)]
    front: Front<'a>,
    #[serde(flatten)]
    metrics: Metrics<'a>,
}

/// Columns in front of each row: its time, and the counted CPUs, threads or cgroup.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Front<'a> {
    /// Seconds since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Digits>,
    #[serde(flatten)]
    place: Option<Place<'a>>,
    /// CPUs of the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_number: Option<usize>,
}

/// The key of a row in JSON.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Place<'a> {
    Cpu(&'a str),
    Core(&'a str),
    Cache(&'a str),
    Die(&'a str),
    Socket(&'a str),
    Node(&'a str),
    Thread(&'a str),
}

/// A metric; 0 and without a unit where there is none.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MetricValue<'a> {
    metric_value: Digits,
    metric_unit: &'a str,
}

impl<'a> MetricValue<'a> {
    fn of(metric: Option<&'a Metric>) -> MetricValue<'a> {
        let value = metric.and_then(|metric| metric.value).unwrap_or(0.0);
        MetricValue {
            metric_value: Digits(format!("{value:.6}")),
            metric_unit: metric.map_or("", |metric| &metric.unit),
        }
    }
}

/// A number with the digits that perf prints; `null` where it is not finite.
struct Digits(String);

impl Serialize for Digits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.clone()).ok().serialize(serializer)
    }
}

/// Digits of metrics by title.
struct Metrics<'a>(&'a [(String, Metric)]);

impl Serialize for Metrics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = |(title, metric): &'_ (String, Metric)| {
            (title.clone(), metric.digits().unwrap_or_default())
        };
        serializer.collect_map(self.0.iter().map(digits))
    }
}

pub(super) fn table(out: &mut String, view: &View<'_>, style: &Style) {
    for row in &view.table.rows {
        let counter = view.counter(row);
        let metrics = match row.is_counted(counter) {
            true => view.derived_metrics.metrics(counter, row.label, row.count),
            false => Vec::new(),
        };
        let label = view.table.labels[row.label].exact();
        let front = || Front::of(view, row, style, &label);
        line(out, &Line::Count(CountLine::of(view, row, style, front(), metrics.first())));
        for metric in metrics.iter().skip(1) {
            let metric = MetricValue::of(Some(metric));
            line(out, &Line::Metric(MetricLine { front: front(), metric }));
        }
    }
}

/// The metrics of a place in one line.
pub(super) fn metrics_only(
    out: &mut String,
    view: &View<'_>,
    row: &Row,
    style: &Style,
    metrics: &[(String, Metric)],
) {
    let label = view.table.labels[row.label].exact();
    let front = Front::of(view, row, style, &label);
    line(out, &Line::MetricsOnly(MetricsOnlyLine { front, metrics: Metrics(metrics) }));
}

impl<'a> Front<'a> {
    fn of(view: &View<'_>, row: &Row, style: &Style, label: &'a str) -> Front<'a> {
        let interval = match view.moment {
            Moment::Interval(at) => {
                Some(Digits(format!("{}.{:09}", at.as_secs(), at.subsec_nanos())))
            }
            Moment::Summary | Moment::Total => None,
        };
        let name = label.strip_prefix("CPU").unwrap_or(label);
        let place = match style.aggregation {
            Aggregation::Global => None,
            Aggregation::Cpu if !label.starts_with("CPU") => Some(Place::Core(name)),
            Aggregation::Cpu => Some(Place::Cpu(name)),
            Aggregation::Core => Some(Place::Core(name)),
            Aggregation::Cache => Some(Place::Cache(name)),
            Aggregation::Die => Some(Place::Die(name)),
            Aggregation::Socket => Some(Place::Socket(name)),
            Aggregation::Node => Some(Place::Node(name)),
            Aggregation::Thread => Some(Place::Thread(name)),
        };
        let is_of_cpus = place.is_some() && style.aggregation.counts_cpus();
        Front { interval, place, aggregate_number: is_of_cpus.then_some(row.places) }
    }
}

impl<'a> CountLine<'a> {
    fn of(
        view: &'a View<'_>,
        row: &Row,
        style: &Style,
        front: Front<'a>,
        metric: Option<&'a Metric>,
    ) -> CountLine<'a> {
        let counter = view.counter(row);
        let event = &counter.event;
        let cgroup = || counter.cgroup.as_ref().map_or("", OutsideText::exact);
        CountLine {
            front,
            counter_value: match row.is_counted(counter) {
                true => format!("{:.6}", row.count * event.scale),
                false => no_count(counter).to_owned(),
            },
            unit: &event.unit,
            event: &event.name,
            cgroup: view.has_cgroups().then(cgroup),
            variance: style.has_noise.then(|| Digits(format!("{:.2}", row.noise_percent))),
            event_runtime: row.reading.running_ns,
            pcnt_running: Digits(plain(row.reading.percent_running(), 2)),
            metric: MetricValue::of(metric),
        }
    }
}

fn line(out: &mut String, line: &Line<'_>) {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, PerfBlanks);
    // A Vec takes everything, and every member can be written.
    let written = line.serialize(&mut serializer).map_err(|_| ());
    if let (Ok(()), Ok(text)) = (written, std::str::from_utf8(&bytes)) {
        out.push_str(text);
        out.push('\n');
    }
}

/// JSON with perf's blanks, and without characters that a terminal obeys.
struct PerfBlanks;

impl Formatter for PerfBlanks {
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" : ")
    }

    fn write_string_fragment<W>(&mut self, out: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_escaped) {
            let (plain, special) = rest.split_at(at);
            CompactFormatter.write_string_fragment(out, plain)?;
            let mut characters = special.chars();
            // None of these lies outside the basic plane.
            if let Some(special) = characters.next() {
                write!(out, "\\u{:04x}", u32::from(special))?;
            }
            rest = characters.as_str();
        }
        CompactFormatter.write_string_fragment(out, rest)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use schemars::{JsonSchema, Schema, SchemaGenerator};

    use super::*;

    impl JsonSchema for Digits {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Digits".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            f64::json_schema(generator)
        }
    }

    impl JsonSchema for Metrics<'_> {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Metrics".into()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            BTreeMap::<String, String>::json_schema(generator)
        }
    }

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Line<'_>>("docs/schemas/stat.json");
    }
}
