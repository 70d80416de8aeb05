//! `whit why`.

use crate::failure::bail_usage;
use crate::heading;
use crate::input::RecordingArgs;
use crate::progress::answer;
use crate::request_args::{NamedRequests, failure, request};
use crate::symbol_args::{SymbolArgs, thread_id};
use crate::terminal::{TerminalArgs, WidthArgs, show};
use anyhow::Result;
use whit_profile::Reading;
use whit_profile::time_filter::{TimeFilter, TimeQuantum};
use whit_types::Tid;
use whit_view::why::{DEFAULT_LIMIT, TextOptions, write_json, write_stacks, write_text};
use whit_why::{ChosenRequests, Interval, WhichRequests};

const EXAMPLES: &str = "\
Examples:
  whit record --engine=bpf --wakeups -- ./server    # switches with stacks and wakers
  whit why                          # the whole life of the command's first thread
  whit why --request query          # the slowest request (whit requests lists them)
  whit why --request query --longer-than 50ms       # all slow ones, added up
  whit why --tid 4711 --time 12.5,12.7";

/// Arguments of `whit why`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Explain a request: NAME is the slowest one of this name, NAME:2 the next
    #[arg(long, value_name = "NAME[:N]", value_parser = request, conflicts_with_all = ["tid", "time"],
          help_heading = heading::FILTER)]
    request: Option<NamedRequests>,
    /// With --request, explain all of the name that took at least this time, as in 10ms
    #[arg(long, value_name = "TIME", requires = "request", help_heading = heading::FILTER)]
    longer_than: Option<TimeQuantum>,
    /// With --request, explain only those with this text in their keys
    #[arg(long, value_name = "TEXT", requires = "request", help_heading = heading::FILTER)]
    key: Option<String>,
    /// With --request, explain the slowest N of the name
    #[arg(long, value_name = "N", requires = "request", conflicts_with = "longer_than",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..),
          help_heading = heading::FILTER)]
    slowest: Option<usize>,
    /// Explain this thread, by its id or by a handle such as t-1234 [default: the command's first thread]
    #[arg(long, value_name = "TID", value_parser = thread_id, help_heading = heading::FILTER)]
    tid: Option<i32>,
    /// Explain this goroutine of a Go program, by its number [default: the first one]
    #[arg(long, value_name = "N", conflicts_with_all = ["tid", "request"], help_heading = heading::FILTER)]
    goroutine: Option<u64>,
    /// Explain this one part of the recorded time: START,STOP in seconds, 10%-20%, 10%/2
    #[arg(long, value_name = "RANGE", value_parser = TimeFilter::parse, allow_hyphen_values = true,
          help_heading = heading::FILTER)]
    time: Option<TimeFilter>,
    /// Print the pieces of the path in order of time
    #[arg(long, conflicts_with_all = ["json", "limit"], help_heading = heading::ROWS)]
    path: bool,
    /// Print at most N rows [default: 20]
    #[arg(long, value_name = "N", conflicts_with = "json", help_heading = heading::ROWS)]
    limit: Option<usize>,
    /// Print folded stacks with their nanoseconds, for flame graphs: threads, waits, functions
    #[arg(long, conflicts_with_all = ["json", "limit", "path"], help_heading = heading::OUTPUT)]
    folded: bool,
    /// Print rows and pieces as JSON
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

impl WhyArgs {
    fn requests(&self) -> Result<Option<ChosenRequests>> {
        let Some(NamedRequests { name, rank }) = self.request.clone() else { return Ok(None) };
        let several = self.longer_than.map(|time| WhichRequests::LongerThan(time.0.get()));
        let several = several.or(self.slowest.map(WhichRequests::Slowest));
        if let (Some(rank), Some(_)) = (rank, several) {
            bail_usage!(
                "--request {name}:{rank} is one request: leave :{rank} out, or --longer-than and --slowest"
            );
        }
        let which = several.unwrap_or(WhichRequests::Rank(rank.unwrap_or(1)));
        Ok(Some(ChosenRequests { name, key: self.key.clone(), which }))
    }
}

/// Runs `whit why`.
pub(crate) fn run(args: &WhyArgs) -> Result<u8> {
    let recording = args.input.open()?;
    let options = args.symbols.options(&recording)?;
    let requests = args.requests()?;
    let interval = Interval {
        requests,
        tid: args.tid.map(Tid),
        goroutine: args.goroutine,
        time: args.time.clone(),
        each: false,
    };
    let why = answer(Reading::open(&recording, &options), interval, args.quiet);
    let why = why.map_err(failure)?;
    let is_table = !args.json && !args.folded;
    let out = args.width.fit(args.terminal.output(), is_table);
    let stacks = args.folded.then(|| why.stacks()).transpose()?;
    let limit = Some(args.limit.unwrap_or(DEFAULT_LIMIT));
    let options = TextOptions { limit, is_path: args.path, is_quiet: args.quiet };
    show(
        out,
        args.json,
        |out| write_json(out, &why),
        |out| match &stacks {
            Some(stacks) => write_stacks(out, stacks),
            None => write_text(out, &why, &options),
        },
    )?;
    Ok(0)
}
