//! The gain that shares predict of a change, and the gain of the change.

use std::process::Command;

use whit_measure::measure;

use super::recorders::Recorder;
use super::run::{Bench, share_among};
use super::{FREE_HZ, Gain};
use crate::error::{self, Error};

/// The function that is made faster: `f1` of the mode `flat`.
const FUNCTION: &str = "f1";
/// Units of a run: some seconds.
const UNITS: u64 = 6_000_000;
/// Pairs of runs, without and with the change.
const PAIRS: usize = 7;

pub(super) fn gain(bench: &Bench<'_>, percent: u32, recorders: &[Recorder]) -> Result<Gain, Error> {
    let words = |percent: u32| [format!("faster:{percent}"), UNITS.to_string()];
    let mut gain = Gain { faster_percent: percent, ..Gain::default() };
    let predicts = |share: f64| share * f64::from(percent) / 100.0;
    for recorder in recorders {
        let (counted, sampled, _) = bench.record(recorder, FREE_HZ, &words(0))?;
        gain.by_counts = predicts(counted.get(FUNCTION).copied().unwrap_or_default());
        let share = share_among(&counted, &sampled, FUNCTION);
        gain.predicted.push((recorder.kind.name().to_owned(), predicts(share)));
    }
    let mut gains = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let before = cpu_s(bench, &words(0))?;
        let after = cpu_s(bench, &words(percent))?;
        gains.push(100.0 * (before - after) / before);
    }
    gains.sort_by(f64::total_cmp);
    gain.measured = [gains[PAIRS / 2], gains[0], gains[PAIRS - 1]];
    Ok(gain)
}

/// CPU time of a run in user mode.
fn cpu_s(bench: &Bench<'_>, words: &[String]) -> Result<f64, Error> {
    let mut command = Command::new(bench.program());
    command.args(words);
    let run = measure::run(command, bench.options.setup.limit);
    let run = run.map_err(error::run(bench.program()))?;
    Ok(run.user_s)
}
