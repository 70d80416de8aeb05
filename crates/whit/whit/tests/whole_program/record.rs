//! `whit record` from outside: exit codes, files, faults, and the recording as the installed perf
//! reads it.
//!
//! Only software events are recorded, in user mode, so that any user on any machine can run these.
//! A test that needs perf says so by name if there is none.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use whit_testing::run::{self, stderr};
use whit_testing::wait::{Busy, signal, wait_for_command};
use whit_testing::{Skip, probe};

/// Burns CPU in a shell until its time is over, then exits with a code.
const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exit 7";
/// Runs until it is ended.
const ENDLESS: &str = "while :; do :; done";

struct Recording {
    dir: tempfile::TempDir,
}

impl Recording {
    fn new() -> Recording {
        Recording { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> std::path::PathBuf {
        self.dir.path().join("perf.data")
    }

    fn whit(&self, arguments: &[&str]) -> Command {
        let mut command = run::whit(env!("CARGO_BIN_EXE_whit"));
        command.args(["record", "--engine=ring"]).args(arguments).current_dir(self.dir.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.whit(arguments).output().unwrap()
    }

    fn shell(&self, options: &[&str], script: &str) -> Output {
        self.run(&[&["-e", "cpu-clock:u"], options, &["--", "sh", "-c", script]].concat())
    }
}

/// The number in front of " samples" in the line after a recording.
fn samples(output: &Output) -> u64 {
    let text = stderr(output);
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let at = words.iter().position(|word| *word == "samples,");
    at.and_then(|at| words[at - 1].parse().ok()).unwrap_or_else(|| panic!("no count in {text}"))
}

/// perf's answer, or `None` (said aloud) where there is no perf.
fn perf(test: &str, arguments: &[&str], file: &Path) -> Option<String> {
    has_perf(test).then(|| run::text(tool().args(arguments).arg("-f").arg("-i").arg(file)))
}

fn has_perf(test: &str) -> bool {
    let probed = probe::perf();
    if let Err(Skip(reason)) = &probed {
        whit_testing::skip(test, reason);
    }
    probed.is_ok()
}

fn tool() -> Command {
    run::perf().expect("has_perf was asked")
}

/// The count of a record type in `perf report --stats`.
fn count(stats: &str, kind: &str) -> u64 {
    let line = stats.lines().find(|line| line.trim_start().starts_with(kind));
    let number = line.and_then(|line| line.split(':').nth(1)?.split_ascii_whitespace().next());
    number.map_or(0, |number| number.parse().unwrap())
}

#[test]
fn a_commands_exit_code_is_passed_on_and_perf_counts_the_same_samples() {
    let recording = Recording::new();
    let output = recording.shell(&["-g"], BUSY);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert!(samples(&output) > 0);
    let mode = std::fs::metadata(recording.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let Some(stats) = perf("exit code", &["report", "--stats"], &recording.file()) else { return };
    assert_eq!(count(&stats, "SAMPLE events"), samples(&output));
    assert_eq!(count(&stats, "LOST events"), 0);
    assert!(count(&stats, "MMAP2 events") > 0 && count(&stats, "COMM events") > 0);
}

#[test]
fn a_killed_commands_signal_is_passed_on_as_shells_do() {
    let recording = Recording::new();
    assert_eq!(recording.shell(&[], "kill -KILL $$").status.code(), Some(128 + 9));
}

#[test]
fn options_after_the_command_are_the_commands() {
    let recording = Recording::new();
    let output = recording.run(&["-q", "-e", "cpu-clock:u", "echo", "-g", "--help"]);
    assert_eq!(output.stdout, b"-g --help\n");
    assert_eq!(stderr(&output), "", "-q says nothing");
    let unknown = recording.run(&["--bogus", "true"]);
    assert!(stderr(&unknown).contains("'--bogus'"), "{}", stderr(&unknown));
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn events_and_groups_keep_their_names_and_their_counts() {
    let recording = Recording::new();
    let output =
        recording.run(&["-e", "{cpu-clock:u,page-faults:u},task-clock:u", "sh", "-c", BUSY]);
    let Some(stats) = perf("groups", &["report", "--stats"], &recording.file()) else { return };
    assert_eq!(count(&stats, "SAMPLE events"), samples(&output));
    for name in ["cpu-clock:u stats", "page-faults:u stats", "task-clock:u stats"] {
        assert!(stats.contains(name), "{name} in {stats}");
    }
    let header = perf("groups", &["report", "--header-only"], &recording.file()).unwrap();
    assert!(header.contains("group: {cpu-clock:u,page-faults:u}"), "{header}");
    let events = perf("groups", &["evlist", "-g"], &recording.file()).unwrap();
    assert!(events.contains("{cpu-clock:u,page-faults:u}"), "{events}");
}

#[test]
fn stack_dumps_are_unwound_by_perf() {
    let recording = Recording::new();
    let output = recording.shell(&["--call-graph", "dwarf,4096"], BUSY);
    let Some(script) = perf("dwarf", &["script", "-F", "comm,ip,sym"], &recording.file()) else {
        return;
    };
    let chains = script.split("\n\n").filter(|chain| chain.lines().count() > 3).count();
    assert!(chains as u64 * 2 > samples(&output), "{chains} of {} samples", samples(&output));
}

#[test]
fn a_pipe_carries_the_same_recording() {
    let recording = Recording::new();
    let mut whit = recording.whit(&["-e", "cpu-clock:u,page-faults:u", "-o", "-", "sh", "-c"]);
    // The command's own output goes to standard error then.
    let output = whit.arg(format!("echo mine; {BUSY}")).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(stderr(&output).contains("mine"));
    assert!(output.stdout.starts_with(b"PERFILE2"));
    let Some(stats) = perf_piped(&["report", "--stats"], &output.stdout) else { return };
    assert_eq!(count(&stats, "SAMPLE events"), samples(&output), "{stats}");
    let report = perf_piped(&["report", "--stdio"], &output.stdout).unwrap();
    for name in ["of event 'cpu-clock:u'", "of event 'page-faults:u'"] {
        assert!(report.contains(name), "{name} in {report}");
    }
}

/// perf's answer to a recording on its standard input.
fn perf_piped(arguments: &[&str], recording: &[u8]) -> Option<String> {
    if !has_perf("a_pipe_carries_the_same_recording") {
        return None;
    }
    let mut perf = tool();
    perf.args(arguments).args(["-i", "-"]).stdin(Stdio::piped());
    let mut perf = perf.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("run perf");
    perf.stdin.take().unwrap().write_all(recording).unwrap();
    let output = perf.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn an_interrupt_ends_the_recording_in_order() {
    let recording = Recording::new();
    let mut whit = recording.whit(&["-e", "cpu-clock:u", "--", "sh", "-c", ENDLESS]);
    let whit = whit.stderr(Stdio::piped()).spawn().unwrap();
    wait_for_command(&whit, "sh");
    signal(&whit, "-INT");
    let output = whit.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 2));
    let Some(stats) = perf("interrupt", &["report", "--stats"], &recording.file()) else { return };
    assert_eq!(count(&stats, "SAMPLE events"), samples(&output));
}

#[test]
fn a_running_process_is_recorded_with_its_mappings_until_it_ends() {
    let recording = Recording::new();
    let target = Busy::start();
    let pid = target.id().to_string();
    let mut whit = recording.whit(&["-e", "cpu-clock:u", "-p", &pid, "--", "sleep", "0.3"]);
    let output = whit.output().unwrap();
    drop(target);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(samples(&output) > 0);
    let Some(script) = perf("running", &["script", "-F", "comm,pid,ip,dso"], &recording.file())
    else {
        return;
    };
    // Synthesized records alone name the code's process.
    assert!(script.lines().all(|line| line.contains("sh") && line.contains(&pid)), "{script}");
    assert!(
        script.lines().filter(|line| line.contains("/sh") || line.contains("/dash")).count() > 0
    );
    let gone = recording.run(&["-e", "cpu-clock:u", "-p", &pid]);
    assert!(stderr(&gone).contains(&format!("there is no process {pid}")), "{}", stderr(&gone));
    assert_eq!(gone.status.code(), Some(1));
}

#[test]
fn the_old_recording_is_kept_and_comes_back_when_the_command_cannot_run() {
    let recording = Recording::new();
    assert_eq!(recording.shell(&[], "exit 0").status.code(), Some(0));
    let first = std::fs::metadata(recording.file()).unwrap().ino();
    assert_eq!(recording.shell(&[], "exit 0").status.code(), Some(0));
    let old = recording.dir.path().join("perf.data.old");
    assert_eq!(std::fs::metadata(&old).unwrap().ino(), first);
    let second = std::fs::metadata(recording.file()).unwrap().ino();
    let output = recording.run(&["-e", "cpu-clock:u", "/nonexistent/command"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(stderr(&output).contains("cannot run '/nonexistent/command'"), "{}", stderr(&output));
    assert_eq!(std::fs::metadata(recording.file()).unwrap().ino(), second);
}

#[test]
fn a_full_disk_is_named() {
    let recording = Recording::new();
    let output = recording.run(&["-e", "cpu-clock:u", "-o", "/dev/full", "true"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("/dev/full") && text.contains("No space left"), "{text}");
}

#[test]
fn losses_are_counted_and_shown() {
    let recording = Recording::new();
    // A ring that holds one dump, and dumps that come faster than they can be written.
    let options = ["-F", "25000", "--call-graph", "dwarf,60000", "-m", "16"];
    let output = recording.shell(&options, BUSY);
    let text = stderr(&output);
    let word = |before: &str| {
        let words: Vec<_> = text.split_ascii_whitespace().collect();
        words.iter().position(|w| *w == before).map(|at| words[at + 1].to_owned()).unwrap()
    };
    let lost: u64 = word("lost").parse().unwrap();
    assert!(lost > 0, "{text}");
    assert!(!text.contains("data loss 0.00%"), "{text}");
    let dump = perf("losses", &["script", "--show-lost-events"], &recording.file());
    let Some(dump) = dump else { return };
    let reported: u64 = dump
        .lines()
        .filter_map(|line| line.split_once("PERF_RECORD_LOST lost ")?.1.trim().parse::<u64>().ok())
        .sum();
    // Drops after the last record that fit stand in LOST_SAMPLES records, which `perf script` does
    // not show. `--stats` has their number, then their counts by event.
    let stats = perf("losses", &["report", "--stats"], &recording.file()).unwrap();
    let in_the_end = stats.lines().filter(|line| line.contains("LOST_SAMPLES")).skip(1);
    let in_the_end: u64 = in_the_end.map(|line| count(line, "LOST_SAMPLES")).sum();
    assert_eq!(reported + in_the_end, lost, "{reported} and {in_the_end}");
}

#[test]
fn registers_are_listed() {
    let output = Recording::new().run(&["--user-regs=?"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    assert!(text.contains(" SP "), "{text}");
}
