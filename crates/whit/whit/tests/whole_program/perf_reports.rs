//! Other forms of `whit report` than its plain table: the same lines as those of the installed perf on the same
//! recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::perf_rows::{START, in_directory, narrow, place, record_program, write_branches};
use crate::script_fields::assert_same_samples;
use crate::support::tools::{newest_perf, perf, record, repository, text, whit, workload};
use crate::support::{Skip, check};

/// The lines of a report that are not about the tool: its tables, with the lines that name their events.
fn lines(report: &str) -> Vec<&str> {
    const OWN: [&str; 9] = [
        "# To display",
        "# Total Lost",
        "# (Tip",
        "# Precision",
        "# Warning",
        "# Self time",
        "# Overhead of recording",
        "# Ledger",
        "# Lost:",
    ];
    let is_own = |line: &&str| OWN.iter().any(|start| line.starts_with(start));
    let is_empty = |line: &&str| line.trim_end_matches('#').trim().is_empty();
    let lines = report.lines().filter(|line| !is_own(line) && !is_empty(line));
    lines.map(str::trim_end).collect()
}

fn run(mut tool: Command, path: &Path, arguments: &[&str]) -> String {
    // Where it is not JSON, text.
    let output = (!arguments.contains(&"--json")).then_some("--stdio");
    text(tool.arg("report").args(output).arg("-i").arg(path).args(arguments))
}

/// Compares the lines of whit with `arguments` and those of perf with `theirs`.
#[track_caller]
pub(crate) fn assert_same_lines(
    path: &Path,
    arguments: &[&str],
    theirs: &[&str],
) -> Result<(), Skip> {
    let (ours, theirs) = (run(whit(), path, arguments), run(perf()?, path, theirs));
    let as_is = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let (ours, theirs) = (lines(&ours), lines(&theirs));
    assert!(ours.len() > 3, "{arguments:?}: {ours:?}");
    let has_objects = arguments.iter().any(|argument| argument.contains("dso"));
    let (ours, theirs) = match has_objects {
        true => (narrow(&ours), narrow(&theirs)),
        false => (as_is(&ours), as_is(&theirs)),
    };
    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "{arguments:?}: line {index}");
    }
    assert_eq!(ours.len(), theirs.len(), "{arguments:?}");
    Ok(())
}

/// perf prints addresses where whit names a function by its unwind information, so that other code is left out.
const OF_PROGRAM: [&str; 4] = ["-d", "deep-fp", "--no-inline", "--hierarchy"];

#[test]
fn hierarchies_are_perfs() {
    in_directory("hierarchies_are_perfs", |directory| {
        let path = record_program(directory)?;
        for options in [
            &[][..],
            &["-s", "dso,sym", "-g", "none", "-n", "--show-total-period"],
            &["-s", "{comm,dso},sym", "-g", "folded"],
            &["-s", "dso,sym", "-g", "flat", "--show-cpu-utilization"],
            &["-s", "dso,sym", "-g", "callee"],
            &["--no-children", "--percent-limit", "10"],
            &["-s", "comm,dso", "-g", "none", "--percent-limit", "99.99"],
        ] {
            let all = [&OF_PROGRAM[..], options].concat();
            assert_same_lines(&path, &all, &all)?;
        }
        // Without a filter: the sums of all code, whatever its names.
        for keys in ["comm,dso", "pid,dso", "dso,comm,cpu"] {
            let all = ["--hierarchy", "-g", "none", "-s", keys];
            assert_same_lines(&path, &all, &all)?;
        }
        let branches = write_branches(directory);
        let all = ["--hierarchy", "-b", "-s", "dso_from,dso_to"];
        assert_same_lines(&branches, &all, &all)
    });
}

/// Tasks stand in order of their numbers; perf has them in the order of a hash table.
#[track_caller]
fn assert_same_tasks(path: &Path, option: &str) -> Result<(), Skip> {
    let (ours, theirs) = (run(whit(), path, &[option]), run(perf()?, path, &[option]));
    let sorted = |report: &str| {
        let mut lines: Vec<_> = lines(report).into_iter().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&ours), sorted(&theirs), "{option} of {}", path.display());
    Ok(())
}

#[test]
fn tasks_and_their_memory_are_perfs() {
    in_directory("tasks_and_their_memory_are_perfs", |directory| {
        let path = directory.join("perf.data");
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-e", "cpu-clock:u", "-o"]).arg(&path);
        let programs = "\"$0\" --count 20; \"$1\" > /dev/null; exec true";
        let program = |name| workload(name);
        recorder.args(["--", "sh", "-c", programs]).args([program("forks")?, program("pool")?]);
        record(&mut recorder)?;
        let listed = run(whit(), &path, &["--tasks"]);
        assert!(listed.lines().count() > 20, "{listed}");
        let golden = repository().join("tests/recordings/golden");
        let made =
            ["perf-threads", "perf-group"].map(|name| golden.join(name).join("recording.data"));
        for path in [path].iter().chain(&made) {
            assert_same_tasks(path, "--tasks")?;
            assert_same_tasks(path, "--mmaps")?;
        }
        Ok(())
    });
}

/// A group and an event of its own; some rows have only one event of the group.
fn record_groups(directory: &Path) -> Result<std::path::PathBuf, Skip> {
    let path = directory.join("groups.data");
    let mut recorder = perf()?;
    recorder.args(["record", "--no-buildid-cache", "-q", "-g", "-e"]);
    recorder.args(["{cpu-clock:u,page-faults:u,context-switches:u}", "-e", "task-clock:u", "-o"]);
    let program = workload("deep-fp")?;
    record(recorder.arg(&path).arg("--").arg(program).args(["--iterations", "30000"]))?;
    Ok(path)
}

#[test]
fn groups_are_perfs() {
    in_directory("groups_are_perfs", |directory| {
        let path = record_groups(directory)?;
        for options in [
            &["--no-children", "-g", "none"][..],
            &["--no-children", "-g", "callee", "--group-sort-idx", "1"],
            &["--no-children", "-g", "none", "-n", "--show-total-period"],
            &["--hierarchy", "-g", "none"],
        ] {
            let of_program = ["-d", "deep-fp", "--no-inline"];
            let theirs = [&of_program[..], options].concat();
            let all = [&theirs[..], &["--self-time", "outer"]].concat();
            assert_same_lines(&path, &all, &theirs)?;
        }
        // Without a filter: the sums of all code, whatever its names.
        for options in [
            &["-s", "comm,dso", "-g", "none", "--no-children"][..],
            &["-s", "comm,dso", "-g", "none", "--no-children", "--group-sort-idx", "1"],
            &["-s", "dso", "-g", "none", "--no-children", "--show-cpu-utilization"],
            &["-F", "overhead,sample,dso", "-g", "none"],
            &["-s", "dso", "-g", "none", "--hierarchy", "--percent-limit", "1"],
        ] {
            assert_same_lines(&path, options, options)?;
        }
        let plain = record_program(directory)?;
        let made = record_two_events(directory)?;
        let options = ["--group", "-s", "comm,dso", "-g", "none", "--no-children"];
        assert_same_lines(&plain, &options, &options)?;
        assert_same_lines(&made, &options, &options)
    });
}

/// Two events that are no group.
fn record_two_events(directory: &Path) -> Result<std::path::PathBuf, Skip> {
    let path = directory.join("two.data");
    let mut recorder = perf()?;
    recorder.args(["record", "--no-buildid-cache", "-q", "-e", "cpu-clock:u", "-e"]);
    recorder.args(["page-faults:u", "-o"]).arg(&path).arg("--").arg(workload("forks")?);
    record(recorder.args(["--count", "20"]))?;
    Ok(path)
}

/// perf 6.1 crashes on such files. The blocks are those that perf documents: the cycles of a branch are those since the
/// branch before, and the longest block that ends at a branch stands for all of them.
#[test]
fn blocks_have_the_cycles_of_their_last_branches() {
    in_directory("blocks_have_the_cycles_of_their_last_branches", |directory| {
        let path = write_branches(directory);
        let function = |address: u64| (address - 0x200) / 0x40;
        let mut expected: BTreeMap<u64, (u64, u64, Option<u64>)> = BTreeMap::new();
        for at in 0..60 {
            let target = |branch: u64| place(at / 3 + 2 * branch) - START;
            for branch in 0..3 {
                let (end, cycles) = (place(at / 2 + branch) - START, at % 5);
                let start = (branch < 2).then(|| target(branch + 1));
                let start = start.filter(|s| function(*s) == function(end) && *s < end);
                if cycles > 0 {
                    let sum = expected.entry(end).or_default();
                    let first = sum.2.into_iter().chain(start).min();
                    *sum = (sum.0 + 1, sum.1 + cycles, first);
                }
            }
        }
        let report = run(whit(), &path, &["--total-cycles", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let event = &report["events"][0];
        let number = |of: &serde_json::Value, name: &str| of[name].as_u64();
        let blocks = event["blocks"].as_array().expect("blocks").iter().map(|block| {
            let [branches, cycles] =
                ["branches", "cycles"].map(|name| number(block, name).unwrap());
            (number(block, "end").unwrap(), (branches, cycles, number(block, "start")))
        });
        assert_eq!(blocks.collect::<BTreeMap<_, _>>(), expected);
        let cycles: u64 = expected.values().map(|(_, cycles, _)| cycles).sum();
        assert_eq!((number(event, "period"), cycles), (Some(cycles), 360));
        let table = run(whit(), &path, &["--total-cycles"]);
        assert!(table.contains("  [240 -> 244]  calls          outer\n"), "{table}");
        Ok(())
    });
}

#[test]
fn samples_at_addresses_are_perfs() {
    in_directory("samples_at_addresses_are_perfs", |directory| {
        let path = record_program(directory)?;
        let script = |mut tool: Command, arguments: &[&str]| {
            let place = ["script", "-G", "-F", "comm,ip", "-i"];
            text(tool.args(place).arg(&path).args(arguments))
        };
        let all = script(whit(), &[]);
        let mut addresses: Vec<u64> = all
            .lines()
            .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok())
            .collect();
        addresses.sort_unstable();
        let middle = addresses[addresses.len() / 2];
        let [one, other] = [middle, middle + 1].map(|address| format!("{address:#x}"));
        let mut counts = Vec::new();
        for arguments in [
            &["-S", &one][..],
            &["-S", &one, "--addr-range", "16"],
            &["-S", &other, "--addr-range", "4096"],
        ] {
            let ours = script(whit(), arguments);
            assert_eq!(ours, script(perf()?, arguments), "{arguments:?}");
            counts.push(ours.lines().count());
        }
        assert!(counts[0] > 0 && counts[0] < addresses.len(), "{counts:?}");
        let range = middle + 1..middle + 4097;
        assert_eq!(counts[2], addresses.iter().filter(|one| range.contains(one)).count());
        Ok(())
    });
}

#[test]
fn files_of_events_are_perfs() {
    in_directory("files_of_events_are_perfs", |directory| {
        let path = record_two_events(directory)?;
        let events = ["cpu-clock:u", "page-faults:u"];
        let dumps = |mut tool: Command| {
            text(tool.args(["script", "--per-event-dump", "-i"]).arg(&path));
            events.map(|event| {
                let file = directory.join(format!("two.data.{event}.dump"));
                let dump = std::fs::read_to_string(&file).expect("read a dump");
                std::fs::remove_file(&file).expect("remove a dump");
                dump
            })
        };
        let (ours, theirs) = (dumps(whit()), dumps(perf()?));
        for (our, their) in ours.iter().zip(&theirs) {
            assert!(!our.is_empty(), "{ours:?}");
            // A page fault may be in a PLT, which perf names in another way.
            assert_same_samples(our, their, &["--per-event-dump"]);
        }
        Ok(())
    });
}

/// perf shows single samples in its browser alone: each has to be one of the row's in `whit script`.
#[test]
fn single_samples_are_those_of_their_rows() {
    in_directory("single_samples_are_those_of_their_rows", |directory| {
        let path = record_program(directory)?;
        let options = ["--no-inline", "--ns", "-G", "-F", "time,ip,sym", "-i"];
        let script = text(whit().arg("script").args(options).arg(&path));
        let sample = |line: &str| {
            let (time, rest) = line.trim().split_once(':')?;
            let name = rest.trim().split_once(' ')?.1.to_owned();
            Some((time.replace('.', "").parse::<u64>().ok()?, name))
        };
        let all: BTreeMap<u64, String> = script.lines().filter_map(sample).collect();
        let options = ["--json", "--no-inline", "--no-children", "-s", "sym", "--samples", "3"];
        let report = run(whit(), &path, &options);
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let mut seen = 0;
        for row in report["events"][0]["rows"].as_array().expect("rows") {
            let examples = row["examples"].as_array().expect("examples");
            let count = row["self"]["samples"].as_u64().expect("samples");
            assert_eq!(examples.len() as u64, count.min(3), "{row}");
            for example in examples.iter().filter(|_| row["symbol"]["known"] == true) {
                let name = &all[&example["time_ns"].as_u64().expect("a time")];
                let listed = row["symbol"]["name"].as_str().expect("a name");
                seen += u64::from(name == listed);
                assert!(name == listed || name == "[unknown]", "{name} is no {listed}");
            }
        }
        assert!(seen > 10, "{seen} samples of {}", all.len());
        let table = run(whit(), &path, &["--no-children", "-g", "none", "--samples", "2"]);
        assert!(table.matches("            sample at ").count() > 10, "{table}");
        Ok(())
    });
}

/// Lines of perf's header that whit writes in another form, or has more of.
const OWN_FORM: [&str; 9] = [
    "# captured on",
    // perf has times from another feature, and prints zeros without it.
    "# time of",
    "# sample duration",
    "# reference time",
    // perf 7 looks it up on its own machine.
    "# e_machine",
    "# missing features",
    // Other tests load BPF programs meanwhile: whit has their ids, perf names, addresses and sizes, too.
    "# bpf_prog_info",
    "# \tsub_prog",
    "# btf info empty",
];

#[test]
fn the_header_has_the_lines_of_perf() {
    in_directory("the_header_has_the_lines_of_perf", |directory| {
        let path = directory.join("perf.data");
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-k", "monotonic", "-z"]);
        recorder.args(["-e", "{cpu-clock,page-faults}", "-g", "-o"]).arg(&path);
        record(recorder.args(["--", "ls", "-l", "/"]))?;
        let theirs = run(perf()?, &path, &["--header-only"]);
        let ours = run(whit(), &path, &["--header-only"]);
        let ours: Vec<_> = ours.lines().map(str::trim_end).collect();
        // whit has no option that prints these sections.
        let theirs = theirs.replace(", use -I to display", "");
        let compared = theirs.lines().map(str::trim_end);
        let compared = compared.filter(|line| !OWN_FORM.iter().any(|own| line.starts_with(own)));
        let compared: Vec<_> = compared.collect();
        let missing: Vec<_> = compared.iter().filter(|line| !ours.contains(line)).collect();
        assert!(missing.is_empty(), "{missing:#?}\n{ours:#?}");
        for start in ["# event : name = page-faults, , id = {", "# pmu mappings", "# group: {"] {
            assert!(compared.iter().any(|line| line.starts_with(start)), "{start}: {theirs}");
        }
        Ok(())
    });
}

/// Programs with names that differ in numbers alone.
#[test]
fn names_of_commands_without_numbers_are_those_of_perf() {
    check("names_of_commands_without_numbers_are_those_of_perf", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let mut script = Vec::new();
        for name in ["worker1:20", "worker33:4", "9", "plain"] {
            let program = folder.path().join(name);
            whit_testing::run::copy_program(workload("deep")?, &program);
            script.push(format!("{} --iterations 20000", program.display()));
        }
        let path = folder.path().join("recording.data");
        let mut recorder = whit();
        recorder.args(["record", "--engine=ring", "-q", "-e", "cpu-clock:u", "-o"]).arg(&path);
        record(recorder.args(["--", "sh", "-c", &script.join(" && ")]))?;
        for keys in ["comm_nodigit", "comm_nodigit,dso"] {
            let theirs = run(newest_perf()?, &path, &["-s", keys]);
            let ours = run(whit(), &path, &["-s", keys]);
            assert_eq!(narrow(&lines(&ours)), narrow(&lines(&theirs)), "{keys}");
            assert!(ours.contains("worker<N>:<N>"), "{ours}");
        }
        Ok(())
    });
}
