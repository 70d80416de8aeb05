//! A budget for recordings: their cost while loads come and go, and whether programs have the cost that whit states.
//!
//! One recording with a budget goes over phases of load. The recording has its cost over time, and its settings. Then
//! programs with a fixed amount of work run in pairs, without a recording and beside one with a budget.

use std::path::Path;
use std::process::Command;

use clap::Args;
use serde::Serialize;
use whit_perfdata::budget::RecordedWaits;
use whit_perfdata::budget_history::{BudgetHistory, CostInterval, read_history};
use whit_perfdata::reader::Recording;
use whit_types::TimestampNs;

use crate::args::{heading, within};
use crate::bench::{Bench, Say};
use crate::error::{self, Error, output_of};
use crate::installed::version;
use crate::scratch::Scratch;
use crate::setup::Setup;

mod loads;
mod pairs;
mod render;

pub(crate) use loads::WORKLOADS;
use loads::{PHASES, Work, script};

/// Seconds after a step of the load, after which the cost has to be within the budget.
const SETTLED_S: f64 = 3.0;
/// The window over which the cost is never to be twice the budget.
const WINDOW_S: f64 = 10.0;

const EXAMPLES: &str = "\
Examples:
  whit bench budget --budget 0.5 --pairs 10
  whit bench budget --budget 2 --seconds 0 --pairs 60 --programs matrix";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Percent of the CPUs that the recording may cost
    #[arg(long = "budget", value_name = "PERCENT", default_value_t = 1.0,
          help_heading = heading::COMPARED)]
    budget_percent: f64,

    /// Samples a second
    #[arg(long = "frequency", value_name = "HZ", default_value_t = 997,
          value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = heading::COMPARED)]
    frequency_hz: u32,

    /// Seconds of each phase of load, 4 at least; 0 runs none
    #[arg(long = "seconds", value_name = "SECONDS", default_value_t = 12,
          value_parser = phase_seconds, help_heading = heading::RUNS)]
    phase_s: u32,

    /// Pairs of runs of each program, without a recording and with one; 0 runs none
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = within(0..=1000),
          help_heading = heading::RUNS)]
    pairs: usize,

    /// Run those programs in pairs whose name or arguments have this text [default: all]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true,
          help_heading = heading::COMPARED)]
    programs: String,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

fn phase_seconds(text: &str) -> Result<u32, String> {
    let parsed = text.parse::<u32>().map_err(|error| error.to_string())?;
    match parsed {
        0 | 4..=3600 => Ok(parsed),
        _ => Err("it is 0, or 4 to 3600".to_owned()),
    }
}

/// A load, and the cost of the recording meanwhile.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Phase {
    /// The load.
    pub(crate) name: &'static str,
    /// From when to when, in seconds from the begin of the recording.
    pub(crate) span_s: (f64, f64),
    /// The mean cost, in percent of the CPUs.
    pub(crate) mean_percent: f64,
    /// That from the moment on at which the cost has to be within the budget.
    pub(crate) settled_percent: f64,
    pub(crate) settings: String,
}

/// A time, and the cost of the recording meanwhile.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Interval {
    /// From when to when, in seconds from the begin of the recording.
    pub(crate) span_s: (f64, f64),
    /// The mean cost, in percent of the CPUs.
    pub(crate) percent: f64,
    pub(crate) settings: String,
}

/// The cost of a program's run beside a recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Paired {
    /// The program with its arguments.
    pub(crate) work: String,
    /// The mean cost that the recording states, in percent of the CPUs.
    pub(crate) stated_percent: f64,
    /// How much longer a program takes by that, in percent.
    pub(crate) predicted_percent: f64,
    /// How much longer the program took, in percent, and an interval of 95 % confidence.
    pub(crate) measured_percent: Option<(f64, f64, f64)>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) version: String,
    /// The limit, in percent of the CPUs.
    pub(crate) budget_percent: f64,
    pub(crate) frequency_hz: u32,
    /// The cost over time.
    pub(crate) intervals: Vec<Interval>,
    /// The largest mean of ten seconds.
    pub(crate) worst_window_percent: f64,
    /// The loads.
    pub(crate) phases: Vec<Phase>,
    pub(crate) paired: Vec<Paired>,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        self.setup.require(&WORKLOADS)?;
        let scratch = Scratch::new(&self.setup.directory)?;
        let (mut begins, mut history) = (Vec::new(), BudgetHistory::default());
        if self.phase_s > 0 {
            say(&format!("phases of load, {} s each", self.phase_s));
            let text = script(&self.setup.workloads, self.phase_s);
            let path = scratch.path().join("phases");
            let said = record(self, &["sh", "-c", &text], &path)?;
            history = history_of(&path)?;
            begins = self::begins(&said, &history);
        }
        let mut paired = Vec::new();
        let is_wanted = |work: &&Work| self.pairs > 0 && work.line().contains(&self.programs);
        for work in Work::ALL.iter().filter(is_wanted) {
            paired.push(pairs::run(self, work, &scratch.path().join("paired"), say)?);
        }
        let intervals = intervals(&history);
        let end_s = intervals.last().map_or(0.0, |last| last.span_s.1);
        let costs = Costs(&intervals);
        let ends = begins.iter().skip(1).copied().chain([end_s]);
        let phases =
            PHASES.iter().zip(begins.iter().copied().zip(ends)).map(|(phase, (begin, end))| {
                Phase {
                    name: phase.name,
                    span_s: (begin, end),
                    mean_percent: costs.mean(begin, end),
                    settled_percent: costs.mean(begin + SETTLED_S, end),
                    settings: settings_at(&history, end),
                }
            });
        Ok(Comparison {
            version: version(&self.setup.whit).unwrap_or_else(|why| why),
            budget_percent: self.budget_percent,
            frequency_hz: self.frequency_hz,
            worst_window_percent: costs.worst(WINDOW_S),
            phases: phases.collect(),
            paired,
            intervals,
        })
    }
}

/// The cost over time, by the clock of a history.
fn intervals(history: &BudgetHistory) -> Vec<Interval> {
    let costs = history.costs.iter();
    let of = |cost: &CostInterval| {
        let until_s = cost.until.0.saturating_sub(history.begin.0) as f64 / 1e9;
        let from_s = (until_s - f64::from(cost.length_ms) / 1e3).max(0.0);
        let settings = settings_at(history, from_s);
        Interval { span_s: (from_s, until_s), percent: percent(cost.mean_ppm), settings }
    };
    costs.map(of).collect()
}

fn percent(ppm: u32) -> f64 {
    f64::from(ppm) / 1e4
}

/// The cost over time.
struct Costs<'a>(&'a [Interval]);

impl Costs<'_> {
    fn mean(&self, from_s: f64, to_s: f64) -> f64 {
        let (mut sum, mut time) = (0.0, 0.0);
        for Interval { span_s: (begin, end), percent, .. } in self.0 {
            let covered = end.min(to_s) - begin.max(from_s);
            if covered > 0.0 {
                sum += percent * covered;
                time += covered;
            }
        }
        if time > 0.0 { sum / time } else { 0.0 }
    }

    fn worst(&self, length_s: f64) -> f64 {
        let means = self.0.iter().map(|it| self.mean(it.span_s.0, it.span_s.0 + length_s));
        means.fold(0.0, f64::max)
    }
}

/// The settings at a moment, in a few words.
fn settings_at(history: &BudgetHistory, at_s: f64) -> String {
    let at_ns = history.begin.0 + (at_s * 1e9) as u64;
    let Some(settings) = history.at(TimestampNs(at_ns)) else { return String::new() };
    if settings.is_paused {
        return "pause".to_owned();
    }
    let samples = match settings.stretch {
        1 => "all samples".to_owned(),
        stretch => format!("1/{stretch} of the samples"),
    };
    let waits = match settings.waits {
        RecordedWaits::AsAsked => "all switches",
        RecordedWaits::Sampled => "sampled waits",
        RecordedWaits::None => "no waits",
    };
    let stacks = match settings.stack_divisor {
        1 => String::new(),
        divisor => format!(", 1/{divisor} of the stacks"),
    };
    format!("{samples}, {waits}{stacks}")
}

/// When each phase began, by the lines that the script printed, in seconds from the begin of the recording.
fn begins(said: &str, history: &BudgetHistory) -> Vec<f64> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(loads::MARK));
    let uptimes = lines.filter_map(|line| line.trim().parse::<f64>().ok());
    uptimes.map(|uptime| (uptime - history.begin.0 as f64 / 1e9).max(0.0)).collect()
}

/// The recorder with the budget, without a command.
fn recorder(options: &Options, path: &Path) -> Command {
    let budget = options.budget_percent.to_string();
    let frequency = options.frequency_hz.to_string();
    let mut recorder = Command::new(&options.setup.whit);
    recorder.args(["record", "-a", "--engine=bpf", "--switch-events", "-e", "cpu-clock"]);
    recorder.args(["-F", &frequency, "--max-overhead", &budget, "-o"]).arg(path);
    recorder
}

/// Gives what the command printed.
fn record(options: &Options, command: &[&str], path: &Path) -> Result<String, Error> {
    let mut recorder = recorder(options, path);
    recorder.arg("--").args(command);
    output_of(recorder)
}

/// The history of a recording with a budget.
fn history_of(path: &Path) -> Result<BudgetHistory, Error> {
    let failed = |why: String| error::recording(&path.display().to_string(), why, "");
    let recording = Recording::open(path).map_err(|error| failed(error.to_string()))?;
    let history = read_history(&recording).map_err(|error| failed(error.to_string()))?;
    history.ok_or_else(|| failed("has no history of its budget".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::budget::RecordedSettings;
    use whit_perfdata::budget_history::SettingsChange;

    #[test]
    fn means_are_those_of_the_time_that_is_asked_for() {
        let interval = |from_s: f64, percent| Interval {
            span_s: (from_s, from_s + 0.5),
            percent,
            settings: String::new(),
        };
        let costs = [interval(0.0, 1.0), interval(0.5, 3.0), interval(1.0, 5.0)];
        let costs = Costs(&costs);
        assert!((costs.mean(0.0, 1.5) - 3.0).abs() < 1e-9);
        assert!((costs.mean(0.25, 0.75) - 2.0).abs() < 1e-9);
        assert!((costs.worst(1.0) - 5.0).abs() < 1e-9);
        assert!(costs.mean(7.0, 8.0).abs() < 1e-9);
    }

    #[test]
    fn phases_begin_where_the_script_says_so() {
        let change = |from: u64, stretch, waits| {
            let settings = RecordedSettings { stretch, waits, ..RecordedSettings::default() };
            SettingsChange { from: TimestampNs(from), settings }
        };
        let changes = vec![
            change(0, 1, RecordedWaits::AsAsked),
            change(12_000_000_000, 4, RecordedWaits::None),
        ];
        let begin = TimestampNs(10_000_000_000);
        let history = BudgetHistory { begin, changes, ..BudgetHistory::default() };
        let said = format!("{m}10.50\nresult\n{m}15.25\n", m = loads::MARK);
        assert_eq!(begins(&said, &history), [0.5, 5.25]);
        assert_eq!(settings_at(&history, 1.0), "all samples, all switches");
        assert_eq!(settings_at(&history, 2.5), "1/4 of the samples, no waits");
    }
}
