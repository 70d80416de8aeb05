//! `whit bench`: starts `whit-bench`, a program of its own, so that the recorder carries no unwinder of others,
//! no simulated PMU and no virtual machine.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use clap::Args;

/// The program, which lies beside this one.
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
    let program = program()?;
    let error = Command::new(&program).args(&args.arguments).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        return Err(anyhow!(
            "there is no {}: benchmarks are a program of their own; build it with `cargo build --release -p \
             {PROGRAM}` in whit's repository, and put it beside whit",
            program.display()
        ));
    }
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}

fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(own.with_file_name(PROGRAM))
}
