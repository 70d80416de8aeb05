//! Every way from the rings to the disk, alone and together: whit, perf and samply read back the
//! number of samples that the recorder reports.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::stats::Stats;
use crate::support::tools::{command, newest_perf, perf, record, succeed, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run::{stderr, stdout};
use whit_testing::wait::{Busy, Load};

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

/// Processes that each run for some milliseconds.
const COMPILERS: &str = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo 'int main(void) { return 0; }' | cc -O2 -x c -o \"$0\" - && \"$0\"
done";

/// A frame of a printed chain: its address, and whether it is in a known binary.
fn frame(line: &str) -> Option<(&str, bool)> {
    let line = line.strip_prefix('\t')?.trim();
    // Functions of Python are in no binary.
    let is_known = !["([unknown])", "([python])"].iter().any(|it| line.ends_with(it));
    Some((line.split(' ').next()?, is_known))
}

/// Frames of these commands in a recording, and how many of them are in a known binary by whit and by perf. Samples of a
/// thread that has ended have no command in perf, so the frames are those that have it in whit.
fn known_frames(path: &Path, comms: &[&str]) -> Result<[usize; 3], Skip> {
    let options = ["script", "--no-inline", "-F", "comm,ip,sym,dso", "-i"];
    let script = |mut tool: Command| text(tool.args(options).arg(path));
    let (ours, theirs) = (script(whit()), script(newest_perf()?));
    assert_eq!(ours.lines().count(), theirs.lines().count());
    let (mut counts, mut is_wanted) = ([0; 3], false);
    for (our, their) in ours.lines().zip(theirs.lines()) {
        if let Some(comm) = Some(our.trim()).filter(|_| !our.starts_with('\t')) {
            is_wanted = comms.contains(&comm);
        }
        let (our, their) = (frame(our), frame(their));
        assert_eq!(our.map(|our| our.0), their.map(|their| their.0));
        let is_known = |of: Option<(_, bool)>| of.is_some_and(|(_, is_known)| is_known);
        let found = [our.is_some(), is_known(our), is_known(their)];
        for (count, is_found) in counts.iter_mut().zip(found) {
            *count += usize::from(is_found && is_wanted);
        }
    }
    Ok(counts)
}

#[test]
fn chains_of_short_processes_have_the_same_frames_and_binaries_in_perf() {
    check("chains_of_short_processes_have_the_same_frames_and_binaries_in_perf", || {
        probe::bpf_stacks()?;
        probe::program("cc")?;
        let directory = tempfile::tempdir().expect("make a directory");
        let (path, program) = (directory.path().join("perf.data"), directory.path().join("empty"));
        let mut recorder = whit();
        recorder.args(["record", "-a", "--threads", "--engine=bpf", "-e", "cpu-clock"]);
        recorder
            .args(["-F", "997", "-o"])
            .arg(&path)
            .args(["--", "sh", "-c", COMPILERS])
            .arg(&program);
        whit_testing::run::record(&mut recorder)?;
        let of_compilers = ["sh", "cc", "cc1", "as", "collect2", "ld", "empty"];
        let [frames, here, there] = known_frames(&path, &of_compilers)?;
        assert!(frames > 1000, "{frames} frames");
        // The two differ where a process ends or executes another program: in 23 of 41,909 frames when this was written.
        assert!(
            here.abs_diff(there) * 200 < frames,
            "of {frames}: {here} by whit, {there} by perf"
        );
        assert!(there * 100 > frames * 95, "{there} of {frames} have a binary in perf");
        Ok(())
    });
}

/// Makes a thread with a lower number than its process: the kernel continues where numbers were given last.
const LOWER_THREAD: &str = "
import os, threading
def spin():
    print('ready', flush=True)
    while True:
        pass
with open('/proc/sys/kernel/ns_last_pid', 'w') as last:
    last.write(str(os.getpid() // 2))
thread = threading.Thread(target=spin)
thread.start()
assert thread.native_id < os.getpid(), (thread.native_id, os.getpid())
";

#[test]
fn a_thread_with_a_lower_number_than_its_process_has_its_binaries_in_perf() {
    check("a_thread_with_a_lower_number_than_its_process_has_its_binaries_in_perf", || {
        probe::bpf_stacks()?;
        probe::program("python3")?;
        let _machine = probe::may_change_the_machine()?;
        if !Path::new("/proc/sys/kernel/ns_last_pid").exists() {
            return Err(Skip("the kernel lets no program choose numbers of processes".into()));
        }
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut python = command("python3");
        let (python, output) = Load::with_output(python.args(["-c", LOWER_THREAD]));
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("its output");
        assert_eq!(line, "ready\n");
        let mut recorder = whit();
        recorder.args(["record", "--engine=bpf", "-e", "cpu-clock", "-F", "997", "-p"]);
        recorder.arg(python.id().to_string()).arg("-o").arg(&path).args(["--", "sleep", "0.5"]);
        whit_testing::run::record(&mut recorder)?;
        let [frames, here, there] = known_frames(&path, &["python3"])?;
        assert!(frames > 500, "{frames} frames");
        assert!(here * 3 > frames, "{here} of {frames}");
        assert_eq!(here, there, "of {frames}");
        Ok(())
    });
}
