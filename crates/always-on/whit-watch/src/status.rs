//! The state of a service: as JSON for `whit watch status`, as text, and as metrics for Prometheus.

use crate::cost::Cost;
use crate::counters::Counted;
use crate::shared::Shared;
use crate::sinks::SinkStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use whit_types::{ByteSize, OutsideText};

/// Everything that others may know.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Process of the service.
    pub pid: u32,
    /// Seconds since its beginning.
    pub up_s: f64,
    /// Process of the recorder; none while it is started again.
    pub recorder_pid: Option<u32>,
    /// CPU time and memory by now.
    pub cost: Cost,
    /// Losses and others, by the names of bounds.
    pub counted: Counted,
    /// Windows in memory that sinks still need, in bytes.
    pub held_bytes: u64,
    /// The places of data.
    pub sinks: Vec<SinkStatus>,
    /// Triggers with their counters.
    pub triggers: BTreeMap<String, Value>,
    /// Events that triggers saw.
    pub fired: u64,
    /// Events that came while too many others waited.
    pub events_dropped_by_queue: u64,
    /// The keeper of the last seconds, with its counters.
    pub keeper: Option<Value>,
}

impl Status {
    /// Reads counters and asks all parts.
    pub fn of(shared: &Shared) -> Status {
        let parts = shared.parts();
        let fire = parts.fire.as_ref().map(|fire| fire.counts()).unwrap_or_default();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            up_s: shared.begun.elapsed().as_secs_f64(),
            recorder_pid: shared.recorder(),
            cost: shared.cost(),
            counted: shared.counters.get(),
            held_bytes: parts.held.get(),
            sinks: parts.sinks.get(),
            triggers: parts.triggers.iter().map(|it| (it.name(), it.status())).collect(),
            fired: fire.fired,
            events_dropped_by_queue: fire.dropped_by_queue,
            keeper: parts.keeper.map(|keeper| keeper.status()),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            text.push_str(&words);
            text.push('\n');
        };
        let recorder = self
            .recorder_pid
            .map_or("none runs: it is started again".to_owned(), |pid| pid.to_string());
        line(format!("whit watch {}: pid {}, for {}", self.version, self.pid, duration(self.up_s)));
        line(format!("recorder: {recorder}"));
        let Cost { over_s, watch_cpu_percent, recorder_cpu_percent, bpf_cpu_percent, .. } =
            self.cost;
        let bpf =
            bpf_cpu_percent.map_or("not timed".to_owned(), |percent| format!("{percent:.2} %"));
        line(format!(
            "cost of the last {}: watch {watch_cpu_percent:.2} % CPU, {}; recorder {recorder_cpu_percent:.2} % CPU, {}; BPF programs {bpf}",
            duration(over_s),
            mib(self.cost.watch_memory_bytes),
            mib(self.cost.recorder_memory_bytes),
        ));
        let (windows, size) = (self.counted.windows, ByteSize(self.counted.window_bytes));
        line(format!(
            "windows: {windows}, {size} in all; {} wait for sinks",
            ByteSize(self.held_bytes)
        ));
        let lost = self
            .counted
            .list()
            .into_iter()
            .filter(|(name, _, number)| is_loss(name) && *number > 0);
        let lost: Vec<_> =
            lost.map(|(name, help, number)| format!("  {name}: {number} ({help})")).collect();
        line(
            format!("dropped or disturbed: {}", if lost.is_empty() { "nothing" } else { "" })
                .trim_end()
                .to_owned(),
        );
        lost.into_iter().for_each(&mut line);
        for sink in &self.sinks {
            line(format!(
                "sink {}: {} windows taken, {} failed, {} dropped by its queue, {} wait",
                OutsideText::new(&*sink.name),
                sink.accepted,
                sink.failed,
                sink.dropped_by_queue,
                sink.waiting
            ));
            details(&sink.detail).into_iter().for_each(&mut line);
            if let Some(error) = &sink.last_error {
                line(format!("  last failure: {}", OutsideText::new(&**error)));
            }
        }
        for (name, status) in &self.triggers {
            line(format!("trigger {}", OutsideText::new(&**name)));
            details(status).into_iter().for_each(&mut line);
        }
        if let Some(keeper) = &self.keeper {
            line(format!(
                "last seconds: {} events, {} dropped by their queue",
                self.fired, self.events_dropped_by_queue
            ));
            details(keeper).into_iter().for_each(&mut line);
        }
        text
    }

    /// Metrics in Prometheus' text format.
    pub fn metrics(&self) -> String {
        let mut text = String::new();
        for (name, help, number) in self.counted.list() {
            metric(
                &mut text,
                &format!("{name}_total"),
                "counter",
                help,
                &[(String::new(), number as f64)],
            );
        }
        let cost = &self.cost;
        let labelled = |part: &str| format!("{{part=\"{part}\"}}");
        let mut cpu = vec![
            (labelled("watch"), cost.watch_cpu_percent),
            (labelled("recorder"), cost.recorder_cpu_percent),
        ];
        cpu.extend(cost.bpf_cpu_percent.map(|percent| (labelled("bpf"), percent)));
        metric(&mut text, "cpu_percent", "gauge", "CPU time in percent of one CPU", &cpu);
        let memory = [
            (labelled("watch"), cost.watch_memory_bytes as f64),
            (labelled("recorder"), cost.recorder_memory_bytes as f64),
        ];
        metric(&mut text, "memory_bytes", "gauge", "Resident memory", &memory);
        let up = [(String::new(), self.up_s)];
        metric(&mut text, "up_seconds", "gauge", "Time since the beginning", &up);
        let runs = [(String::new(), f64::from(u8::from(self.recorder_pid.is_some())))];
        metric(&mut text, "recorder_runs", "gauge", "1 while a recorder runs", &runs);
        let held = [(String::new(), self.held_bytes as f64)];
        metric(&mut text, "held_bytes", "gauge", "Windows in memory that sinks still need", &held);
        self.metrics_of_parts(&mut text);
        text
    }

    fn metrics_of_parts(&self, text: &mut String) {
        type Figure = fn(&SinkStatus) -> u64;
        let figures: [(&str, &str, &str, Figure); 4] = [
            ("sink_windows_total", "counter", "Windows that the sink took", |it| it.accepted),
            ("sink_failed_total", "counter", "Windows that the sink could not take", |it| {
                it.failed
            }),
            (
                "sink_dropped_by_queue_total",
                "counter",
                "Windows that its queue did not take",
                |it| it.dropped_by_queue,
            ),
            ("sink_waiting", "gauge", "Windows in its queue", |it| it.waiting),
        ];
        for (name, kind, help, figure) in figures {
            let of = self
                .sinks
                .iter()
                .map(|it| (format!("{{sink=\"{}\"}}", label(&it.name)), figure(it) as f64));
            metric(text, name, kind, help, &of.collect::<Vec<_>>());
        }
        // Each number in the status of a part is a metric.
        let mut own: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
        let mut collect = |part: &str, name: &str, detail: &Value| {
            for (key, value) in detail.as_object().into_iter().flatten() {
                if let Some(number) = value.as_f64() {
                    let labels = format!("{{{part}=\"{}\"}}", label(name));
                    own.entry(format!("{part}_{}", metric_name(key)))
                        .or_default()
                        .push((labels, number));
                }
            }
        };
        self.sinks.iter().for_each(|sink| collect("sink", &sink.name, &sink.detail));
        self.triggers.iter().for_each(|(name, status)| collect("trigger", name, status));
        self.keeper.iter().for_each(|keeper| collect("keeper", "keeper", keeper));
        for (name, values) in own {
            metric(text, &name, "untyped", "As in whit watch status", &values);
        }
    }
}

/// Counters that stay zero while all is well.
fn is_loss(name: &str) -> bool {
    !["windows", "window_bytes", "reloads", "wake_ups"].contains(&name)
}

/// A metric with all its series; none where there are no series.
fn metric(text: &mut String, name: &str, kind: &str, help: &str, series: &[(String, f64)]) {
    if series.is_empty() {
        return;
    }
    // Writing into a string cannot fail.
    let _ = writeln!(text, "# HELP whit_watch_{name} {help}\n# TYPE whit_watch_{name} {kind}");
    for (labels, value) in series {
        let _ = writeln!(text, "whit_watch_{name}{labels} {value}");
    }
}

fn metric_name(key: &str) -> String {
    key.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect()
}

/// The text of a label, as Prometheus' format escapes it.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The fields of a part, a line for each.
fn details(value: &Value) -> Vec<String> {
    let fields = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let text = |value: &Value| match value {
        Value::String(text) => OutsideText::new(&**text).to_string(),
        other => OutsideText::new(other.to_string()).to_string(),
    };
    fields.map(|(key, value)| format!("  {}: {}", OutsideText::new(&**key), text(value))).collect()
}

fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        let mut status = Status::of(&Shared::default());
        status.counted.gap_ms = 1500;
        status.cost.bpf_cpu_percent = Some(0.25);
        status.sinks.push(SinkStatus {
            name: "push.\"a\"".to_owned(),
            accepted: 5,
            failed: 1,
            dropped_by_queue: 2,
            waiting: 0,
            last_error: Some("full\x1b".to_owned()),
            detail: serde_json::json!({"folder": "/f", "spool-bytes": 7, "oldest": null}),
        });
        status
    }

    #[test]
    fn the_text_names_losses_and_sinks() {
        let text = status().text();
        assert!(
            text.contains("\n  gap_ms: 1500 (Time without a recorder, in milliseconds)\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "5 windows taken, 1 failed, 2 dropped by its queue, 0 wait\n  folder: /f\n"
            ),
            "{text}"
        );
        assert!(text.contains("  last failure: full\\x1b\n") && !text.contains("oldest"), "{text}");
        assert!(text.contains("BPF programs 0.25 %") && !text.contains("wake_ups"), "{text}");
        let quiet = Status::of(&Shared::default()).text();
        assert!(quiet.contains("dropped or disturbed: nothing\n"), "{quiet}");
    }

    #[test]
    fn metrics_have_a_type_each_and_escaped_labels() {
        let text = status().metrics();
        for wanted in [
            "# TYPE whit_watch_gap_ms_total counter\nwhit_watch_gap_ms_total 1500\n",
            "whit_watch_cpu_percent{part=\"bpf\"} 0.25\n",
            "whit_watch_sink_failed_total{sink=\"push.\\\"a\\\"\"} 1\n",
            "whit_watch_sink_spool_bytes{sink=\"push.\\\"a\\\"\"} 7\n",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        let names: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(names.len(), distinct.len());
    }

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Status>("docs/schemas/watch.json");
    }

    #[test]
    fn the_document_is_read_back() {
        let status = status();
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
    }
}
