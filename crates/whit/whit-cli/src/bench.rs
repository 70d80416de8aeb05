//! `whit bench`: starts `whit-bench`, a program of its own, so that the recorder carries no unwinder of others,
//! no simulated PMU and no virtual machine.

use crate::sibling;
use anyhow::Result;
use clap::Args;
use std::ffi::OsString;

/// The program in the folder of this one.
const PROGRAM: &str = "whit-bench";

/// Compare whit with its peers (by the program whit-bench)
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArgs {
    /// The comparison and its options; `whit bench --help` lists them
    #[arg(value_name = "COMPARISON", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the program; comes back only where that fails.
pub(crate) fn run(args: &BenchArgs) -> Result<u8> {
    let advice = "benchmarks are a program of their own; build it with `cargo build --release -p whit-bench` in whit's \
                  repository, and put it into the folder of whit";
    sibling::run(PROGRAM, &args.arguments, advice)
}
