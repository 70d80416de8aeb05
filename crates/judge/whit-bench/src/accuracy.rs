//! Whether shares are right: the tables behind `whit bench accuracy`.
//!
//! The workload `shares` counts what each of its functions does, and prints it. So the true shares are known without any
//! sampling, and the recordings of all recorders are judged by them. Each recording is read by the same code.

mod gain;
mod recorders;
mod render;
mod run;

#[cfg(test)]
mod tests;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::args::{count, heading};
use crate::bench::{Bench, Say};
use crate::error::Error;
use crate::named::named;
use crate::setup::Setup;

/// The workload.
pub(crate) const PROGRAM: &str = "shares";

/// Programs whose work has nothing to do with the clock of the samples.
const FREE: [&str; 6] = ["flat", "twenty", "recursion", "threads", "processes", "phases"];
/// Samples a second of those.
const FREE_HZ: u32 = 999;

/// One of the tables that the comparison makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Table {
    /// Shares of programs whose work has nothing to do with the clock of the samples.
    Free,
    /// Shares of programs that keep step with it.
    Locked,
    /// Predicted and measured gains.
    Gains,
    /// Whether `whit switches` notices recordings in step.
    Noticed,
}

named!(Table);

const EXAMPLES: &str = "\
Examples:
  whit bench accuracy --tables locked,noticed --runs 3
  whit bench accuracy --tables gains --faster 50";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Tables to make: free (programs of their own pace), locked (in step with the samples), gains, noticed
    #[arg(long, value_name = "TABLE,..", value_delimiter = ',', default_values_t = Table::value_variants(),
          hide_possible_values = true,
          help_heading = heading::COMPARED)]
    tables: Vec<Table>,

    /// Recordings of each workload by each recorder
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(65_535),
          help_heading = heading::RUNS)]
    runs: usize,

    /// Seconds of each recording
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=600),
          help_heading = heading::RUNS)]
    seconds: u32,

    /// Event that all of them sample
    #[arg(short, long, value_name = "EVENT", default_value = "cpu-clock",
          help_heading = heading::EVENTS)]
    event: String,

    /// Frequencies of work that keeps step with the samples
    #[arg(long = "locked", value_name = "HZ,..", value_delimiter = ',', default_value = "250,999,1000",
          value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = heading::EVENTS)]
    locked_hz: Vec<u32>,

    /// By how many percent a function is made faster
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "10,50",
          value_parser = clap::value_parser!(u32).range(1..=100), help_heading = heading::COMPARED)]
    faster: Vec<u32>,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// All tables.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Accuracy {
    /// Name of the sampled event.
    pub(crate) event: String,
    pub(crate) seconds: u32,
    /// Recordings of each workload by each recorder.
    pub(crate) runs: usize,
    pub(crate) recorders: Vec<(String, String)>,
    /// Recorders that are not compared, and why.
    pub(crate) missing: Vec<(String, String)>,
    /// Shares, by workload and recorder.
    pub(crate) shares: Vec<Row>,
    pub(crate) gains: Vec<Gain>,
    /// Recordings of threads that wake up in step with the samples, and how many of them are called so.
    pub(crate) noticed: Vec<Noticed>,
}

/// The shares that a recorder gives of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) workload: String,
    pub(crate) hz: u32,
    pub(crate) recorder: String,
    pub(crate) samples: u64,
    /// Mean of the errors of all functions in all recordings, without their sign; in percentage points.
    pub(crate) mean_error: f64,
    pub(crate) largest_error: f64,
    /// Functions that were judged, in all recordings.
    pub(crate) functions: usize,
    /// Those whose interval at 95 % holds the true share.
    pub(crate) held: usize,
}

/// A function is made faster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Gain {
    pub(crate) faster_percent: u32,
    /// The gain that the program's own counts predict, in percent of its time.
    pub(crate) by_counts: f64,
    /// The gain that the shares of each recorder predict.
    pub(crate) predicted: Vec<(String, f64)>,
    /// The median gain of pairs of runs, with the least and the greatest.
    pub(crate) measured: [f64; 3],
}

/// Recordings with samples in step, and the answer of `whit switches`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Noticed {
    /// Name of the way to record.
    pub(crate) recorder: String,
    /// Times a second that the threads wake up.
    pub(crate) waking_hz: u32,
    pub(crate) hz: u32,
    pub(crate) recordings: usize,
    /// Recordings with the warning.
    pub(crate) said: usize,
    /// Mean of the errors of all shares, in percentage points.
    pub(crate) mean_error: f64,
}

impl Bench for Options {
    type Figures = Accuracy;

    fn run(&self, say: Say<'_>) -> Result<Accuracy, Error> {
        self.setup.require(&[PROGRAM])?;
        let (recorders, missing) = recorders::detect(&self.setup);
        let bench = run::Bench::new(self)?;
        let has = |table| self.tables.contains(&table);
        let hz_of = |table| if has(table) { &self.locked_hz[..] } else { &[] };
        let free = FREE.into_iter().filter(|_| has(Table::Free));
        let modes = free.map(|mode| (mode.to_owned(), FREE_HZ));
        let locked = hz_of(Table::Locked).iter().map(|hz| (format!("locked:{hz}"), *hz));
        let mut shares = Vec::new();
        for (mode, hz) in modes.chain(locked) {
            say(&format!("{mode} at {hz} Hz"));
            shares.extend(bench.rows(&mode, hz, &recorders)?);
        }
        let mut gains = Vec::new();
        for percent in self.faster.iter().filter(|_| has(Table::Gains)) {
            say(&format!("a function that is {percent} % faster"));
            gains.push(gain::gain(&bench, *percent, &recorders)?);
        }
        let mut noticed = Vec::new();
        for hz in hz_of(Table::Noticed) {
            say(&format!("threads that wake up {hz} times a second"));
            noticed.extend(bench.noticed(*hz)?);
        }
        Ok(Accuracy {
            event: self.event.clone(),
            seconds: self.seconds,
            runs: self.runs,
            recorders: recorders
                .iter()
                .map(|one| (one.kind.name().to_owned(), one.version.clone()))
                .collect(),
            missing,
            shares,
            gains,
            noticed,
        })
    }
}
