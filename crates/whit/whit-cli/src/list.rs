//! `whit list`.

use crate::event_tables::EventTableArgs;
use crate::message;
use crate::terminal::{LineWidthArgs, TerminalArgs};
use anyhow::Result;
use std::io::Write;
use whit_doctor::{
    Listing, Machine, Selection, TextOptions, Trial, Unmatched, list, render_listing_json,
    render_listing_text, render_names,
};
use whit_events::TracefsIds;

/// Arguments of `whit list`: perf's names and meanings where perf has them.
#[derive(clap::Args, Debug)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct ListArgs {
    /// Kinds of events (hw, sw, tool, cache, pmu, raw, breakpoint, tracepoint), parts of names, or
    /// patterns such as 'sched:*' and 'msr/*' [default: all]
    #[arg(value_name = "KIND|PATTERN")]
    what: Vec<String>,
    /// Print the parts of each PMU and event
    #[arg(short = 'v', long, visible_alias = "long-desc")]
    details: bool,
    /// Do not print descriptions
    #[arg(long)]
    no_desc: bool,
    /// With descriptions (always done)
    #[arg(short, long, hide = true)]
    desc: bool,
    /// Print only names, one on each line
    #[arg(short = 'q', long, conflicts_with_all = ["json", "details"])]
    raw_dump: bool,
    /// Print JSON
    #[arg(short, long)]
    json: bool,
    /// Include names that their vendor has replaced
    #[arg(long)]
    deprecated: bool,
    /// Print only events of the PMUs that match
    #[arg(long, value_name = "PMU")]
    unit: Option<String>,
    /// Open each event, also tracepoints, which takes some time
    #[arg(long, conflicts_with = "no_check")]
    check_all: bool,
    /// Do not open events
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    tables: EventTableArgs,
    #[command(flatten)]
    width: LineWidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
}

impl ListArgs {
    fn selection(&self) -> Selection {
        let mut selection = Selection::new(self.what.iter().map(String::as_str));
        selection.pmu.clone_from(&self.unit);
        selection.deprecated = self.deprecated;
        selection
    }

    /// Names alone say nothing of whether they open.
    fn trial(&self) -> Trial {
        match (self.check_all, self.no_check || self.raw_dump) {
            (true, _) => Trial::Everything,
            (false, true) => Trial::Nothing,
            (false, false) => Trial::Usual,
        }
    }

    fn render(&self, listing: &Listing) -> Result<String> {
        if self.json {
            return Ok(render_listing_json(listing)?);
        }
        if self.raw_dump {
            return Ok(render_names(listing));
        }
        let options = TextOptions { without_descriptions: self.no_desc, details: self.details };
        Ok(render_listing_text(listing, options))
    }
}

/// Runs `whit list`. Fails where a pattern matches nothing, or nothing is listed at all.
pub(crate) fn run(args: &ListArgs) -> Result<u8> {
    let table = args.tables.pmus()?;
    let mut tracepoints = TracefsIds::system();
    let listing =
        list(&mut Machine::this(), &table, &mut tracepoints, &args.selection(), args.trial());
    let mut out = args.width.fit(args.terminal.output(), !args.json && !args.raw_dump);
    out.write_all(args.render(&listing)?.as_bytes())?;
    out.flush()?;
    drop(out);
    if !args.raw_dump && !args.json {
        for note in &listing.notes {
            match note.remedy.as_ref().filter(|lift| !note.what.contains(*lift)) {
                Some(remedy) => message::error(format_args!("{}\n      {remedy}", note.what)),
                None => message::error(&note.what),
            }
        }
    }
    listing.unmatched.iter().for_each(say_unmatched);
    let nothing = listing.events.is_empty() && listing.pmus.is_empty();
    Ok(u8::from(nothing || !listing.unmatched.is_empty()))
}

/// Kinds of lists that only `perf list` knows.
const NOT_HERE: [(&str, &str); 5] = [
    ("metric", "whit has no metrics"),
    ("metrics", "whit has no metrics"),
    ("metricgroup", "whit has no metrics"),
    ("metricgroups", "whit has no metrics"),
    ("sdt", "probes that were added are among the tracepoints"),
];

fn say_unmatched(Unmatched { pattern, nearest }: &Unmatched) {
    let not_here = NOT_HERE.iter().find(|(word, _)| word == pattern);
    let hint = match (not_here, nearest) {
        (Some((_, why)), _) => format!(": {why}"),
        (None, Some(name)) => format!("; did you mean {name}?"),
        (None, None) => String::new(),
    };
    message::error(format_args!("no event matches '{pattern}'{hint}"));
}
