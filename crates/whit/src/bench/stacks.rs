//! `whit bench stacks`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::stacks::{Options, Program, compare, markdown};

use super::{Results, WORKLOADS, default_cache, this_program};

#[derive(Args, Debug)]
pub(super) struct StacksArgs {
    /// Programs, separated by commas
    #[arg(long, value_name = "PROGRAMS", value_delimiter = ',', default_values_t = Program::ALL)]
    programs: Vec<Program>,

    /// How long each program runs
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    milliseconds: u64,

    /// Event to sample [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,

    /// Samples a second
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 1999, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frequency: u32,

    /// Bytes of the stack in each dump
    #[arg(long, value_name = "BYTES", default_value_t = 16384, value_parser = clap::value_parser!(u32).range(8..=65528))]
    stack_size: u32,

    /// Directory in which recordings are written and removed [default: whit/bench in the user's cache]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Directory of the workloads
    #[arg(long, value_name = "DIR", default_value = WORKLOADS)]
    workloads: PathBuf,

    /// Seconds after which a run is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// Another whit to record with [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    whit: Option<PathBuf>,

    #[command(flatten)]
    results: Results,
}

/// Runs the command; the exit code is 1 where a program could not be recorded.
pub(super) fn run(args: &StacksArgs) -> Result<i32> {
    let files = args.programs.iter().map(|program| args.workloads.join(program.file_name()));
    if let Some(program) = files.into_iter().find(|file| !file.exists()) {
        bail!(
            "there is no {} to record: build it with `make -C bench/workloads` in whit's repository, \
             name the directory of the workloads with --workloads, or leave it out with --programs",
            program.display()
        );
    }
    let has_pmu = whit_bench::pmu::host::require_pmu().is_ok();
    let event = if has_pmu { "cycles" } else { "cpu-clock" };
    let options = Options {
        programs: args.programs.clone(),
        duration: Duration::from_millis(args.milliseconds),
        event: args.event.clone().unwrap_or_else(|| event.to_owned()),
        frequency_hz: args.frequency,
        stack_bytes: args.stack_size,
        whit: args.whit.clone().map_or_else(this_program, Ok)?,
        workloads: args.workloads.clone(),
        directory: args.dir.clone().map_or_else(default_cache, Ok)?,
        limit: Duration::from_secs(args.timeout),
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.succeeded() { 0 } else { 1 })
}
