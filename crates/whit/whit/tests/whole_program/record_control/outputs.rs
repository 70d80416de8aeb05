//! Existing files at the path of an output: recordings are moved away, other files stay.

use std::path::Path;
use std::process::{Command, Output};

use crate::record_control::support::{TestFolder, stderr};

/// Runs a subcommand with arguments, which are names in the place.
fn whit(place: &TestFolder, arguments: &[&str]) -> Output {
    let mut whit = Command::new(env!("CARGO_BIN_EXE_whit"));
    whit.args(arguments).current_dir(place.dir.path()).output().unwrap()
}

fn record(place: &TestFolder, arguments: &[&str]) -> Output {
    place.run(&[&["-e", "cpu-clock:u"], arguments, &["--", "true"]].concat())
}

/// It was refused at once, in words that say so: the command has not run.
#[track_caller]
fn refused(output: &Output, words: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(words) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_directory_of_somebodys_is_not_renamed() {
    let place = TestFolder::new();
    std::fs::create_dir(place.path("home")).unwrap();
    std::fs::write(place.path("home/thesis.tex"), "").unwrap();
    for arguments in [
        &["-o", "home"][..],
        &["-o", "home", "--dir"],
        &["-o", "home", "--threads"],
        &["--output-dir", "home"],
        &["-o", "home", "--switch-output=10K"],
        &["-o", "home", "--timestamp-filename"],
    ] {
        let output = record(&place, arguments);
        refused(
            &output,
            "it holds thesis.tex): name a place that is free, such as -o home/perf.data",
        );
    }
    assert!(place.path("home/thesis.tex").exists());
    assert_eq!(place.recordings("home").len(), 1, "{:?}", place.recordings("home"));
    // The way out works.
    assert!(record(&place, &["-o", "home/perf.data"]).status.success());
    assert!(record(&place, &["--output-dir", "home/new"]).status.success());
}

#[test]
fn a_recording_makes_room_in_every_form() {
    let place = TestFolder::new();
    let forms =
        [&["-o", "out"][..], &["--output-dir", "out"], &["-o", "out"], &["-o", "out", "--dir"]];
    for (number, arguments) in forms.iter().enumerate() {
        let output = record(&place, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!stderr(&output).contains("warning"), "{}", stderr(&output));
        let expected = if number == 0 { 1 } else { 2 };
        assert_eq!(place.recordings("out").len(), expected);
    }
    let report = |input: &str| whit(&place, &["report", "--stats", "-i", input]).status.success();
    assert!(report("out") && report("out.old"));
    // A directory that was made for it is taken.
    std::fs::create_dir(place.path("made")).unwrap();
    assert!(record(&place, &["--output-dir", "made"]).status.success());
    assert!(report("made") && !place.path("made.old").exists());
}

#[test]
fn a_file_of_somebodys_is_kept_and_never_lost() {
    let place = TestFolder::new();
    std::fs::write(place.path("notes"), "Dear diary").unwrap();
    let first = record(&place, &["-o", "notes"]);
    assert!(first.status.success());
    assert!(stderr(&first).contains("warning: notes was no recording; it is called notes.old now"));
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    assert_eq!(read("notes.old"), b"Dear diary");
    // The recording cannot be kept where the diary is.
    refused(
        &record(&place, &["-o", "notes"]),
        "as notes.old, which is no recording: move that away",
    );
    assert!(read("notes").starts_with(b"PERFILE2"));
    assert_eq!(read("notes.old"), b"Dear diary");
}

#[test]
fn no_other_output_replaces_a_recording() {
    let place = TestFolder::new();
    assert!(record(&place, &["-o", "one"]).status.success());
    assert!(record(&place, &["--output-dir", "many"]).status.success());
    for name in ["one", "many"] {
        let before = std::fs::read(place.path(name)).ok();
        let message = format!("{name} is a recording: name another file");
        refused(&whit(&place, &["report", "-i", "one", "--html", name]), &message);
        refused(&whit(&place, &["switches", "-i", "one", "--html", name]), &message);
        refused(&whit(&place, &["stat", "-e", "cpu-clock", "-o", name, "true"]), &message);
        refused(
            &whit(&place, &["stat", "-e", "cpu-clock", "-o", name, "--append", "true"]),
            &message,
        );
        assert_eq!(std::fs::read(place.path(name)).ok(), before);
    }
}

#[test]
fn an_export_replaces_a_directory_that_is_a_recording_and_no_other() {
    let place = TestFolder::new();
    assert!(record(&place, &["--output-dir", "many"]).status.success());
    let export = || whit(&place, &["export", "--perf", "-f", "-i", "many", "-o", "out"]);
    assert!(export().status.success());
    std::fs::write(place.path("out/data.csv"), "1,2").unwrap();
    let said = export();
    assert_eq!(said.status.code(), Some(1));
    assert!(stderr(&said).contains("out is no recording: it holds data.csv"), "{}", stderr(&said));
    assert!(place.path("out/data.csv").exists());
    std::fs::remove_file(place.path("out/data.csv")).unwrap();
    assert!(export().status.success());
}

/// A page that does not fit leaves nothing, and a page that was there stays.
#[test]
fn a_page_is_whole_or_not_there() {
    let place = TestFolder::new();
    assert!(record(&place, &["-o", "one"]).status.success());
    let page = |path: &str| whit(&place, &["report", "-i", "one", "--html", path]);
    assert!(page("page.html").status.success());
    let whole = std::fs::read(place.path("page.html")).unwrap();
    assert!(whole.ends_with(b"</html>\n"));
    // To a device it is written as it is.
    let full = page("/dev/full");
    assert!(stderr(&full).contains("cannot write the page /dev/full"), "{}", stderr(&full));
    assert!(Path::new("/dev/full").exists());
    let limit = whole.len() / 2;
    let whit = env!("CARGO_BIN_EXE_whit");
    // Files may be no larger: writing fails as on a full disk.
    let script = format!(
        "ulimit -f {}; trap '' XFSZ; exec {whit} report -i one --html \"$0\"",
        limit / 1024
    );
    for (name, stays) in [("new.html", None), ("page.html", Some(&whole))] {
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, name]).current_dir(place.dir.path());
        let output = shell.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(&format!("cannot write the page {name}")),
            "{}",
            stderr(&output)
        );
        assert_eq!(std::fs::read(place.path(name)).ok().as_ref(), stays);
    }
    let left = place.recordings("");
    assert_eq!(left.len(), 2, "{left:?}");
}
