//! `whit bench forms`.

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::forms::{Compiler, Form, Options, Reader, compare, markdown};

use super::setup::SetupArgs;
use super::{Results, heading};

const EXAMPLES: &str = "\
Example:
  whit bench forms --compilers g++,go --forms full,dwz";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct FormsArgs {
    /// Readers, separated by commas
    #[arg(long, value_name = "READERS", value_delimiter = ',', default_values_t = Reader::ALL,
          help_heading = heading::COMPARED)]
    readers: Vec<Reader>,

    /// Compilers, separated by commas
    #[arg(long, value_name = "COMPILERS", value_delimiter = ',',
          default_values_t = Compiler::ALL, help_heading = heading::COMPARED)]
    compilers: Vec<Compiler>,

    /// Forms of debug information, separated by commas
    #[arg(long, value_name = "FORMS", value_delimiter = ',', default_values_t = Form::ALL,
          help_heading = heading::COMPARED)]
    forms: Vec<Form>,

    /// Time of each program
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, help_heading = heading::RUNS)]
    seconds: f64,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: SetupArgs,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command; the exit code is 1 where whit did not get through.
pub(super) fn run(args: &FormsArgs) -> Result<i32> {
    if !(0.01..=60.0).contains(&args.seconds) {
        bail!("--seconds {} is not between 0.01 and 60", args.seconds);
    }
    let options = Options {
        compilers: args.compilers.clone(),
        forms: args.forms.clone(),
        readers: args.readers.clone(),
        seconds: args.seconds,
        setup: args.setup.with_workloads(&[])?,
    };
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}
