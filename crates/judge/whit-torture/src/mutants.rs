//! Damaged recordings in every face.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Setting;
use crate::faces::{FACES, look, problem};
use crate::mutate::mutate;
use crate::recorders::{CONTENTS, record};
use crate::verdict::Verdict;

/// Mutants at full effort.
const MUTANTS: u64 = 20_000;
/// Faces that look at each; all of them come in turn.
const FACES_EACH: usize = 3;

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let mut verdict = Verdict::default();
    let whole = recordings(setting, scratch.path(), &mut verdict)?;
    let mutant = scratch.path().join("mutant.data");
    let (mut slowest, mut largest) = ((Duration::ZERO, String::new()), (0, String::new()));
    let (mut refused, mut looks) = (0u64, 0usize);
    for number in 0..setting.times(MUTANTS) {
        let original = &whole[setting.random.usize(0..whole.len())];
        let mut bytes = original.bytes.clone();
        let damage = mutate(&mut bytes, &mut setting.random);
        std::fs::write(&mutant, &bytes).context("cannot write a mutant")?;
        for _ in 0..FACES_EACH {
            let face = FACES[looks % FACES.len()];
            looks += 1;
            let ended = look(&setting.whit, face, &mutant, scratch.path())?;
            let case = format!("{} of {} ({damage}), {}", number, original.name, face.join(" "));
            refused += u64::from(ended.code.is_some_and(|code| code != 0));
            if ended.cpu > slowest.0 {
                slowest = (ended.cpu, case.clone());
            }
            if ended.peak_bytes > largest.0 {
                largest = (ended.peak_bytes, case.clone());
            }
            let bad = problem(face, &ended).map(|why| format!("mutant {case}: {why}"));
            if bad.is_some() {
                let kept = setting.failures.join(format!("mutant-{number}.data"));
                std::fs::copy(&mutant, &kept).context("cannot keep a mutant")?;
            }
            verdict.attempt(bad);
        }
    }
    verdict.figures.push(format!("{refused} looks ended with an error and a message"));
    verdict.figures.push(format!(
        "slowest: {:.2} s of CPU time, {}",
        slowest.0.as_secs_f64(),
        slowest.1
    ));
    verdict.figures.push(format!("largest: {} MiB, {}", largest.0 >> 20, largest.1));
    Ok(verdict)
}

struct Whole {
    name: String,
    bytes: Vec<u8>,
}

/// Recordings to damage: new ones of every kind that this machine makes, and those of the repository.
fn recordings(setting: &Setting, scratch: &Path, verdict: &mut Verdict) -> Result<Vec<Whole>> {
    let mut all = Vec::new();
    for (number, mode) in CONTENTS.iter().enumerate() {
        let path = scratch.join(format!("{number}.data"));
        match record(&setting.whit, mode, &path) {
            Ok(()) => all.push(Whole { name: mode.join(" "), bytes: std::fs::read(&path)? }),
            Err(error) => verdict.skipped.push(format!("{error:#}")),
        }
    }
    for path in golden() {
        let name = path.parent().and_then(Path::file_name).unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        all.push(Whole { name, bytes: std::fs::read(&path)? });
    }
    anyhow::ensure!(!all.is_empty(), "there is no recording to damage");
    Ok(all)
}

/// The recordings of the repository, where this program was built in one.
fn golden() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/recordings/golden"));
    let directories = std::fs::read_dir(root).into_iter().flatten().flatten();
    let files = directories.filter_map(|entry| std::fs::read_dir(entry.path()).ok());
    let mut paths: Vec<_> = files
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && path.extension().is_some_and(|kind| kind == "data"))
        .collect();
    paths.sort();
    paths
}
