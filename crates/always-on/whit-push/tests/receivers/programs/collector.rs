//! OpenTelemetry's collector: it writes the profiles that it takes into a file, one request a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use whit_push::Kind;
use whit_testing::wait::{is_soon, wait_until};
use whit_testing::{Skip, check};

use super::{Running, free_port, now_s, program};
use crate::support::{Run, hasty};

const GATE: &str = "--feature-gates=+service.profilesSupport";

struct Collector {
    folder: tempfile::TempDir,
    port: u16,
    running: Option<Running>,
}

impl Collector {
    fn start() -> Result<Collector, Skip> {
        let folder = tempfile::tempdir().expect("make a directory");
        let mut collector = Collector { folder, port: free_port(), running: None };
        collector.resume()?;
        Ok(collector)
    }

    /// Starts it again at the same address.
    fn resume(&mut self) -> Result<(), Skip> {
        let mut command = program("collector", "OpenTelemetry's collector")?;
        let config = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{}'}}}}}}}}\n\
             exporters: {{file: {{path: '{}', append: true, flush_interval: 100ms}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}\n",
            self.port,
            self.file().display()
        );
        let path = self.folder.path().join("config.yaml");
        fs::write(&path, config).expect("write a configuration");
        command.arg("--config").arg(path).arg(GATE);
        self.running = Some(Running::start(&mut command, self.folder.path()));
        Ok(())
    }

    fn kill(&mut self) {
        self.running = None;
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("profiles.json")
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Requests whose lines are whole: the end of a line comes a moment after its text.
    fn requests(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// A number, which JSON has as a text where it may have 64 bits; zeros are left out.
fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

struct Request<'a> {
    dictionary: &'a Value,
    resource: &'a Value,
    profile: &'a Value,
}

impl<'a> Request<'a> {
    fn of(request: &'a Value) -> Request<'a> {
        let resource = &request["resourceProfiles"][0];
        let profile = &resource["scopeProfiles"][0]["profiles"][0];
        Request { dictionary: &request["dictionary"], resource: &resource["resource"], profile }
    }

    fn text(&self, index: &Value) -> &'a str {
        self.dictionary["stringTable"][number(index) as usize].as_str().unwrap_or_default()
    }

    /// Samples and periods by the name of the innermost function.
    fn sums(&self) -> BTreeMap<String, (u64, u64)> {
        let dictionary = self.dictionary;
        let mut sums = BTreeMap::new();
        for sample in list(&self.profile["samples"]) {
            let stack = &dictionary["stackTable"][number(&sample["stackIndex"]) as usize];
            let location = number(&stack["locationIndices"][0]) as usize;
            let line = &dictionary["locationTable"][location]["lines"][0];
            let function = number(&line["functionIndex"]) as usize;
            let name = self.text(&dictionary["functionTable"][function]["nameStrindex"]);
            let values = list(&sample["values"]);
            let sum: &mut (u64, u64) = sums.entry(name.to_owned()).or_default();
            let period: u64 = values.iter().map(number).sum();
            *sum = (sum.0, sum.1 + period);
        }
        sums
    }

    /// Keys and values of all attributes that samples have.
    fn attributes(&self) -> BTreeSet<(&'a str, &'a str)> {
        let samples = list(&self.profile["samples"]).iter();
        let indices = samples.flat_map(|sample| list(&sample["attributeIndices"]));
        let attribute = |index| &self.dictionary["attributeTable"][number(index) as usize];
        indices.map(attribute).map(|it| self.pair(it)).collect()
    }

    fn resource(&self) -> BTreeMap<&'a str, &'a str> {
        list(&self.resource["attributes"]).iter().map(|it| self.pair(it)).collect()
    }

    /// Key and text. The collector keeps some of them among the strings of the dictionary.
    fn pair(&self, attribute: &'a Value) -> (&'a str, &'a str) {
        let value = &attribute["value"];
        let text = value["stringValue"].as_str();
        (
            self.text(&attribute["keyStrindex"]),
            text.unwrap_or_else(|| self.text(&value["stringValueStrindex"])),
        )
    }
}

#[test]
fn the_collector_has_the_sums_of_each_function() {
    check("the_collector_has_the_sums_of_each_function", || {
        let collector = Collector::start()?;
        let mut settings = hasty(Kind::Otlp, &collector.url());
        settings.labels.insert("cloud.region".to_owned(), "eu".to_owned());
        let run = Run::start(&[("collector", settings)]);
        let start_s = now_s() - 60;
        run.push([start_s]);
        // It listens after some time, until which the window waits.
        let done = run.wait("collector", "it is sent", |it| it.sent.windows == 1);
        assert_eq!((done.dropped.windows(), done.rejected_profiles), (0, 0), "{done:?}");
        wait_until("the collector writes", || !collector.requests().is_empty());
        let all = collector.requests();
        let request = Request::of(&all[0]);
        let periods = |sums: BTreeMap<String, (u64, u64)>| -> BTreeMap<String, u64> {
            sums.into_iter().map(|(name, (_, period))| (name, period)).collect()
        };
        assert_eq!(periods(request.sums()), periods(run.sums()));
        assert_eq!(request.text(&request.profile["sampleType"]["typeStrindex"]), "cpu");
        assert_eq!(number(&request.profile["timeUnixNano"]), start_s * 1_000_000_000);
        assert_eq!(number(&request.profile["durationNano"]), 10_000_000_000);
        let attributes = request.attributes();
        let pod = ("k8s.pod.uid", "0d2a1b3c-1111-2222-3333-444455556666");
        assert!(attributes.contains(&pod), "{attributes:?}");
        assert!(attributes.contains(&("systemd.unit", "web.service")), "{attributes:?}");
        let resource = request.resource();
        for (key, value) in [("cloud.region", "eu"), ("service.name", "whit")] {
            assert_eq!(resource.get(key), Some(&value), "{resource:?}");
        }
        assert!(resource.contains_key("host.name"), "{resource:?}");
        // Attributes that change would make a resource of each window.
        assert!(!resource.contains_key("whit.losses"), "{resource:?}");
        Ok(())
    });
}

#[test]
fn a_collector_that_is_killed_loses_nothing_that_waits_for_it() {
    check("a_collector_that_is_killed_loses_nothing_that_waits_for_it", || {
        let mut collector = Collector::start()?;
        let run = Run::start(&[("collector", hasty(Kind::Otlp, &collector.url()))]);
        let start_s = now_s() - 3600;
        run.push(start_s..start_s + 3);
        run.wait("collector", "three are sent", |it| it.sent.windows == 3);
        // Windows that it took are on its disk before it is killed.
        wait_until("three are written", || collector.requests().len() == 3);
        collector.kill();
        run.push(start_s + 3..start_s + 8);
        let away = run.wait("collector", "it is missed", |it| it.retries >= 2);
        assert_eq!((away.waiting.windows, away.dropped.windows()), (5, 0));
        collector.resume()?;
        let done = run.wait("collector", "all are sent", |it| it.sent.windows == 8);
        assert_eq!((done.waiting.windows, done.dropped.windows()), (0, 0));
        let starts = || -> BTreeSet<u64> {
            let all = collector.requests();
            all.iter().map(|it| number(&Request::of(it).profile["timeUnixNano"])).collect()
        };
        let wanted: BTreeSet<u64> = (start_s..start_s + 8).map(|s| s * 1_000_000_000).collect();
        is_soon(|| starts() == wanted);
        assert_eq!(starts(), wanted);
        Ok(())
    });
}

#[test]
fn a_collector_without_the_feature_is_named_and_nothing_is_lost() {
    check("a_collector_without_the_feature_is_named_and_nothing_is_lost", || {
        let mut command = program("collector", "OpenTelemetry's collector")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let port = free_port();
        // A pipeline of traces: it listens, and knows no path for profiles.
        let config = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\n\
             exporters: {{file: {{path: traces.json}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}\n"
        );
        fs::write(folder.path().join("config.yaml"), config).expect("write a configuration");
        command.args(["--config", "config.yaml"]);
        let _running = Running::start(&mut command, folder.path());
        let mut settings = hasty(Kind::Otlp, &format!("http://127.0.0.1:{port}"));
        settings.retry_longest.0 = Duration::from_millis(100);
        let run = Run::start(&[("collector", settings)]);
        run.push([now_s()]);
        let is_reported = |it: &whit_push::Status| {
            it.last_error.as_deref().is_some_and(|it| it.contains("answered with status 404"))
        };
        let now = run.wait("collector", "it is reported", is_reported);
        assert_eq!((now.waiting.windows, now.dropped.windows()), (1, 0));
        Ok(())
    });
}
