//! Waits for locks of the kernel beside those of `perf lock contention` on the same file.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{locks, number};
use crate::support::tools::{command, perf, record, workload};
use crate::support::{check, probe};
use whit_testing::run::output;

/// Waits and their sum in nanoseconds, by type.
type ByType = BTreeMap<String, (u64, f64)>;

/// perf's table: contended, total, max and average wait with their units, type, caller.
fn of_perf(text: &str) -> ByType {
    let mut all = ByType::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [count, total, unit, _, _, _, _, kind, _] = words[..] else { continue };
        let ns = match unit {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => continue,
        };
        let sum = all.entry(kind.to_owned()).or_default();
        sum.0 += count.parse::<u64>().expect("a count");
        sum.1 += ns * total.parse::<f64>().expect("a time");
    }
    all
}

/// perf prints the line only where there are any.
fn bad_sequences(printed: &str) -> u64 {
    let line = printed.lines().find_map(|line| line.strip_prefix("bad: "));
    let number = line.and_then(|rest| rest.split(',').next());
    number.map_or(0, |number| number.trim().parse().expect("a number"))
}

fn of_whit(json: &Value) -> ByType {
    let mut all = ByType::new();
    for row in json["kernel_rows"].as_array().expect("rows") {
        let sum = all.entry(row["type"].as_str().expect("a type").to_owned()).or_default();
        sum.0 += number(&row["sums"], "contended");
        sum.1 += number(&row["sums"], "total_ns") as f64;
    }
    all
}

#[test]
fn locks_of_the_kernel_are_those_of_perf() {
    check("locks_of_the_kernel_are_those_of_perf", || {
        probe::tracepoint("lock", "contention_begin")?;
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let mut program = command(workload("wait_classes")?);
        program.arg(dir.path()).args(["--milliseconds", "300"]);
        let mut recorder = perf()?;
        recorder.args(["lock", "record", "-o"]).arg(&data).arg("--");
        record(recorder.arg(program.get_program()).args(program.get_args()))?;
        let mut report = perf()?;
        // It prints at most so many rows, to standard error.
        report.args(["lock", "contention", "-E", "100000", "-i"]).arg(&data);
        let said = output(&mut report);
        let printed = String::from_utf8_lossy(&said.stderr);
        let wanted = of_perf(&printed);
        // perf has one thread 0 on all CPUs, and drops waits of idle CPUs for one lock that overlap. It counts them as
        // bad sequences.
        let bad = bad_sequences(&printed);
        assert!(!wanted.is_empty(), "perf lock contention: {said:?}");
        for by in ["lock", "callsite"] {
            let ours = of_whit(&locks(&data, &["--by", by]));
            assert_eq!(ours.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
            for (kind, (count, ns)) in &ours {
                let (of_perf, perf_ns) = wanted[kind];
                assert!((of_perf..=of_perf + bad).contains(count), "{kind}: {ours:?} {printed}");
                // perf rounds each row.
                let is_near = (ns - perf_ns).abs() <= 0.01 * perf_ns;
                assert!(is_near || (bad > 0 && *ns > perf_ns), "{kind}: {ours:?} {printed}");
            }
        }
        Ok(())
    });
}
