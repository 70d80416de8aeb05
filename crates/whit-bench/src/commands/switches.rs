//! `whit bench switches`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::core_pmu;
use whit_bench::switches::{Load, Options, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Example:
  whit bench switches --loads pingpong --rounds 3";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct SwitchesArgs {
    /// Loads, separated by commas
    #[arg(long, value_name = "LOADS", value_delimiter = ',', default_values_t = Load::ALL,
          help_heading = heading::COMPARED)]
    loads: Vec<Load>,

    /// Runs of each recorder
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Milliseconds of a load without a recorder
    #[arg(long, value_name = "MS", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=600_000),
          help_heading = heading::RUNS)]
    milliseconds: u64,

    /// Event to sample [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Option<String>,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &SwitchesArgs) -> Result<i32> {
    let options = Options {
        loads: args.loads.clone(),
        rounds: args.rounds as usize,
        duration: Duration::from_millis(args.milliseconds),
        event: args.event.clone().unwrap_or_else(core_pmu::default_event),
        setup: args.setup.with_workloads(&["pingpong", "deep"])?,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
