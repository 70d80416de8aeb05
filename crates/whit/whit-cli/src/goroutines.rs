//! `whit goroutines`.

use crate::heading;
use crate::input::RecordingArgs;
use crate::progress::answer;
use crate::symbol_args::SymbolArgs;
use crate::terminal::{TerminalArgs, WidthArgs, show};
use anyhow::Result;
use whit_profile::Reading;
use whit_profile::time_filter::TimeQuantum;
use whit_view::goroutines::{TextOptions, write_json, write_text};
use whit_why::GoroutineWaits;

const EXAMPLES: &str = "\
Examples:
  whit record --goroutines -p 1234 -- sleep 5
  whit goroutines                      # by reason and function, with those who ended the waits
  whit goroutines -g --reason Mutex    # with call chains
  whit goroutines --worst 20           # the longest waits one by one";

/// Arguments of `whit goroutines`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GoroutinesArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Only waits for a reason with this in its name, as Go's runtime prints it: chan receive, sync.Mutex.Lock, IO wait
    #[arg(long, value_name = "TEXT", help_heading = heading::FILTER)]
    reason: Option<String>,
    /// Only waits with a function in the call chain that has this in its name
    #[arg(long, value_name = "TEXT", help_heading = heading::FILTER)]
    function: Option<String>,
    /// Only waits of at least this time, as in 10ms
    #[arg(long, value_name = "TIME", help_heading = heading::FILTER)]
    longer_than: Option<TimeQuantum>,
    /// Show the goroutines of Go's runtime too
    #[arg(long, help_heading = heading::FILTER)]
    runtime: bool,
    /// Print call chains: of waits, and of those who ended them
    #[arg(short = 'g', conflicts_with = "json", help_heading = heading::ROWS)]
    chains: bool,
    /// Print the N longest waits one by one [with --json: 20]
    #[arg(long, value_name = "N", help_heading = heading::ROWS)]
    worst: Option<usize>,
    /// Print at most N rows
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "worst"], help_heading = heading::ROWS)]
    limit: Option<usize>,
    /// Print as JSON
    #[arg(long, help_heading = heading::OUTPUT)]
    json: bool,
    /// Print only the table
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    width: WidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
}

/// Waits in JSON without `--worst`.
const JSON_WORST: usize = 20;

/// Runs `whit goroutines`.
pub(crate) fn run(args: &GoroutinesArgs) -> Result<u8> {
    let recording = args.input.open()?;
    let options = args.symbols.options(&recording)?;
    let question = GoroutineWaits {
        reason: args.reason.clone(),
        function: args.function.clone(),
        longer_than_ns: args.longer_than.map_or(0, |time| time.0.get()),
        runtime: args.runtime,
    };
    let goroutines = answer(Reading::open(&recording, &options), question, args.quiet)?;
    let out = args.width.fit(args.terminal.output(), !args.json);
    let options = TextOptions {
        limit: args.limit,
        worst: args.worst,
        chains: args.chains,
        is_quiet: args.quiet,
    };
    show(
        out,
        args.json,
        |out| write_json(out, &goroutines, args.worst.unwrap_or(JSON_WORST)),
        |out| write_text(out, &goroutines, &options),
    )?;
    Ok(0)
}
