//! `whit bench stacks`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use whit_bench::core_pmu;
use whit_bench::stacks::{Moments, Options, Program, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Examples:
  whit bench stacks --programs c,rust --milliseconds 1000
  whit bench stacks --switches";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct StacksArgs {
    /// Programs, separated by commas
    #[arg(long, value_name = "PROGRAMS", value_delimiter = ',', default_values_t = Program::ALL,
          help_heading = heading::COMPARED)]
    programs: Vec<Program>,

    /// Milliseconds that each program runs
    #[arg(long, value_name = "MS", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=600_000),
          help_heading = heading::RUNS)]
    milliseconds: u64,

    /// Event to sample [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Option<String>,

    /// Samples a second
    #[arg(short = 'F', long, visible_alias = "freq", value_name = "HZ", default_value_t = 1999,
          value_parser = clap::value_parser!(u32).range(1..=100_000),
          help_heading = heading::EVENTS)]
    frequency: u32,

    /// Compare the stacks of context switches in place of samples, while another program runs on each
    /// CPU
    #[arg(long, conflicts_with_all = ["event", "frequency"], help_heading = heading::COMPARED)]
    switches: bool,

    /// Bytes of the stack in each dump
    #[arg(long, value_name = "BYTES", default_value_t = 16384,
          value_parser = clap::value_parser!(u32).range(8..=65528),
          help_heading = heading::EVENTS)]
    stack_size: u32,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where a program could not be recorded.
pub(super) fn run(args: &StacksArgs) -> Result<i32> {
    let programs: Vec<_> = args.programs.iter().map(|program| program.file_name()).collect();
    let options = Options {
        programs: args.programs.clone(),
        duration: Duration::from_millis(args.milliseconds),
        moments: match args.switches {
            true => Moments::Switches,
            false => Moments::Samples {
                event: args.event.clone().unwrap_or_else(core_pmu::default_event),
                frequency_hz: args.frequency,
            },
        },
        stack_bytes: args.stack_size,
        setup: args.setup.with_workloads(&programs)?,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.succeeded() { 0 } else { 1 })
}
