//! `whit bench agents`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::agents::{Agent, Load, Options, WORKLOADS, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

/// Where `make setup-bench` puts the agents that it builds.
const FOLDER: &str = "target/setup/agents/bin";
/// Where `make setup-test` puts the collector.
const COLLECTOR: &str = "target/setup/receivers/bin/collector";

const EXAMPLES: &str = "\
Examples:
  whit bench agents --frequency 19 --seconds 30
  whit bench agents --agents whit-watch,lightswitch --loads cpp,execs";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct AgentsArgs {
    /// Compare these agents [default: all]
    #[arg(long, value_name = "AGENT,..", value_delimiter = ',', help_heading = heading::COMPARED)]
    agents: Vec<Agent>,

    /// Beside these loads: cpp, go, python, ping-pong, execs, idle [default: all]
    #[arg(long, value_name = "LOAD,..", value_delimiter = ',', help_heading = heading::COMPARED)]
    loads: Vec<Load>,

    /// Samples a second; lightswitch takes prime numbers alone
    #[arg(long, value_name = "HZ", default_value_t = 97,
          value_parser = clap::value_parser!(u32).range(1..=1001), help_heading = heading::COMPARED)]
    frequency: u32,

    /// Seconds of a load
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = heading::RUNS)]
    seconds: u64,

    /// Runs of each agent beside each load
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Folder of the other agents' programs
    #[arg(long, value_name = "DIR", default_value = FOLDER, help_heading = heading::SETUP)]
    folder: PathBuf,

    /// OpenTelemetry's collector, which takes what OpenTelemetry's profiler sends
    #[arg(long, value_name = "FILE", default_value = COLLECTOR, help_heading = heading::SETUP)]
    collector: PathBuf,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &AgentsArgs) -> Result<i32> {
    let mut setup = args.setup.with_workloads(&WORKLOADS)?;
    // Agents run in a folder of their own.
    for path in [&mut setup.whit, &mut setup.workloads, &mut setup.directory] {
        *path = std::path::absolute(&*path)?;
    }
    let all =
        |chosen: &[Agent]| if chosen.is_empty() { Agent::ALL.to_vec() } else { chosen.to_vec() };
    let options = Options {
        frequency_hz: args.frequency,
        length: Duration::from_secs(args.seconds),
        rounds: args.rounds as usize,
        agents: all(&args.agents),
        loads: if args.loads.is_empty() { Load::ALL.to_vec() } else { args.loads.clone() },
        folder: std::path::absolute(&args.folder)?,
        collector: std::path::absolute(&args.collector)?,
        setup,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
