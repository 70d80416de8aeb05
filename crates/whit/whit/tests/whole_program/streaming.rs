//! Every way from the rings to the disk, alone and together: whit, perf and samply read back the
//! number of samples that the recorder reports.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::stats::Stats;
use crate::support::tools::{command, newest_perf, perf, record, succeed, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run::{stderr, stdout};
use whit_testing::wait::Busy;

/// The modes, one by one and mixed; the last one is everything at once.
const MODES: [&str; 14] = [
    "",
    "--aio",
    "--aio=4",
    "-z",
    "-z9",
    "-z --aio=2",
    "--affinity=cpu",
    "--affinity=node --aio",
    "--mmap-flush=64K",
    "--dir",
    "--dir -z",
    "--threads",
    "--threads=numa -z",
    "--threads=cpu --aio=4 --affinity=cpu -z3 --mmap-flush=16K",
];

struct Recorded {
    path: PathBuf,
    /// The recorder's own count.
    samples: u64,
    lost: u64,
}

/// The number behind a word of the line after a recording.
fn number_behind(line: &str, word: &str) -> u64 {
    let mut words = line.split_ascii_whitespace().skip_while(|w| *w != word).skip(1);
    words.next().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no {word} in {line}"))
}

/// Records with whit; gives what the line after the recording says.
fn whit_record(directory: &Path, mode: &str, options: &[&str]) -> Result<Recorded, Skip> {
    let path = directory.join("whit.data");
    let mut whit = whit();
    whit.args(["record", "--engine=ring"])
        .args(mode.split_ascii_whitespace())
        .arg("-o")
        .arg(&path)
        .args(options);
    let line = stderr(&whit_testing::run::record(&mut whit)?);
    let line = line.lines().last().unwrap_or_default();
    let samples = number_behind(line, "record:");
    Ok(Recorded { path, samples, lost: number_behind(line, "lost") })
}

fn stats(mut tool: Command, path: &Path) -> Stats {
    Stats::parse(&text(tool.args(["report", "--stats", "-i"]).arg(path)))
}

fn assert_counts(mode: &str, recorded: &Recorded) -> Result<(), Skip> {
    let ours = stats(whit(), &recorded.path);
    assert!(recorded.samples > 0, "{mode}: nothing was recorded");
    assert_eq!(ours.samples(), recorded.samples, "{mode}");
    assert_eq!(stats(perf()?, &recorded.path), ours, "{mode}");
    Ok(())
}

/// Samples as both tools print them, sorted: directories are read stream by stream.
fn lines(mut tool: Command, path: &Path) -> Vec<String> {
    let fields = ["script", "-F", "comm,tid,time,event,ip", "-i"];
    let text = text(tool.args(fields).arg(path));
    let mut lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.sort();
    lines
}

#[test]
fn every_mode_is_read_back_alike() {
    check("every_mode_is_read_back_alike", || {
        let deep = workload("deep")?;
        let directory = tempfile::tempdir().expect("make a directory");
        // It checks more of the headers than the installed one.
        let has_newest = match newest_perf() {
            Ok(_) => true,
            Err(Skip(reason)) => {
                whit_testing::skip("modes by the newest perf", &reason);
                false
            }
        };
        for mode in MODES {
            let target = [deep.to_str().expect("UTF-8"), "--iterations", "10000", "--threads", "3"];
            let options = ["-e", "cpu-clock", "-F", "1999", "--call-graph", "dwarf,4096", "--"];
            let recorded = whit_record(directory.path(), mode, &[&options[..], &target].concat())?;
            assert_counts(mode, &recorded)?;
            if has_newest {
                let newest = stats(newest_perf()?, &recorded.path).samples();
                assert_eq!(newest, recorded.samples, "{mode}");
            }
        }
        Ok(())
    });
}

#[test]
fn every_target_takes_every_mode() {
    check("every_target_takes_every_mode", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let busy = Busy::start();
        let pid = busy.id().to_string();
        let all = *MODES.last().expect("there are modes");
        let targets: [&[&str]; 5] =
            [&["-p", &pid], &["-t", &pid], &["--per-thread", "-p", &pid], &["-a"], &["-C", "0"]];
        for options in targets {
            let options = [&["-e", "cpu-clock", "-F", "499"], options, &["--", "sleep", "0.2"]];
            let recorded = whit_record(directory.path(), all, &options.concat())?;
            assert_counts(all, &recorded)?;
        }
        Ok(())
    });
}

#[test]
fn samples_are_the_same_in_every_form() {
    check("samples_are_the_same_in_every_form", || {
        let deep = workload("deep")?;
        let directory = tempfile::tempdir().expect("make a directory");
        let target =
            ["--", deep.to_str().expect("UTF-8"), "--iterations", "5000", "--threads", "2"];
        for mode in ["-z --aio", "--threads --aio=2 -z --affinity=cpu"] {
            let options = [&["-e", "cpu-clock", "-F", "999"][..], &target].concat();
            let recorded = whit_record(directory.path(), mode, &options)?;
            let (ours, theirs) = (lines(whit(), &recorded.path), lines(perf()?, &recorded.path));
            let different = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            assert_eq!(different, None, "{mode}");
            assert_eq!(ours.len(), theirs.len(), "{mode}");
        }
        Ok(())
    });
}

#[test]
fn binaries_that_are_mapped_meanwhile_have_build_ids() {
    check("binaries_that_are_mapped_meanwhile_have_build_ids", || {
        let deep = workload("deep")?;
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in ["", "--threads -z"] {
            let target = ["--", deep.to_str().expect("UTF-8"), "--iterations", "3000"];
            let options = [&["-e", "cpu-clock", "-F", "999"][..], &target].concat();
            let recorded = whit_record(directory.path(), mode, &options)?;
            let list = text(perf()?.args(["buildid-list", "-i"]).arg(&recorded.path));
            let mut of_file = perf()?;
            let id = text(of_file.args(["buildid-list", "-i"]).arg(&deep));
            let id = id.split_ascii_whitespace().next().expect("the program has a build id");
            let found = list.lines().any(|l| l.starts_with(id) && l.ends_with("/deep"));
            assert!(found && list.contains("/libc.so.6"), "{mode}: {list}");
        }
        Ok(())
    });
}

#[test]
fn pipes_carry_every_mode() {
    check("pipes_carry_every_mode", || {
        let deep = workload("deep")?;
        let directory = tempfile::tempdir().expect("make a directory");
        // perf 6.1 cannot read compressed records from a pipe, its own neither.
        for (mode, by_perf) in [("--aio", true), ("--threads --aio", true), ("--threads -z", false)]
        {
            let path = directory.path().join("piped.data");
            let mut whit_record = whit();
            whit_record.args([
                "record",
                "--engine=ring",
                "-e",
                "cpu-clock",
                "-F",
                "999",
                "-q",
                "-o",
                "-",
            ]);
            whit_record.args(mode.split_ascii_whitespace()).arg("--").arg(&deep);
            let bytes = record(whit_record.args(["--iterations", "5000", "--threads", "2"]))?;
            std::fs::write(&path, bytes).expect("write what was piped");
            let ours = stats(whit(), &path);
            assert!(ours.samples() > 0, "{mode}");
            if by_perf {
                assert_eq!(stats(perf()?, &path).samples(), ours.samples(), "{mode}");
            }
        }
        Ok(())
    });
}

/// Probes the machine.
type Need = fn() -> Result<(), Skip>;

/// Kinds of events and of records, each with the abilities of the machine that it needs.
const PIPED: [(&str, Need); 10] = [
    ("-e page-faults/period=1/", probe::own_events),
    ("-e cpu-clock --call-graph dwarf --namespaces", probe::own_events),
    ("-e cpu-clock --switch-events --threads --aio", probe::own_events),
    ("-a -e cpu-clock -g", probe::whole_cpus),
    ("-a -e cpu-clock --all-cgroups", probe::cgroups),
    ("-e raw_syscalls:sys_enter/period=1/", probe::tracepoints),
    ("-e cpu-clock,sched:sched_waking/period=1/ -g --threads", probe::tracepoints),
    ("-a -e sched:sched_switch/period=1/ -g", probe::tracepoints),
    ("--engine=bpf --no-pack -e cpu-clock -g --switch-events", probe::bpf_stacks),
    ("--engine=bpf -e cpu-clock,sched:sched_waking/period=1/ -g", probe::bpf_stacks),
];

/// perf reads from the pipe itself, and not from a file in which the bytes could be looked for again.
#[test]
fn perf_reads_every_kind_of_record_from_a_pipe() {
    check("perf_reads_every_kind_of_record_from_a_pipe", || {
        let storm = workload("storm")?;
        for (options, need) in PIPED {
            if let Err(Skip(reason)) = need() {
                whit_testing::skip(
                    &format!("perf_reads_every_kind_of_record_from_a_pipe {options}"),
                    &reason,
                );
                continue;
            }
            let mut whit_record = whit();
            whit_record
                .args(["record", "--engine=ring", "-m", "4M", "-o", "-"])
                .args(options.split_whitespace());
            whit_record
                .arg("--")
                .arg(&storm)
                .args(["--forks", "50", "--threads", "8"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut perf = perf()?;
            let mut recorder = whit_record.spawn().expect("run whit");
            perf.args(["script", "-F", "event", "-G", "-i", "-"])
                .stdin(recorder.stdout.take().expect("a pipe"));
            let output = perf.output().expect("run perf");
            let (printed, complaint) = (stdout(&output), stderr(&output));
            let output = recorder.wait_with_output().expect("wait for whit");
            let said = stderr(&output);
            assert!(output.status.success() && said.contains("; lost 0 "), "{options}: {said}");
            let samples = number_behind(&said, "record:");
            let lines = printed.lines().filter(|line| !line.trim().is_empty()).count() as u64;
            assert!(samples > 0, "{options}: {said}");
            assert_eq!(lines, samples, "{options}: {complaint} {said}");
        }
        Ok(())
    });
}

#[test]
fn samply_reads_every_plain_file() {
    check("samply_reads_every_plain_file", || {
        probe::program("samply")?;
        let deep = workload("deep")?;
        let directory = tempfile::tempdir().expect("make a directory");
        // It reads neither directories nor compressed records, perf's no more than ours.
        for mode in ["", "--aio=4 --affinity=cpu", "--affinity=node --mmap-flush=64K"] {
            let target = ["--", deep.to_str().expect("UTF-8"), "--iterations", "5000"];
            let options = [&["-e", "cpu-clock", "-F", "999", "-g"][..], &target].concat();
            let recorded = whit_record(directory.path(), mode, &options)?;
            let profile = directory.path().join("profile.json");
            let mut samply = command("samply");
            samply.args(["import", "--save-only", "-o"]).arg(&profile).arg(&recorded.path);
            succeed(&mut samply);
            let text = std::fs::read_to_string(&profile).expect("read samply's profile");
            let json: serde_json::Value = serde_json::from_str(&text).expect("samply writes JSON");
            let threads = json["threads"].as_array().expect("a profile has threads");
            let length = |thread: &serde_json::Value| thread["samples"]["length"].as_u64();
            let samples: u64 = threads.iter().filter_map(length).sum();
            // It leaves out what a thread samples before its exec, and adds none.
            assert!(samples > 0 && samples <= recorded.samples, "{mode}: {samples}");
            assert!(recorded.samples - samples <= recorded.samples / 10, "{mode}: {samples}");
        }
        Ok(())
    });
}

/// With `--mmap-flush` the ring of a quiet CPU keeps its records while others are drained. perf sorts by round
/// marks, and says how often one was wrong.
#[test]
fn perf_sorts_records_that_were_left_in_a_ring() {
    check("perf_sorts_records_that_were_left_in_a_ring", || {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        if cpus < 2 {
            return Err(Skip("there is one CPU here, and one ring".to_owned()));
        }
        let sleeper = workload("sleeper")?;
        let directory = tempfile::tempdir().expect("make a directory");
        let options = ["-a", "-e", "cpu-clock", "-F", "99", "--switch-events", "-m", "1M", "--"];
        let target = [sleeper.to_str().expect("UTF-8"), "--milliseconds", "1000"];
        let mode = "--mmap-flush=256K";
        let recorded = whit_record(directory.path(), mode, &[&options[..], &target].concat())?;
        let mut report = perf()?;
        report.args(["report", "--stdio", "-g", "none", "-i"]).arg(&recorded.path);
        let output = report.output().expect("run perf");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("out of order"), "{said}");
        Ok(())
    });
}

#[test]
fn losses_are_the_same_in_every_form() {
    check("losses_are_the_same_in_every_form", || {
        let deep = workload("deep")?;
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in ["", "-z9 --aio", "--threads -z9"] {
            let options = ["-e", "cpu-clock", "-F", "20000", "-m", "16", "--call-graph"];
            let target =
                ["dwarf,60000", "--", deep.to_str().expect("UTF-8"), "--iterations", "30000"];
            let recorded = whit_record(directory.path(), mode, &[&options[..], &target].concat())?;
            assert!(recorded.lost > 0, "{mode}: nothing was lost");
            let dump = text(
                perf()?
                    .args(["script", "--show-lost-events", "-F", "comm", "-i"])
                    .arg(&recorded.path),
            );
            let of_line = |line: &str| {
                let (_, rest) = line.split_once("PERF_RECORD_LOST lost ")?;
                rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
            };
            let by_records: u64 = dump.lines().filter_map(of_line).sum();
            let ours = stats(whit(), &recorded.path);
            let residue: u64 = ours.lost_by_event.values().sum();
            assert_eq!(by_records + residue, recorded.lost, "{mode}");
        }
        Ok(())
    });
}
