//! Whether verdicts and intervals are right: the proofs behind `whit bench diff`.
//!
//! Recordings of programs that do not exist have shares that are known, and are made by the thousand. They show how often
//! equal programs are called different, how often intervals hold the true share, how often a slowdown is found (beside
//! the probability that theory gives), and whether intervals hold the whole when samples are lost. Recordings of a
//! program that does exist show the first two again, without any model of it.

pub(crate) mod proofs;
mod real;
mod render;
mod synthetic;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use render::markdown;

use crate::Error;
use crate::setup::Setup;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// Recordings on a side, where there are several.
const SEVERAL: usize = 3;

/// How much to try.
#[derive(Clone, Debug)]
pub struct Options {
    /// Pairs of equal recordings.
    pub pairs: usize,
    /// Recordings whose intervals are judged.
    pub recordings: usize,
    /// Samples of each of them.
    pub samples: usize,
    /// Pairs with a slowdown.
    pub power_pairs: usize,
    /// Samples of each of them.
    pub power_samples: usize,
    /// Recordings with losses, of each kind.
    pub lossy: usize,
    /// Samples that the program stays in a function, for each setting.
    pub stays: Vec<f64>,
    /// Recordings of a real program; none without a setup.
    pub real: Option<(usize, Setup)>,
}

/// All proofs.
#[derive(Clone, Debug, Serialize)]
pub struct Proofs {
    /// Version of this form.
    pub schema: u32,
    /// Samples of a recording, but for the power test.
    pub samples: usize,
    /// Samples of a recording of the power test.
    pub power_samples: usize,
    /// One for each length of clusters.
    pub settings: Vec<Setting>,
    /// The proofs on a real program.
    pub real: Option<Real>,
}

/// The proofs for one length of clusters.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// Samples that the program stays in a function, on average.
    pub stay: f64,
    /// Equal recordings that were compared, one on each side.
    pub false_calls: FalseCalls,
    /// The same with three on each side.
    pub false_calls_of_several: FalseCalls,
    /// Intervals that hold the true share.
    pub coverage: Vec<Coverage>,
    /// Slowdowns that were found.
    pub power: Vec<Power>,
    /// Recordings with losses.
    pub losses: Vec<Loss>,
}

/// Comparisons of equal programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FalseCalls {
    /// Number of compared pairs of recordings.
    pub pairs: usize,
    /// How many called any row different.
    pub wrong: usize,
    /// Tests of all of them.
    pub tests: usize,
}

/// How often intervals hold the true share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Functions that are judged.
    pub of: String,
    /// How many were judged.
    pub intervals: usize,
    /// Intervals that hold the true share.
    pub held: usize,
    /// The same for intervals that take samples as independent.
    pub held_if_independent: usize,
}

/// How often a slowdown is found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Power {
    /// The function that became slower, and by how much.
    pub slowdown: String,
    /// Pairs of recordings.
    pub pairs: usize,
    /// Pairs in which the function was called slower.
    pub found: usize,
    /// Pairs in which it would have been called by a test of its own, at 5 %.
    pub found_alone: usize,
    /// The share of the latter that theory gives.
    pub theory_alone: f64,
    /// Samples of each recording for which theory gives 80 %.
    pub samples_for_80_percent: f64,
}

/// Whether intervals hold the shares of the whole recording where a part of it is lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Loss {
    /// Which samples are lost.
    pub kind: String,
    /// Share of them, in percent.
    pub lost_percent: f64,
    /// How many were judged.
    pub intervals: usize,
    /// Intervals that hold the share of the whole recording.
    pub held: usize,
    /// The same for intervals that know nothing of the loss.
    pub held_if_ignored: usize,
}

/// Recordings of a real program.
#[derive(Clone, Debug, Serialize)]
pub struct Real {
    /// Name of the workload.
    pub program: String,
    /// How often it was recorded.
    pub recordings: usize,
    /// Samples of all of them.
    pub samples: u64,
    /// Pairs of single recordings.
    pub single: FalseCalls,
    /// Pairs of three recordings each.
    pub several: FalseCalls,
    /// Intervals that hold the share of all recordings together.
    pub coverage: Vec<Coverage>,
}

/// Runs all proofs, which `tell` hears of.
///
/// # Errors
/// A recording cannot be made or read.
pub fn prove(options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Proofs, Error> {
    let mut settings = Vec::new();
    for stay in &options.stays {
        tell(&format!("clusters of {stay} samples"));
        settings.push(Setting {
            stay: *stay,
            false_calls: proofs::false_calls(options, *stay, 1)?,
            false_calls_of_several: proofs::false_calls(options, *stay, SEVERAL)?,
            coverage: proofs::coverage(options, *stay)?,
            power: proofs::power(options, *stay)?,
            losses: proofs::losses(options, *stay)?,
        });
    }
    let real = match &options.real {
        Some((recordings, setup)) => Some(real::real(*recordings, setup, tell)?),
        None => None,
    };
    let Options { samples, power_samples, .. } = *options;
    Ok(Proofs { schema: SCHEMA, samples, power_samples, settings, real })
}
