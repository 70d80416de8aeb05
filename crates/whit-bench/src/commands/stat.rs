//! `whit bench stat`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::interval::{Options, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Example:
  whit bench stat --intervals 1,10 --rounds 3";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatArgs {
    /// Lengths of intervals in milliseconds, separated by commas
    #[arg(long, value_name = "MS,..", value_delimiter = ',', default_value = "1,10,100",
          value_parser = clap::value_parser!(u64).range(1..=60_000),
          help_heading = heading::COMPARED)]
    intervals: Vec<u64>,

    /// Runs of each length
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Milliseconds that each run counts
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=600_000),
          help_heading = heading::RUNS)]
    milliseconds: u64,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &StatArgs) -> Result<i32> {
    let options = Options {
        rounds: args.rounds as usize,
        duration: Duration::from_millis(args.milliseconds),
        intervals_ms: args.intervals.clone(),
        setup: args.setup.with_workloads(&["matrix"])?,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
