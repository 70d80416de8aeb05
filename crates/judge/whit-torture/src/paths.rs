//! Hostile things at the paths that a foreign process chooses: reports and recorders that come upon them.
//!
//! Nothing but regular files may be opened there. The judge of that is the kernel, which notes who opens a file.

mod jitdumps;
mod live;
mod places;
mod things;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Setting;
use crate::faces::{Ended, problem_beyond, watch};
use crate::verdict::Verdict;

/// Reports and recorders at full effort.
const REPORTS: u64 = 600;
const RECORDERS: u64 = 60;
/// Most CPU time of one, and the time after which it counts as blocked.
const CPU_MAX: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);

const FACES: [&[&str]; 7] = [
    &["report", "--stdio", "-g"],
    &["report", "--json", "-s", "dso,symbol,srcline"],
    &["script"],
    &["annotate", "--stdio"],
    &["report", "--html", "/dev/stdout"],
    &["export", "--format", "pprof", "-o", "-"],
    &["export", "--format", "folded", "-o", "-"],
];

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    for number in 0..setting.times(REPORTS) as usize {
        let (name, place) = places::ALL[number % places::ALL.len()];
        let thing = things::ALL[number / places::ALL.len() % things::ALL.len()];
        let face = FACES[setting.random.usize(0..FACES.len())];
        let case = format!("{number}: {thing:?} as {name}, {}", face.join(" "));
        let scratch = tempfile::tempdir().context("cannot make a directory")?;
        let mut place = place(scratch.path(), &mut setting.random)?;
        let placed = thing.place(&place.path, std::mem::take(&mut place.damaged))?;
        let ended = report(setting, face, &place, scratch.path());
        let opened = placed.was_opened().then(|| "opened it".to_owned());
        drop(placed);
        // Perf-maps lie in a directory of all.
        let _ = std::fs::remove_file(&place.path).or_else(|_| std::fs::remove_dir(&place.path));
        let bad = problem(face, &ended?).or(opened);
        verdict.attempt(bad.map(|why| format!("{case}: {why}")));
    }
    live::run(setting, &mut verdict)?;
    Ok(verdict)
}

fn report(
    setting: &Setting,
    face: &[&str],
    place: &places::Place,
    scratch: &std::path::Path,
) -> Result<Ended> {
    let mut command = Command::new(&setting.whit);
    command.args(face).arg("-i").arg(&place.data).args(["--kallsyms", "/dev/null"]);
    command.args(&place.options).env("HOME", scratch.join("home"));
    command.envs(place.variables.iter().map(|(name, path)| (name, path)));
    watch(command, PATIENCE, scratch)
}

fn problem(face: &[&str], ended: &Ended) -> Option<String> {
    // Those of text alone are obeyed by terminals.
    let is_text = !face.contains(&"--html") && !face.contains(&"pprof");
    problem_beyond(CPU_MAX, face, ended)
        .filter(|why| is_text || !why.contains("control character") && !why.contains("no UTF-8"))
        .or_else(|| is_empty(face, ended).then(|| "wrote no report".to_owned()))
}

/// Samples have lines, also where nothing is known of their code.
fn is_empty(face: &[&str], ended: &Ended) -> bool {
    matches!(face[0], "report" | "script") && ended.code == Some(0) && ended.stdout.is_empty()
}
