//! Whether verdicts and intervals are right: the proofs behind `whit bench diff`.
//!
//! Recordings of programs that do not exist have shares that are known, and are made by the thousand. They show how often
//! equal programs are called different, how often intervals hold the true share, how often a slowdown is found (beside
//! the probability that theory gives), and whether intervals hold the whole when samples are lost. Recordings of a
//! program that does exist show the first two again, without any model of it.

mod measures;
mod planted;
pub(crate) mod proofs;
pub(crate) mod real;
mod render;
mod synthetic;

#[cfg(test)]
mod tests;

use clap::Args;
use serde::Serialize;

use crate::args::{heading, within};
use crate::bench::{Bench, Say};
use crate::error::Error;
use crate::setup::Setup;

/// Recordings on a side, where there are several.
const SEVERAL: usize = 3;

const EXAMPLES: &str = "\
Examples:
  whit bench diff --pairs 500 --recordings 1000
  whit bench diff --real 0 --planted 0
  whit bench diff --clusters 0 --real 0 --planted 100   # waits, locks and requests alone";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Pairs of equal synthetic recordings
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = heading::COMPARED)]
    pairs: usize,

    /// Synthetic recordings whose intervals are judged
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = heading::COMPARED)]
    recordings: usize,

    /// Samples of each such recording
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = within(1000..=SAMPLES_MAX),
          help_heading = heading::COMPARED)]
    samples: usize,

    /// Pairs of synthetic recordings with a slowdown
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = heading::COMPARED)]
    power_pairs: usize,

    /// Samples of each recording with a slowdown
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = within(1000..=SAMPLES_MAX),
          help_heading = heading::COMPARED)]
    power_samples: usize,

    /// Synthetic recordings with losses, of each kind
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = heading::COMPARED)]
    lossy: usize,

    /// Samples that a program stays in a function, separated by commas: one setting for each; 0 leaves samples out
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,5,20",
          help_heading = heading::COMPARED)]
    clusters: Vec<u32>,

    /// Recordings of a real program; 0 leaves them out
    #[arg(long, value_name = "N", default_value_t = 24, help_heading = heading::COMPARED)]
    real: usize,

    /// Pairs of equal simulated recordings of waits, locks and requests
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = heading::COMPARED)]
    measure_pairs: usize,

    /// Pairs of such recordings with a delay of 5 % in the second one
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = heading::COMPARED)]
    measure_power_pairs: usize,

    /// Seconds of each such recording
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = within(1..=3600),
          help_heading = heading::COMPARED)]
    measure_seconds: usize,

    /// Comparisons of a real program with a delay of 5 % in a lock, a read and a query; 0 leaves them out
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = heading::COMPARED)]
    planted: usize,

    /// Recordings of it on each side
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = within(1..=100), help_heading = heading::COMPARED)]
    planted_runs: usize,

    /// Seconds of each of them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = within(1..=3600),
          help_heading = heading::COMPARED)]
    planted_seconds: usize,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// The most samples of a recording.
const SAMPLES_MAX: u64 = u32::MAX as u64;

/// All proofs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Proofs {
    /// Samples of a recording, but for the power test.
    pub(crate) samples: usize,
    /// Samples of a recording of the power test.
    pub(crate) power_samples: usize,
    /// One for each length of clusters.
    pub(crate) settings: Vec<Setting>,
    pub(crate) real: Option<Real>,
    /// Seconds of simulated recordings of waits, locks and requests.
    pub(crate) measure_seconds: usize,
    pub(crate) measures: Vec<measures::OfKind>,
    pub(crate) planted: Option<planted::Planted>,
}

/// The proofs for one length of clusters.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Setting {
    /// Samples that the program stays in a function, on average.
    pub(crate) stay: f64,
    /// Equal recordings that were compared, one on each side.
    pub(crate) false_calls: FalseCalls,
    /// The same with three on each side.
    pub(crate) false_calls_of_several: FalseCalls,
    /// Intervals that hold the true share.
    pub(crate) coverage: Vec<Coverage>,
    /// Slowdowns that were found.
    pub(crate) power: Vec<Power>,
    pub(crate) losses: Vec<Loss>,
}

/// Comparisons of equal programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FalseCalls {
    /// Number of compared pairs of recordings.
    pub(crate) pairs: usize,
    /// How many called any row different.
    pub(crate) wrong: usize,
    pub(crate) tests: usize,
}

/// How often intervals hold the true share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Coverage {
    /// Functions that are judged.
    pub(crate) of: String,
    /// How many were judged.
    pub(crate) intervals: usize,
    /// Intervals that hold the true share.
    pub(crate) held: usize,
    /// The same for intervals that take samples as independent.
    pub(crate) held_if_independent: usize,
}

/// How often a slowdown is found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Power {
    /// The function that became slower, and by how much.
    pub(crate) slowdown: String,
    pub(crate) pairs: usize,
    /// Pairs in which the function was called slower.
    pub(crate) found: usize,
    /// Pairs in which it would have been called by a test of its own, at 5 %.
    pub(crate) found_alone: usize,
    /// The share of the latter that theory gives.
    pub(crate) theory_alone: f64,
    /// Samples of each recording for which theory gives 80 %.
    pub(crate) samples_for_80_percent: f64,
}

/// Whether intervals hold the shares of the whole recording where a part of it is lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Loss {
    /// Which samples are lost.
    pub(crate) kind: String,
    /// Share of them, in percent.
    pub(crate) lost_percent: f64,
    /// How many were judged.
    pub(crate) intervals: usize,
    /// Intervals that hold the share of the whole recording.
    pub(crate) held: usize,
    /// The same for intervals that know nothing of the loss.
    pub(crate) held_if_ignored: usize,
}

/// Recordings of a real program.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Real {
    /// Name of the workload.
    pub(crate) program: String,
    /// How often it was recorded.
    pub(crate) recordings: usize,
    pub(crate) samples: u64,
    /// Pairs of single recordings.
    pub(crate) single: FalseCalls,
    /// Pairs of three recordings each.
    pub(crate) several: FalseCalls,
    /// Intervals that hold the share of all recordings together.
    pub(crate) coverage: Vec<Coverage>,
}

impl Bench for Options {
    type Figures = Proofs;

    fn run(&self, say: Say<'_>) -> Result<Proofs, Error> {
        if self.real > 0 {
            self.setup.require(&[real::PROGRAM])?;
        }
        if self.planted > 0 {
            self.setup.require(&[planted::PROGRAM])?;
        }
        let mut settings = Vec::new();
        for stay in self.clusters.iter().filter(|&&stay| stay > 0).map(|&stay| f64::from(stay)) {
            say(&format!("clusters of {stay} samples"));
            settings.push(Setting {
                stay,
                false_calls: proofs::false_calls(self, stay, 1)?,
                false_calls_of_several: proofs::false_calls(self, stay, SEVERAL)?,
                coverage: proofs::coverage(self, stay)?,
                power: proofs::power(self, stay)?,
                losses: proofs::losses(self, stay)?,
            });
        }
        let real = match self.real {
            0 => None,
            recordings => Some(real::real(recordings, &self.setup, say)?),
        };
        let Options { samples, power_samples, measure_seconds, .. } = *self;
        let measures = match self.measure_pairs + self.measure_power_pairs {
            0 => Vec::new(),
            _ => measures::measures(
                self.measure_pairs,
                self.measure_power_pairs,
                measure_seconds as f64,
                say,
            )?,
        };
        let planted = match self.planted {
            0 => None,
            pairs => {
                let (runs, seconds) = (self.planted_runs, self.planted_seconds);
                Some(planted::planted(pairs, runs, seconds, &self.setup, say)?)
            }
        };
        Ok(Proofs { samples, power_samples, settings, real, measure_seconds, measures, planted })
    }
}
