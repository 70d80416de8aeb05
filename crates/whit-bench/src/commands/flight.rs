//! `whit bench flight`.

use anyhow::Result;
use clap::Args;
use whit_bench::flight::{Machine, Options, markdown, measure};
use whit_types::ByteSize;

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Example:
  whit bench flight --seconds 5,10 --events 20
  whit bench flight --machines ping-pong --seconds 10 --events 100";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct FlightArgs {
    /// Other work of the machine: idle, busy, ping-pong
    #[arg(long, value_name = "WORK,..", value_delimiter = ',', default_values_t = Machine::ALL,
          help_heading = heading::RUNS)]
    machines: Vec<Machine>,

    /// Seconds before an event that are kept
    #[arg(long, value_name = "N,..", default_value = "5,10,30", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..=600), help_heading = heading::RUNS)]
    seconds: Vec<u64>,

    /// Events of each run
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    events: u32,

    /// Milliseconds from a file to the next event; a file is on its way to the disk for some time
    #[arg(long, value_name = "MS", default_value_t = 300, help_heading = heading::RUNS)]
    gap: u64,

    /// Bytes of records that are kept
    #[arg(long, value_name = "SIZE", default_value = "256M", help_heading = heading::RUNS)]
    bytes: ByteSize,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &FlightArgs) -> Result<i32> {
    let setup = args.setup.with_workloads(&[])?;
    let options = Options {
        machines: args.machines.clone(),
        seconds: args.seconds.clone(),
        events: args.events as usize,
        gap: std::time::Duration::from_millis(args.gap),
        bytes_max: args.bytes,
        folder: std::path::absolute(&setup.directory)?,
        whit: setup.whit,
    };
    let result = measure(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&result), &result)?;
    Ok(if result.whit_succeeded() { 0 } else { 1 })
}
