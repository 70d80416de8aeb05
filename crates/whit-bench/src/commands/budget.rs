//! `whit bench budget`.

use anyhow::Result;
use clap::Args;
use whit_bench::budget::{Options, WORKLOADS, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Examples:
  whit bench budget --budget 0.5 --pairs 10
  whit bench budget --budget 2 --seconds 0 --pairs 60 --programs matrix";

/// Those of a phase.
fn seconds(text: &str) -> Result<u32, String> {
    let parsed = text.parse::<u32>().map_err(|error| error.to_string())?;
    match parsed {
        0 | 4..=3600 => Ok(parsed),
        _ => Err("it is 0, or 4 to 3600".to_owned()),
    }
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct BudgetArgs {
    /// Percent of the CPUs that the recording may cost
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, help_heading = heading::COMPARED)]
    budget: f64,

    /// Samples a second
    #[arg(long, value_name = "HZ", default_value_t = 997,
          value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = heading::COMPARED)]
    frequency: u32,

    /// Seconds of each phase of load, 4 at least; 0 runs none
    #[arg(long, value_name = "SECONDS", default_value_t = 12,
          value_parser = seconds, help_heading = heading::RUNS)]
    seconds: u32,

    /// Pairs of runs of each program, without a recording and beside one; 0 runs none
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=1000), help_heading = heading::RUNS)]
    pairs: u32,

    /// Run those programs in pairs whose name or arguments have this text [default: all]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true,
          help_heading = heading::COMPARED)]
    programs: String,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where the budget was not kept.
pub(super) fn run(args: &BudgetArgs) -> Result<i32> {
    let options = Options {
        budget_percent: args.budget,
        frequency_hz: args.frequency,
        phase_s: args.seconds,
        pairs: args.pairs as usize,
        programs: args.programs.clone(),
        setup: args.setup.with_workloads(&WORKLOADS)?,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.is_kept() { 0 } else { 1 })
}
