//! `whit bench accuracy`.

use anyhow::Result;
use clap::Args;
use whit_bench::accuracy::{Options, PROGRAM, Table, compare, markdown};

use super::Results;
use super::setup::SetupArgs;

#[derive(Args, Debug)]
pub(super) struct AccuracyArgs {
    /// Tables to make: free (programs of their own pace), locked (in step with the samples), gains, noticed
    #[arg(
        long,
        value_name = "TABLE,..",
        value_delimiter = ',',
        default_value = "free,locked,gains,noticed"
    )]
    tables: Vec<Table>,

    /// Recordings of each workload by each recorder
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,

    /// Seconds of each recording
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// Event that all of them sample
    #[arg(short, long, value_name = "EVENT", default_value = "cpu-clock")]
    event: String,

    /// Frequencies of work that keeps step with the samples
    #[arg(long, value_name = "HZ,..", value_delimiter = ',', default_value = "250,999,1000",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    locked: Vec<u32>,

    /// By how many percent a function is made faster
    #[arg(long, value_name = "PERCENT,..", value_delimiter = ',', default_value = "10,50",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    faster: Vec<u32>,

    #[command(flatten)]
    setup: SetupArgs,

    #[command(flatten)]
    results: Results,
}

/// Runs the command.
pub(super) fn run(args: &AccuracyArgs) -> Result<i32> {
    let options = Options {
        tables: args.tables.clone(),
        runs: usize::from(args.runs),
        seconds: args.seconds,
        event: args.event.clone(),
        locked_hz: args.locked.clone(),
        faster: args.faster.clone(),
        setup: args.setup.with_workloads(&[PROGRAM])?,
    };
    let accuracy = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&accuracy), &accuracy)?;
    Ok(0)
}
