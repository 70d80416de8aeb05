//! The command line of `whit`: one file per subcommand. Each parses arguments, calls the crates
//! that do the work, and prints.
//!
//! It is a library so that manual pages and the reference are made from the same definitions
//! ([`command`]), and for the programs that `whit` becomes ([`program`]).
//!
//! ```
//! let whit = whit_cli::command();
//! assert!(whit.get_subcommands().any(|command| command.get_name() == "record"));
//! ```
#![forbid(unsafe_code)]
// Printed names come from others too: messages go through `message`, results through `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod abbreviation;
mod annotate;
mod bench;
mod brief;
mod completion;
mod debuginfod;
pub mod diff;
mod doctor;
mod event_args;
mod event_tables;
pub mod export;
pub mod failure;
mod goroutines;
mod heading;
mod help;
mod input;
pub mod interface;
mod latency;
mod list;
mod locks;
mod mcp;
pub mod message;
pub mod output;
mod own_names;
pub mod page;
mod perf_cache;
mod perf_commands;
mod privileges;
pub mod program;
pub mod progress;
pub mod query;
mod record;
pub mod report;
mod request_args;
mod requests;
mod row_args;
mod scope;
mod script;
pub mod serve;
mod setup;
mod short_options;
pub mod sibling;
pub mod sources;
mod stat;
pub mod switches;
pub mod symbol_args;
mod target_args;
mod terminal;
pub mod top;
mod unsupported_options;
mod version;
pub mod wall;
mod watch;
mod why;
mod without_match;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
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
    /// Explain why a thread took its time: the critical path through the threads that it waited for
    Why(why::WhyArgs),
    /// Show the durations of requests, and the parts of their time that make some of them slow
    Requests(requests::RequestsArgs),
    /// Show where the goroutines of a Go program wait, and which goroutines end the waits
    Goroutines(goroutines::GoroutinesArgs),
    /// Write a recording in the form that other tools read
    Export(export::ExportArgs),
    /// Show the page of a recording in the browser, with exact ranges of time, and in Firefox Profiler
    Serve(serve::ServeArgs),
    /// Ask for samples, waits and costs of recordings in SQL
    Query(query::QueryArgs),
    /// List the events for -e, and check which of them open on this machine
    List(list::ListArgs),
    /// Answer an assistant's questions about recordings (Model Context Protocol)
    Mcp(mcp::McpArgs),
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
        let mut command = Cli::command();
        let mut matches = abbreviation::matches(&mut command, &mut args)?;
        scope::check(&command, &matches)?;
        let cli =
            Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
        let (name, users) = match &cli.command {
            Command::Record(args) => ("record", args.command()),
            Command::Stat(args) => ("stat", args.command()),
            _ => return Ok(cli),
        };
        let at = args.len() - users.len();
        let parts = (args[at - 1] != "--")
            .then(|| users.first()?.to_str())
            .flatten()
            .map(|first| written_out(command.find_subcommand(name), first))
            .transpose()?;
        let Some(parts) = parts.flatten() else { return Ok(cli) };
        args.splice(at..=at, parts);
    }
}

/// The first word of the user's command, if it is an option of whit in a form that clap takes for the command.
fn written_out(
    subcommand: Option<&clap::Command>,
    word: &str,
) -> Result<Option<Vec<OsString>>, clap::Error> {
    let Some(subcommand) = subcommand else { return Ok(None) };
    let whole = abbreviation::whole(subcommand, word.as_ref())?;
    Ok(whole.map(|whole| vec![whole]).or_else(|| take_apart(subcommand, word)))
}

/// The definition of the command line, for manual pages and the reference.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs `whit`; gives its exit code.
pub fn main() -> ExitCode {
    program::exit_code(run())
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
    whit_sys::process_files::start_helper();
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
        Command::Why(args) => why::run(&args),
        Command::Requests(args) => requests::run(&args),
        Command::Goroutines(args) => goroutines::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Serve(args) => serve::start(&args),
        Command::Query(args) => query::start(&args),
        Command::List(args) => list::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Mcp(args) => mcp::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => completion::run(&args),
        Command::Help(args) => help::run(&args),
    }
}
