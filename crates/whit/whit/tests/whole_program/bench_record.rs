//! `whit bench record` as a whole, on tiny amounts of work: structure and consistency, no figure
//! that depends on how fast this machine is.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::tools::{perf, text, whit, workload};
use crate::support::{Skip, check, probe};

/// A setting that every recorder has and one that perf refuses.
const SERIAL: &str = "serial";
const ALL_TOGETHER: &str = "threads aio cpu z";

#[test]
fn tables_are_whole_and_their_figures_fit_together() {
    check("bench_record", || {
        probe::own_events()?;
        let workloads = workloads()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let (json, recordings) =
            (directory.path().join("result.json"), directory.path().join("recordings"));
        let mut bench = whit();
        bench.args(["bench", "record", "--quick", "--seconds", "0.02", "--event", "cpu-clock"]);
        // At the highest rate, readers that go before everything else and are not optimized may leave the
        // workload next to nothing.
        bench.args(["-F", "10000", "--tables", "loss,futex"]).arg("--workloads").arg(workloads);
        let printed = text(bench.arg("--dir").arg(&recordings).arg("--json").arg(&json));
        let result = std::fs::read(&json).expect("read the JSON");
        let result: Value = serde_json::from_slice(&result).expect("parse the JSON");
        let left = std::fs::read_dir(&recordings).expect("list the recordings").count();
        assert_eq!(left, 0, "recordings are removed");

        assert_eq!(result["schema"], 1);
        let (loss, futex) = (&result["tables"][0], &result["tables"][1]);
        assert_eq!((&loss["table"], &loss["workload"]), (&"loss".into(), &"deep".into()));
        assert_eq!((&futex["table"], &futex["workload"]), (&"futex".into(), &"pingpong".into()));
        for table in [loss, futex] {
            check_table(table, &printed)?;
        }
        refusals_of_perf(loss)
    });
}

fn workloads() -> Result<PathBuf, Skip> {
    for name in ["deep", "matrix", "yield", "spawn"] {
        workload(name)?;
    }
    let program = workload("pingpong")?;
    Ok(program.parent().expect("a path has a directory").to_owned())
}

fn rows(table: &Value) -> &[Value] {
    table["rows"].as_array().expect("rows")
}

fn row<'a>(table: &'a Value, recorder: &str, setting: &str) -> Option<&'a Value> {
    rows(table).iter().find(|row| row["recorder"] == recorder && row["setting"]["name"] == setting)
}

fn check_table(table: &Value, printed: &str) -> Result<(), Skip> {
    assert_eq!(table["alone"].as_array().map(Vec::len), Some(1), "one round");
    let title = format!("### {}: ", table["table"].as_str().expect("a name"));
    assert!(printed.contains(&title), "{title}");
    for row in rows(table) {
        let name = row["setting"]["name"].as_str().expect("a name");
        let line = printed.lines().find(|line| line.starts_with(&format!("| {name} ")));
        assert!(line.is_some(), "{name} in {printed}");
        match row["summary"]["kind"].as_str() {
            Some("measured") => check_figures(row),
            Some("refused") => {
                let message = row["summary"]["message"].as_str().expect("a message");
                assert!(!message.is_empty(), "{row}");
            }
            other => panic!("{other:?}: {row}"),
        }
    }
    let whit = rows(table).iter().filter(|row| row["recorder"] == "whit");
    let measured = |row: &&Value| row["summary"]["kind"] == "measured";
    match whit.clone().find(measured) {
        Some(_) => Ok(()),
        None => {
            let first = whit.map(|row| &row["summary"]["message"]).next();
            panic!("whit recorded nothing: {first:?}")
        }
    }
}

fn check_figures(row: &Value) {
    let summary = &row["summary"];
    let run = &row["runs"][0];
    assert_eq!((&summary["runs"], &row["runs"].as_array().map(Vec::len)), (&1.into(), &Some(1)));
    let recorded = &run["recorded"];
    let number = |name: &str| recorded[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"));
    assert!(number("samples") > 0 && number("samples") <= number("records"), "{row}");
    assert!(number("size_bytes") > 0 && number("rings") > 0, "{row}");
    assert_eq!(number("unreadable_bytes"), 0, "{row}");
    assert!(number("paused_ns") <= number("elapsed_ns"), "{row}");
    assert!(number("lost") >= number("lost_records"), "{row}");
    assert_eq!(number("lost_records") > 0, number("lost_chunks") > 0, "{row}");
    let options = row["setting"]["options"].to_string();
    let compresses = options.contains("\"-z");
    assert_eq!(number("compressed_bytes") > 0, compresses, "{row}");
    let ratio = summary["compression_ratio"]["median"].as_f64().expect("a ratio");
    assert!(if compresses { ratio > 1.0 } else { ratio == 1.0 }, "{row}");
    if row["recorder"] == "whit" {
        check_against_ledger(recorded, row);
    }
}

/// The recording agrees with whit's own counts at the rings.
fn check_against_ledger(recorded: &Value, row: &Value) {
    let ledger = &recorded["ledger"];
    assert_eq!(ledger["samples"], recorded["samples"], "{row}");
    assert_eq!(ledger["lost"], recorded["lost"], "{row}");
    // Drops that no record in the rings reports are counted, but not timed, in the recording.
    if recorded["lost_samples"] == 0 {
        assert_eq!(ledger["paused_ns"], recorded["paused_ns"], "{row}");
    }
}

/// perf's modes exclude each other, which it says without an exit code.
fn refusals_of_perf(table: &Value) -> Result<(), Skip> {
    perf()?;
    let serial = row(table, "perf", SERIAL).expect("perf is here");
    assert_eq!(serial["summary"]["kind"], "measured", "{serial}");
    let all = row(table, "perf", ALL_TOGETHER).expect("perf is here");
    assert_eq!(all["summary"]["kind"], "refused", "{all}");
    Ok(())
}
