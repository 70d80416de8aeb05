//! `whit why`.

use crate::failure::usage;
use crate::heading;
use crate::input::RecordingArgs;
use crate::progress::LoadProgress;
use crate::symbol_args::{SymbolArgs, thread_id};
use crate::terminal::{TerminalArgs, WidthArgs};
use anyhow::Result;
use std::io::Write;
use whit_profile::time_filter::TimeFilter;
use whit_types::Tid;
use whit_view::why::{DEFAULT_LIMIT, TextOptions, write_json, write_stacks, write_text};
use whit_why::{Interval, Why, WhyError};

const EXAMPLES: &str = "\
Examples:
  whit record --engine=bpf --wakeups -- ./server    # switches with stacks and wakers
  whit why                          # the whole life of the command's first thread
  whit why --tid 4711 --time 12.5,12.7";

/// Arguments of `whit why`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Explain this thread, by its id or by a handle such as t-1234 [default: the command's first thread]
    #[arg(long, value_name = "TID", value_parser = thread_id, help_heading = heading::FILTER)]
    tid: Option<i32>,
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

/// Runs `whit why`.
pub(crate) fn run(args: &WhyArgs) -> Result<u8> {
    let recording = args.input.open()?;
    let options = args.symbols.options(&recording)?;
    let interval = Interval { tid: args.tid.map(Tid), time: args.time.clone() };
    let progress = LoadProgress::new("reading", args.quiet);
    let loaded = Why::load(recording, options, &interval, &|done, total| {
        progress.update(done, total);
    });
    progress.finish();
    let why = loaded.map_err(|error| match error {
        WhyError::SeveralTimes => usage(error),
        error => error.into(),
    })?;
    let is_table = !args.json && !args.folded;
    let mut out = args.width.fit(args.terminal.output(), is_table);
    if args.folded {
        write_stacks(&mut out, &why.stacks()?)?;
    } else if args.json {
        write_json(&mut out, &why)?;
        writeln!(out)?;
    } else {
        let limit = Some(args.limit.unwrap_or(DEFAULT_LIMIT));
        let options = TextOptions { limit, is_path: args.path, is_quiet: args.quiet };
        write_text(&mut out, &why, &options)?;
    }
    out.flush()?;
    Ok(0)
}
