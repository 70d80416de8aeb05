//! Recordings of the workload, and how far their shares are from the counts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_view::hists::ShareInterval;

use super::recorders::{Kind, Recorder};
use super::{Noticed, Options, PROGRAM, Row};
use crate::diff::proofs::{holds, intervals};
use crate::diff::real::profile;
use crate::error::{Error, output_of};
use crate::scratch::Scratch;

/// Words of the warning of `whit switches`.
const IN_STEP: &str = "keep step";

/// Settings of all recordings.
pub(super) struct Bench<'a> {
    pub(super) options: &'a Options,
    scratch: Scratch,
}

/// Shares of functions in percent, as the program counted them.
pub(super) type Counted = HashMap<String, f64>;
/// Shares of functions in percent of all samples, with their intervals.
pub(super) type Sampled = HashMap<String, (f64, ShareInterval)>;

/// One recording against the counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Judged {
    /// Errors of functions, without sign, in percentage points.
    pub(super) errors: Vec<f64>,
    pub(super) held: usize,
}

impl<'a> Bench<'a> {
    pub(super) fn new(options: &'a Options) -> Result<Bench<'a>, Error> {
        Ok(Bench { options, scratch: Scratch::new(&options.setup.directory)? })
    }

    pub(super) fn program(&self) -> PathBuf {
        self.options.setup.workloads.join(PROGRAM)
    }

    fn recording(&self) -> PathBuf {
        self.scratch.path().join("accuracy.data")
    }

    /// Records a mode of the workload. Gives its counts, and the recording's shares with the number of samples.
    pub(super) fn record(
        &self,
        recorder: &Recorder,
        hz: u32,
        words: &[String],
    ) -> Result<(Counted, Sampled, u64), Error> {
        let path = self.recording();
        let program = [&[self.program().display().to_string()], words].concat();
        let printed = output_of(recorder.command(&self.options.event, hz, &path, &program))?;
        let counted = counted(&printed);
        let (sampled, samples) = sampled(&path)?;
        Ok((counted, sampled, samples))
    }

    /// A row for each recorder. They take turns.
    pub(super) fn rows(
        &self,
        mode: &str,
        hz: u32,
        recorders: &[Recorder],
    ) -> Result<Vec<Row>, Error> {
        let words = [mode.to_owned(), self.options.seconds.to_string()];
        let mut found = vec![(Vec::new(), 0); recorders.len()];
        for _ in 0..self.options.runs {
            for (recorder, (judged, samples)) in recorders.iter().zip(&mut found) {
                let (counted, sampled, more) = self.record(recorder, hz, &words)?;
                judged.push(judge(&counted, &sampled));
                *samples += more;
            }
        }
        let row = |(recorder, (judged, samples)): (&Recorder, (Vec<Judged>, u64))| Row {
            workload: mode.to_owned(),
            hz,
            recorder: recorder.kind.name().to_owned(),
            samples,
            ..sum(&judged)
        };
        Ok(recorders.iter().zip(found).map(row).collect())
    }

    /// Whether `whit switches` says that samples keep step with threads that wake up so often, with periods that are drawn and
    /// with fixed ones.
    pub(super) fn noticed(&self, hz: u32) -> Result<Vec<Noticed>, Error> {
        let words = [format!("waking:{hz}"), self.options.seconds.to_string()];
        let mut rows = Vec::new();
        for kind in [Kind::Whit, Kind::WhitFixed] {
            let program = self.options.setup.whit.clone();
            let recorder = Recorder { kind, program, version: String::new() };
            let mut row = Noticed {
                recorder: recorder.kind.name().to_owned(),
                waking_hz: hz,
                hz,
                recordings: self.options.runs,
                ..Noticed::default()
            };
            let mut judged = Vec::new();
            for _ in 0..self.options.runs {
                let path = self.recording();
                let program = [&[self.program().display().to_string()], &words[..]].concat();
                let mut command = Command::new(&recorder.program);
                let arguments = recorder.command(&self.options.event, hz, &path, &program);
                // In front of the command.
                command.args(["record", "--switch-events"]).args(arguments.get_args().skip(1));
                let printed = output_of(command)?;
                let counted = counted(&printed);
                judged.push(judge(&counted, &sampled(&path)?.0));
                row.said += usize::from(self.says_step(&path)?);
            }
            row.mean_error = sum(&judged).mean_error;
            rows.push(row);
        }
        Ok(rows)
    }

    fn says_step(&self, path: &Path) -> Result<bool, Error> {
        let mut command = Command::new(&self.options.setup.whit);
        command.args(["switches", "--json", "-i"]).arg(path);
        Ok(output_of(command)?.contains(IN_STEP))
    }
}

/// The lines `share NAME UNITS` of the workload, in percent.
pub(super) fn counted(text: &str) -> Counted {
    let line = |line: &str| {
        let (name, units) = line.strip_prefix("share ")?.split_once(' ')?;
        Some((name.to_owned(), units.parse::<f64>().ok()?))
    };
    let units: Vec<(String, f64)> = text.lines().filter_map(line).collect();
    let all: f64 = units.iter().map(|(_, units)| units).sum();
    units.into_iter().map(|(name, units)| (name, 100.0 * units / all)).collect()
}

fn sampled(path: &Path) -> Result<(Sampled, u64), Error> {
    let profile = profile(path)?;
    let samples = profile.events.first().map_or(0, |event| event.samples);
    Ok((intervals(&profile), samples))
}

/// A function's share of the samples of all functions that count their work, in percent: other programs may be recorded, too.
pub(super) fn share_among(counted: &Counted, sampled: &Sampled, name: &str) -> f64 {
    let of = |name: &str| sampled.get(name).map_or(0.0, |found| found.0);
    let part: f64 = counted.keys().map(|name| of(name)).sum();
    if part > 0.0 { 100.0 * of(name) / part } else { 0.0 }
}

/// Functions that count their work are a part of all samples: the shares are compared among them, and intervals as parts of
/// that part.
pub(super) fn judge(counted: &Counted, sampled: &Sampled) -> Judged {
    let of = |name: &String| sampled.get(name).map_or(0.0, |found| found.0);
    let part: f64 = counted.keys().map(of).sum();
    let mut judged = Judged::default();
    for (name, truth) in counted {
        let share = share_among(counted, sampled, name);
        judged.errors.push((share - truth).abs());
        let interval = sampled.get(name).map(|found| &found.1);
        judged.held +=
            usize::from(interval.is_some_and(|interval| holds(interval, truth * part / 100.0)));
    }
    judged
}

pub(super) fn sum(judged: &[Judged]) -> Row {
    let errors: Vec<f64> = judged.iter().flat_map(|one| one.errors.iter().copied()).collect();
    Row {
        mean_error: errors.iter().sum::<f64>() / errors.len().max(1) as f64,
        largest_error: errors.iter().copied().fold(0.0, f64::max),
        functions: errors.len(),
        held: judged.iter().map(|one| one.held).sum(),
        ..Row::default()
    }
}
