//! `whit bench stat`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::interval::{Options, compare, markdown};

use super::{Results, WORKLOADS, default_cache, this_program};

#[derive(Args, Debug)]
pub(super) struct StatArgs {
    /// Lengths of intervals in milliseconds, separated by commas
    #[arg(long, value_name = "MS,..", value_delimiter = ',', default_value = "1,10,100",
          value_parser = clap::value_parser!(u64).range(1..=60_000))]
    intervals: Vec<u64>,

    /// Runs of each
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// How long each run counts
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    milliseconds: u64,

    /// Directory in which counts are written and removed [default: whit/bench in the user's cache]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Directory of the workloads
    #[arg(long, value_name = "DIR", default_value = WORKLOADS)]
    workloads: PathBuf,

    /// Seconds after which a run that does not end is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// Another whit to compare [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    whit: Option<PathBuf>,

    #[command(flatten)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &StatArgs) -> Result<i32> {
    let program = args.workloads.join("matrix");
    if !program.exists() {
        bail!(
            "there is no {} to count: build it with `make -C bench/workloads` in whit's repository, or \
             name the directory of the workloads with --workloads",
            program.display()
        );
    }
    let options = Options {
        rounds: args.rounds as usize,
        duration: Duration::from_millis(args.milliseconds),
        intervals_ms: args.intervals.clone(),
        whit: args.whit.clone().map_or_else(this_program, Ok)?,
        workloads: args.workloads.clone(),
        directory: args.dir.clone().map_or_else(default_cache, Ok)?,
        limit: Duration::from_secs(args.timeout),
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
