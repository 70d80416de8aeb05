//! The command line of `whit`: one file per subcommand. Each parses arguments, calls the crates
//! that do the work, and prints.
//!
//! It is a library so that manual pages and the reference are made from the same definitions
//! ([`command`]).
#![forbid(unsafe_code)]
// Printed names come from others too: messages go through `message`, results through `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod annotate;
mod bench;
mod beside;
mod brief;
mod completion;
mod debuginfod;
mod diff;
mod doctor;
mod event_args;
mod event_tables;
mod export;
mod failure;
mod heading;
mod help;
mod input;
mod interface;
mod latency;
mod list;
mod locks;
mod message;
mod output;
mod own_names;
mod page;
mod perf_cache;
mod privileges;
mod progress;
mod query;
mod record;
mod report;
mod row_args;
mod script;
mod serve;
mod setup;
mod short_options;
mod stat;
mod switches;
mod symbol_args;
mod target_args;
mod terminal;
mod top;
mod unsupported_options;
mod version;
mod wall;
mod watch;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use short_options::take_apart;
use std::ffi::OsString;
use std::process::ExitCode;
use whit_sys::privilege;

#[derive(Parser)]
#[command(
    name = "whit", version, about = "A profiler for Linux servers that costs not a whit",
    after_help = help::TASKS, disable_help_subcommand = true, max_term_width = 80
)]
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
    /// Report the functions and call chains that took the time of a recording
    Report(Box<report::ReportArgs>),
    /// Show where the time goes at this moment, of the whole machine or a process
    Top(Box<top::TopArgs>),
    /// Record the whole machine all week, in windows that go to files
    Watch(watch::WatchArgs),
    /// Show the instructions and source lines of functions, each with its own share
    Annotate(Box<annotate::AnnotateArgs>),
    /// Compare recordings: which functions became faster or slower
    Diff(Box<diff::DiffArgs>),
    /// Print the samples of a recording one by one
    Script(script::ScriptArgs),
    /// Report the waits of threads: context switches by call chain, function and thread
    Switches(switches::SwitchesArgs),
    /// Report the waits for locks: by lock, call site, and holder
    Locks(locks::LocksArgs),
    /// Write a recording in the form that other tools read
    Export(export::ExportArgs),
    /// Show the page of a recording in the browser, with exact ranges of time, and in Firefox Profiler
    Serve(serve::ServeArgs),
    /// Ask for samples, waits and costs of recordings in SQL
    Query(query::QueryArgs),
    /// List the events for -e, and check which of them open on this machine
    List(list::ListArgs),
    /// Check what this machine can record, and name the remedy for each refusal
    Doctor(doctor::DoctorArgs),
    /// Allow the members of a group to record without being root
    Setup(setup::SetupArgs),
    /// Compare whit with its peers (by the program whit-bench)
    Bench(bench::BenchArgs),
    /// Print the script that completes whit's command line in a shell
    Completions(completion::CompletionsArgs),
    /// Print the help of a command or a topic
    Help(help::HelpArgs),
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

/// The definition of the command line, for manual pages and the reference.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs `whit`; gives its exit code.
pub fn main() -> ExitCode {
    ended(run())
}

/// Runs `whit-query`, the program that `whit query`, `whit export --parquet` and `whit diff --dataset` become; gives its
/// exit code.
pub fn query_main() -> ExitCode {
    query::hush_caught_panics();
    ended(query_program())
}

fn query_program() -> Result<u8> {
    if let Some(arguments) = query::arguments_behind(export::parquet::EXPORT) {
        return export::parquet::Program::try_parse_from(arguments)?.run();
    }
    if let Some(arguments) = query::arguments_behind(diff::dataset::DIFF) {
        return diff::dataset::Program::try_parse_from(arguments)?.run();
    }
    query::Program::try_parse()?.run()
}

/// Runs `whit-terminal`, the program that `whit report` becomes on a terminal, and `whit top` everywhere; gives its exit
/// code.
pub fn terminal_main() -> ExitCode {
    ended(reader_command().and_then(|command| match command {
        Command::Report(args) => report::interact(&args),
        Command::Switches(args) => switches::interact(&args),
        Command::Top(args) => top::run(&args),
        _ => failure::bail_usage!(
            "whit-terminal is the interface of whit: run whit report, whit switches or whit top on a terminal"
        ),
    }))
}

/// Runs `whit-serve`, the program that `whit serve` becomes; gives its exit code.
pub fn serve_main() -> ExitCode {
    ended(reader_command().and_then(|command| match command {
        Command::Serve(args) => serve::run(&args),
        _ => failure::bail_usage!("whit-serve is the server of whit: run whit serve"),
    }))
}

/// The command line of a program that whit became.
fn reader_command() -> Result<Command> {
    let mut command = parse()?.command;
    if let Some(symbols) = privileges::symbol_args(&mut command) {
        symbols.running_list = interface::kernel_list();
    }
    Ok(command)
}

fn ended(result: Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}

fn run() -> Result<u8> {
    // Before anything else: while there is one thread, and nothing of the user's was looked at.
    let privileges = privilege::begin(&whit_host::borrowing::POLICY)?;
    if completion::is_wanted() {
        privileges.keep(&[])?;
        completion::complete();
        return Ok(0);
    }
    let mut command = parse()?.command;
    privileges::settle(privileges, &mut command)?;
    match command {
        Command::Record(args) => record::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Top(args) => top::start(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Annotate(args) => annotate::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Script(args) => script::run(&args),
        Command::Switches(args) => switches::run(&args),
        Command::Locks(args) => locks::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Serve(args) => serve::start(&args),
        Command::Query(args) => query::start(&args),
        Command::List(args) => list::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => completion::run(&args),
        Command::Help(args) => help::run(&args),
    }
}
