//! `whit bench cgroup`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::cgroup::{Options, compare, markdown};

use super::{Results, WORKLOADS, default_cache, this_program};

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
    #[arg(long, value_name = "NS,..", value_delimiter = ',', default_value = "0,100000")]
    work: Vec<u64>,

    /// Runs of each
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Windows of a run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    windows: u32,

    /// How long each of them is
    #[arg(long, value_name = "MS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    milliseconds: u64,

    /// Events to count [default: cycles,instructions where there is a PMU, else cpu-clock,page-faults]
    #[arg(short, long, value_name = "EVENT,..", value_delimiter = ',')]
    events: Option<Vec<String>>,

    /// Directory in which counts are written and removed [default: whit/bench in the user's cache]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Directory of the workloads
    #[arg(long, value_name = "DIR", default_value = WORKLOADS)]
    workloads: PathBuf,

    /// Seconds after which a run is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// Another whit to compare [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    whit: Option<PathBuf>,

    #[command(flatten)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &CgroupArgs) -> Result<i32> {
    let program = args.workloads.join("token");
    if !program.exists() {
        bail!(
            "there is no {} to run in the cgroups: build it with `make -C bench/workloads` in whit's \
             repository, or name the directory of the workloads with --workloads",
            program.display()
        );
    }
    let options = Options {
        rounds: args.rounds as usize,
        duration: Duration::from_millis(args.milliseconds),
        windows: args.windows as usize,
        cgroups: args.cgroups.iter().map(|&cgroups| cgroups as usize).collect(),
        work_ns: args.work.clone(),
        events: args.events.clone(),
        whit: args.whit.clone().map_or_else(this_program, Ok)?,
        workloads: args.workloads.clone(),
        directory: args.dir.clone().map_or_else(default_cache, Ok)?,
        limit: Duration::from_secs(args.timeout),
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
