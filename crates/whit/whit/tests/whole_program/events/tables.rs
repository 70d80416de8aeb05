//! `--event-tables`, with a table of our own for a PMU that every machine has.

use std::fs;

use crate::events::support::{list, stderr, stdout, whit};

const TABLE: &str = r#"[
  {"EventName": "OWN.SWITCHES", "ConfigCode": "3", "Unit": "software",
   "BriefDescription": "Switches, by another name."},
  {"EventName": "OWN.BROKEN", "EventCode": "what"}
]"#;

#[test]
fn names_of_a_table_are_listed_and_recorded() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("own.json"), TABLE).expect("a table");
    let path = dir.path().to_str().expect("a path");
    let output = list(&["--event-tables", path, "own.switches"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let line = stdout(&output);
    assert!(line.starts_with("  software/own.switches/ OR own.switches "), "{line}");
    assert!(line.contains("# Switches, by another name."), "{line}");
    assert!(stderr(&output).contains("event own.broken: EventCode is `what`"));

    let by_variable = whit(&["list", "own.switches"]).env("WHIT_EVENT_TABLES", path).output();
    assert_eq!(stdout(&by_variable.expect("whit runs")), line);

    let recording = dir.path().join("out.data");
    let recording = recording.to_str().expect("a path");
    let arguments = ["record", "--event-tables", path, "-e", "Own.Switches/name=mine/u"];
    let recorded = whit(&arguments).args(["-o", recording, "--", "true"]).output();
    let recorded = recorded.expect("whit runs");
    assert!(recorded.status.success(), "{}", stderr(&recorded));
}

#[test]
fn tables_that_are_none_are_refused_with_the_way_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_str().expect("a path");
    for (path, part) in [
        ("/nonexistent", "cannot read event tables from /nonexistent: No such file"),
        (path, "holds neither mapfile.csv nor a .json file: name a directory such as"),
    ] {
        let output = list(&["--event-tables", path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    fs::write(dir.path().join("far.json"), r#"[{"EventName": "X", "Unit": "nowhere"}]"#)
        .expect("a table");
    let homeless = list(&["--event-tables", path, "--no-check", "sw"]);
    assert!(homeless.status.success());
    let note = stderr(&homeless);
    assert!(
        note.contains("none of the 1 events in") && note.contains("belongs to a PMU"),
        "{note}"
    );
}
