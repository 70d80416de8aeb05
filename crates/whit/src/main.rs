//! `whit`, the command line: one file per subcommand, each of which parses arguments, calls the
//! crates that do the work, and prints.
#![forbid(unsafe_code)]
// What is printed comes from others too: messages go through `message`, results through `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod doctor;
mod event_args;
mod event_tables;
mod export;
mod failure;
mod input;
mod list;
mod message;
mod output;
mod page;
mod privileges;
mod progress;
mod record;
mod report;
mod script;
mod setup;
mod short_options;
mod stat;
mod switches;
mod symbol_args;
mod target_args;
mod unsupported_options;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use short_options::take_apart;
use std::ffi::OsString;
use std::process::ExitCode;
use whit_sys::privilege;

#[derive(Parser)]
#[command(name = "whit", version, about = "A profiler for Linux servers that costs not a whit")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Record a command, running processes, or the whole system
    Record(Box<record::RecordArgs>),
    /// Count events of a command, running processes, cgroups, or the whole system
    #[command(infer_long_args = true)]
    Stat(Box<stat::StatArgs>),
    /// Report where time went: functions and call chains of a recording
    Report(report::ReportArgs),
    /// Print the samples of a recording one by one
    Script(script::ScriptArgs),
    /// Say what threads waited for: context switches by call stack, function and thread
    Switches(switches::SwitchesArgs),
    /// Write a recording again, for other tools
    Export(export::ExportArgs),
    /// List the events that can be written after -e, and say which of them open here
    List(list::ListArgs),
    /// Say what can be recorded here, and what lifts each refusal
    Doctor(doctor::DoctorArgs),
    /// Let the members of a group record without being root
    Setup(setup::SetupArgs),
    /// Compare whit with its peers (by the program whit-bench)
    Bench(bench::BenchArgs),
}

/// Parses the command line.
fn parse() -> Result<Cli, clap::Error> {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    loop {
        let cli = Cli::try_parse_from(&args)?;
        let (name, users) = match &cli.command {
            Command::Record(args) => ("record", args.command()),
            Command::Stat(args) => ("stat", args.command()),
            _ => return Ok(cli),
        };
        let at = args.len() - users.len();
        let command = Cli::command();
        let parts = (args[at - 1] != "--")
            .then(|| users.first()?.to_str())
            .flatten()
            .and_then(|first| take_apart(command.find_subcommand(name)?, first));
        let Some(parts) = parts else { return Ok(cli) };
        args.splice(at..=at, parts);
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}

fn run() -> Result<u8> {
    // Before anything else: while there is one thread, and nothing of the user's was looked at.
    let privileges = privilege::begin()?;
    let mut command = parse()?.command;
    privileges::settle(privileges, &mut command)?;
    match command {
        Command::Record(args) => record::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Script(args) => script::run(&args),
        Command::Switches(args) => switches::run(&args),
        Command::Export(args) => export::run(&args),
        Command::List(args) => list::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Bench(args) => bench::run(&args),
    }
}
