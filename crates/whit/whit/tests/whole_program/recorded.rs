//! Recordings of `whit record` in the stock perf: the same samples, the same functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::script::{self, Sample};
use crate::support::stats::Stats;
use crate::support::tools::{perf, record, text, whit, workload};
use crate::support::{Skip, check};

/// About a third of a second of the deep programs.
const ITERATIONS: &str = "40000";
/// perf prints these without a symbol: for an address, for a plt entry, and for one in a second
/// table, which it takes for the end of the section before.
const NAMELESS: [&str; 3] = ["[unknown]", "@plt", "_init"];

fn scripted(tool: &mut std::process::Command, path: &Path) -> Vec<Sample> {
    let fields = "comm,tid,time,event,ip,sym";
    let arguments = ["script", "--no-inline", "--no-demangle", "-F", fields, "-i"];
    script::parse(&text(tool.args(arguments).arg(path)))
}

/// Number of samples by their innermost function. perf throws a whole call chain away if frame
/// pointers led to a value that looks like an unknown context marker, while whit keeps the frames
/// before it: samples that are in `discarded` are left out.
fn leaves(samples: &[Sample], discarded: &BTreeSet<&str>) -> BTreeMap<String, u64> {
    let mut leaves = BTreeMap::new();
    for sample in samples.iter().filter(|sample| !discarded.contains(&*sample.head)) {
        *leaves.entry(sample.physical_leaf().to_owned()).or_default() += 1;
    }
    leaves
}

fn stock_perf_agrees(name: &str, options: &[&str], program: &str, arguments: &[&str]) {
    check(name, || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let executable = workload(program)?;
        let mut perf_tool = perf()?;
        let mut whit_record = whit();
        whit_record
            .args(["record", "--engine=ring", "-F", "1999"])
            .args(options)
            .arg("-o")
            .arg(&path);
        record(whit_record.arg("--").arg(executable).args(arguments))?;
        let comm = if program == "threads" { "" } else { program };
        agree(&mut perf_tool, &path, comm)
    });
}

/// Compares the counts, and the leaves of the samples whose command name begins with `comm`.
fn agree(perf_tool: &mut std::process::Command, path: &Path, comm: &str) -> Result<(), Skip> {
    let stats = |tool: &mut std::process::Command| {
        Stats::parse(&text(tool.args(["report", "--stats", "-i"]).arg(path)))
    };
    let (ours, theirs) = (stats(&mut whit()), stats(&mut perf()?));
    assert!(ours.samples() > 0, "whit recorded no samples: {ours:?}");
    assert_eq!(ours.samples(), theirs.samples());
    assert_eq!(ours.samples_by_event, theirs.samples_by_event);

    let (ours, theirs) = (scripted(&mut whit(), path), scripted(perf_tool, path));
    assert_eq!(ours.len() as u64, stats(&mut whit()).samples(), "one entry per sample");
    assert_eq!(ours.len(), theirs.len());
    let discarded: BTreeSet<_> =
        theirs.iter().filter(|sample| sample.frames.is_empty()).map(|s| &*s.head).collect();
    assert!(discarded.len() * 20 < theirs.len(), "{} chains discarded", discarded.len());
    // Other processes may live in other mount namespaces, where the same path is another file,
    // which perf does not notice.
    let of_program = |samples: &[Sample]| {
        samples.iter().filter(|sample| sample.head.starts_with(comm)).cloned().collect::<Vec<_>>()
    };
    let (ours, theirs) = (of_program(&ours), of_program(&theirs));
    assert!(!ours.is_empty(), "no sample of {comm}");
    assert_same_leaves(&leaves(&ours, &discarded), &leaves(&theirs, &discarded));
    Ok(())
}

/// Every function that perf names has as many samples with whit. whit may name more (plt entries,
/// the symbols of mini-debug information), as often as perf names nothing.
fn assert_same_leaves(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) {
    let samples =
        |leaves: &BTreeMap<String, u64>, name: &str| leaves.get(name).copied().unwrap_or(0);
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let mut named_by_us_alone = 0;
    for name in names.into_iter().filter(|name| !NAMELESS.contains(&name.as_str())) {
        let (our, their) = (samples(ours, name), samples(theirs, name));
        assert!(our >= their, "{name}: {our} samples instead of {their}");
        named_by_us_alone += our - their;
    }
    let nameless: u64 = NAMELESS.iter().map(|name| samples(theirs, name)).sum();
    assert!(named_by_us_alone <= nameless, "{named_by_us_alone} more, {nameless} nameless in perf");
}

#[test]
fn a_cpp_program_with_dumped_stacks() {
    let (options, arguments) = (["--call-graph", "dwarf"], ["--iterations", ITERATIONS]);
    stock_perf_agrees("a_cpp_program_with_dumped_stacks", &options, "deep", &arguments);
}

#[test]
fn a_cpp_program_with_frame_pointers() {
    let arguments = ["--iterations", ITERATIONS];
    stock_perf_agrees("a_cpp_program_with_frame_pointers", &["-g"], "deep-fp", &arguments);
}

#[test]
fn a_rust_program_with_dumped_stacks() {
    let (options, arguments) = (["--call-graph", "dwarf"], ["--iterations", ITERATIONS]);
    stock_perf_agrees("a_rust_program_with_dumped_stacks", &options, "deep-rs", &arguments);
}

#[test]
fn a_go_program_with_dumped_stacks() {
    let (options, arguments) = (["--call-graph", "dwarf"], ["-iterations", ITERATIONS]);
    stock_perf_agrees("a_go_program_with_dumped_stacks", &options, "deep-go", &arguments);
}

#[test]
fn threads_and_several_events() {
    let options = ["-e", "cpu-clock,context-switches", "-g"];
    stock_perf_agrees("threads_and_several_events", &options, "threads", &["--seconds", "0.3"]);
}

#[test]
fn the_whole_machine_recorded_by_whit() {
    let name = "the_whole_machine_recorded_by_whit";
    stock_perf_agrees(name, &["-a", "-g"], "forks", &["--count", "60"]);
}

#[test]
fn the_exit_code_of_the_command_is_passed_on() {
    check("the_exit_code_of_the_command_is_passed_on", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut probe = whit();
        record(probe.args(["record", "--engine=ring", "-o"]).arg(&path).args(["--", "true"]))?;
        let mut recorder = whit();
        recorder
            .args(["record", "--engine=ring", "-o"])
            .arg(&path)
            .args(["--", "sh", "-c", "exit 42"]);
        let status = recorder.output().expect("run whit record").status;
        assert_eq!(status.code(), Some(42));
        Ok(())
    });
}
