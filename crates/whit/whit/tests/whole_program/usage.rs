//! Messages and exit codes for wrong command lines.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use whit_testing::run::perf;
use whit_testing::{Skip, check};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/recordings/demo/demo.data");

fn whit(arguments: &[&str]) -> Output {
    let mut whit = Command::new(env!("CARGO_BIN_EXE_whit"));
    whit.args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The error begins with whit's name, and the program ends with this code.
#[track_caller]
fn fails(arguments: &[&str], code: i32, words: &str) {
    let output = whit(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.lines().any(|line| line.starts_with("whit: ")), "{arguments:?}: {said}");
    assert!(!said.contains("error:") && said.contains(words), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn wrong_usage_has_one_form_and_one_code() {
    for (arguments, words) in [
        (&["frobnicate"][..], "unrecognized subcommand 'frobnicate'"),
        (&["report", "--nope"], "unexpected argument '--nope'"),
        (&["report", "--sort", "weather"], "cannot sort by `weather`"),
        (&["report", "-g", "sideways"], "sideways"),
        (&["script", "-F", "weather"], "cannot print field `weather`"),
        (&["switches", "--sort", "cpu"], "are not sorted by `cpu`"),
        (&["switches", "--percent-limit", "101"], "between 0 and 100"),
        (&["switches", "--limit", "3"], "--run-queue"),
        (&["locks", "--by", "thread"], "invalid value 'thread'"),
        (&["locks", "--cpu", "0"], "waits belong to threads"),
        (&["locks", "--json", "-g"], "--json has every call chain"),
        (&["locks", "--min-wait", "2ms", "--max-wait", "1ms"], "--min-wait is longer"),
        (&["export", "--perf", "-o", "-"], "name a file"),
        (&["export", "--chains", "-o", "x", "--debuginfod"], "cannot be used with '--debuginfod"),
        (&["export", "--chains", "-o", "x", "--no-demangle"], "cannot be used with '--no-demangle"),
        (
            &["export", "--format=pprof", "--samples=each", "-o", "-", DEMO],
            "--samples has no effect with --format=pprof",
        ),
        (&["top", "--debuginfod=http://h"], "--debuginfod fetches nothing here"),
        (&["record", "-F", "x", "true"], "a number of Hz"),
        (&["record", "--nope", "true"], "unknown option '--nope'"),
        (&["record", "--snapshot", "true"], "record has no --snapshot: the AUX area"),
        (&["record", "-e", "cpu-clock:ux", "true"], "a modifier"),
        (&["record", "-e", "cs", "--filter", "a == 1", "true"], "takes tracepoints only"),
        (&["record", "-g", "dwarf", "true"], "did you mean --call-graph dwarf?"),
        (&["record", "-ag", "fp,20", "true"], "did you mean --call-graph fp,20?"),
        (&["record", "-C", "3-1", "true"], "is no CPU list"),
        (&["stat", "--interval-count", "3", "true"], "add -I MS"),
        (&["stat", "--topdown", "true"], "stat has no --topdown"),
        (
            &["stat", "--max-overhead", "1", "true"],
            "--max-overhead makes intervals longer: add -I MS",
        ),
        (&["stat", "-I", "9", "--max-overhead", "0", "true"], "a percentage from 0.01 to 100"),
        (&["switches", "--max-overhead=1"], "whit record --switch-events --max-overhead 1"),
        (&["stat", "-A", "--per-core", "true"], "choose one of"),
        (&["list", "-q", "--json"], "cannot be used with"),
    ] {
        fails(arguments, 2, words);
    }
}

/// Command lines of people who come from perf, gdb or a shell.
#[test]
fn mistakes_of_newcomers_are_answered_with_the_way_out() {
    for (arguments, way) in [
        (&["./server"][..], "`whit record ./server` records a program"),
        (&["version"], "`whit --version` prints it"),
        (&["reprot"], "'report'"),
        (&["sched"], "`whit switches` shows the waits"),
        (&["trace"], "whit record -e 'syscalls:sys_enter_*' -a"),
        (&["probe"], "`whit record -e probe:NAME` records them"),
        (&["flamegraph"], "`whit report --html FILE`"),
        (&["inject"], "reports read jitdump files"),
        (&["timechart"], "`whit switches --html FILE`"),
        (&["record", "--callgraph", "dwarf", "true"], "did you mean '--call-graph'?"),
        (&["record", "--call-graph", "frame", "true"], "fp, fp,FRAMES, fp,defer, dwarf"),
        (&["record", "-g", "lbr", "true"], "did you mean --call-graph lbr?"),
        (&["record", "-z", "9", "true"], "did you mean --compression-level=9?"),
        (&["record", "-F", "fast", "true"], "a number of Hz, or 'max'"),
        (&["record", "-t", "main", "true"], "an ID of a thread is a number"),
        (&["record", "--engine=ebpf", "true"], "use ring, bpf or auto"),
        (&["report", "--pid", "server"], "an ID of a process is a number"),
        (&["report", "--sort", "function"], "the keys are pid, tid"),
        (&["report", "--time", "1s"], "START,STOP"),
        (&["script", "-F", "symbol"], "the fields are comm, tid"),
        (&["export", "--format=svg", "-o", "x"], "there are pprof, firefox"),
        (&["diff", "before.data"], "whit diff BEFORE.. -- AFTER.."),
        (&["stat", "-r", "many", "true"], "0 is for ever"),
        (&["help", "nothing"], "`whit help` lists the commands"),
    ] {
        fails(arguments, 2, way);
    }
    for (arguments, way) in [
        (&["record", "-e", "cylces", "true"][..], "did you mean cycles?"),
        (&["record", "-p", "no-such-program"], "there is no process with the name"),
        (&["record", "-C", "4095", "true"], "online are"),
        (&["record", "-o", "/nonexistent/x", "true"], "make its directory, or name another place"),
        (&["report", "nothing.data"], "make one with `whit record -o nothing.data -- COMMAND`"),
        (&["report", "/proc/self/exe"], "is not a perf.data recording"),
        (&["list", "cyles"], "did you mean cycles?"),
    ] {
        fails(arguments, 1, way);
    }
    fails(&["record", "no-such-program"], 127, "cannot run 'no-such-program'");
}

#[test]
fn impossible_requests_have_another_code() {
    let nowhere = ["-i", "/nonexistent/perf.data"];
    for subcommand in ["report", "script", "switches", "locks"] {
        fails(&[&[subcommand], &nowhere[..]].concat(), 1, "there is no recording here");
    }
    fails(&["record", "-e", "nopmu/event=1/", "true"], 1, "this machine has no PMU");
    fails(&["list", "no-such-event-anywhere"], 1, "no event matches");
}

#[test]
fn a_page_into_a_folder_that_is_not_there_is_refused_before_the_recording_is_read() {
    for command in ["report", "switches"] {
        // There is no such recording either.
        fails(&[command, "-i", "/nowhere/x", "--html", "/nowhere/x.html"], 1, "make it first");
    }
    fails(&["diff", "--html", "/nowhere/x.html", "/nowhere/a", "/nowhere/b"], 1, "make it first");
}

#[test]
fn a_frequency_is_called_the_same_everywhere() {
    for subcommand in [&["record"][..], &["bench", "record"], &["bench", "stacks"]] {
        for option in ["--freq", "--frequency", "-F"] {
            fails(&[subcommand, &[option, "x"]].concat(), 2, "invalid value 'x'");
        }
    }
}

/// Behind `--` stands the command, with any name.
#[test]
fn a_program_called_as_a_mode_runs() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/true", directory.path().join("dwarf")).unwrap();
    let mut whit = Command::new(env!("CARGO_BIN_EXE_whit"));
    whit.args(["record", "-e", "cpu-clock:u", "-g", "--", "dwarf"]);
    let output = whit.current_dir(directory.path()).env("PATH", directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_command_that_cannot_run_has_the_code_that_shells_give_it() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("perf.data");
    let output = output.to_str().unwrap();
    for (command, code) in
        [("whit-no-such-command", 127), ("/no/such/command", 127), ("/etc/passwd", 126)]
    {
        let recorder = ["record", "-e", "cpu-clock:u", "-o", output, "--", command];
        fails(&recorder, code, &format!("cannot run '{command}'"));
        fails(&["stat", "-e", "cs:u", "--", command], code, &format!("cannot run '{command}'"));
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for arguments in [&["--help"][..], &["report", "--help"], &["--version"]] {
        let output = whit(arguments);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
        assert!(!output.stdout.is_empty());
    }
    let version = whit(&["--version"]).stdout;
    let version = String::from_utf8_lossy(&version);
    for part in ["\nengines: ring, bpf\n", "\nBPF programs: sha256 ", "\nbuild id: "] {
        assert!(version.starts_with("whit ") && version.contains(part), "{version}");
    }
    assert_eq!(whit(&["-V"]).stdout.split(|byte| *byte == b'\n').count(), 2);
    let nothing = whit(&[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("Usage: whit <COMMAND>"));
}

/// The options that the installed perf lists for a subcommand. Letters may mean something else to whit.
fn options_of_perf(subcommand: &str) -> Result<Vec<String>, Skip> {
    let output = perf()?.args([subcommand, "-h"]).output().expect("run perf");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let option = |word: &str| {
        let name: String =
            word.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        // perf 6.1 prints one of `perf script` that it does not take itself: --Latency.
        let is_name = name.starts_with("--") && !name.contains(|c: char| c.is_ascii_uppercase());
        is_name.then_some(name)
    };
    let of_line =
        |line: &str| line.split_whitespace().take(2).filter_map(option).collect::<Vec<_>>();
    Ok(text.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(of_line).collect())
}

/// An option of perf is taken, or is refused with its replacement.
#[test]
fn options_of_perf_report_and_script_are_known() {
    check("options_of_perf_report_and_script_are_known", || {
        for subcommand in ["report", "script"] {
            let options = options_of_perf(subcommand)?;
            assert!(options.len() > 40, "{options:?}");
            for option in options {
                let said = stderr(&whit(&[subcommand, &option]));
                let unknown = said.contains(&format!("unexpected argument '{option}'"));
                assert!(!unknown, "{subcommand} {option}: {said}");
            }
        }
        Ok(())
    });
}

#[test]
fn one_recording_is_read_at_a_time() {
    for subcommand in ["script", "switches"] {
        fails(&[subcommand, "-i", "a", "-i", "b"], 2, "one recording is read at a time");
    }
    fails(&["report", "-i", "a", "-i", "-"], 2, "standard input is read alone");
}

/// A file for standard input is the recording, unless there is a perf.data.
#[test]
fn a_recording_is_read_from_a_redirected_file() {
    let recording = whit_testing::run::repository().join("tests/recordings/demo/demo.data");
    let directory = tempfile::tempdir().expect("make a directory");
    let stats = |stdin: &Path| {
        let mut whit = Command::new(env!("CARGO_BIN_EXE_whit"));
        whit.args(["report", "--stats"]).current_dir(directory.path());
        whit.stdin(File::open(stdin).expect("open a file"));
        whit_testing::run::text(&mut whit)
    };
    let other = directory.path().join("list");
    fs::write(&other, "no recording").expect("write a file");
    let redirected = stats(&recording);
    assert!(redirected.contains("SAMPLE events:"), "{redirected}");
    fs::copy(&recording, directory.path().join("perf.data")).expect("copy the recording");
    assert_eq!(stats(&other), redirected);
}
