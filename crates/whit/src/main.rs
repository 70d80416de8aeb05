//! `whit`, the command line: one file per subcommand, each of which parses arguments, calls the
//! crates that do the work, and prints.
#![forbid(unsafe_code)]

mod bench;
mod doctor;
mod input;
mod output;
mod progress;
mod record;
mod report;
mod script;
mod symbol_args;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "whit", version, about = "A profiler for Linux servers that costs not a whit")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Record a command, running processes, or the whole system
    Record(record::RecordArgs),
    /// Report where time went: functions and call chains of a recording
    Report(report::ReportArgs),
    /// Print the samples of a recording one by one
    Script(script::ScriptArgs),
    /// Say what can be recorded here, and what lifts each refusal
    Doctor(doctor::DoctorArgs),
    /// Compare whit with its peers
    Bench(bench::BenchArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Record(args) => record::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Script(args) => script::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Bench(args) => bench::run(args).map(exit_byte),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("whit: {}", output::describe(&error));
            ExitCode::FAILURE
        }
    }
}

/// What the parent sees of an exit code.
fn exit_byte(code: i32) -> u8 {
    (code & 0xff) as u8
}
