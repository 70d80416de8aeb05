//! `whit report` on recordings of `perf record`: the counts of `perf report --stats`, and the same
//! functions with the same shares.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::report::{self, assert_same_top};
use crate::support::stats::Stats;
use crate::support::tools::{perf, record, text, whit, workload};
use crate::support::{Skip, check};

/// How many functions have to agree.
const TOP: usize = 20;
/// About a third of a second of the deep programs.
const ITERATIONS: &str = "40000";

/// Records with the installed perf into `directory`.
fn perf_record(directory: &Path, options: &[&str], target: &[&str]) -> Result<PathBuf, Skip> {
    let path = directory.join("perf.data");
    let mut perf = perf()?;
    perf.args(["record", "--no-buildid-cache", "-F", "1999"]).args(options);
    record(perf.arg("-o").arg(&path).arg("--").args(target))?;
    Ok(path)
}

fn stats(mut tool: Command, path: &Path) -> Stats {
    Stats::parse(&text(tool.args(["report", "--stats", "-i"]).arg(path)))
}

/// Both tools' tables of functions, without inlined ones: those have no symbol of their own.
/// With `dso`, only the functions of that binary.
fn assert_same_report(path: &Path, dso: Option<&str>) -> Result<(), Skip> {
    let arguments = ["report", "--stdio", "--no-children", "-g", "none", "--no-demangle"];
    let more = ["--no-inline", "--percent-limit", "0", "--sort", "dso,symbol", "-i"];
    let tables = |mut tool: Command| {
        let mut tables = report::parse(&text(tool.args(arguments).args(more).arg(path)));
        for rows in tables.values_mut() {
            rows.retain(|row| dso.is_none_or(|dso| row.dso == dso));
        }
        tables
    };
    let (actual, expected) = (tables(whit()), tables(perf()?));
    assert!(expected.values().any(|rows| !rows.is_empty()), "perf shows nothing of {path:?}");
    let events = |tables: &std::collections::BTreeMap<_, _>| tables.keys().cloned().collect();
    let (actual_events, expected_events): (Vec<String>, Vec<String>) =
        (events(&actual), events(&expected));
    assert_eq!(actual_events, expected_events);
    for (event, expected) in &expected {
        assert_same_top(&actual[event], expected, TOP);
    }
    Ok(())
}

fn assert_parity(path: &Path, dso: Option<&str>) -> Result<(), Skip> {
    let expected = stats(perf()?, path);
    assert!(expected.samples() > 0, "perf recorded no samples: {expected:?}");
    assert_eq!(stats(whit(), path), expected);
    assert_same_report(path, dso)
}

/// Records `program` with `options` and compares.
fn parity(name: &str, options: &[&str], program: &str, arguments: &[&str]) {
    check(name, || {
        let directory = tempfile::tempdir().expect("make a directory");
        let program = workload(program)?;
        let program = program.to_str().expect("a path in UTF-8");
        let target: Vec<&str> = [program].into_iter().chain(arguments.iter().copied()).collect();
        assert_parity(&perf_record(directory.path(), options, &target)?, None)
    });
}

#[test]
fn frame_pointers() {
    parity("frame_pointers", &["-g"], "deep-fp", &["--iterations", ITERATIONS]);
}

#[test]
fn no_chains_at_all() {
    parity("no_chains_at_all", &[], "deep", &["--iterations", ITERATIONS]);
}

#[test]
fn dumped_stacks() {
    let options = ["--call-graph", "dwarf"];
    parity("dumped_stacks", &options, "deep", &["--iterations", ITERATIONS]);
}

#[test]
fn dumped_stacks_of_threads() {
    let arguments = ["--iterations", ITERATIONS, "--threads", "3"];
    parity("dumped_stacks_of_threads", &["--call-graph", "dwarf"], "deep", &arguments);
}

#[test]
fn a_static_program_at_a_fixed_address() {
    let options = ["--call-graph", "dwarf"];
    let arguments = ["--iterations", ITERATIONS];
    parity("a_static_program_at_a_fixed_address", &options, "deep-static", &arguments);
}

#[test]
fn compressed() {
    let options = ["-z", "--call-graph", "dwarf"];
    parity("compressed", &options, "deep", &["--iterations", ITERATIONS]);
}

#[test]
fn a_directory_of_streams() {
    let options = ["--threads", "--call-graph", "dwarf"];
    parity("a_directory_of_streams", &options, "threads", &["--seconds", "0.3"]);
}

#[test]
fn a_compressed_directory_of_streams() {
    let options = ["--threads", "-z", "-g"];
    parity("a_compressed_directory_of_streams", &options, "threads", &["--seconds", "0.3"]);
}

#[test]
fn several_events() {
    let options = ["-e", "cpu-clock,page-faults,context-switches", "-g"];
    parity("several_events", &options, "threads", &["--seconds", "0.3"]);
}

/// Only the leader samples; each of its samples carries the counts of the others. perf makes
/// samples of the others out of these and shows one table for the group. whit shows the samples of
/// the recording, so the records and the leader's samples are compared.
#[test]
fn a_group_read_by_its_leader() {
    check("a_group_read_by_its_leader", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let program = workload("deep")?;
        let target = [program.to_str().expect("a path in UTF-8"), "--iterations", ITERATIONS];
        let options = ["-e", "{cpu-clock,page-faults}:S"];
        let path = perf_record(directory.path(), &options, &target)?;
        let (actual, expected) = (stats(whit(), &path), stats(perf()?, &path));
        assert_eq!(actual.by_type, expected.by_type);
        assert_eq!(actual.samples_by_event["cpu-clock"], expected.samples());
        Ok(())
    });
}

/// Other processes may live in other mount namespaces, where the same path is another file, which
/// perf does not notice: the functions of the program alone are compared.
#[test]
fn the_whole_machine() {
    check("the_whole_machine", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let program = workload("forks")?;
        let target = [program.to_str().expect("a path in UTF-8")];
        let path = perf_record(directory.path(), &["-a", "-g"], &target)?;
        assert_parity(&path, Some("forks"))
    });
}

#[test]
fn short_lived_processes() {
    parity("short_lived_processes", &["-g"], "forks", &["--count", "60"]);
}

#[test]
fn context_switch_records() {
    let options = ["--switch-events", "-g"];
    parity("context_switch_records", &options, "pingpong", &["--rounds", "3000"]);
}

#[test]
fn every_field_of_a_sample() {
    let options = ["-T", "-d", "--phys-data", "--sample-cpu", "-W", "--user-regs=IP,SP", "-g"];
    parity("every_field_of_a_sample", &options, "deep-fp", &["--iterations", ITERATIONS]);
}

#[test]
fn jit_code_with_a_map() {
    parity("jit_code_with_a_map", &["-g"], "jit", &["--seconds", "0.3"]);
}

#[test]
fn a_rust_program() {
    let options = ["--call-graph", "dwarf"];
    parity("a_rust_program", &options, "deep-rs", &["--iterations", ITERATIONS]);
}

#[test]
fn a_go_program() {
    parity("a_go_program", &["-g"], "deep-go", &["-iterations", ITERATIONS]);
}

#[test]
fn a_pipe() {
    check("a_pipe", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("pipe.data");
        let program = workload("deep-fp")?;
        let mut recorder = perf()?;
        // The program's output would stand amid the recording.
        let script = format!("{} --iterations {ITERATIONS} >/dev/null", program.display());
        recorder.args(["record", "--no-buildid-cache", "-F", "1999", "-g", "-o", "-", "--"]);
        let bytes = record(recorder.args(["sh", "-c", &script]))?;
        std::fs::write(&path, bytes).expect("write the pipe's bytes");
        assert_parity(&path, None)?;

        let through = |mut tool: Command| {
            let file = std::fs::File::open(&path).expect("open the recording");
            let tool = tool.args(["report", "--stats", "-i", "-"]).stdin(Stdio::from(file));
            Stats::parse(&text(tool))
        };
        assert_eq!(through(whit()), through(perf()?), "read from standard input");
        Ok(())
    });
}
