//! Command lines and exit codes of the programs that `whit` becomes.

use crate::report::ReportArgs;
use crate::serve::ServeArgs;
use crate::switches::SwitchesArgs;
use crate::top::TopArgs;
use crate::{Command, failure, interface, output, privileges};
use anyhow::{Result, anyhow};
use std::ffi::OsString;
use std::process::ExitCode;

/// A subcommand that the interface of terminals shows.
pub enum Interactive {
    /// `whit report`.
    Report(Box<ReportArgs>),
    /// `whit switches`.
    Switches(Box<SwitchesArgs>),
    /// `whit top`.
    Top(Box<TopArgs>),
}

/// The command line of `whit-terminal`, which is that of `whit`.
pub fn interactive() -> Result<Interactive> {
    match command()? {
        Command::Report(args) => Ok(Interactive::Report(args)),
        Command::Switches(args) => Ok(Interactive::Switches(Box::new(args))),
        Command::Top(args) => Ok(Interactive::Top(args)),
        _ => Err(failure::usage(anyhow!(
            "whit-terminal is the interface of whit: run whit report, whit switches or whit top on a terminal"
        ))),
    }
}

/// The command line of `whit-serve`, which is that of `whit`.
pub fn serve_args() -> Result<ServeArgs> {
    match command()? {
        Command::Serve(args) => Ok(args),
        _ => Err(failure::usage(anyhow!("whit-serve is the server of whit: run whit serve"))),
    }
}

/// The command line of a program of its own. Options may be abbreviated.
pub fn parse<P: clap::Parser>(arguments: Vec<OsString>) -> Result<P> {
    let parsed = crate::abbreviation::parse(arguments)?;
    whit_sys::process_files::start_helper();
    Ok(parsed)
}

/// The exit code of a program; says why it failed.
pub fn exit_code(result: Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}

/// The kernel's list of symbols comes with the start.
fn command() -> Result<Command> {
    let mut command = crate::parse()?.command;
    whit_sys::process_files::start_helper();
    if let Some(symbols) = privileges::symbol_args(&mut command) {
        symbols.running_list = interface::kernel_list();
    }
    Ok(command)
}
