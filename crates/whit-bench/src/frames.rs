//! The cost of a frame of Python in the kernel: the comparison behind `whit bench frames`.
//!
//! A program recurses and returns all the time, to one of several depths, so that hardly any stack is known again. Its
//! samples are walked by the BPF engine. The time of a run grows with the frames of a walk, and the slope is the time of a
//! frame.

use std::fs;
use std::process::Command;

use serde::Serialize;
use whit_measure::measure::{self, Outcome};
use whit_measure::summary::Spread;
use whit_perfdata::ledger::Ledger;
use whit_perfdata::reader::Recording;

use crate::Error;
use crate::markdown::{line_to, number, spread, table_to};
use crate::peer::version;
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;
use crate::turns::order;

/// Recursion to the depth of its first argument, for the seconds of its second one.
const PYTHON: &str = "\
import sys, time
def down(n):
    return down(n - 1) + 1 if n else 0
depth, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for _ in range(100):
        down(depth)
";
/// Depths of the recursion; a stack has half of it on average, and 127 frames at most.
const DEPTHS: [u32; 4] = [30, 60, 90, 120];

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs at each depth.
    pub rounds: usize,
    /// Seconds of each run.
    pub seconds: u32,
    /// Samples a second.
    pub frequency_hz: u32,
    /// The interpreter.
    pub python: String,
    /// Programs, directories and the limit.
    pub setup: Setup,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The machine.
    pub system: System,
    /// The version of whit.
    pub version: String,
    /// The interpreter.
    pub python: String,
    /// One for each depth.
    pub depths: Vec<Depth>,
}

/// Runs at a depth.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Depth {
    /// The depth of the recursion.
    pub depth: u32,
    /// One for each round.
    pub runs: Vec<Walked>,
}

/// The walks of a recording.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Walked {
    /// Stacks that were walked.
    pub walks: u64,
    /// Stacks that were known again, as a share of all.
    pub known_share: f64,
    /// Frames of a walk.
    pub frames: f64,
    /// Runs that the kernel timed.
    pub timed_runs: u64,
    /// Time of a run.
    pub run_ns: f64,
}

impl Walked {
    /// `None` where nothing was walked or timed.
    fn of(ledger: &Ledger) -> Option<Walked> {
        let (stacks, bpf) = (&ledger.stacks, &ledger.bpf);
        let all = stacks.walks + stacks.known_again;
        (stacks.walks > 0 && bpf.runs > 0).then(|| Walked {
            walks: stacks.walks,
            known_share: stacks.known_again as f64 / all as f64,
            frames: stacks.frames as f64 / stacks.walks as f64,
            timed_runs: bpf.runs,
            run_ns: bpf.run_time_ns as f64 / bpf.runs as f64,
        })
    }
}

impl Comparison {
    /// Nanoseconds of a frame: the slope of the line through each round's depths, by least squares.
    pub fn frame_ns(&self) -> Option<Spread> {
        let rounds = self.depths.iter().map(|depth| depth.runs.len()).min().unwrap_or(0);
        let points = |round: usize| {
            self.depths
                .iter()
                .map(move |depth| (depth.runs[round].frames, depth.runs[round].run_ns))
        };
        Spread::of((0..rounds).filter_map(|round| slope(points(round))))
    }
}

/// `None` where all points stand at one place.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    let count = points.clone().count() as f64;
    let sum = |of: fn((f64, f64)) -> f64| points.clone().map(of).sum::<f64>();
    let (x, y) = (sum(|(x, _)| x) / count, sum(|(_, y)| y) / count);
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (px, py) in points {
        covariance += (px - x) * (py - y);
        variance += (px - x).powi(2);
    }
    (variance > 0.0).then(|| covariance / variance)
}

/// Records and measures.
///
/// # Errors
/// A recording fails or has no walk.
pub fn measure(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let scratch = Scratch::new(&options.setup.directory)?;
    let mut depths = DEPTHS.map(|depth| Depth { depth, runs: Vec::new() });
    for round in 0..options.rounds {
        say(&format!("round {} of {}", round + 1, options.rounds));
        for index in order(round, depths.len()) {
            let run = run(depths[index].depth, options, &scratch)?;
            depths[index].runs.push(run);
        }
    }
    Ok(Comparison {
        system: System::detect(),
        version: version(&options.setup.whit).unwrap_or_default(),
        python: options.python.clone(),
        depths: depths.into(),
    })
}

fn run(depth: u32, options: &Options, scratch: &Scratch) -> Result<Walked, Error> {
    let (program, data) = (scratch.path().join("frames.py"), scratch.path().join("frames.data"));
    fs::write(&program, PYTHON).map_err(Error::file("write", &program))?;
    let mut recorder = Command::new(&options.setup.whit);
    // With --stat, events are those of threads: the program does not run at ticks that hit others.
    recorder.args(["record", "-N", "--stat", "--engine=bpf", "-e", "cpu-clock:u", "-F"]);
    recorder.arg(options.frequency_hz.to_string()).arg("-o").arg(&data).arg("--");
    recorder.arg(&options.python).arg(&program);
    recorder.args([depth.to_string(), options.seconds.to_string()]);
    let command = format!("{recorder:?}");
    let measured = measure::run(recorder, options.setup.limit)
        .map_err(|source| Error::Run { program: options.setup.whit.clone(), source })?;
    let failed = |outcome: &str, stderr: &str| Error::Recording {
        command: command.clone(),
        outcome: outcome.to_owned(),
        stderr: stderr.to_owned(),
    };
    match &measured.outcome {
        Outcome::Success => {}
        Outcome::TimedOut { limit_s } => {
            return Err(failed(&format!("took more than {limit_s} s"), ""));
        }
        Outcome::Failed { status, stderr } => return Err(failed(status, stderr)),
    }
    let ledger = Recording::open(&data)?.features.ledger().unwrap_or_default();
    Walked::of(&ledger).ok_or_else(|| failed("has no stack that the kernel walked", ""))
}

/// The result as text.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines().iter().chain([&comparison.version]) {
        line_to(&mut text, &format!("- {line}"));
    }
    line_to(&mut text, &format!("- interpreter: {}\n", comparison.python));
    let headings = ["depth", "stacks walked", "known again %", "frames", "timed runs", "ns a run"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for Depth { depth, runs } in &comparison.depths {
        let cell = |of: fn(&Walked) -> f64| {
            Spread::of(runs.iter().map(of)).map_or_else(String::new, |it| spread(&it))
        };
        rows.push(vec![
            depth.to_string(),
            cell(|run| run.walks as f64),
            cell(|run| 100.0 * run.known_share),
            cell(|run| run.frames),
            cell(|run| run.timed_runs as f64),
            cell(|run| run.run_ns),
        ]);
    }
    table_to(&mut text, &rows, 0);
    if let Some(frame) = comparison.frame_ns() {
        let (median, min, max) = (number(frame.median), number(frame.min), number(frame.max));
        line_to(&mut text, &format!("\nA frame of Python takes {median} ns ({min}–{max}).\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(frames: f64, run_ns: f64) -> Walked {
        Walked { walks: 100, known_share: 0.1, frames, timed_runs: 10, run_ns }
    }

    #[test]
    fn the_time_of_a_frame_is_the_slope_of_each_round() {
        let depth = |depth, runs: [f64; 2]| Depth {
            depth,
            runs: runs.map(|run_ns| walked(f64::from(depth) / 2.0, run_ns)).into(),
        };
        let comparison = Comparison {
            system: System::default(),
            version: "whit 1".to_owned(),
            python: "python3".to_owned(),
            depths: vec![depth(10, [1250.0, 1000.0]), depth(50, [2250.0, 1800.0])],
        };
        // 20 frames more take 1000 and 800 ns more.
        let frame = comparison.frame_ns().unwrap();
        assert_eq!((frame.min, frame.median, frame.max), (40.0, 45.0, 50.0));
        let text = markdown(&comparison);
        assert!(text.contains("A frame of Python takes 45.0 ns (40.0–50.0)."), "{text}");
        assert_eq!(slope([(1.0, 2.0), (1.0, 5.0)].into_iter()), None);
    }

    #[test]
    fn walks_and_timed_runs_come_from_the_ledger() {
        let mut ledger = Ledger::default();
        assert_eq!(Walked::of(&ledger), None);
        (ledger.stacks.walks, ledger.stacks.known_again, ledger.stacks.frames) = (30, 10, 600);
        (ledger.bpf.runs, ledger.bpf.run_time_ns) = (4, 6000);
        let walked = Walked::of(&ledger).unwrap();
        assert_eq!((walked.known_share, walked.frames, walked.run_ns), (0.25, 20.0, 1500.0));
    }
}
