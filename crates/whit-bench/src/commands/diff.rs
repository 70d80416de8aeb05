//! `whit bench diff`.

use anyhow::Result;
use clap::Args;
use whit_bench::diff::{Options, markdown, prove};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Examples:
  whit bench diff --pairs 500 --recordings 1000
  whit bench diff --real 0";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct DiffArgs {
    /// Pairs of equal synthetic recordings
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = heading::COMPARED)]
    pairs: usize,

    /// Synthetic recordings whose intervals are judged
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = heading::COMPARED)]
    recordings: usize,

    /// Samples of each such recording
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(1000..), help_heading = heading::COMPARED)]
    samples: u32,

    /// Pairs of synthetic recordings with a slowdown
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = heading::COMPARED)]
    power_pairs: usize,

    /// Samples of each recording with a slowdown
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1000..), help_heading = heading::COMPARED)]
    power_samples: u32,

    /// Synthetic recordings with losses, of each kind
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = heading::COMPARED)]
    lossy: usize,

    /// Samples that a program stays in a function, separated by commas: one setting for each
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,5,20",
          help_heading = heading::COMPARED)]
    clusters: Vec<u32>,

    /// Recordings of a real program; 0 leaves them out
    #[arg(long, value_name = "N", default_value_t = 24, help_heading = heading::COMPARED)]
    real: usize,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command.
pub(super) fn run(args: &DiffArgs) -> Result<i32> {
    let real = match args.real {
        0 => None,
        recordings => Some((recordings, args.setup.with_workloads(&["deep-fp"])?)),
    };
    let options = Options {
        pairs: args.pairs,
        recordings: args.recordings,
        samples: args.samples as usize,
        power_pairs: args.power_pairs,
        power_samples: args.power_samples as usize,
        lossy: args.lossy,
        stays: args.clusters.iter().map(|stay| f64::from((*stay).max(1))).collect(),
        real,
    };
    let proofs = prove(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&proofs), &proofs)?;
    Ok(0)
}
