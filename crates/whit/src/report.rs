//! `whit report`.

use crate::failure::usage;
use crate::input::InputArgs;
use crate::message;
use crate::output;
use crate::page;
use crate::progress::LoadProgress;
use crate::symbol_args::LoadArgs;
use crate::unsupported_options::{OfReport, UnsupportedArgs};
use anyhow::Result;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use whit_perfdata::reader::Recording;
use whit_profile::LoadOptions;
use whit_profile::model::Profile;
use whit_profile::switches::{self, SwitchOptions, Switches};
use whit_view::hists::{ChainOptions, Filters, HistsOptions, SelfTime, SortKey};
use whit_view::html::{HtmlOptions, MAX_SPANS};
use whit_view::stdio::{self, Colour, StdioOptions};

/// Arguments of `whit report`.
#[derive(clap::Args, Debug)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Print the report as text (the default)
    #[arg(long)]
    stdio: bool,
    /// Write a page with an interactive flame graph
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long, conflicts_with_all = ["stats", "ledger", "header_only"])]
    json: bool,
    /// Print records by type, and losses
    #[arg(long)]
    stats: bool,
    /// Print what the recording cost
    #[arg(long)]
    ledger: bool,
    /// Print what the recording says of itself, then the report
    #[arg(long)]
    header: bool,
    /// Print only what the recording says of itself
    #[arg(long)]
    header_only: bool,
    /// Weigh each function with its callees (the default where call chains were recorded)
    #[arg(long, overrides_with = "no_children")]
    children: bool,
    /// Weigh each function by itself
    #[arg(long)]
    no_children: bool,
    /// What makes a row: comm, dso, symbol, srcline, srcfile, cpu, tid, pid
    #[arg(short, long, value_name = "KEY,..")]
    sort: Option<String>,
    /// Only these commands
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',')]
    comms: Vec<String>,
    /// Only these binaries
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',')]
    dsos: Vec<String>,
    /// Only these functions
    #[arg(short = 'S', long, value_name = "NAME,..", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Leave out rows and call chains below this share
    #[arg(long, value_name = "PERCENT")]
    percent_limit: Option<f64>,
    /// Call chains: none, caller, callee, flat, folded, with limits as `graph,0.5,caller`
    #[arg(
        short = 'g', long = "call-graph", value_name = "MODE",
        num_args = 0..=1, default_missing_value = "graph", require_equals = false
    )]
    call_graph: Option<String>,
    /// Whose own time inlined code is: that of the `innermost` function, or of the `outer` one that it was
    /// inlined into, as with perf
    #[arg(long, value_name = "RULE", default_value = "innermost")]
    self_time: SelfTime,
    /// Do not show call chains
    #[arg(short = 'G', long, hide = true)]
    inverted: bool,
    /// Show the number of samples too
    #[arg(short = 'n', long)]
    show_nr_samples: bool,
    /// Show the sum of periods too
    #[arg(long)]
    show_total_period: bool,
    /// Print the table alone
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
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
    let mut out = output::stdout();
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
        let no_color = std::env::var("NO_COLOR").ok();
        let options = StdioOptions {
            hists,
            show_samples: self.show_nr_samples,
            show_period: self.show_total_period,
            quiet: self.quiet,
            colour: Colour::for_output(std::io::stdout().is_terminal(), no_color.as_deref()),
        };
        Ok(stdio::write_report(out, profile, &options)?)
    }
}
