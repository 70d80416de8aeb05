//! Proofs on recordings of a program that exists.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::{ReadOptions, Reading, Samples};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_view::diff::{DiffOptions, Per, Run, diff};
use whit_view::hists::ShareInterval;

use super::proofs::{count, holds, independent, intervals};
use super::{Coverage, FalseCalls, Real, SEVERAL};
use crate::error::{Error, output_of};
use crate::scratch::Scratch;
use crate::setup::Setup;

/// Something with many functions, one of them heavy.
pub(super) const PROGRAM: &str = "deep-fp";
/// About a second.
const ITERATIONS: &str = "150000";
const FREQUENCY_HZ: &str = "4999";
/// Functions with less than that of all samples are not judged, in percent.
const LEAST_SHARE: f64 = 0.5;

/// Records the program so many times, and compares the recordings with each other.
pub(super) fn real(
    recordings: usize,
    setup: &Setup,
    say: &mut dyn FnMut(&str),
) -> Result<Real, Error> {
    let scratch = Scratch::new(&setup.directory)?;
    let path = scratch.path().join("real.data");
    let (mut runs, mut found, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=recordings {
        say(&format!("{PROGRAM}: recording {number} of {recordings}"));
        record(setup, &path)?;
        let profile = profile(&path)?;
        samples.push(profile.events.iter().map(|event| event.samples).sum::<u64>());
        found.push(intervals(&profile));
        runs.push(Run::of(profile, &DiffOptions::default())?);
    }
    Ok(Real {
        program: PROGRAM.to_owned(),
        recordings,
        samples: samples.iter().sum(),
        single: pairs(&runs, 1)?,
        several: pairs(&runs, SEVERAL)?,
        coverage: vec![coverage(&found, &samples)],
    })
}

fn record(setup: &Setup, path: &Path) -> Result<(), Error> {
    let mut command = Command::new(&setup.whit);
    command
        .args(["record", "--engine=ring", "-q", "-F", FREQUENCY_HZ, "-g", "-o"])
        .arg(path)
        .arg("--");
    command.arg(setup.workloads.join(PROGRAM)).args(["--iterations", ITERATIONS]);
    output_of(command).map(drop)
}

/// The profile of a recording, without inlined functions.
pub(crate) fn profile(path: &Path) -> Result<Profile, Error> {
    let mut symbols = SymbolizerConfig::new(DebugDirs::none());
    symbols.inlines = false;
    let (recording, options) = (Recording::open(path)?, ReadOptions::new(1, symbols));
    let question = Samples { blocks: true, ..Samples::default() };
    Ok(Reading::open(&recording, &options).answer(question)?)
}

/// Each recording is in one pair at most, so that pairs do not depend on each other. The sides take turns.
fn pairs(runs: &[Run], a_side: usize) -> Result<FalseCalls, Error> {
    let mut calls = FalseCalls::default();
    for pair in runs.chunks_exact(2 * a_side) {
        let side =
            |parity: usize| -> Vec<Run> { pair.iter().skip(parity).step_by(2).cloned().collect() };
        count(&mut calls, &diff(&side(0), &side(1), &Per::Share)?);
    }
    Ok(calls)
}

/// Judges each recording's intervals by the mean share of the others, whose own error is small beside it.
fn coverage(found: &[HashMap<String, (f64, ShareInterval)>], samples: &[u64]) -> Coverage {
    let of = format!("functions of {LEAST_SHARE} % or more, by the mean of the other recordings");
    let mut coverage = Coverage { of, ..Coverage::default() };
    let share = |run: &HashMap<_, (f64, _)>, name: &String| run.get(name).map_or(0.0, |it| it.0);
    for (one, (run, samples)) in found.iter().zip(samples).enumerate() {
        for (name, (own, interval)) in run {
            let others = found.iter().enumerate().filter(|(other, _)| *other != one);
            let sum: f64 = others.map(|(_, other)| share(other, name)).sum();
            let truth = sum / (found.len() - 1).max(1) as f64;
            if truth >= LEAST_SHARE {
                coverage.intervals += 1;
                coverage.held += usize::from(holds(interval, truth));
                let alone = independent(*own, *samples as f64);
                coverage.held_if_independent += usize::from(holds(&alone, truth));
            }
        }
    }
    coverage
}
