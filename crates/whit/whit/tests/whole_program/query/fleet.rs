//! The view `fleet_share`: hosts of other rates and lengths add up, and its intervals are those of the estimator of
//! reports over the same blocks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whit_estimate::{Parts, RatioSum};

use super::dataset::{made, over_dataset};
use super::questions::{export, renamed};
use crate::support::tools::{record, text, whit, workload};
use crate::support::{Skip, check, probe};

/// Blocks of a recording.
const BLOCKS: i64 = 64;
/// The view has Student's quantile from a polynomial, which differs by 0.000004 of it. An end of an interval depends on
/// the square, too.
const QUANTILE_ERROR: f64 = 0.0001;

fn rows(dataset: &Path, sql: &str) -> Vec<Value> {
    let json = text(over_dataset(dataset).args(["--json", "-c", sql]));
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"))
}

/// Event, function and binary.
type Function = (String, String, String);

fn function(row: &Value) -> Function {
    let text = |name: &str| row[name].as_str().expect("a text").to_owned();
    (text("event"), text("name"), text("mapping_name"))
}

/// A share with its interval, in percent.
type Share = (f64, Option<(f64, f64)>);

/// Recording and block.
type Part = (String, i64);

#[derive(Default)]
struct Event {
    parts: BTreeMap<Part, f64>,
    samples: f64,
    lost: f64,
    functions: BTreeMap<Function, BTreeMap<Part, f64>>,
}

/// The view's rows, by the estimator of reports.
fn estimated(dataset: &Path) -> BTreeMap<Function, Share> {
    let samples = rows(
        dataset,
        "SELECT s.recording_id AS recording, s.event, s.ts, s.weight, f.name, m.name AS mapping_name, r.host, r.first_ts,
           r.last_ts - r.first_ts + 1 AS dur, r.lost_records + r.lost_samples AS lost
         FROM sample s JOIN recording r ON r.id = s.recording_id LEFT JOIN callsite c ON c.id = s.callsite_id
           LEFT JOIN frame f ON f.id = c.frame_id LEFT JOIN mapping m ON m.id = f.mapping
         WHERE r.last_ts > r.first_ts",
    );
    let mut hosts: BTreeMap<(String, String), BTreeMap<String, f64>> = BTreeMap::new();
    let mut counts: BTreeMap<(String, String), f64> = BTreeMap::new();
    let key = |row: &Value, name: &str| (row["event"].to_string(), row[name].to_string());
    for row in &samples {
        let recording = row["recording"].to_string();
        hosts.entry(key(row, "host")).or_default().insert(recording, number(row, "dur"));
        *counts.entry(key(row, "recording")).or_default() += 1.0;
    }
    let mut events: BTreeMap<String, Event> = BTreeMap::new();
    for row in &samples {
        let dur: f64 = hosts[&key(row, "host")].values().sum();
        let weight = number(row, "weight") / dur;
        let at = row["ts"].as_i64().expect("ts") - row["first_ts"].as_i64().expect("first_ts");
        let part = (row["recording"].to_string(), at * BLOCKS / row["dur"].as_i64().expect("dur"));
        let event = events.entry(row["event"].to_string()).or_default();
        *event.parts.entry(part.clone()).or_default() += weight;
        event.samples += 1.0;
        event.lost += weight * number(row, "lost") / counts[&key(row, "recording")];
        if !row["name"].is_null() {
            *event.functions.entry(function(row)).or_default().entry(part).or_default() += weight;
        }
    }
    events.values().flat_map(shares).collect()
}

fn shares(event: &Event) -> Vec<(Function, Share)> {
    let total: f64 = event.parts.values().sum();
    // An empty part keeps a recording apart from the next: their blocks are no neighbours.
    let keys: Vec<&Part> = event.parts.keys().collect();
    let of_recordings = keys.chunk_by(|one, next| one.0 == next.0);
    let places: Vec<Option<&Part>> =
        of_recordings.flat_map(|of| of.iter().map(|part| Some(*part)).chain([None])).collect();
    let weight_of = |place: &Option<&Part>| place.map_or(0.0, |part| event.parts[part]);
    let parts = Parts::new(places.iter().map(weight_of).collect());
    let parts = parts.filter(|parts| parts.freedom() >= 2.0);
    let lost = event.lost / (total + event.lost);
    let share = |(name, weights): (&Function, &BTreeMap<Part, f64>)| {
        let sum: f64 = weights.values().sum();
        let interval = parts.as_ref().map(|parts| {
            let mut ratio = RatioSum::default();
            for (at, part) in places.iter().enumerate() {
                ratio.add(
                    parts,
                    at,
                    part.and_then(|part| weights.get(part)).copied().unwrap_or(0.0),
                );
            }
            let ends = parts.share_intervals(event.samples).of(&ratio.estimate(parts));
            (100.0 * ends.0 * (1.0 - lost), 100.0 * (ends.1 * (1.0 - lost) + lost))
        });
        (name.clone(), (100.0 * sum / total, interval))
    };
    event.functions.iter().map(share).collect()
}

/// The view, whose rows are compared with the estimator's.
fn assert_is_estimated(dataset: &Path) {
    let expected = estimated(dataset);
    let found = rows(dataset, "SELECT * FROM fleet_share");
    assert_eq!(found.len(), expected.len());
    for row in &found {
        let (share, interval) = expected[&function(row)];
        assert!((number(row, "percent") - share).abs() < 1e-9, "{row}: {share}");
        let Some((low, high)) = interval else {
            assert!(row["low_percent"].is_null() && row["high_percent"].is_null(), "{row}");
            continue;
        };
        let error = QUANTILE_ERROR * (high - low) + 1e-9;
        assert!((number(row, "low_percent") - low).abs() <= error, "{row}: {low}");
        assert!((number(row, "high_percent") - high).abs() <= error, "{row}: {high}");
    }
}

#[test]
fn intervals_of_the_fleet_are_those_of_reports() {
    let folder = made();
    let dataset = folder.path().join("lake");
    assert_is_estimated(&dataset);
    let with = rows(&dataset, "SELECT * FROM fleet_share WHERE low_percent IS NOT NULL");
    assert!(with.len() > 5, "{} rows with intervals", with.len());
}

/// Records one busy process of a host.
fn host(folder: &Path, name: &str, rate: &str, program: &[&str]) -> Result<PathBuf, Skip> {
    let path = folder.join(format!("{name}.data"));
    let mut recorder = whit();
    recorder
        .args(["record", "--engine=ring", "-q", "-e", "cpu-clock:u", "-F", rate, "-o"])
        .arg(&path)
        .arg("--");
    record(recorder.arg(workload(program[0])?).args(&program[1..]))?;
    renamed(&path, &["--host", name]);
    Ok(path)
}

/// One host has ten times the rate, the other one twice the time. Numbers of samples, and weights that nobody divides by
/// time, say something else.
#[test]
fn hosts_of_other_rates_and_lengths_have_equal_parts() {
    check("hosts_of_other_rates_and_lengths_have_equal_parts", || {
        probe::program("python3")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let long = host(folder.path(), "long", "99", &["shares", "flat", "4"])?;
        let fast = host(folder.path(), "fast", "997", &["deep", "--seconds", "2"])?;
        let dataset = folder.path().join("lake");
        export(&dataset, &[&long, &fast]);
        assert_is_estimated(&dataset);
        // CPUs that each host used on average: near one, but for other programs of this machine.
        let used = rows(
            &dataset,
            "SELECT host, samples, (SELECT 1.0 * SUM(weight) FROM sample s WHERE s.recording_id = r.id) AS weight,
               last_ts - first_ts + 1 AS dur
             FROM recording r ORDER BY host",
        );
        let (fast, long) = (&used[0], &used[1]);
        let share = |of: &dyn Fn(&Value) -> f64| 100.0 * of(long) / (of(long) + of(fast));
        let expected = share(&|host| number(host, "weight") / number(host, "dur"));
        let by_count = share(&|host| number(host, "samples"));
        let by_weight = share(&|host| number(host, "weight"));
        let sql =
            "SELECT SUM(percent) AS percent FROM fleet_share WHERE mapping_name LIKE '%/shares'";
        let found = rows(&dataset, sql);
        let found = number(&found[0], "percent");
        assert!((found - expected).abs() < 5.0, "{found} instead of {expected}");
        assert!(by_count < 35.0 && (by_count - expected).abs() > 10.0, "{by_count} {expected}");
        assert!((by_weight - expected).abs() > 7.0, "{by_weight} {expected}");
        Ok(())
    });
}
