//! `whit bench archive`.

use anyhow::Result;
use clap::Args;
use whit_bench::archive::{Load, Options, markdown, measure};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Example:
  whit bench archive --loads cpp,python --rounds 3";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ArchiveArgs {
    /// Recorded programs, separated by commas
    #[arg(long, value_name = "LOADS", value_delimiter = ',', default_values_t = Load::ALL,
          help_heading = heading::COMPARED)]
    loads: Vec<Load>,

    /// Runs in each way
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Seconds of each program
    #[arg(long, value_name = "SECONDS", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(1..=60), help_heading = heading::RUNS)]
    seconds: u32,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &ArchiveArgs) -> Result<i32> {
    let workloads: Vec<_> = args.loads.iter().filter_map(|load| load.workload()).collect();
    let options = Options {
        loads: args.loads.clone(),
        rounds: args.rounds as usize,
        seconds: args.seconds,
        setup: args.setup.with_workloads(&workloads)?,
    };
    let comparison = measure(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
