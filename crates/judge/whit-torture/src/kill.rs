//! Recorders killed at random moments.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Setting;
use crate::faces::{look, problem};
use crate::recorders::STREAMING;
use crate::verdict::Verdict;

/// Recorders that are killed at full effort.
const KILLS: u64 = 100;
/// Latest moment of the kill.
const LATEST_MS: u64 = 1500;
/// Work that outlives every recorder, unless it is ended.
const WORK: &str = "while :; do :; done";
/// Ways of the BPF engine, beside those of streaming.
const ENGINE: [&[&str]; 2] =
    [&["--engine=bpf", "--switch-events"], &["--engine=bpf", "--switch-events", "-z", "--threads"]];

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let has_perf = Command::new("perf").arg("--version").output().is_ok_and(|o| o.status.success());
    if !has_perf {
        verdict.skipped.push("perf reads the export: there is no perf here".to_owned());
    }
    let modes: Vec<_> = STREAMING.iter().copied().chain(ENGINE).collect();
    let (mut unborn, mut exported) = (0, 0);
    for number in 0..setting.times(KILLS) {
        let mode = modes[number as usize % modes.len()];
        let scratch = tempfile::tempdir().context("cannot make a directory")?;
        let data = scratch.path().join("perf.data");
        let after = Duration::from_millis(setting.random.u64(1..LATEST_MS));
        kill_after(setting, mode, &data, after)?;
        if !data.exists() {
            unborn += 1;
            verdict.attempt(None);
            continue;
        }
        let ended = look(&setting.whit, &["report", "--stats"], &data, scratch.path())?;
        let mut bad = problem(&["report", "--stats"], &ended);
        // A file without a header is refused in a sentence; everything else has to be read.
        let is_begun = ended.code == Some(0);
        if bad.is_none() && is_begun && has_perf {
            bad = export_problem(setting, &data, scratch.path())?;
            exported += 1;
        }
        let case = format!("kill {number} of {} after {after:?}", mode.join(" "));
        verdict.attempt(bad.map(|why| format!("{case}: {why}")));
    }
    verdict.figures.push(format!("{unborn} were killed before their file was there"));
    verdict.figures.push(format!("{exported} exports were read by perf"));
    Ok(verdict)
}

fn kill_after(setting: &Setting, mode: &[&str], data: &Path, after: Duration) -> Result<()> {
    let mut work = Command::new("sh").args(["-c", WORK]).spawn().context("cannot run sh")?;
    let pid = work.id().to_string();
    let mut command = Command::new(&setting.whit);
    command
        .args(["record", "--engine=ring", "-e", "cpu-clock", "-F", "2000", "-g", "-p", &pid])
        .args(mode);
    let recorder = command.arg("-o").arg(data).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut recorder = recorder.context("cannot run whit")?;
    std::thread::sleep(after);
    recorder.kill().context("cannot kill whit")?;
    recorder.wait()?;
    work.kill().context("cannot end the work")?;
    work.wait()?;
    Ok(())
}

/// Stock perf has to read `whit export --perf` of the rest, with as many samples as whit counts.
fn export_problem(setting: &Setting, data: &Path, scratch: &Path) -> Result<Option<String>> {
    let export = scratch.join("export.data");
    let mut whit = Command::new(&setting.whit);
    let output = whit.args(["export", "--perf", "-i"]).arg(data).arg("-o").arg(&export).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Ok(Some(format!("whit export --perf: {}", said.trim())));
    }
    let mut perf = Command::new("perf");
    let by_perf = perf.args(["report", "--stats", "-i"]).arg(&export).output()?;
    if !by_perf.status.success() {
        let said = String::from_utf8_lossy(&by_perf.stderr).into_owned();
        return Ok(Some(format!("perf report of the export: {}", said.trim())));
    }
    let mut whit = Command::new(&setting.whit);
    let by_whit = whit.args(["report", "--stats", "-i"]).arg(data).output()?;
    let (perf, whit) = (samples(&by_perf.stdout), samples(&by_whit.stdout));
    Ok((perf != whit).then(|| format!("perf counts {perf} samples, whit {whit}")))
}

/// The first count of samples in the output of `report --stats`.
fn samples(text: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find(|line| line.trim_start().starts_with("SAMPLE events:"));
    let count =
        line.and_then(|line| line.split(':').nth(1)?.split_whitespace().next()?.parse().ok());
    count.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::samples;

    #[test]
    fn samples_are_counted_in_perfs_words() {
        assert_eq!(
            samples(b"\nAggregated stats:\n   TOTAL events: 9\n  SAMPLE events:   7 (3%)\n"),
            7
        );
        assert_eq!(samples(b"nothing"), 0);
    }
}
