//! Records that are no samples, as `whit script` prints them between the samples: line for line as the installed perf.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::tools::{perf, record, repository, text, whit, workload};
use crate::support::{Skip, check};

/// Lines of one time stand in an order of their own: perf's hangs on its queues.
fn lines(tool: &mut Command, path: &Path, arguments: &[&str]) -> Vec<String> {
    let text = text(tool.arg("script").args(arguments).arg("-i").arg(path));
    let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.sort_unstable();
    lines
}

#[track_caller]
fn assert_same(path: &Path, arguments: &[&str], least: usize) -> Result<(), Skip> {
    let (ours, theirs) =
        (lines(&mut whit(), path, arguments), lines(&mut perf()?, path, arguments));
    let only = |these: &[String], others: &[String]| {
        let lines: Vec<_> = these.iter().filter(|line| !others.contains(line)).cloned().collect();
        lines.join("\n")
    };
    let difference = || format!("whit:\n{}\nperf:\n{}", only(&ours, &theirs), only(&theirs, &ours));
    assert!(ours == theirs, "{arguments:?}: {}", difference());
    let records = theirs.iter().filter(|line| line.contains("PERF_RECORD_")).count();
    assert!(records >= least, "{arguments:?}: {records} records: {theirs:#?}");
    Ok(())
}

fn golden(name: &str) -> PathBuf {
    repository().join("tests/recordings/golden").join(name).join("recording.data")
}

const FIELDS: [&str; 2] = ["-F", "comm,pid,tid,cpu,misc,time,event"];
const WITHOUT_CPU: [&str; 2] = ["-F", "comm,pid,tid,misc,time,event"];

#[test]
fn tasks_mappings_and_switches_are_printed_as_by_perf() {
    check("tasks_mappings_and_switches_are_printed_as_by_perf", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-e", "cpu-clock", "--sample-cpu"]);
        recorder.args(["--switch-events", "--namespaces", "-d", "-o"]).arg(&path).arg("--");
        record(recorder.arg(workload("forks")?).args(["--count", "10"]))?;
        for (option, least) in [
            ("--show-task-events", 20),
            ("--show-mmap-events", 20),
            ("--show-switch-events", 20),
            ("--show-namespace-events", 2),
        ] {
            assert_same(&path, &[&FIELDS[..], &[option]].concat(), least)?;
            assert_same(&path, &["-F", "comm,tid,time,event", option, "--ns"], least)?;
        }
        assert_same(
            &path,
            &[&FIELDS[..], &["--show-task-events", "--show-switch-events"]].concat(),
            40,
        )
    });
}

#[test]
fn records_of_golden_recordings_are_printed_as_by_perf() {
    check("records_of_golden_recordings_are_printed_as_by_perf", || {
        for (name, option, least) in [
            ("perf-family", "--show-task-events", 3),
            ("perf-switches", "--show-switch-events", 2),
            ("perf-cgroups", "--show-cgroup-events", 1),
            ("perf-cgroups", "--show-namespace-events", 1),
            ("perf-data", "--show-mmap-events", 2),
            ("losses", "--show-lost-events", 1),
            ("bpf-programs", "--show-bpf-events", 1),
        ] {
            assert_same(&golden(name), &[&WITHOUT_CPU[..], &[option]].concat(), least)?;
        }
        Ok(())
    });
}

#[test]
fn samples_between_two_events_are_those_of_perf() {
    check("samples_between_two_events_are_those_of_perf", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut recorder = perf()?;
        recorder.args([
            "record",
            "--no-buildid-cache",
            "-q",
            "-e",
            "cpu-clock,page-faults,context-switches",
        ]);
        recorder.args(["-F", "1999", "-o"]).arg(&path).arg("--");
        record(recorder.arg(workload("threads")?).args(["--seconds", "0.2"]))?;
        for options in [
            &["--switch-on", "context-switches"][..],
            &["--switch-on", "context-switches", "--switch-off", "page-faults"],
            &[
                "--switch-on",
                "context-switches",
                "--switch-off",
                "page-faults",
                "--show-on-off-events",
            ],
        ] {
            let all = [&["-F", "comm,tid,time,event"], options].concat();
            assert_same(&path, &all, 0)?;
        }
        Ok(())
    });
}

#[test]
fn places_replace_hidden_call_chains() {
    check("places_replace_hidden_call_chains", || {
        let path = golden("perf-fp");
        let root = repository().join("tests/recordings/golden/root");
        let symfs = root.to_str().expect("a path in UTF-8");
        assert_same(&path, &["-G", "--symfs", symfs, "-F", "comm,tid,time,ip,sym"], 0)
    });
}
