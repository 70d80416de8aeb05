//! `whit bench frames`.

use anyhow::Result;
use clap::Args;
use whit_bench::frames::{Options, markdown, measure};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Example:
  whit bench frames --rounds 3 --python python3.13";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct FramesArgs {
    /// The interpreter: CPython 3.11 to 3.14
    #[arg(long, value_name = "PROGRAM", default_value = "python3", help_heading = heading::COMPARED)]
    python: String,

    /// Runs at each depth
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Seconds of each run
    #[arg(long, value_name = "SECONDS", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=60), help_heading = heading::RUNS)]
    seconds: u32,

    /// Samples a second
    #[arg(short = 'F', long, visible_alias = "freq", value_name = "HZ", default_value_t = 1999,
          value_parser = clap::value_parser!(u32).range(1..=100_000),
          help_heading = heading::EVENTS)]
    frequency: u32,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command.
pub(super) fn run(args: &FramesArgs) -> Result<i32> {
    let options = Options {
        rounds: args.rounds as usize,
        seconds: args.seconds,
        frequency_hz: args.frequency,
        python: args.python.clone(),
        setup: args.setup.with_workloads(&[])?,
    };
    let comparison = measure(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(0)
}
