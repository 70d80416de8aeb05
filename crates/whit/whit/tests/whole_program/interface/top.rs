//! `whit top`: a live recording on a terminal and in a pipe.

use crate::interface::screen::{Screen, whit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use whit_testing::wait::{Busy, Load, is_soon};
use whit_testing::{Skip, check, probe, run, workload};

/// A program with functions of known shares.
fn shares(seconds: &str) -> Result<Load, Skip> {
    run::needs_of_line(["record", "-p", "1"])?;
    Ok(Load::start(Command::new(workload("shares")?).args(["flat", seconds])))
}

fn top(options: &str) -> String {
    format!("{} top -e cpu-clock -F 499 -d 1 {options}", whit())
}

/// The percentage in front of `% CPU`.
fn cost(screen: &str) -> Option<f64> {
    let last = screen.lines().last()?;
    last.split("% CPU").next()?.split_whitespace().last()?.parse().ok()
}

/// The number of samples in the title.
fn samples(screen: &str) -> u64 {
    let first = screen.split_whitespace().next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

#[test]
fn a_program_shows_with_its_functions_and_the_cost() {
    check("interface::a_program_shows_with_its_functions_and_the_cost", || {
        let program = shares("120")?;
        let screen = Screen::start(&top(&format!("-p {}", program.id())), 80, 24)?;
        screen.shows("] f1");
        let text = screen.text();
        assert!(text.contains("samples of 'cpu-clock', last "), "{text}");
        let cost = cost(&text).unwrap_or_else(|| panic!("no cost: {text}"));
        assert!((0.0..=200.0).contains(&cost) && text.contains(" MiB "), "{text}");
        let before = samples(&text);
        assert!(is_soon(|| samples(&screen.text()) > before), "it goes on");
        screen.after("p", "[paused]");
        let paused = samples(&screen.text());
        screen.after("?", "p Space          pause");
        screen.after("Escape", "[paused]");
        assert_eq!(samples(&screen.text()), paused);
        screen.press(["p"]);
        assert!(is_soon(|| samples(&screen.text()) > paused), "it goes on");
        let full = samples(&screen.text());
        screen.press(["z"]);
        assert!(is_soon(|| samples(&screen.text()) < full), "z lets samples go");
        screen.resize(100, 30);
        assert!(is_soon(|| screen.text().lines().count() == 30), "{}", screen.text());
        screen.after("q", "ended with 0");
        Ok(())
    });
}

#[test]
fn the_last_picture_stays_when_the_target_has_ended() {
    check("interface::the_last_picture_stays_when_the_target_has_ended", || {
        let mut program = shares("120")?;
        let screen = Screen::start(&top(&format!("-p {}", program.id())), 80, 24)?;
        screen.shows("] f1");
        program.end();
        let text = screen.shows("the target is gone");
        assert!(text.contains("] f1"), "{text}");
        screen.after("q", "ended with 0");
        Ok(())
    });
}

#[test]
fn names_of_processes_are_escaped() {
    check("interface::names_of_processes_are_escaped", || {
        run::needs_of_line(["record", "-p", "1"])?;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("a\x1b]0;x\x07b");
        run::copy_program(workload("shares")?, &program);
        let program = Load::start(Command::new(&program).args(["flat", "120"]));
        // A wide terminal: long names of kernel functions do not push this name off the line.
        let screen = Screen::start(&top(&format!("-p {}", program.id())), 180, 24)?;
        let text = screen.shows(r"a\x1b]0;x\x07b");
        assert!(!screen.painted().contains('\x07'), "{text}");
        screen.after("q", "ended with 0");
        Ok(())
    });
}

/// `whit top` on a program, with its number and that of its recorder.
fn numbered(program: &Load, file: &Path) -> Result<(Screen, String, String), Skip> {
    // The shell becomes whit top, whose number it tells before.
    let top = top(&format!("-p {}", program.id()));
    let line = format!("sh -c 'echo $$ > {}; exec {top}'", file.display());
    let screen = Screen::start(&line, 80, 24)?;
    screen.shows("] f1");
    let pid = fs::read_to_string(file).unwrap().trim().to_owned();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let recorder = children.trim().to_owned();
    assert!(!recorder.is_empty());
    Ok((screen, pid, recorder))
}

#[test]
fn a_signal_gives_the_terminal_back_and_ends_the_recorder() {
    check("interface::a_signal_gives_the_terminal_back_and_ends_the_recorder", || {
        let program = shares("120")?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let (screen, pid, recorder) = numbered(&program, &file)?;
        run::succeed(Command::new("kill").args(["-TERM", &pid]));
        let text = screen.shows("ended with 0");
        assert!(!text.contains("? keys"), "{text}");
        assert!(
            is_soon(|| !fs::exists(format!("/proc/{recorder}")).unwrap()),
            "a recorder is left"
        );
        Ok(())
    });
}

#[test]
fn the_end_of_the_terminal_is_the_end_of_all() {
    check("interface::the_end_of_the_terminal_is_the_end_of_all", || {
        let program = shares("120")?;
        let folder = tempfile::tempdir().unwrap();
        let (screen, pid, recorder) = numbered(&program, &folder.path().join("pid"))?;
        drop(screen);
        for process in [pid, recorder] {
            let is_gone = || !fs::exists(format!("/proc/{process}")).unwrap();
            assert!(is_soon(is_gone), "process {process} is left");
        }
        Ok(())
    });
}

#[test]
fn refusals_are_those_of_the_recorder() {
    check("interface::refusals_are_those_of_the_recorder", || {
        let screen = Screen::start(&top("-p 999999999"), 80, 24)?;
        let text = screen.shows("ended with");
        assert!(text.contains("whit: ") && text.contains("999999999"), "{text}");
        assert!(!text.contains("ended with 0"), "{text}");
        let text = run::output(run::whit(&whit()).args(["top", "--stdio", "-p", "999999999"]));
        assert!(run::stderr(&text).contains("999999999") && text.stdout.is_empty());
        assert_ne!(text.status.code(), Some(0));
        Ok(())
    });
}

#[test]
fn waits_are_shown_where_switches_are_recorded() {
    check("interface::waits_are_shown_where_switches_are_recorded", || {
        run::needs_of_line(["record", "-a", "--engine=bpf"])?;
        let mut shell = Command::new("sh");
        let load = Load::start(shell.args(["-c", "while :; do sleep 0.05; done"]));
        let line = top(&format!("--engine bpf --switches -p {}", load.id()));
        let screen = Screen::start(&line, 100, 24)?;
        screen.shows("last ");
        screen.after("v v", "Waits in, called from");
        screen.after("q", "ended with 0");
        Ok(())
    });
}

/// Samples of each function itself, by its name.
fn counts(json: &[u8]) -> (BTreeMap<String, f64>, f64) {
    let document: Value = serde_json::from_slice(json).expect("a document");
    let event = &document["events"][0];
    let total = event["samples"].as_f64().expect("a number of samples");
    let mut counts = BTreeMap::new();
    for row in event["rows"].as_array().expect("rows") {
        let share = row["self"]["percent"].as_f64().expect("a share") / 100.0;
        let name = row["symbol"]["name"].as_str().unwrap_or_default().to_owned();
        *counts.entry(name).or_insert(0.0) += share;
    }
    (counts, total)
}

#[test]
fn shares_of_a_snapshot_are_those_of_a_recording() {
    check("interface::shares_of_a_snapshot_are_those_of_a_recording", || {
        let program = shares("120")?;
        let pid = program.id().to_string();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recorded.data");
        let mut recorder = run::whit(&whit());
        recorder.args([
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            "499",
            "--engine=auto",
            "-p",
            &pid,
        ]);
        run::record(recorder.arg("-o").arg(&file).args(["--", "sleep", "4"]))?;
        let recorded = run::succeed(run::whit(&whit()).args(["report", "--json", "-i"]).arg(&file));
        let mut snapshot = run::whit(&whit());
        snapshot.args(["top", "--json", "-n", "1", "-d", "4", "-e", "cpu-clock", "-F", "499"]);
        let shown = run::succeed(snapshot.args(["-p", &pid]));
        let ((recorded, of_recorded), (shown, of_shown)) = (counts(&recorded), counts(&shown));
        assert!(of_recorded > 30.0 && of_shown > 30.0, "{of_recorded} {of_shown}");
        for number in 0..10 {
            let name = format!("f{number}");
            let share = |of: &BTreeMap<String, f64>| of.get(&name).copied().unwrap_or(0.0);
            let (a, b) = (share(&recorded), share(&shown));
            // Both are binomial: six standard deviations of their difference, of one sample at least.
            let mean = ((a + b) / 2.0).max(1.0 / of_shown);
            let deviation = (mean * (1.0 - mean) * (1.0 / of_recorded + 1.0 / of_shown)).sqrt();
            assert!(
                (a - b).abs() <= 6.0 * deviation,
                "{name}: {a} {b} of {of_recorded} {of_shown}"
            );
        }
        let largest = shown.values().fold(0.0, |most: f64, share| most.max(*share));
        assert!(largest > 0.15, "{shown:?}");
        Ok(())
    });
}

#[test]
fn text_snapshots_are_as_many_as_asked_for() {
    check("interface::text_snapshots_are_as_many_as_asked_for", || {
        run::needs_of_line(["record", "-p", "1"])?;
        let busy = Busy::start();
        let mut snapshots = run::whit(&whit());
        snapshots.args(["top", "--stdio", "-n", "2", "-d", "1", "-z", "-e", "cpu-clock", "-p"]);
        let text = run::text(snapshots.arg(busy.id().to_string()));
        let heads: Vec<_> = text.lines().filter(|line| line.starts_with("# whit top: ")).collect();
        assert_eq!(heads.len(), 2, "{text}");
        assert!(heads.iter().all(|head| head.contains("% CPU ")), "{heads:?}");
        assert!(text.contains("# Children") && text.contains(" sh "), "{text}");
        Ok(())
    });
}

/// Functions that an interpreter executes, by turns and without an end.
const PYTHON: &str = "\
def inner(n):
    return sum(i * i for i in range(n))
while True:
    inner(2000)
";

#[test]
fn functions_of_python_have_names_while_they_run() {
    check("interface::functions_of_python_have_names_while_they_run", || {
        run::needs_of_line(["record", "-p", "1", "--engine=bpf"])?;
        let is_walked = "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))";
        probe::need_program("python3", &["-c", is_walked])?;
        let program = Load::start(Command::new("python3").args(["-c", PYTHON]));
        let mut snapshot = run::whit(&whit());
        snapshot.args(["top", "--json", "-n", "1", "-d", "3", "-e", "cpu-clock", "-F", "499"]);
        snapshot.args(["--engine=bpf", "-p", &program.id().to_string()]);
        let (shown, samples) = counts(&run::succeed(&mut snapshot));
        assert!(samples > 30.0, "{samples}");
        let of_python = shown.iter().filter(|(name, _)| name.starts_with("py::__main__."));
        let share: f64 = of_python.map(|(_, share)| share).sum();
        assert!(share > 0.2, "{share}: {shown:?}");
        Ok(())
    });
}
