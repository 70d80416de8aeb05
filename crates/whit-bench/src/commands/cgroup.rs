//! `whit bench cgroup`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::cgroup::{Options, compare, markdown};

use super::Results;
use super::setup::SetupArgs;

/// Most sibling cgroups: each has a process.
const CGROUPS_MAX: u64 = 4096;

#[derive(Args, Debug)]
pub(super) struct CgroupArgs {
    /// Numbers of sibling cgroups, separated by commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "6,60,600",
          value_parser = clap::value_parser!(u64).range(1..=CGROUPS_MAX))]
    cgroups: Vec<u64>,

    /// Work of a hop in nanoseconds, separated by commas: the first with all numbers of cgroups, others
    /// with the first number
    #[arg(long, value_name = "NS,..", value_delimiter = ',', default_value = "0")]
    work: Vec<u64>,

    /// In how many cgroups the token goes around, separated by commas: beside all of them, with the last
    /// number of cgroups
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "6",
          value_parser = clap::value_parser!(u64).range(2..=CGROUPS_MAX))]
    active: Vec<u64>,

    /// Runs of each
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Windows of a run
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    windows: u32,

    /// How long each of them is
    #[arg(long, value_name = "MS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    milliseconds: u64,

    /// Events to count [default: cycles,instructions where there is a PMU, else cpu-clock,page-faults]
    #[arg(short, long, value_name = "EVENT,..", value_delimiter = ',')]
    events: Option<Vec<String>>,

    #[command(flatten)]
    setup: SetupArgs,

    #[command(flatten)]
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
