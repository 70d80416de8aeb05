//! `whit watch`, which becomes `whit-watch`: the recorder that runs all week.

use crate::sibling;
use anyhow::Result;
use clap::Args;
use std::ffi::OsString;

/// The program in the folder of this one: the recorder carries no sinks.
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
    sibling::run(PROGRAM, &args.arguments, sibling::INSTALL)
}
