//! `whit requests`.

use crate::heading;
use crate::input::RecordingArgs;
use crate::progress::answer;
use crate::request_args::failure;
use crate::symbol_args::SymbolArgs;
use crate::terminal::{TerminalArgs, WidthArgs, show};
use anyhow::Result;
use whit_profile::Reading;
use whit_profile::time_filter::TimeQuantum;
use whit_view::requests::{TextOptions, write_json, write_text};
use whit_why::AllRequests;

const EXAMPLES: &str = "\
Examples:
  whit record --request query=postgres:exec_simple_query,key=+0(%di):string -p 1234
  whit requests                     # durations, and the parts that make some slow
  whit requests --slowest 20        # one by one, with their keys
  whit requests --longer-than 50ms --request query";

/// Arguments of `whit requests`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RequestsArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Only requests of this name
    #[arg(long, value_name = "NAME", help_heading = heading::FILTER)]
    request: Option<String>,
    /// Only calls that took at least this time, as in 10ms
    #[arg(long, value_name = "TIME", help_heading = heading::FILTER)]
    longer_than: Option<TimeQuantum>,
    /// Only requests with this text in their keys
    #[arg(long, value_name = "TEXT", help_heading = heading::FILTER)]
    key: Option<String>,
    /// Count calls within others of the same name too
    #[arg(long, help_heading = heading::FILTER)]
    nested: bool,
    /// Print the slowest N calls one by one [with --json: 20]
    #[arg(long, value_name = "N", help_heading = heading::ROWS)]
    slowest: Option<usize>,
    /// Print at most N parts of the slowest calls [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "json", help_heading = heading::ROWS)]
    limit: Option<usize>,
    /// Print as JSON
    #[arg(long, help_heading = heading::OUTPUT)]
    json: bool,
    /// Print only the tables
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    width: WidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
}

/// Calls in JSON without `--slowest`.
const JSON_SLOWEST: usize = 20;

/// Runs `whit requests`.
pub(crate) fn run(args: &RequestsArgs) -> Result<u8> {
    let recording = args.input.open()?;
    let options = args.symbols.options(&recording)?;
    let question = AllRequests {
        name: args.request.clone(),
        key: args.key.clone(),
        longer_than_ns: args.longer_than.map_or(0, |time| time.0.get()),
        nested: args.nested,
    };
    let requests = answer(Reading::open(&recording, &options), question, args.quiet);
    let requests = requests.map_err(failure)?;
    let out = args.width.fit(args.terminal.output(), !args.json);
    let options =
        TextOptions { limit: args.limit, slowest: args.slowest.unwrap_or(0), is_quiet: args.quiet };
    show(
        out,
        args.json,
        |out| write_json(out, &requests, args.slowest.unwrap_or(JSON_SLOWEST)),
        |out| write_text(out, &requests, &options),
    )?;
    Ok(0)
}
