//! `whit bench cgroup`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::cgroup::{Options, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

/// Most sibling cgroups: each has a process.
const CGROUPS_MAX: u64 = 4096;

const EXAMPLES: &str = "\
Examples:
  whit bench cgroup --cgroups 6,60 --rounds 3
  whit bench cgroup -e cpu-clock --markdown result.md";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CgroupArgs {
    /// Numbers of sibling cgroups, separated by commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "6,60,600",
          value_parser = clap::value_parser!(u64).range(1..=CGROUPS_MAX),
          help_heading = heading::COMPARED)]
    cgroups: Vec<u64>,

    /// Work of a hop in nanoseconds, separated by commas: the first one with all numbers of cgroups,
    /// others with the first number
    #[arg(long, value_name = "NS,..", value_delimiter = ',', default_value = "0",
          help_heading = heading::COMPARED)]
    work: Vec<u64>,

    /// Numbers of cgroups in which the token goes around, separated by commas, in addition to all of
    /// them; with the last number of cgroups
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "6",
          value_parser = clap::value_parser!(u64).range(2..=CGROUPS_MAX),
          help_heading = heading::COMPARED)]
    active: Vec<u64>,

    /// Runs of each setting
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Windows of a run
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    windows: u32,

    /// Milliseconds of each window
    #[arg(long, value_name = "MS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=600_000),
          help_heading = heading::RUNS)]
    milliseconds: u64,

    /// Events to count [default: cycles,instructions where there is a PMU, else cpu-clock,page-faults]
    #[arg(short, long, value_name = "EVENT,..", value_delimiter = ',',
          help_heading = heading::EVENTS)]
    events: Option<Vec<String>>,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &CgroupArgs) -> Result<i32> {
    let options = Options {
        rounds: args.rounds as usize,
        duration: Duration::from_millis(args.milliseconds),
        windows: args.windows as usize,
        cgroups: args.cgroups.iter().map(|&cgroups| cgroups as usize).collect(),
        work_ns: args.work.clone(),
        active: args.active.iter().map(|&active| active as usize).collect(),
        events: args.events.clone(),
        setup: args.setup.with_workloads(&["token"])?,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
