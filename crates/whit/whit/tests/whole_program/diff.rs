//! `whit diff` on recordings of `whit record`.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::tools::{record, whit, workload};
use crate::support::{Skip, check};

/// About a third of a second.
const ITERATIONS: &str = "40000";

fn recorded(directory: &Path, name: &str, workload_name: &str) -> Result<PathBuf, Skip> {
    let path = directory.join(name);
    let mut recorder = whit();
    recorder.args(["record", "--engine=ring", "-q", "-F", "1999", "-g", "-o"]).arg(&path).arg("--");
    record(recorder.arg(workload(workload_name)?).args(["--iterations", ITERATIONS]))?;
    Ok(path)
}

fn diff(arguments: &[&Path], options: &[&str]) -> Output {
    whit().arg("diff").args(options).args(arguments).output().expect("run whit")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    check("a_recording_does_not_differ_from_itself", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = recorded(directory.path(), "one.data", "deep-fp")?;
        let output = diff(&[&path, &path], &["--fail-above", "0%"]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(text.contains("; 0 differences") && text.contains("cannot be told ("), "{text}");
        assert!(!text.contains("  slower") && !text.contains("  faster"), "{text}");
        Ok(())
    });
}

#[test]
fn another_program_differs_and_fails_the_check() {
    check("another_program_differs_and_fails_the_check", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let before = recorded(directory.path(), "before.data", "deep-static")?;
        let after = recorded(directory.path(), "after.data", "deep-fp")?;
        let output = diff(&[&before, &after], &["--fail-above", "2%"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("whit: slower by more than 2%: "), "{stderr}");
        let json = text(&diff(&[&before, &after], &["--json"]));
        assert!(json.starts_with("{\"format\":\"whit-diff\",\"version\":1,"), "{json}");
        let sides: [&Path; 5] = [&before, &before, Path::new("--"), &after, &after];
        let several = text(&diff(&sides, &["--per", "40000"]));
        assert!(several.contains("errors from 2 recordings"), "{several}");
        assert!(several.contains("[all samples]"), "{several}");
        Ok(())
    });
}

#[test]
fn a_page_has_both_sides_and_the_verdicts_of_the_text() {
    check("a_page_has_both_sides_and_the_verdicts_of_the_text", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let before = recorded(directory.path(), "before.data", "deep-static")?;
        let after = recorded(directory.path(), "after.data", "deep-fp")?;
        let page = directory.path().join("page.html");
        let options = ["--html", page.to_str().expect("a path in UTF-8"), "--fail-above", "2%"];
        let output = diff(&[&before, &after], &options);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(text(&output).starts_with("the page is "), "{output:?}");
        let page = std::fs::read_to_string(&page).expect("the page");
        assert!(page.contains("\"startView\":\"compare\""));
        let json = text(&diff(&[&before, &after], &["--json"]));
        let verdicts = json.matches("\"verdict\":").count();
        assert!(verdicts > 0 && page.matches("\"verdict\":").count() == verdicts, "{verdicts}");
        // One recording on each side: the path of none is written to.
        let output = diff(&[&before, &after], &["--html", before.to_str().expect("a path")]);
        assert!(!output.status.success(), "a recording is not replaced: {output:?}");
        Ok(())
    });
}

#[test]
fn incomparable_recordings_are_refused_with_the_remedy() {
    let golden = |name: &str| {
        let folder = whit_testing::run::repository().join("tests/recordings/golden");
        folder.join(name).join("recording.data")
    };
    for (before, after, options, code, words) in [
        ("perf-fp", "branches", &[][..], 1, "have no event in common: before has cpu-clock:u"),
        ("arm64-dwarf", "arm64-dwarf", &[], 1, "is too short"),
        ("perf-fp", "perf-fp", &["--per", "5"], 1, "several recordings on each side"),
        ("perf-fp", "perf-fp", &["--per-event", "branches"], 1, "no samples of branches"),
        ("perf-fp", "perf-fp", &["--per", "0"], 2, "units of work"),
        ("perf-fp", "perf-fp", &["--fail-above", "x"], 2, "such as 2%"),
    ] {
        let output = diff(&[&golden(before), &golden(after)], options);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains("whit: ") && stderr.contains(words), "{words}: {stderr}");
    }
    let output = diff(&[&golden("perf-fp")], &[]);
    assert_eq!(output.status.code(), Some(2));
}

fn stored(name: &str) -> PathBuf {
    whit_testing::golden::Golden::folder().join("..").join(name)
}

#[test]
fn waits_locks_wall_time_and_requests_of_one_recording_do_not_differ() {
    let (waits, requests) = (stored("waits/waits.data"), stored("requests/requests.data"));
    for (option, recording, value) in [
        ("--waits", &waits, "waiting ms/s"),
        ("--locks", &waits, "waiting ms/s"),
        ("--wall", &waits, "wall time ms/s"),
        ("--requests", &requests, "duration ms/request"),
    ] {
        let output = diff(&[recording, recording], &[option, "--fail-above", "0%"]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(0), "{option}: {output:?}");
        assert!(text.contains("; 0 rows with a difference"), "{option}: {text}");
        assert!(text.contains(value) && text.contains("cannot be told ("), "{option}: {text}");
    }
    let rows = text(&diff(&[&waits, &waits], &["--waits", "-s", "comm,wait_class", "--json"]));
    assert!(rows.contains("\"keys\":[\"command\",\"class\"]"), "{rows}");
}

#[test]
fn recordings_and_keys_that_cannot_be_compared_are_refused() {
    let waits = stored("waits/waits.data");
    let other = stored("golden/perf-switches/recording.data");
    let refused = |paths: &[&Path], options: &[&str]| {
        let output = diff(paths, options);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = refused(&[&waits, &other], &["--waits"]);
    assert!(code == Some(1) && message.contains("differ in what was recorded: "), "{message}");
    let (code, message) = refused(&[&waits, &waits], &["--waits", "-s", "tid"]);
    assert!(code == Some(2) && message.contains("compare by comm, not by tid"), "{message}");
    let (code, message) = refused(&[&waits, &waits], &["--locks", "-s", "holder"]);
    assert!(
        code == Some(2) && message.contains("the keys are callsite, lock and comm"),
        "{message}"
    );
    let (code, message) = refused(&[&waits, &waits], &["--stat"]);
    assert!(code == Some(1) && message.contains("cannot read"), "{message}");
    let (code, message) = refused(&[&waits, &waits], &["--waits", "--html", "x.html"]);
    assert!(code == Some(2) && message.contains("the page of samples has waits"), "{message}");
}
