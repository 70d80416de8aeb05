//! `whit watch`, which becomes `whit-watch`: the recorder that runs all week.

use crate::beside;
use anyhow::Result;
use clap::Args;
use std::ffi::OsString;

/// The program, which lies beside this one: the recorder carries no sinks.
pub(crate) const PROGRAM: &str = "whit-watch";

/// Record the whole machine all week, in windows that go to files
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct WatchArgs {
    /// Options; `whit watch --help` lists them
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the program; comes back only where that fails.
pub(crate) fn run(args: &WatchArgs) -> Result<u8> {
    let advice = "the service is a program of its own; `cargo build --release -p whit -p whit-watch` in whit's repository \
                  makes both: put it beside whit";
    beside::run(PROGRAM, &args.arguments, advice)
}
