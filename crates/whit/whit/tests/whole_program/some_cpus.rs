//! Some CPUs of a machine (`-C`): their threads may have come from others.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::script::{self, Sample};
use crate::support::tools::{perf, record, text, whit, workload};
use crate::support::{check, probe};

/// Starts a program on CPU 1, says which process that is, and moves it to CPU 0.
const MOVE: &str = "taskset -c 1 \"$0\" --seconds 3 >/dev/null & pid=$!; echo $pid; \
                    sleep 0.4; taskset -p -c 0 $pid >/dev/null; wait";

/// A recorder of CPU 0.
fn recorder(data: &Path, options: &str) -> Command {
    let mut recorder = whit();
    recorder
        .args([
            "record",
            "--engine=ring",
            "-q",
            "-g",
            "-C",
            "0",
            "-e",
            "cpu-clock",
            "-F",
            "999",
            "-o",
        ])
        .arg(data);
    recorder.args(options.split_whitespace()).arg("--");
    recorder
}

/// Samples of one thread.
fn of_thread(mut reader: Command, data: &Path, tid: &str) -> Vec<Sample> {
    reader.args(["script", "--no-inline", "-F", "comm,tid,cpu,ip,sym", "--tid", tid, "-i"]);
    script::parse(&text(reader.arg(data)))
}

/// It has its name, and the names of its functions. Before it went to the other CPU, it was the shell and
/// then `taskset`.
fn assert_known(samples: &[Sample]) {
    let before = |s: &&Sample| ["sh ", "taskset "].iter().any(|n| s.head.trim().starts_with(n));
    let samples: Vec<_> = samples.iter().skip_while(before).collect();
    assert!(samples.len() > 20, "{} samples", samples.len());
    let other = samples.iter().find(|s| !s.head.trim().starts_with("deep "));
    assert!(other.is_none(), "{other:?}");
    assert!(samples.iter().all(|s| s.head.contains("[000]")), "{:?}", samples[0]);
    let known = samples.iter().filter(|s| s.physical_leaf() != "[unknown]").count();
    assert!(known * 10 >= samples.len() * 9, "{known} of {}: {:?}", samples.len(), samples[0]);
}

#[test]
fn a_program_that_began_on_another_has_its_name_and_symbols() {
    check("some_cpus_names", || {
        probe::online_cpus(2)?;
        let (program, dir) = (workload("deep")?, tempfile::tempdir().expect("a folder"));
        let data = dir.path().join("perf.data");
        for options in ["--engine=ring", "--threads --affinity=cpu -z", "--engine=bpf"] {
            let mut recorder = recorder(&data, options);
            recorder.args(["sh", "-c", MOVE]).arg(&program);
            let tid = String::from_utf8_lossy(&record(&mut recorder)?).trim().to_owned();
            assert_known(&of_thread(whit(), &data, &tid));
            assert_known(&of_thread(perf()?, &data, &tid));
        }
        Ok(())
    });
}

/// Only names, mappings, forks and exits come from other CPUs: no switch, and nobody is taken to run.
#[test]
fn the_others_report_no_runs() {
    check("some_cpus_runs", || {
        probe::online_cpus(2)?;
        let (program, dir) = (workload("spawn")?, tempfile::tempdir().expect("a folder"));
        let data = dir.path().join("perf.data");
        let mut recorder = recorder(&data, "--switch-events -m 4M");
        recorder.args(["taskset", "-c", "1"]).arg(program).args(["--iterations", "30"]);
        record(&mut recorder)?;
        let events = ["--show-switch-events", "--show-task-events"];
        let printed = text(perf()?.args(["script", "-i"]).arg(&data).args(events));
        let elsewhere = |kind: &str| {
            printed.lines().filter(|line| line.contains("[001]") && line.contains(kind)).count()
        };
        assert_eq!(elsewhere("PERF_RECORD_SWITCH"), 0);
        assert!(elsewhere("PERF_RECORD_COMM") > 30, "{printed:.2000}");
        let json = text(whit().args(["switches", "--json", "-i"]).arg(&data));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let number = |value: &Value| value.as_u64().expect("a number");
        let span_ns = number(&json["span_ns"][1]) - number(&json["span_ns"][0]);
        let cpu_ns = number(&json["total"]["cpu_ns"]) + number(&json["total"]["lossy_cpu_ns"]);
        // One CPU was recorded.
        assert!(0 < cpu_ns && cpu_ns <= span_ns, "{cpu_ns} in {span_ns} ns: {}", json["total"]);
        Ok(())
    });
}
