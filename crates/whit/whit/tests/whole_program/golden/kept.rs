//! Each golden recording prints the expected output beside it, and perf counts the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::golden::library::folder;
use crate::golden::made;
use whit_testing::parse::stats::Stats;
use whit_testing::run::{command, perf, text};
use whit_testing::{Skip, check};

/// The views that are kept: file name, and the arguments that print it.
const VIEWS: [(&str, &[&str]); 3] = [
    ("stats.txt", &["report", "--stats"]),
    ("report.txt", &["report", "--stdio", "-n"]),
    ("script.txt", &["script", "--ns"]),
];

/// Views of one recording: its name, file name, and the arguments that print it.
const VIEWS_OF_ONE: [(&str, &str, &[&str]); 8] = [
    ("perf-fp", "stop.txt", &["script", "-F", "comm,ip,sym", "--stop-bt", "outer"]),
    ("perf-containers", "symbol.txt", &["script", "-F", "comm,time,sym,ip", "-S", "burn"]),
    ("perf-containers", "tree.txt", &["report", "--stdio", "--cgroup-tree"]),
    ("perf-containers", "cgroup.txt", &["report", "--stdio", "-n", "-s", "cgroup"]),
    ("perf-containers", "container.txt", &["report", "--stdio", "-n", "-s", "container,pod,unit"]),
    ("perf-containers", "filtered.txt", &["report", "--stdio", "-n", "--cgroup", "web.service"]),
    ("perf-containers", "samples.txt", &["script", "-F", "comm,time,cgroup"]),
    ("perf-containers", "time.txt", &["report", "--stdio", "-s", "time", "--time-quantum", "10ms"]),
];

/// Recordings that perf 6.1 refuses, and why.
const PERF_REFUSES: [(&str, &str); 5] = [
    ("new-7.0", "attributes longer than its own"),
    ("deferred-chains", "records of a type that it does not know"),
    ("perf-killed", "a header that was not completed"),
    ("orphans", "samples that it cannot use"),
    ("pipe", "formats of tracepoints that are none"),
];

/// Recordings whose records perf 6.1 counts otherwise, and why.
const PERF_COUNTS_OTHERWISE: [(&str, &str); 1] =
    [("perf-pipe-tracepoint", "of a pipe it reports nothing behind the formats of tracepoints")];

/// Recordings with other samples in perf 6.1, and the reason.
const PERF_PRINTS_OTHERWISE: [(&str, &str); 4] = [
    ("auxtrace", "it wants to decode the trace"),
    ("branch-counters", "it drops the name of an event whose branches it does not know"),
    ("guest", "it leaves out what ran in guests"),
    ("perf-pipe", "of pipes it prints call chains whatever the fields"),
];

fn blessing() -> bool {
    std::env::var_os("WHIT_BLESS").is_some_and(|value| value == "1")
}

/// Names of all kept recordings.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder of the recordings");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> = folders
        .filter(|path| path.join("recording.data").exists())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    assert!(names.len() > 30, "only {names:?}");
    names
}

/// The kept recordings that are files.
pub(crate) fn files() -> Vec<(String, PathBuf)> {
    let path = |name: String| (name.clone(), folder().join(name).join("recording.data"));
    names().into_iter().map(path).filter(|(_, path)| path.is_file()).collect()
}

/// Compares with the file at `path`, or writes it.
fn expect(path: &Path, actual: &[u8], problems: &mut Vec<String>) {
    if blessing() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        std::fs::write(path, actual).expect("write what is expected");
        return;
    }
    let expected = std::fs::read(path).unwrap_or_default();
    if expected != actual {
        let (expected, actual) = (lossy(&expected), lossy(actual));
        problems.push(format!("{}\nexpected:\n{expected}\nis:\n{actual}", path.display()));
    }
}

fn lossy(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("{} bytes, {:x?}…", bytes.len(), &bytes[..bytes.len().min(64)]),
    }
}

fn fail_on(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{} differ; if that is right, WHIT_BLESS=1 takes them over\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// whit in the folder of a recording, with symbols from nowhere else.
pub(crate) fn whit_in(folder: &Path) -> Command {
    let mut whit = command(env!("CARGO_BIN_EXE_whit"));
    whit.current_dir(folder).env("HOME", "/nonexistent").env("NO_COLOR", "1");
    whit
}

/// Standard output, then standard error.
fn output_of(name: &str, arguments: &[&str]) -> Vec<u8> {
    let mut whit = whit_in(&folder().join(name));
    whit.args(arguments).args(["-i", "recording.data", "--threads", "1"]);
    whit.args(["--symfs", "../root", "--kallsyms", "../kallsyms"]);
    let output = whit.output().expect("run whit");
    assert!(output.status.success(), "{whit:?}: {}", lossy(&output.stderr));
    let mut all = output.stdout;
    if !output.stderr.is_empty() {
        all.extend(b"--- standard error ---\n");
        all.extend(output.stderr);
    }
    all
}

#[test]
fn generated_recordings_are_those_kept() {
    let mut problems = Vec::new();
    for made in made::all() {
        expect(&folder().join(made.name).join("recording.data"), &made.bytes, &mut problems);
        for (path, program) in made.programs {
            let path = folder().join("root").join(path.trim_start_matches('/'));
            expect(&path, &program.file(), &mut problems);
        }
    }
    fail_on(&problems);
}

#[test]
fn views_are_as_expected() {
    let mut problems = Vec::new();
    for name in names() {
        for (file, arguments) in VIEWS {
            let actual = output_of(&name, arguments);
            expect(&folder().join(&name).join(file), &actual, &mut problems);
        }
    }
    for (name, file, arguments) in VIEWS_OF_ONE {
        expect(&folder().join(name).join(file), &output_of(name, arguments), &mut problems);
    }
    fail_on(&problems);
}

/// Samples by the last word of each row of `report -n -s KEY`.
fn samples_by_name(text: &str) -> BTreeMap<String, u64> {
    let mut samples = BTreeMap::new();
    for line in
        text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))
    {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_share, count, .., name] = words[..] else { panic!("no row: {line}") };
        *samples.entry(name.to_owned()).or_default() += count.parse::<u64>().expect("a count");
    }
    samples
}

/// perf has a row for each number of a cgroup; whit joins those of one path.
#[test]
fn perf_has_the_same_samples_by_cgroup_and_time() {
    check("perf_has_the_same_samples_by_cgroup_and_time", || {
        let relative = &["comm", "--dsos", "spin", "--percentage", "relative"][..];
        let time = &["time", "--time-quantum", "10ms"][..];
        for key in [&["cgroup"][..], time, &["local_weight"], relative] {
            let arguments = [&["report", "--stdio", "-n", "-s"][..], key].concat();
            let perf =
                text(perf_in("perf-containers")?.args(&arguments).args(["-i", "recording.data"]));
            let whit = output_of("perf-containers", &arguments);
            let (perf, whit) = (samples_by_name(&perf), samples_by_name(&lossy(&whit)));
            let filtered = if key == relative { 16 } else { 17 };
            assert_eq!(whit.values().sum::<u64>(), filtered, "{key:?}");
            assert_eq!(whit, perf, "{key:?}");
        }
        Ok(())
    });
}

/// perf has no table of symbols of the kept programs, so the names that select are those of commands and binaries.
#[test]
fn perf_prints_the_same_of_chosen_samples_and_relative_times() {
    check("perf_prints_the_same_of_chosen_samples_and_relative_times", || {
        for (name, arguments) in [
            ("perf-containers", &["-F", "comm,time", "--reltime", "--ns", "-c", "spin"][..]),
            ("perf-containers", &["-F", "comm,time", "--reltime", "-c", "spin,mkdir"]),
            ("perf-containers", &["-F", "comm,time", "--deltatime", "--ns", "-c", "spin"]),
            ("perf-containers", &["-F", "comm,time", "--dsos", "spin"]),
            ("perf-fp", &["-F", "comm,time", "--deltatime"]),
        ] {
            let arguments = [&["script"][..], arguments].concat();
            let perf = text(perf_in(name)?.args(&arguments).args(["-i", "recording.data"]));
            let whit = output_of(name, &arguments);
            let whit = lossy(&whit);
            let samples = whit.split("--- standard error ---").next().unwrap_or_default();
            assert!(samples.lines().count() >= 6, "{arguments:?}: {samples}");
            assert_eq!(samples, perf, "{name}: {arguments:?}");
        }
        Ok(())
    });
}

/// Samples by row of `report -n -s KEYS -t ,` of several recordings, without shares.
fn rows_of(recordings: &[&str]) -> BTreeMap<String, u64> {
    let mut whit = whit_in(&folder());
    whit.args([
        "report",
        "--no-children",
        "-g",
        "none",
        "-n",
        "-q",
        "-t",
        ",",
        "-s",
        "cpu,tid,dso,sym",
    ]);
    whit.args(["--symfs", "root", "--kallsyms", "kallsyms"]);
    for name in recordings {
        whit.arg("-i").arg(folder().join(name).join("recording.data"));
    }
    let text = text(&mut whit);
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &str| {
        let [_share, samples, key] = line.splitn(3, ',').collect::<Vec<_>>()[..] else {
            panic!("no row: {line}")
        };
        (key.to_owned(), samples.parse().expect("a number"))
    };
    rows.map(row).collect()
}

#[test]
fn several_recordings_add_up() {
    let names = ["perf-fp", "perf-containers", "perf-data"];
    let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
    for name in names {
        for (key, samples) in rows_of(&[name]) {
            *wanted.entry(key).or_default() += samples;
        }
    }
    assert!(wanted.len() > 3, "{wanted:?}");
    assert_eq!(rows_of(&names), wanted);
    let twice = rows_of(&["perf-fp", "perf-fp"]);
    let doubled = rows_of(&["perf-fp"]).into_iter().map(|(key, samples)| (key, 2 * samples));
    assert_eq!(twice, doubled.collect());
}

#[test]
fn perf_counts_the_same() {
    check("perf_counts_the_same", || {
        for name in names() {
            if is_listed(&PERF_REFUSES, &name) {
                continue;
            }
            if !is_listed(&PERF_COUNTS_OTHERWISE, &name) {
                compare_counts(&name)?;
            }
            if !is_listed(&PERF_PRINTS_OTHERWISE, &name) {
                compare_samples(&name)?;
            }
        }
        Ok(())
    });
}

fn is_listed(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(listed, _)| *listed == name)
}

fn perf_in(name: &str) -> Result<Command, Skip> {
    let mut perf = perf()?;
    perf.current_dir(folder().join(name)).env("HOME", "/nonexistent");
    Ok(perf)
}

fn compare_counts(name: &str) -> Result<(), Skip> {
    let by_perf = text(perf_in(name)?.args(["report", "--stats", "-i", "recording.data"]));
    let by_whit = output_of(name, &["report", "--stats"]);
    let (perf, whit) = (Stats::parse(&by_perf), Stats::parse(&lossy(&by_whit)));
    assert_eq!(whit.by_type, perf.by_type, "{name}");
    let samples = |stats: &Stats| stats.samples_by_event.values().copied().collect::<Vec<_>>();
    assert_eq!(samples(&whit), samples(&perf), "{name}");
    Ok(())
}

fn compare_samples(name: &str) -> Result<(), Skip> {
    let fields = if name == "no-times" { "comm,tid,event" } else { "comm,tid,time,event" };
    let mut perf = perf_in(name)?;
    perf.args(["script", "-F", fields, "--ns", "-i", "recording.data"]);
    let whit = output_of(name, &["script", "-F", fields, "--ns"]);
    assert_eq!(heads(&lossy(&whit)), heads(&text(&mut perf)), "{name}");
    Ok(())
}

/// The lines of samples, each with how often it stands there: perf's order of samples of one time
/// is its own.
fn heads(text: &str) -> BTreeMap<String, u64> {
    let mut heads = BTreeMap::new();
    let text = text.split("--- standard error ---").next().unwrap_or_default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        *heads.entry(words.join(" ")).or_default() += 1;
    }
    heads
}
