//! Recorders that are late, and waits: none that whit calls whole contains a moment at which the thread ran.
//!
//! The truth is the program's own log (`bench/workloads/sleeper.c`).

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Setting;
use crate::accounting;
use crate::recorders::Mode;
use crate::trouble::Trouble;
use crate::verdict::Verdict;

/// Accounts and logs at full effort.
const ACCOUNTS: u64 = 66;
const LOGS: u64 = 60;
const TROUBLES: [Trouble; 2] = [Trouble::StoppedAtRandom, Trouble::Starved];
/// The load. Its storm of context switches fills rings of 64 KiB in some 70 ms.
const LOAD: [&str; 6] = ["--milliseconds", "1300", "--sleepers", "2", "--rest-us", "1000"];

const MODES: [Mode; 10] = [
    &["-a", "--engine=bpf"],
    &["-a", "--engine=bpf", "--no-pack"],
    &["-a", "--engine=bpf", "-z", "--aio"],
    &["-a", "--engine=bpf", "--threads"],
    &["-a", "--engine=bpf", "--wakeups"],
    &["-a", "-k", "monotonic"],
    &["-a", "-k", "monotonic", "--threads", "-z"],
    &["--engine=bpf"],
    &["--engine=bpf", "--sample-cpu", "-z"],
    &["-k", "monotonic", "--sample-cpu"],
];

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let mut verdict = accounting::attack(setting, ACCOUNTS, &TROUBLES)?;
    let sleeper = setting.workloads.join("sleeper");
    ensure!(
        sleeper.is_file(),
        "there is no {}: make -C bench/workloads sleeper",
        sleeper.display()
    );
    let mut all = Waits::default();
    for number in 0..setting.times(LOGS) as usize {
        let mode = MODES[number % MODES.len()];
        let trouble = TROUBLES[number / MODES.len() % TROUBLES.len()];
        let scratch = tempfile::tempdir().context("cannot make a directory")?;
        let data = scratch.path().join("perf.data");
        let log = record(setting, &sleeper, mode, trouble, &data)?;
        let waits = judge(setting, &data, &log)?;
        if !waits.untrue.is_empty() {
            let kept = setting.failures.join(format!("waits-{number}.data"));
            std::fs::copy(&data, &kept).context("cannot keep a recording")?;
        }
        verdict.attempt(waits.untrue.first().map(|first| {
            let (mode, count) = (mode.join(" "), waits.untrue.len());
            format!("{trouble:?} {mode}: {count} false waits, the first of {first}")
        }));
        all.whole += waits.whole;
        all.lossy += waits.lossy;
    }
    verdict
        .figures
        .push(format!("{} waits were called whole, {} touched by a loss", all.whole, all.lossy));
    if all.whole == 0 || all.lossy == 0 {
        verdict
            .failures
            .push("waits were not both whole and lossy: the attack says nothing".into());
    }
    Ok(verdict)
}

/// The moments at which each thread ran.
type Log = HashMap<u64, Vec<u64>>;

fn record(
    setting: &mut Setting,
    sleeper: &Path,
    mode: Mode,
    trouble: Trouble,
    data: &Path,
) -> Result<Log> {
    let mut command = Command::new(&setting.whit);
    command.args([
        "record",
        "--engine=ring",
        "-F",
        "999",
        "-e",
        "cpu-clock",
        "--switch-events",
        "-m",
        "16",
    ]);
    command.args(mode).arg("-o").arg(data).arg("--").arg(sleeper).args(LOAD);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = command.spawn().context("cannot run whit")?;
    let mut stdout = BufReader::new(recorder.stdout.take().context("no pipe")?);
    let mut threads = String::new();
    stdout.read_line(&mut threads).context("cannot read what the program prints")?;
    let sleepers = threads.split_whitespace().find_map(|word| word.strip_prefix("sleepers="));
    let sleepers = sleepers.context("the program names no threads")?.split(',').count();
    let reader = std::thread::spawn(move || read_log(stdout, sleepers));
    trouble.befall(&recorder, &mut setting.random, || {}, &|| reader.is_finished())?;
    let log = reader.join().map_err(|_| anyhow::anyhow!("the log could not be read"))??;
    let output = recorder.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cannot record with {mode:?}: {}", said.trim());
    Ok(log)
}

/// Reads as many lines as there are threads. The pipe may stay open: a recorder that is stopped holds it, too.
fn read_log(mut lines: impl BufRead, threads: usize) -> Result<Log> {
    let mut log = Log::new();
    for _ in 0..threads {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let mut numbers = line
            .strip_prefix("ran tid=")
            .with_context(|| format!("not a line of the log: {line:?}"))?
            .split_whitespace()
            .map(str::parse::<u64>);
        let tid = numbers.next().context("a line without a thread")??;
        log.insert(tid, numbers.collect::<Result<_, _>>()?);
    }
    Ok(log)
}

/// The waits of the threads of a log, by whit.
#[derive(Default)]
struct Waits {
    whole: u64,
    lossy: u64,
    untrue: Vec<String>,
}

fn judge(setting: &Setting, data: &Path, log: &Log) -> Result<Waits> {
    let tids: Vec<_> = log.keys().map(u64::to_string).collect();
    let mut command = Command::new(&setting.whit);
    command.args(["switches", "--json", "--worst", "100000", "--kallsyms", "/dev/null"]);
    let output = command.args(["--tid", &tids.join(","), "-i"]).arg(data).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "whit switches: {}", said.trim());
    let json: Value = serde_json::from_slice(&output.stdout).context("whit switches --json")?;
    let mut waits = Waits::default();
    for wait in json["worst"].as_array().context("no list of waits")? {
        if wait["open"] == true {
            continue;
        }
        if wait["lossy"] == true {
            waits.lossy += 1;
            continue;
        }
        waits.whole += 1;
        let number = |value: &Value| value.as_u64().context("no number");
        let tid = number(&json["threads"][number(&wait["thread"])? as usize]["tid"])?;
        let start = number(&wait["start_ns"])?;
        let end = start + number(&wait["duration_ns"])?;
        waits.untrue.extend(
            moment_within(&log[&tid], start, end)
                .map(|moment| format!("{tid} from {start} to {end}, but it ran at {moment}")),
        );
    }
    Ok(waits)
}

/// The first moment after `start` and before `end`; moments ascend.
fn moment_within(moments: &[u64], start: u64, end: u64) -> Option<u64> {
    let next = moments.partition_point(|moment| *moment <= start);
    moments.get(next).copied().filter(|moment| *moment < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_on_the_edges_of_a_wait_do_not_contradict_it() {
        assert_eq!(moment_within(&[10, 20, 30], 10, 20), None);
        assert_eq!(moment_within(&[10, 20, 30], 10, 21), Some(20));
        assert_eq!(moment_within(&[10, 20, 30], 30, 99), None);
    }

    #[test]
    fn logs_are_read_line_by_line() {
        let log = read_log(&b"ran tid=7 1 2\nran tid=8\nmore"[..], 2).expect("a log");
        assert_eq!((log[&7].clone(), log[&8].len()), (vec![1, 2], 0));
        assert!(read_log(&b"broken\n"[..], 1).is_err());
    }
}
