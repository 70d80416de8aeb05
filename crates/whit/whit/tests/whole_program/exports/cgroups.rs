//! The sums of cgroups in the formats that show them over time.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::consumers;
use super::readers::read;
use super::recordings::{Example, golden};
use crate::support::tools::{record, text, whit};
use crate::support::{Skip, check, probe};

/// Samples and periods by event and cgroup.
type Sums = BTreeMap<String, BTreeMap<String, (u64, u64)>>;

fn of_report(example: &Example) -> Sums {
    let mut report = example.whit("report");
    let arguments = ["--json", "--no-intervals", "--percent-limit", "0", "-s", "cgroup"];
    let json: Value = serde_json::from_str(&text(report.args(arguments))).expect("JSON");
    let mut sums = Sums::new();
    for event in json["events"].as_array().expect("events") {
        for row in event["rows"].as_array().expect("rows") {
            let number = |field: &str| row["self"][field].as_u64().expect("a number");
            let cgroup = row["cgroup"].as_str().expect("a cgroup").to_owned();
            let name = event["name"].as_str().expect("a name").to_owned();
            let sum = (number("samples"), number("period"));
            assert_eq!(sums.entry(name).or_default().insert(cgroup, sum), None, "{row}");
        }
    }
    sums
}

/// Samples of the event that Firefox shows, by the cgroup in the names of processes.
fn of_firefox(file: &Path) -> BTreeMap<String, u64> {
    let content: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).expect("JSON");
    let mut sums = BTreeMap::new();
    let mut processes = BTreeMap::new();
    for thread in content["threads"].as_array().expect("threads") {
        let process = thread["processName"].as_str().expect("a name");
        let (_, cgroup) = process.strip_suffix(']').unwrap().split_once(" [").expect("a cgroup");
        // The profiler takes equal numbers for one process.
        let pid = thread["pid"].as_str().expect("a number");
        assert_eq!(*processes.entry(pid.to_owned()).or_insert(process), process, "{pid}");
        let weights = thread["samples"]["weight"].as_array().expect("weights");
        let samples: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        *sums.entry(cgroup.to_owned()).or_default() += samples;
    }
    sums.retain(|_, samples| *samples > 0);
    sums
}

fn assert_cgroups(example: &Example, folder: &Path) -> Result<(), Skip> {
    let reported = of_report(example);
    let busiest =
        |sums: &&BTreeMap<String, (u64, u64)>| sums.values().map(|sum| sum.0).sum::<u64>();
    let main = reported.values().max_by_key(busiest).expect("an event");
    let samples = main.iter().map(|(name, sum)| (name.clone(), sum.0)).collect();
    assert_eq!(of_firefox(&example.export("firefox", folder)), samples, "{}", example.name);
    for format in ["perfetto", "perfetto-v57"] {
        let found = read("read_perfetto.py", &example.export(format, folder), &[])?;
        let sums: Sums = serde_json::from_value(found["cgroups"].clone()).expect("sums");
        assert_eq!(sums, reported, "{} {format}", example.name);
    }
    let schema = consumers::package("speedscope")?.join("dist/release/file-format-schema.json");
    let file = example.export("speedscope", folder);
    let found = read("read_speedscope.py", &file, &[&schema])?;
    let sums: Sums = serde_json::from_value(found["cgroups"].clone()).expect("sums");
    assert_eq!(sums, reported, "{} speedscope", example.name);
    Ok(())
}

#[test]
fn sums_of_cgroups_are_those_of_the_report() {
    check("exports_cgroups", || {
        let folder = tempfile::tempdir().expect("make a directory");
        assert_cgroups(&golden("perf-cgroups"), folder.path())
    });
}

/// A shell that works in two cgroups, one after the other, and beside it a program that stays.
#[test]
fn a_thread_that_moves_is_in_both_of_its_cgroups() {
    check("exports_cgroups_of_a_moving_thread", || {
        let mount = probe::cgroups_v2()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let cgroup = mount.join(format!("whit test [{}]", std::process::id()));
        let (path, home) = (cgroup.display(), mount.display());
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let script = format!(
            "mkdir '{path}'; {work}; echo $$ > '{path}/cgroup.procs'; {work}; {work}; \
             echo $$ > '{home}/cgroup.procs'; rmdir '{path}'"
        );
        let data = folder.path().join("moving.data");
        let mut recorder = whit();
        recorder.args([
            "record",
            "--engine=ring",
            "-a",
            "--all-cgroups",
            "-e",
            "cpu-clock",
            "-F",
            "997",
            "-o",
        ]);
        record(recorder.arg(&data).args(["--", "sh", "-c", &script]))?;
        let example = Example { name: "moving", path: data, options: Vec::new() };
        let of_shell = Example { options: vec!["--comms".to_owned(), "sh".to_owned()], ..example };
        let cgroups = of_report(&of_shell).remove("cpu-clock").expect("the event");
        assert!(cgroups.len() >= 2, "{cgroups:?}");
        let example = Example { options: Vec::new(), ..of_shell };
        assert_cgroups(&example, folder.path())
    });
}
