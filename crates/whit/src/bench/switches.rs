//! `whit bench switches`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::switches::{Load, Options, compare, markdown};

use super::{Results, WORKLOADS, default_cache, this_program};

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

    /// Directory in which recordings are written and removed [default: whit/bench in the user's cache]
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
pub(super) fn run(args: &SwitchesArgs) -> Result<i32> {
    let missing = ["pingpong", "deep"].map(|name| args.workloads.join(name));
    if let Some(program) = missing.iter().find(|program| !program.exists()) {
        bail!(
            "there is no {} to record: build it with `make -C bench/workloads` in whit's repository, or \
             name the directory of the workloads with --workloads",
            program.display()
        );
    }
    let has_pmu = whit_bench::pmu::host::require_pmu().is_ok();
    let event = if has_pmu { "cycles" } else { "cpu-clock" };
    let options = Options {
        loads: args.loads.clone(),
        rounds: args.rounds as usize,
        duration: Duration::from_millis(args.milliseconds),
        event: args.event.clone().unwrap_or_else(|| event.to_owned()),
        whit: args.whit.clone().map_or_else(this_program, Ok)?,
        workloads: args.workloads.clone(),
        directory: args.dir.clone().map_or_else(default_cache, Ok)?,
        limit: Duration::from_secs(args.timeout),
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
