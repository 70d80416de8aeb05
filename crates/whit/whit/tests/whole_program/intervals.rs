//! `±` beside the shares of reports.

use std::path::{Path, PathBuf};

use crate::support::tools::{record, text, whit, workload};
use crate::support::{Skip, check};

/// About a third of a second.
const ITERATIONS: &str = "40000";

/// Records a program whose samples spread over its time.
fn recorded(directory: &Path) -> Result<PathBuf, Skip> {
    let path = directory.join("recorded.data");
    let mut recorder = whit();
    recorder.args(["record", "--engine=ring", "-q", "-F", "1999", "-g", "-o"]).arg(&path).arg("--");
    record(recorder.arg(workload("deep-fp")?).args(["--iterations", ITERATIONS]))?;
    Ok(path)
}

fn report(path: &Path, options: &[&str]) -> String {
    text(whit().args(["report", "-i"]).arg(path).args(options))
}

fn with_recording(name: &str, judge: impl Fn(&Path)) {
    check(name, || {
        let directory = tempfile::tempdir().expect("make a directory");
        judge(&recorded(directory.path())?);
        Ok(())
    });
}

#[test]
fn text_has_intervals_where_they_are_asked_for() {
    with_recording("text_has_intervals_where_they_are_asked_for", |path| {
        let plain = report(path, &["--stdio", "-g", "none"]);
        assert!(!plain.contains('±') && !plain.contains("Rank"), "{plain}");
        let with = report(path, &["--stdio", "-g", "none", "--intervals"]);
        assert!(with.contains("# Rank  ") && with.contains("     ±  "), "{with}");
        let hidden = report(path, &["--stdio", "-g", "none", "--intervals", "--no-intervals"]);
        assert_eq!(hidden, plain);
    });
}

#[test]
fn json_has_intervals_unless_they_are_not_wanted() {
    with_recording("json_has_intervals_unless_they_are_not_wanted", |path| {
        let json = report(path, &["--json"]);
        assert!(json.contains("\"low_percent\":") && json.contains("\"rank\":1"), "{json}");
        let without = report(path, &["--json", "--no-intervals"]);
        assert!(!without.contains("low_percent") && !without.contains("\"rank\""), "{without}");
        assert!(without.contains("\"interval_blocks\":null"));
    });
}

#[test]
fn intervals_do_not_depend_on_the_number_of_threads() {
    with_recording("intervals_do_not_depend_on_the_number_of_threads", |path| {
        let one = report(path, &["--json", "--threads", "1"]);
        assert_eq!(one, report(path, &["--json", "--threads", "3"]));
    });
}
