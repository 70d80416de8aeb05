//! `whit report`.

use crate::completion;
use crate::failure::usage;
use crate::heading;
use crate::input::InputArgs;
use crate::message;
use crate::page;
use crate::progress::LoadProgress;
use crate::symbol_args::LoadArgs;
use crate::terminal::TerminalArgs;
use crate::unsupported_options::{OfReport, UnsupportedArgs};
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use whit_page::{HtmlOptions, MAX_SPANS};
use whit_perfdata::reader::Recording;
use whit_profile::LoadOptions;
use whit_profile::model::Profile;
use whit_profile::switches::{self, SwitchOptions, Switches};
use whit_view::hists::{ChainOptions, Filters, HistsOptions, SelfTime, SortKey};
use whit_view::stdio::{self, StdioOptions};

/// Arguments of `whit report`.
#[derive(clap::Args, Debug)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Print the report as text (the default)
    #[arg(long, help_heading = heading::OUTPUT)]
    stdio: bool,
    /// Write a page with an interactive flame graph to this file
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    html: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long, conflicts_with_all = ["stats", "ledger", "header_only"], help_heading = heading::OUTPUT)]
    json: bool,
    /// Print the number of records of each type, and the losses
    #[arg(long, help_heading = heading::OUTPUT)]
    stats: bool,
    /// Print the cost of the recording
    #[arg(long, help_heading = heading::OUTPUT)]
    ledger: bool,
    /// Print the header of the recording before the report
    #[arg(long, help_heading = heading::OUTPUT)]
    header: bool,
    /// Print only the header of the recording
    #[arg(long, help_heading = heading::OUTPUT)]
    header_only: bool,
    /// Sort by total: each function with the functions that it called (the default where call chains
    /// were recorded)
    #[arg(long, overrides_with = "no_children", help_heading = heading::ROWS)]
    children: bool,
    /// Sort by self: each function alone
    #[arg(long, help_heading = heading::ROWS)]
    no_children: bool,
    /// Make rows by these keys: comm, dso, symbol, srcline, srcfile, cpu, tid, pid
    #[arg(short, long, value_name = "KEY,..", help_heading = heading::ROWS)]
    sort: Option<String>,
    /// Use only samples of these commands
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::comms())]
    comms: Vec<String>,
    /// Use only samples in these binaries
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::dsos())]
    dsos: Vec<String>,
    /// Use only samples in these functions
    #[arg(short = 'S', long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::functions())]
    symbols: Vec<String>,
    /// Omit rows and call chains below this share
    #[arg(long, value_name = "PERCENT", help_heading = heading::ROWS)]
    percent_limit: Option<f64>,
    /// Print call chains: none, caller, callee, flat or folded, with limits as in graph,0.5,caller
    #[arg(
        short = 'g', long = "call-graph", value_name = "MODE",
        num_args = 0..=1, default_missing_value = "graph", require_equals = false, help_heading = heading::ROWS
    )]
    call_graph: Option<String>,
    /// Count the self time of inlined code for the innermost function, or for the outer function that
    /// contains it (as perf does)
    #[arg(long, value_name = "RULE", default_value = "innermost", help_heading = heading::ROWS)]
    self_time: SelfTime,
    /// Do not show call chains
    #[arg(short = 'G', long, hide = true)]
    inverted: bool,
    /// Print the number of samples
    #[arg(short = 'n', long, help_heading = heading::ROWS)]
    show_nr_samples: bool,
    /// Print the sum of the periods
    #[arg(long, help_heading = heading::ROWS)]
    show_total_period: bool,
    /// Print only the table
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfReport>,
}

/// Runs `whit report`.
pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    let hists = args.hists_options()?;
    args.html.as_deref().map_or(Ok(()), page::check)?;
    let recording = args.input.open()?;
    let mut options = args.load.options(&recording);
    options.by_cpu = hists.sort_keys().contains(&SortKey::Cpu);
    let (profile, switches) = args.load(&recording, &options)?;
    if let Some(path) = &args.html {
        page::write(&profile, switches.as_ref(), &HtmlOptions::default(), path)?;
        if !args.wants_text() {
            page::tell(path)?;
            return Ok(0);
        }
    }
    let mut out = args.terminal.output();
    args.print(&profile, hists, &mut out)?;
    out.flush()?;
    Ok(0)
}

impl ReportArgs {
    /// Loads the recording; for the page with its context switches, where it tells of any.
    fn load(
        &self,
        recording: &Recording,
        options: &LoadOptions,
    ) -> Result<(Profile, Option<Switches>)> {
        let progress = LoadProgress::new("reading", self.quiet);
        let update = |done, total| progress.update(done, total);
        let loaded = if self.html.is_some() && switches::may_tell(recording) {
            let wanted = SwitchOptions { max_worst: 0, max_spans: MAX_SPANS };
            let loaded = switches::load(recording, options, wanted, &update);
            loaded.map(|(profile, switches)| {
                let tells = switches.sources.tells_switches();
                (profile, tells.then_some(switches))
            })
        } else {
            whit_profile::load(recording, options, &update).map(|profile| (profile, None))
        };
        progress.finish();
        Ok(loaded?)
    }

    fn hists_options(&self) -> Result<HistsOptions> {
        let mut hists = HistsOptions {
            children: !self.no_children,
            inline: self.load.inline(),
            self_time: self.self_time,
            filters: Filters {
                comms: self.comms.clone(),
                dsos: self.dsos.clone(),
                symbols: self.symbols.clone(),
            },
            ..HistsOptions::default()
        };
        if let Some(keys) = &self.sort {
            hists.sort = SortKey::parse_list(keys).map_err(usage)?;
        }
        if let Some(chains) = &self.call_graph {
            hists.chains = ChainOptions::parse(chains).map_err(usage)?;
        }
        if let Some(percent) = self.percent_limit {
            hists.set_percent_limit(percent);
        }
        Ok(hists)
    }

    /// With `--html` alone, only the page is written.
    fn wants_text(&self) -> bool {
        self.stdio || self.json || self.stats || self.ledger || self.header || self.header_only
    }

    fn print(&self, profile: &Profile, hists: HistsOptions, out: &mut impl Write) -> Result<()> {
        if self.json {
            whit_view::json::write_json(out, profile, &hists)?;
            return Ok(writeln!(out)?);
        }
        if self.header || self.header_only {
            stdio::write_header(out, profile)?;
        }
        if self.stats {
            stdio::write_stats(out, profile)?;
        }
        if self.ledger {
            stdio::write_ledger(out, profile)?;
        }
        if self.stats || self.ledger || self.header_only {
            // The report itself has them in its head.
            profile.warnings.iter().for_each(message::error);
            return Ok(());
        }
        let options = StdioOptions {
            hists,
            show_samples: self.show_nr_samples,
            show_period: self.show_total_period,
            quiet: self.quiet,
            colour: self.terminal.colour(),
        };
        Ok(stdio::write_report(out, profile, &options)?)
    }
}
