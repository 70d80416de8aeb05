//! Storms of processes, threads, mappings and libraries: all of them are in the recording, or counted as lost.

use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use wait4::Wait4;

use crate::Setting;
use crate::faces::{look, problem};
use crate::recorders::Mode;
use crate::trouble::signal;
use crate::verdict::Verdict;

/// Storms at full effort.
const STORMS: u64 = 36;
/// The load; `bench/workloads/storm.c` says what each does.
const FORKS: u64 = 5000;
const THREADS: u64 = 2000;
const MAPS: u64 = 20_000;
const DLOPENS: u64 = 2000;
const EXECS: u64 = 300;
/// Most memory of a recorder. Rings count only where they are touched.
const RECORDER_MAX_BYTES: u64 = 256 << 20;
/// Longest stop of the recorder, and longest time between two.
const STOP_MAX_MS: u64 = 300;

const MODES: [Mode; 9] = [
    &[],
    &["-g", "--aio"],
    &["-z", "--call-graph", "dwarf,2048"],
    &["--threads", "-g"],
    &["--dir", "--affinity=cpu", "--switch-events"],
    &["-a", "-g"],
    &["--engine=bpf"],
    &["--engine=bpf", "--switch-events", "-z"],
    &["-a", "--engine=bpf", "--switch-events", "--threads"],
];

/// The kinds of records that a storm makes, in the words of `report --stats`, and how many of them.
const PRODUCED: [(&str, u64); 4] = [
    ("FORK", FORKS + THREADS),
    // The program itself ends as well.
    ("EXIT", FORKS + THREADS + 1),
    ("COMM", EXECS),
    // An exec maps the program, its loader and libraries; how many depends on the system.
    ("MMAP2", MAPS + DLOPENS + EXECS),
];
/// In a recording of the storm alone, there are no more records of these kinds.
const EXACT: [&str; 2] = ["FORK", "EXIT"];

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let storm = setting.workloads.join("storm");
    ensure!(storm.is_file(), "there is no {}: make -C bench/workloads storm", storm.display());
    let has_perf = Command::new("perf").arg("--version").output().is_ok_and(|o| o.status.success());
    if !has_perf {
        verdict.skipped.push("perf counts the same records: there is no perf here".to_owned());
    }
    let (mut lost_in_all, mut largest) = (0, 0);
    for number in 0..setting.times(STORMS) as usize {
        let mode = MODES[number % MODES.len()];
        // Every second round with rings that are small and a recorder that is stopped at random.
        let is_late = number / MODES.len() % 2 == 1;
        let scratch = tempfile::tempdir().context("cannot make a directory")?;
        let data = scratch.path().join("perf.data");
        let peak = record(setting, &storm, mode, is_late, &data)?;
        largest = largest.max(peak);
        let (lost, mut bad) = account(setting, mode, &data)?;
        lost_in_all += lost;
        if peak > RECORDER_MAX_BYTES {
            bad.push(format!("the recorder took {} MiB", peak >> 20));
        }
        for face in [&["report", "--stdio", "-g"][..], &["report", "--ledger"]] {
            let ended = look(&setting.whit, face, &data, scratch.path())?;
            bad.extend(problem(face, &ended));
        }
        if has_perf {
            bad.extend(differs_from_perf(&setting.whit, &data)?);
        }
        let case = format!("{}{}", mode.join(" "), if is_late { " (late)" } else { "" });
        verdict.attempt((!bad.is_empty()).then(|| format!("{case}: {}", bad.join("; "))));
    }
    verdict.figures.push(format!("{lost_in_all} records were lost, and counted"));
    verdict.figures.push(format!("the largest recorder took {} MiB", largest >> 20));
    Ok(verdict)
}

/// Records a storm; gives the recorder's peak memory in bytes.
fn record(
    setting: &mut Setting,
    storm: &Path,
    mode: Mode,
    is_late: bool,
    data: &Path,
) -> Result<u64> {
    let mut command = Command::new(&setting.whit);
    command.args(["record", "--engine=ring", "-e", "cpu-clock", "-F", "5000"]).args(mode);
    command
        .args(["-m", if is_late { "16" } else { "16M" }])
        .arg("-o")
        .arg(data)
        .arg("--")
        .arg(storm);
    for (option, count) in
        [("--forks", FORKS), ("--threads", THREADS), ("--maps", MAPS), ("--dlopens", DLOPENS)]
    {
        command.args([option, &count.to_string()]);
    }
    command.args(["--execs", &EXECS.to_string()]);
    let log = data.with_extension("log");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&log)?);
    let mut recorder = command.spawn().context("cannot run whit")?;
    if is_late {
        stop_at_random(&recorder, &mut setting.random)?;
    }
    let used = recorder.wait4()?;
    let said = std::fs::read_to_string(&log)?;
    ensure!(used.status.success(), "cannot record with {mode:?}: {}", said.trim());
    Ok(used.rusage.maxrss)
}

/// Stops the recorder again and again until it has ended, once the storm has begun: the kernel's verifier gives up
/// when signals arrive again and again.
fn stop_at_random(recorder: &Child, random: &mut fastrand::Rng) -> Result<()> {
    let pid = recorder.id().to_string();
    let mut pgrep = Command::new("pgrep");
    pgrep.args(["--parent", &pid, "--exact", "storm"]).stdout(Stdio::null());
    while !has_ended(recorder) && !pgrep.status().context("cannot run pgrep")?.success() {
        std::thread::sleep(Duration::from_millis(20));
    }
    loop {
        std::thread::sleep(Duration::from_millis(random.u64(1..STOP_MAX_MS)));
        if has_ended(recorder) {
            return Ok(());
        }
        signal(recorder, "STOP")?;
        std::thread::sleep(Duration::from_millis(random.u64(1..STOP_MAX_MS)));
        signal(recorder, "CONT")?;
    }
}

/// The kernel keeps an ended child as a zombie until it is waited for, which also gives its peak memory.
fn has_ended(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

/// The number of lost records, and a line for each kind that misses more than these.
fn account(setting: &Setting, mode: Mode, data: &Path) -> Result<(u64, Vec<String>)> {
    let lost = lost(&setting.whit, data)?;
    let stats = output(Command::new(&setting.whit).args(["report", "--stats", "-i"]).arg(data))?;
    let stats = String::from_utf8_lossy(&stats);
    let is_alone = !mode.contains(&"-a");
    let missing = PRODUCED.iter().filter_map(|&(kind, produced)| {
        let recorded = count(&stats, kind);
        let too_few = recorded + lost < produced;
        let too_many = is_alone && EXACT.contains(&kind) && recorded > produced;
        (too_few || too_many)
            .then(|| format!("{recorded} of {produced} {kind} records, {lost} records lost"))
    });
    Ok((lost, missing.collect()))
}

/// The one part of `report --json` that is read. This program's own memory counts as that of a child until its exec,
/// so the rest of the document is never kept.
#[derive(serde::Deserialize)]
struct Report {
    losses: Losses,
}

#[derive(serde::Deserialize)]
struct Losses {
    /// Reported by the kernel.
    lost_records: u64,
    /// Behind the last record of a ring.
    lost_samples: u64,
}

fn lost(whit: &Path, data: &Path) -> Result<u64> {
    let mut command = Command::new(whit);
    command.args(["report", "--json", "-i"]).arg(data).stdin(Stdio::null());
    let mut report = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let stdout = BufReader::new(report.stdout.take().context("no pipe")?);
    let Report { losses } = serde_json::from_reader(stdout).context("whit report --json")?;
    ensure!(report.wait()?.success(), "whit report --json failed");
    Ok(losses.lost_records + losses.lost_samples)
}

/// Stock perf has to count as many records of each kind, in the recording or in its export.
fn differs_from_perf(whit: &Path, data: &Path) -> Result<Vec<String>> {
    let export = data.with_extension("export");
    output(Command::new(whit).args(["export", "--perf", "-i"]).arg(data).arg("-o").arg(&export))?;
    let by_perf = output(Command::new("perf").args(["report", "--stats", "-i"]).arg(&export))?;
    let by_whit = output(Command::new(whit).args(["report", "--stats", "-i"]).arg(data))?;
    let (perf, whit) = (String::from_utf8_lossy(&by_perf), String::from_utf8_lossy(&by_whit));
    let kinds = ["FORK", "EXIT", "COMM", "MMAP2", "SAMPLE", "LOST"];
    let differs = kinds.into_iter().filter(|kind| count(&perf, kind) != count(&whit, kind));
    Ok(differs
        .map(|kind| {
            format!(
                "perf counts {} {kind} records, whit {}",
                count(&perf, kind),
                count(&whit, kind)
            )
        })
        .collect())
}

/// The count of a kind of records in the output of `report --stats`; 0 where it is not named.
fn count(stats: &str, kind: &str) -> u64 {
    let line = stats
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(kind)?.strip_prefix(" events:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output().context("cannot run a program")?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn records_are_counted_by_kind() {
        let stats = "Aggregated stats:\n    MMAP events:   1  ( 0.0%)\n   MMAP2 events:  23  (9%)\n LOST_SAMPLES events: 4\n";
        assert_eq!((count(stats, "MMAP"), count(stats, "MMAP2"), count(stats, "FORK")), (1, 23, 0));
        assert_eq!(count(stats, "LOST"), 0);
    }
}
