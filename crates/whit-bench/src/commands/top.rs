//! `whit bench top`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::top::{Options, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Example:
  whit bench top --rounds 3 --seconds 20";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct TopArgs {
    /// Samples a second
    #[arg(long, value_name = "HZ", default_value_t = 99,
          value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = heading::COMPARED)]
    frequency: u32,

    /// Runs of each tool on each machine
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Seconds that each run is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = heading::RUNS)]
    seconds: u64,

    /// Seconds before that, in which a tool sets itself up
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = heading::RUNS)]
    warm_up: u64,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &TopArgs) -> Result<i32> {
    let options = Options {
        frequency_hz: args.frequency,
        rounds: args.rounds as usize,
        measured: Duration::from_secs(args.seconds),
        warm_up: Duration::from_secs(args.warm_up),
        whit: args.setup.with_workloads(&[])?.whit,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
