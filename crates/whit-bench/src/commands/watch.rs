//! `whit bench watch`.

use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use whit_bench::watch::{
    Machine, Options, Settings, SoakOptions, markdown, measure, soak, soak_markdown,
};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Examples:
  whit bench watch --frequencies 19,99 --machines idle
  whit bench watch --soak 3600 --frequencies 99 --window 10 --markdown soak.md";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct WatchArgs {
    /// Samples a second
    #[arg(long, value_name = "HZ,..", default_value = "19,99,997", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = heading::COMPARED)]
    frequencies: Vec<u32>,

    /// Other work of the machine: idle, busy, execs, ping-pong
    #[arg(long, value_name = "NAME,..", default_value = "idle,busy,execs,ping-pong",
          value_delimiter = ',', help_heading = heading::COMPARED)]
    machines: Vec<Machine>,

    /// Seconds of a window
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=600), help_heading = heading::COMPARED)]
    window: u64,

    /// A further option of whit watch, several times
    #[arg(long = "with", value_name = "OPTION", allow_hyphen_values = true,
          help_heading = heading::COMPARED)]
    more: Vec<String>,

    /// Seconds that each run is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = heading::RUNS)]
    seconds: u64,

    /// Seconds before that, in which the service sets itself up
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(0..=3600), help_heading = heading::RUNS)]
    warm_up: u64,

    /// Run one service for so long, with the first machine and frequency, and show a row each minute
    #[arg(long, value_name = "SECONDS", help_heading = heading::RUNS,
          value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    soak: Option<u64>,

    /// Seconds between two rows of --soak
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "soak",
          value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = heading::RUNS)]
    interval: u64,

    /// Record no waits in --soak
    #[arg(long, requires = "soak", help_heading = heading::RUNS)]
    no_waits: bool,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &WatchArgs) -> Result<i32> {
    match args.soak {
        Some(seconds) => run_soak(args, seconds),
        None => run_all(args),
    }
}

fn run_all(args: &WatchArgs) -> Result<i32> {
    let options = Options {
        machines: args.machines.clone(),
        frequencies_hz: args.frequencies.clone(),
        window_s: args.window,
        measured: Duration::from_secs(args.seconds),
        warm_up: Duration::from_secs(args.warm_up),
        more: args.more.clone(),
        setup: args.setup.with_workloads(&[])?,
    };
    let measured = measure(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&measured), &measured)?;
    Ok(if measured.whit_succeeded() { 0 } else { 1 })
}

fn run_soak(args: &WatchArgs, seconds: u64) -> Result<i32> {
    let missing = || anyhow!("--soak needs a machine and a frequency");
    let settings = Settings {
        frequency_hz: *args.frequencies.first().ok_or_else(missing)?,
        has_waits: !args.no_waits,
        window_s: args.window,
        more: args.more.clone(),
    };
    let options = SoakOptions {
        machine: *args.machines.first().ok_or_else(missing)?,
        settings,
        length: Duration::from_secs(seconds),
        interval: Duration::from_secs(args.interval),
        setup: args.setup.with_workloads(&[])?,
    };
    let say = &mut |row: &whit_bench::watch::SoakRow| {
        eprintln!("{}", serde_json::to_string(row).unwrap_or_default());
    };
    let result = soak(&options, say)?;
    args.results.publish(&soak_markdown(&result), &result)?;
    Ok(if result.is_whole { 0 } else { 1 })
}
