//! Formats whose files Python reads with the packages that their projects publish.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::consumers;
use super::recordings::{self, Example};
use super::sums::{column, events, of_event};
use crate::support::tools::{record, text, whit, workload};
use crate::support::{Skip, check, probe};

/// The findings of a reader in a file.
pub(super) fn read(script: &str, file: &Path, more: &[&Path]) -> Result<Value, Skip> {
    let printed = text(consumers::python(script)?.arg(file).args(more));
    Ok(serde_json::from_str(&printed).expect("JSON"))
}

type Read = BTreeMap<String, (u64, u64)>;

/// The sums of each event are those of the report, and the losses stand in the notes.
fn assert_as_reported(example: &Example, found: &Value) {
    let reported = events(example);
    for event in &reported {
        let name = event["name"].as_str().unwrap();
        let read: Read = serde_json::from_value(found["events"][name].clone()).expect(name);
        assert_eq!(read, of_event(event), "{} {name}", example.name);
    }
    assert_eq!(found["events"].as_object().unwrap().len(), reported.len(), "{}", example.name);
    let notes = found["notes"]["whit.losses"].as_str().expect("losses");
    assert!(notes.contains("Lost: "), "{notes}");
    assert_eq!(notes.contains("Lost: nothing"), example.name != "losses", "{notes}");
}

fn assert_format(format: &str, script: &str, more: &[&Path]) -> Result<(), Skip> {
    consumers::python(script)?;
    let folder = tempfile::tempdir().expect("make a directory");
    for example in recordings::all(&folder) {
        let file = example.export(format, folder.path());
        assert_as_reported(&example, &read(script, &file, more)?);
    }
    Ok(())
}

#[test]
fn otlp_has_the_sums_of_the_report() {
    check("exports_otlp", || assert_format("otlp", "read_otlp.py", &[]));
}

/// Each field has the number and the type that the published module has for it.
#[test]
fn the_go_module_of_otlp_reads_the_sums_of_the_report() {
    check("exports_otlp_in_go", || {
        consumers::go_otlp()?;
        let folder = tempfile::tempdir().expect("make a directory");
        for example in recordings::all(&folder) {
            let file = example.export("otlp", folder.path());
            let printed = text(consumers::go_otlp()?.arg(file));
            let found = serde_json::from_str(&printed).expect("JSON");
            assert_as_reported(&example, &found);
        }
        Ok(())
    });
}

#[test]
fn speedscope_has_the_sums_of_the_report() {
    check("exports_speedscope", || {
        let schema = consumers::package("speedscope")?.join("dist/release/file-format-schema.json");
        assert_format("speedscope", "read_speedscope.py", &[&schema])
    });
}

/// Periods of each function of each event, and whether the notes say that samples are joined.
fn periods(found: &Value) -> (BTreeMap<String, BTreeMap<String, u64>>, bool) {
    let events: BTreeMap<String, Read> =
        serde_json::from_value(found["events"].clone()).expect("events");
    let of_event = |(name, read): (String, Read)| (name, column(&read, |sum| sum.1));
    let notes = found["notes"]["whit.losses"].as_str().expect("notes");
    (events.into_iter().map(of_event).collect(), notes.contains("are joined"))
}

#[test]
fn joined_samples_have_the_sums_of_single_ones() {
    check("exports_joined", || {
        let schema = consumers::package("speedscope")?.join("dist/release/file-format-schema.json");
        let folder = tempfile::tempdir().expect("make a directory");
        for example in recordings::all(&folder) {
            let read = |how: &str| {
                let options = ["--samples", how];
                let file = example.export_with("speedscope", folder.path(), &options);
                Ok::<_, Skip>(periods(&read("read_speedscope.py", &file, &[&schema])?))
            };
            let ((single, is_single), (joined, is_joined)) = (read("each")?, read("joined")?);
            assert_eq!(single, joined, "{}", example.name);
            assert!(!is_single && is_joined, "{}", example.name);
        }
        Ok(())
    });
}

#[test]
fn perfetto_has_the_sums_of_the_report() {
    check("exports_perfetto", || assert_format("perfetto", "read_perfetto.py", &[]));
    check("exports_perfetto_v57", || assert_format("perfetto-v57", "read_perfetto.py", &[]));
}

/// The tracks of CPUs have the CPU time of each thread.
#[test]
fn scheduling_in_perfetto_is_that_of_the_switches() {
    check("exports_perfetto_scheduling", || {
        probe::whole_cpus()?;
        consumers::python("read_perfetto.py")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let path = folder.path().join("machine.data");
        let mut recorder = whit();
        recorder.args([
            "record",
            "--engine=ring",
            "-a",
            "-e",
            "cpu-clock",
            "-F",
            "997",
            "--switch-events",
        ]);
        // Other tests may switch that often: a trace has no place for losses.
        recorder.args(["-m", "16M", "-o"]).arg(&path).arg("--").arg(workload("pingpong")?);
        record(recorder.args(["--threads", "4", "--iterations", "3000"]))?;
        let example = Example { name: "machine", path, options: Vec::new() };
        let file = example.export("perfetto", folder.path());
        let found = read("read_perfetto.py", &file, &[])?;
        let json = text(example.whit("switches").arg("--json"));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let last_ns = json["span_ns"][1].as_u64().expect("the end of the recording");
        let mut compared = 0;
        for thread in json["threads"].as_array().unwrap() {
            // The thread of a switch-out without a name is -1.
            let Some(tid) = thread["tid"].as_u64() else { continue };
            let sum = |field: &str| thread["sums"][field].as_u64().unwrap();
            let (reported, counted) =
                (sum("cpu_ns") + sum("lossy_cpu_ns"), found["on_cpu"][tid.to_string()].as_u64());
            if thread["comm"].as_str() == Some("pingpong") && reported > 0 {
                let begun = found["open"][tid.to_string()].as_u64();
                // At most one run for each CPU has no end in the trace: whit counts it to the end of the recording.
                let open_ns = begun.map_or(0, |begun| last_ns.saturating_sub(begun));
                assert_eq!(counted.unwrap_or(0) + open_ns, reported, "{thread}");
                compared += 1;
            }
        }
        assert!(compared >= 4, "{json}");
        Ok(())
    });
}

#[test]
fn folded_stacks_are_those_of_script() {
    let folder = tempfile::tempdir().expect("make a directory");
    for example in recordings::all(&folder) {
        let file = example.export("folded", folder.path());
        let exported = std::fs::read_to_string(file).expect("text");
        assert_eq!(exported, text(example.whit("script").arg("--folded")), "{}", example.name);
        assert!(!exported.is_empty());
    }
}
