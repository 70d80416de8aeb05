//! `whit query`: its sums are those of the reports, on recordings that are made here and on golden ones.

mod answers;
mod dataset;
mod duckdb;
mod failures;
mod fleet;
pub(crate) mod questions;
mod shell;

pub(crate) use dataset::STATEMENTS;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::exports::recordings::{Example, all, recorded};
use crate::exports::sums::events;
use crate::support::check;
use crate::support::tools::{repository, text, whit};

fn golden(name: &str) -> std::path::PathBuf {
    repository().join("tests/recordings/golden").join(name).join("recording.data")
}

/// Runs statements over one recording.
fn query(recording: &Path, arguments: &[&str]) -> Output {
    let mut query = whit();
    query.args(["query", "-i"]).arg(recording).args(arguments);
    query.output().expect("run whit")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The rows of a statement over an example.
fn rows(example: &Example, sql: &str) -> Vec<Value> {
    let mut query = example.whit("query");
    let json = text(query.args(["--json", "-c", sql]));
    let rows: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    rows.as_array().expect("an array").clone()
}

fn number(example: &Example, sql: &str) -> u64 {
    let rows = rows(example, &format!("SELECT COALESCE(({sql}), 0) AS it"));
    rows[0]["it"].as_u64().unwrap_or_else(|| panic!("{sql}: {rows:?}"))
}

/// Self and total period by event, function and binary, without the zeros. The report has a row for a function's
/// inlined copies and one for the function. A sample with both is in both totals, so that there is no total of the two.
type Sums = BTreeMap<(String, String, String), (u64, Option<u64>)>;

fn name(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn of_report(example: &Example) -> Sums {
    let (mut sums, mut forms) = (Sums::new(), BTreeMap::<_, BTreeSet<_>>::new());
    for event in events(example) {
        for row in event["rows"].as_array().expect("rows") {
            let period = |which: &str| row[which]["period"].as_u64();
            let symbol = &row["symbol"];
            let binary = row["dso"]["path"].as_str().or(row["dso"].as_str()).expect("a binary");
            let key = (name(&event["name"]), name(&symbol["name"]), binary.to_owned());
            forms.entry(key.clone()).or_default().insert(symbol["inlined"].as_bool());
            let sum = sums.entry(key).or_insert((0, Some(0)));
            let own = period("self").expect("a period");
            sum.0 += own;
            // Without call chains the report has no totals.
            sum.1 = sum.1.map(|total| total + period("children").unwrap_or(own));
        }
    }
    for (key, _) in forms.iter().filter(|(_, forms)| forms.len() > 1) {
        sums.get_mut(key).expect("a sum").1 = None;
    }
    sums
}

/// The sums of both, with the totals that the report has.
fn compared(example: &Example) -> [Sums; 2] {
    let (mut queried, reported) = (of_query(example), of_report(example));
    for (key, sum) in &mut queried {
        if reported.get(key).is_some_and(|sum| sum.1.is_none()) {
            sum.1 = None;
        }
    }
    assert!(reported.values().any(|sum| sum.1.is_some()));
    [queried, reported]
}

fn of_query(example: &Example) -> Sums {
    let columns = "event, name, mapping_name, self_weight, total_weight";
    let rows = rows(example, &format!("SELECT {columns} FROM top_functions"));
    let of_row = |row: &Value| {
        let number = |which: &str| row[which].as_u64().expect("a weight");
        let key = (name(&row["event"]), name(&row["name"]), name(&row["mapping_name"]));
        (key, (number("self_weight"), Some(number("total_weight"))))
    };
    rows.iter().map(of_row).collect()
}

#[test]
fn functions_have_the_weights_of_the_report() {
    let folder = tempfile::tempdir().expect("make a directory");
    for example in all(&folder) {
        let [actual, expected] = compared(&example);
        assert!(!expected.is_empty(), "{}", example.name);
        assert_eq!(actual, expected, "{}", example.name);
    }
}

/// Many samples, so that several threads decode parts of them, with inlined functions.
#[test]
fn call_sites_have_the_same_numbers_whatever_thread_meets_them() {
    check("call_sites_have_the_same_numbers_whatever_thread_meets_them", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let options = ["-F", "4999", "-g"];
        let example = recorded("cpp", folder.path(), &options, &["deep", "--seconds", "1.5"])?;
        assert!(number(&example, "SELECT COUNT(*) FROM sample") > 1000);
        assert!(number(&example, "SELECT COUNT(*) FROM frame WHERE is_inlined = 1") > 0);
        let by = |threads: &str| {
            let mut query = example.whit("query");
            let sql = "SELECT * FROM sample; SELECT * FROM callsite; SELECT * FROM frame; SELECT * FROM top_functions";
            text(query.args(["--csv", "--threads", threads, "-c", sql]))
        };
        assert_eq!(by("1"), by("4"));
        Ok(())
    });
}

#[test]
fn stacks_that_the_kernel_unwound_have_the_weights_of_the_report() {
    check("stacks_that_the_kernel_unwound_have_the_weights_of_the_report", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let options = ["-F", "997", "-g", "--engine=bpf"];
        let example = recorded("bpf", folder.path(), &options, &["deep", "--seconds", "0.5"])?;
        let [actual, expected] = compared(&example);
        assert_eq!(actual, expected);
        Ok(())
    });
}

#[test]
fn waits_have_the_counts_and_times_of_the_switch_report() {
    check("waits_have_the_counts_and_times_of_the_switch_report", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let options = ["-F", "997", "--switch-events", "-g"];
        let command = ["pingpong", "--threads", "4", "--iterations", "5000"];
        let example = recorded("waits", folder.path(), &options, &command)?;
        let report: Value =
            serde_json::from_str(&text(example.whit("switches").arg("--json"))).expect("JSON");
        let total = |name: &str| report["total"][name].as_u64().expect("a number");
        assert!(total("sync_count") > 1000, "{}", report["total"]);
        for kind in ["sync", "preempt", "new"] {
            let of = format!("FROM wait WHERE kind = '{kind}'");
            let count = number(&example, &format!("SELECT COUNT(*) {of} AND begun_before = 0"));
            assert_eq!(count, total(&format!("{kind}_count")), "{kind}");
            let ns = number(&example, &format!("SELECT SUM(dur) {of} AND certain = 1"));
            assert_eq!(ns, total(&format!("{kind}_wait_ns")), "{kind}");
        }
        let cpu_ns = number(&example, "SELECT SUM(dur) FROM sched WHERE certain = 1");
        assert_eq!(cpu_ns, total("cpu_ns"));
        let by_thread = rows(
            &example,
            "SELECT t.tid, COUNT(*) AS waits FROM wait w JOIN thread t USING (utid)
            WHERE w.kind = 'sync' AND begun_before = 0 GROUP BY t.tid ORDER BY t.tid",
        );
        let reported = report["threads"].as_array().expect("threads").iter().map(|thread| {
            (
                thread["tid"].as_u64(),
                thread["sums"]["sync_count"].as_u64().filter(|count| *count > 0),
            )
        });
        let mut reported: Vec<_> = reported.filter(|(_, count)| count.is_some()).collect();
        reported.sort_unstable();
        let counted = by_thread.iter().map(|row| (row["tid"].as_u64(), row["waits"].as_u64()));
        assert_eq!(counted.collect::<Vec<_>>(), reported);
        // Each thread runs on one CPU at a time, and each CPU runs one thread.
        let overlaps = "SELECT COUNT(*) FROM (SELECT ts, ts + dur AS end, LEAD(ts) OVER (PARTITION BY utid ORDER BY ts)
            AS next FROM thread_state) WHERE next < end";
        assert_eq!(number(&example, overlaps), 0);
        Ok(())
    });
}

#[test]
fn the_ledger_has_the_figures_of_the_report() {
    check("the_ledger_has_the_figures_of_the_report", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let example = recorded("ledger", folder.path(), &["-g"], &["deep", "--seconds", "0.2"])?;
        let report: Value =
            serde_json::from_str(&text(example.whit("report").arg("--json"))).expect("JSON");
        let ledger = report["ledger"].as_object().expect("a ledger");
        let figures = rows(&example, "SELECT key, value, unit FROM ledger");
        let value = |key: &str| {
            let row = figures.iter().find(|row| row["key"] == key);
            row.unwrap_or_else(|| panic!("no {key} in {figures:?}"))["value"].clone()
        };
        let mut compared = 0;
        for (key, reported) in ledger.iter().filter(|(_, reported)| reported.is_u64()) {
            if figures.iter().any(|row| row["key"] == *key) {
                assert_eq!(value(key), *reported, "{key}");
                compared += 1;
            }
        }
        assert!(compared > 10, "{compared} of {ledger:?}");
        assert_eq!(value("readers.0.rings"), ledger["readers"][0]["rings"]);
        let samples = report["events"].as_array().expect("events").iter();
        let samples: u64 = samples.map(|event| event["samples"].as_u64().expect("samples")).sum();
        assert_eq!(number(&example, "SELECT samples FROM recording"), samples);
        Ok(())
    });
}

#[test]
fn several_recordings_are_one_database() {
    let (one, other) = (golden("perf-fp"), golden("losses"));
    let mut query = whit();
    query.args(["query", "-i"]).arg(&one).arg("-i").arg(&other).args(["--csv", "-c"]);
    query.arg("SELECT r.path LIKE '%losses%', COUNT(*), SUM(s.weight) FROM sample s JOIN recording r ON r.id = s.recording_id
        GROUP BY r.id ORDER BY r.id");
    let rows = text(&mut query);
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(rows, ["0,6,12000000", "1,3,3000"]);
}

#[test]
fn rows_are_a_table_csv_or_json() {
    let losses = golden("losses");
    let sql = "SELECT 'a,\"b' AS text, 7 AS number, NULL AS none, 0.5 AS part";
    let output = query(&losses, &["-c", sql]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines,
        ["text  number  none  part", "----  ------  ----  ----", "a,\"b       7         0.5"]
    );
    let csv = query(&losses, &["--csv", "-c", sql]).stdout;
    assert_eq!(String::from_utf8_lossy(&csv), "text,number,none,part\n\"a,\"\"b\",7,,0.5\n");
    let json: Value =
        serde_json::from_slice(&query(&losses, &["--json", "-c", sql]).stdout).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!([{"text": "a,\"b", "number": 7, "none": null, "part": 0.5}])
    );
    let none = query(&losses, &["--json", "-c", "SELECT 1 WHERE 0"]).stdout;
    assert_eq!(String::from_utf8_lossy(&none), "[]\n");
}

#[test]
fn statements_come_from_a_file_or_standard_input() {
    let folder = tempfile::tempdir().expect("make a directory");
    let file = folder.path().join("count.sql");
    std::fs::write(
        &file,
        "-- Both.\nCREATE TEMP TABLE t AS SELECT * FROM sample;\nSELECT COUNT(*) AS n FROM t;",
    )
    .expect("write statements");
    let expected = "n\n3\n";
    let of_file = query(&golden("losses"), &["--csv", "-f", file.to_str().expect("UTF-8")]);
    assert_eq!(String::from_utf8_lossy(&of_file.stdout), expected, "{}", said(&of_file));
    let mut piped = whit();
    piped.args(["query", "--csv", "-i"]).arg(golden("losses"));
    piped.stdin(std::fs::File::open(&file).expect("open statements"));
    assert_eq!(text(&mut piped), expected);
}

#[test]
fn percentiles_are_values_of_the_group() {
    let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200)
        SELECT percentile(x, 50), percentile(x, 99), percentile(x, 0), percentile(x, 100), percentile(x * 0.5, 50),
        percentile(NULL, 50) FROM n";
    let output = query(&golden("losses"), &["--csv", "-c", sql]);
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(rows.lines().nth(1), Some("100,198,1,200,50,"), "{rows}{}", said(&output));
}
