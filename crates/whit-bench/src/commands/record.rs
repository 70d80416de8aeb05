//! `whit bench record`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::record::tables::TableKind;
use whit_bench::record::workload::Workload;
use whit_bench::record::{Options, compare, render};
use whit_types::ByteSize;

use super::setup::SetupArgs;
use super::{Results, heading};

/// Runs of each setting.
const ROUNDS: u32 = 5;
/// How long a workload takes by itself.
const SECONDS: f64 = 2.0;
/// The same with `--quick`.
const QUICK_SECONDS: f64 = 0.1;

const EXAMPLES: &str = "\
Examples:
  whit bench record --quick
  whit bench record --tables affinity,compression --rounds 7";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct RecordArgs {
    /// Tables to make, separated by commas
    #[arg(long, value_name = "TABLES", value_delimiter = ',', default_values_t = TableKind::ALL,
          help_heading = heading::COMPARED)]
    tables: Vec<TableKind>,

    /// Runs of each recorder with each setting [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000),
          help_heading = heading::RUNS)]
    rounds: Option<u32>,

    /// Seconds of a workload without a recorder; tables with high rates take a part of it [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = heading::RUNS)]
    seconds: Option<f64>,

    /// Check that everything works, in one round of 0.1 seconds; the figures mean nothing
    #[arg(long, help_heading = heading::RUNS)]
    quick: bool,

    /// Threads of the workloads [default: by the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2048),
          help_heading = heading::RUNS)]
    threads: Option<u32>,

    /// Event to sample [default: cycles where the PMU has it, else cpu-clock]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Option<String>,

    /// Samples a second, or 'max' [default: the rate of each table]
    #[arg(short = 'F', long, visible_alias = "freq", value_name = "HZ", value_parser = frequency,
          help_heading = heading::EVENTS)]
    frequency: Option<String>,

    /// Size of each ring, the same for all recorders: a power of two, with K or M
    #[arg(short, long, value_name = "SIZE", default_value = "512K", value_parser = ring_size,
          help_heading = heading::EVENTS)]
    mmap_pages: String,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where a run of whit failed.
pub(super) fn run(args: &RecordArgs) -> Result<i32> {
    let options = options(args)?;
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&render::markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}

fn options(args: &RecordArgs) -> Result<Options> {
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { ROUNDS });
    let seconds = args.seconds.unwrap_or(if args.quick { QUICK_SECONDS } else { SECONDS });
    Ok(Options {
        tables: args.tables.clone(),
        rounds: rounds as usize,
        duration: Duration::from_secs_f64(seconds),
        threads: args.threads.map(|threads| threads as usize),
        event: args.event.clone(),
        frequency: args.frequency.clone(),
        ring_size: args.mmap_pages.clone(),
        setup: args.setup.with_workloads(&Workload::ALL.map(Workload::program))?,
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds from 0.001 to 3600".to_owned())
}

fn frequency(text: &str) -> Result<String, String> {
    let is_rate = text.parse::<u32>().is_ok_and(|rate| rate > 0);
    (is_rate || text == "max")
        .then(|| text.to_owned())
        .ok_or_else(|| "a number of Hz, or 'max'".into())
}

/// As both recorders take it.
fn ring_size(text: &str) -> Result<String, String> {
    let size = text.parse().map(|ByteSize(bytes)| bytes);
    let is_size = size.is_ok_and(u64::is_power_of_two) && text.ends_with(['K', 'M', 'G']);
    is_size.then(|| text.to_owned()).ok_or_else(|| "a power of two with K, M or G, as 512K".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_before_anything_runs() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        assert!(seconds("0").is_err() && seconds("NaN").is_err() && seconds("x").is_err());
        assert_eq!((frequency("max"), frequency("99")), (Ok("max".into()), Ok("99".into())));
        assert!(frequency("0").is_err() && frequency("fast").is_err());
        assert_eq!(ring_size("512K"), Ok("512K".into()));
        assert!(ring_size("500K").is_err() && ring_size("128").is_err() && ring_size("").is_err());
    }
}
