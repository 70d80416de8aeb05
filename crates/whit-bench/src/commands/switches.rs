//! `whit bench switches`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::core_pmu;
use whit_bench::switches::{Load, Options, compare, markdown};

use super::Results;
use super::setup::SetupArgs;

#[derive(Args, Debug)]
pub(super) struct SwitchesArgs {
    /// Loads, separated by commas
    #[arg(long, value_name = "LOADS", value_delimiter = ',', default_values_t = Load::ALL)]
    loads: Vec<Load>,

    /// Runs of each recorder
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// How long a load takes without a recorder
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    milliseconds: u64,

    /// Event to sample [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,

    #[command(flatten)]
    setup: SetupArgs,

    #[command(flatten)]
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
