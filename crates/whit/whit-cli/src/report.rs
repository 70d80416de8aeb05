//! `whit report`.

use crate::brief::{BriefArgs, Given, check_handles};
use crate::completion;
use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::input::RecordingArgs;
use crate::interface::{self, FirstView};
use crate::latency::{self, LatencyArgs, needs_parallelism};
use crate::message;
use crate::page::{self, Loaded, PageArgs, PageParts};
use crate::progress::answer;
use crate::row_args::RowArgs;
use crate::symbol_args::{LoadArgs, needs_cgroups};
use crate::terminal::{TerminalArgs, WidthArgs, show};
use crate::unsupported_options::{OfReport, UnsupportedArgs};
use crate::wall::{WaitArgs, chain_order, needs_switches};
use crate::without_match;
use anyhow::Result;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use whit_page::HtmlOptions;
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::switches::{self, SamplesAndSwitches, SwitchOptions};
use whit_profile::tasks::Tasks;
use whit_profile::time_filter::TimeQuantum;
use whit_profile::{Counted, ReadOptions, Reading, Samples};
use whit_view::hists::{
    ChainOptions, ChainOrder, Filters, Grouping, HistsOptions, SelfTime, SortKey,
};
use whit_view::stdio::{self, StdioOptions};
use whit_view::switches::{DEFAULT_PERCENT_LIMIT, SwitchViewOptions};
use whit_view::wall;
use whit_view::warning::warning_text;

/// An example for each face.
const EXAMPLES: &str = "\
Examples:
  whit report                           # on a terminal: the interface
  whit report --stdio --no-children     # text, also on a terminal
  whit report -s comm,dso | head -20    # text for other programs
  whit report --html profile.html       # a page";

/// Arguments of `whit report`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Print text; without it, a terminal gets an interface with perf's keys (? lists them)
    #[arg(long, help_heading = heading::OUTPUT)]
    stdio: bool,
    /// Write a page with an interactive flame graph to this file
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    html: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Print the report as JSON
    #[arg(long, help_heading = heading::OUTPUT)]
    json: bool,
    #[command(flatten)]
    brief: BriefArgs,
    /// Print the number of records of each type, and the losses
    #[arg(long, help_heading = heading::OUTPUT)]
    stats: bool,
    /// Print the recorded tasks below their parents
    #[arg(long, help_heading = heading::OUTPUT)]
    tasks: bool,
    /// The same, with the memory that each task mapped
    #[arg(long, help_heading = heading::OUTPUT)]
    mmaps: bool,
    /// Print the cost of the recording
    #[arg(long, help_heading = heading::OUTPUT)]
    ledger: bool,
    /// Print the time of threads on and off the CPU in one call tree, where context switches were
    /// recorded
    #[arg(long, help_heading = heading::OUTPUT)]
    wall: bool,
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
    #[command(flatten)]
    rows: RowArgs,
    /// Shares are of all samples of the event, or of those that --comms, --dsos and --symbols leave
    #[arg(long, value_name = "OF", value_parser = ["absolute", "relative"], default_value = "absolute", help_heading = heading::ROWS)]
    percentage: String,
    /// Print the cgroups as a tree, each with those below it
    #[arg(long, help_heading = heading::ROWS)]
    cgroup_tree: bool,
    /// Length of a stretch of time with --sort time: a number and us, ms or s
    #[arg(long, value_name = "TIME", default_value = "100ms", help_heading = heading::ROWS)]
    time_quantum: TimeQuantum,
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
    /// With --wall, use only call chains through this function
    #[arg(long, value_name = "FUNCTION,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::functions())]
    only_path: Vec<String>,
    #[command(flatten)]
    latency: LatencyArgs,
    #[command(flatten)]
    waits: WaitArgs,
    /// Omit rows and call chains below this share [default: 0.5 on a terminal; elsewhere 0, and 0.5 of call chains]
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
    /// Print call chains from where threads start
    #[arg(short = 'G', long, help_heading = heading::ROWS)]
    inverted: bool,
    /// Print how far shares can be trusted (the default with --json and on a terminal)
    #[arg(long, overrides_with = "no_intervals", help_heading = heading::ROWS)]
    intervals: bool,
    /// Do not print how far shares can be trusted
    #[arg(long, help_heading = heading::ROWS)]
    no_intervals: bool,
    /// Separate the columns with this character instead of padding them; values have a dot in its place
    #[arg(short = 't', long, value_name = "CHAR", help_heading = heading::OUTPUT)]
    field_separator: Option<char>,
    /// Print only the table
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    width: WidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfReport>,
}

/// Rows below this share are left out on a terminal.
const TERMINAL_PERCENT_LIMIT: f64 = 0.5;

/// Runs `whit report`.
pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    if let Some(code) = args.brief.answer(&args.given())? {
        return Ok(code);
    }
    if args.wall {
        return args.print_wall();
    }
    if args.tasks || args.mmaps {
        return args.print_tasks();
    }
    let mut hists = args.hists_options()?;
    args.html.as_deref().map_or(Ok(()), page::check)?;
    if args.is_interactive()
        && let Some(code) = interface::start(&args.load.symbols)?
    {
        return Ok(code);
    }
    let recordings = args.input.open_all()?;
    // Blocks of time are those of one recording.
    hists.intervals &= recordings.len() == 1;
    let mut loaded = args.load_all(&recordings, &hists)?;
    args.rows.change(&mut loaded.profile);
    args.rows.check(&loaded.profile, &hists)?;
    check_handles(&args.symbols, &loaded.profile)?;
    without_match::warn(&mut loaded.profile, &hists.filters);
    if let Some(path) = &args.html {
        page::write(&loaded, &HtmlOptions::default(), path)?;
        if !args.wants_text() {
            page::say_place(path)?;
            return Ok(0);
        }
    }
    let mut out = args.width.fit(args.terminal.output(), args.is_cut());
    args.print(&loaded.profile, hists, &mut out)?;
    out.flush()?;
    Ok(0)
}

impl ReportArgs {
    /// Loads the first view of the interface.
    pub fn first_view(&self) -> Result<FirstView> {
        let mut hists = self.hists_options()?;
        // Rows are scrolled, and L leaves some out.
        hists.percent_limit = self.percent_limit.unwrap_or(0.0);
        let recordings = self.input.open_all()?;
        hists.intervals &= recordings.len() == 1;
        let only = if let [recording] = &recordings[..] { Some(recording) } else { None };
        let question = only.map(|recording| self.question(recording, &hists)).transpose()?;
        let (options, samples) = question.unzip();
        let samples = samples.unwrap_or_default();
        let may_have_waits = only.is_some_and(switches::may_show) && !self.load.chooses_cpus();
        // Both at once take little longer than the samples, and the first screen says what waits cost.
        let (mut profile, switches) = match (only, &options) {
            (Some(recording), Some(options)) if may_have_waits => {
                let question = SamplesAndSwitches { samples, switches: SwitchOptions::default() };
                let reading = Reading::open(recording, options);
                let (profile, switches) = answer(reading, question, self.quiet)?;
                latency::has_switches(recording, &samples, &profile)?;
                (profile, Some(switches).filter(|it| it.sources.has_switches()))
            }
            _ => (self.load_all(&recordings, &hists)?.profile, None),
        };
        self.change(&mut profile);
        self.rows.check(&profile, &hists)?;
        without_match::warn(&mut profile, &hists.filters);
        let text = self.stdio_options(hists);
        Ok(FirstView { recordings, options, samples, profile, switches, may_have_waits, text })
    }

    /// Changes a loaded profile as the options of the rows ask.
    pub fn change(&self, profile: &mut Profile) {
        self.rows.change(profile);
    }

    /// Text is for pipes, for those who ask for it, and for forms that the interface does not have.
    fn is_interactive(&self) -> bool {
        let wants_text = self.wants_text()
            || self.html.is_some()
            || self.quiet
            || self.cgroup_tree
            || self.field_separator.is_some()
            || self.terminal.has_no_pager()
            || self.rows.are_text();
        !wants_text && interface::is_possible()
    }

    fn given(&self) -> Given<'_> {
        Given {
            input: &self.input,
            load: &self.load,
            terminal: &self.terminal,
            json: self.json,
            quiet: self.quiet,
        }
    }

    /// The sum of all recordings. Context switches are those of a recording alone.
    fn load_all(&self, recordings: &[Recording], hists: &HistsOptions) -> Result<Loaded> {
        if let [recording] = recordings {
            return self.load(recording, hists, true);
        }
        let load = |recording| Ok(self.load(recording, hists, false)?.profile);
        let profiles = recordings.iter().map(load).collect::<Result<Vec<_>>>()?;
        let profile = whit_profile::merge(profiles).unwrap_or_default();
        Ok(Loaded { profile, ..Loaded::default() })
    }

    /// How a recording is read, and how its samples are summed up.
    fn question(
        &self,
        recording: &Recording,
        hists: &HistsOptions,
    ) -> Result<(ReadOptions, Samples)> {
        if let Some(key) = hists.sort_keys().iter().find(|key| SortKey::OF_CGROUPS.contains(key)) {
            needs_cgroups(recording, &format!("--sort {}", key.name()))?;
        }
        if self.cgroup_tree {
            needs_cgroups(recording, "--cgroup-tree")?;
        }
        let mut options = self.load.options(recording)?;
        let facets = SortKey::wanted_facets(hists.sort_keys(), self.time_quantum.0);
        let mut samples = Samples { facets, ..Samples::default() };
        samples.facets.cgroup |= self.cgroup_tree;
        if let Some(of) = self.latency.set(hists) {
            needs_parallelism(recording, of)?;
            samples.parallelism = Some(of);
            samples.facets.parallelism = true;
        }
        self.rows.ask(recording, &mut samples)?;
        // Text shows lines where they are keys, and nothing else of debug information.
        let shows_lines = hists.sort_keys().iter().any(|key| key.name().starts_with("src"));
        let is_text = !self.json && self.html.is_none() && !self.is_interactive();
        if is_text && !shows_lines && !self.load.inline() {
            options.names.companions.leave_out_debug_info();
        }
        if self.html.is_some() {
            samples = page::samples(recording, samples, !self.wants_text());
        }
        samples.blocks = (hists.intervals && !self.cgroup_tree) || self.wants_code();
        Ok((options, samples))
    }

    /// True where a page gets the code of the hottest functions.
    fn wants_code(&self) -> bool {
        self.html.is_some() && self.page.wants_code()
    }

    /// Loads the recording; for the page with its context switches and code, if it has any. `is_alone` where it is the
    /// only one.
    fn load(&self, recording: &Recording, hists: &HistsOptions, is_alone: bool) -> Result<Loaded> {
        let (options, samples) = self.question(recording, hists)?;
        let reading = Reading::open(recording, &options);
        // Switches belong to threads, not to CPUs.
        let switches = is_alone && self.html.is_some() && !self.load.chooses_cpus();
        let loaded = if switches || is_alone && self.wants_code() {
            let loaded = answer(reading, PageParts { samples, switches }, self.quiet)?;
            Loaded { code: loaded.code.filter(|_| self.wants_code()), ..loaded }
        } else {
            Loaded { profile: answer(reading, samples, self.quiet)?, ..Loaded::default() }
        };
        latency::has_switches(recording, &samples, &loaded.profile)?;
        Ok(loaded)
    }

    /// Prints the tasks, with their memory where it was asked for.
    fn print_tasks(&self) -> Result<u8> {
        let recording = self.input.open()?;
        let options = ReadOptions::without_names(self.load.threads());
        let list = answer(Reading::open(&recording, &options), Tasks, self.quiet)?;
        let mut out = self.width.fit(self.terminal.output(), !self.json);
        if self.header {
            stdio::write_header(&mut out, &whit_profile::header_of(&recording))?;
        }
        show(
            out,
            self.json,
            |out| whit_view::tasks::write_json(out, &list, self.mmaps),
            |out| whit_view::tasks::write_text(out, &list, self.mmaps),
        )?;
        Ok(0)
    }

    /// Prints CPU time and waits in one tree.
    fn print_wall(&self) -> Result<u8> {
        let options = self.wall_options()?;
        let waits = self.waits.filter()?;
        let recording = self.input.open()?;
        let read = self.load.options(&recording)?;
        let switches = SwitchOptions { waits, ..SwitchOptions::default() };
        let question = SamplesAndSwitches { samples: Samples::default(), switches };
        let reading = Reading::open(&recording, &read);
        let (mut profile, switches) = answer(reading, question, self.quiet)?;
        needs_switches(&profile, &switches)?;
        check_handles(&options.filters.symbols, &profile)?;
        without_match::warn(&mut profile, &options.filters);
        show(
            self.width.fit(self.terminal.output(), !self.json),
            self.json,
            |out| wall::write_json(out, &profile, &switches, &options),
            |out| wall::write_text(out, &profile, &switches, &options),
        )?;
        Ok(0)
    }

    fn wall_options(&self) -> Result<SwitchViewOptions> {
        let order = chain_order(self.call_graph.as_deref())?;
        Ok(SwitchViewOptions {
            filters: Filters {
                comms: self.comms.clone(),
                dsos: self.dsos.clone(),
                symbols: [&self.symbols[..], &self.only_path].concat(),
                ..Filters::default()
            },
            inline: self.load.inline(),
            order: order.unwrap_or(ChainOrder::Caller),
            percent_limit: self.percent_limit.unwrap_or(DEFAULT_PERCENT_LIMIT),
            quiet: self.quiet,
            ..SwitchViewOptions::default()
        })
    }

    fn hists_options(&self) -> Result<HistsOptions> {
        let mut hists = HistsOptions {
            children: !self.no_children,
            inline: self.load.inline(),
            self_time: self.self_time,
            cgroup_tree: self.cgroup_tree,
            relative: self.percentage == "relative",
            intervals: self.wants_intervals(),
            grouping: match self.json || self.cgroup_tree {
                true => Grouping::Apart,
                false => Grouping::AsRecorded,
            },
            filters: Filters {
                comms: self.comms.clone(),
                dsos: self.dsos.clone(),
                symbols: self.symbols.clone(),
                parallelism: self.latency.levels(),
                ..Filters::default()
            },
            ..HistsOptions::default()
        };
        hists.chains = self.chains()?;
        if let Some(percent) = self.percent_limit() {
            hists.set_percent_limit(percent);
        }
        self.rows.apply(&mut hists, &self.latency)?;
        if self.latency.set(&hists).is_some() {
            self.check_latency(&hists)?;
        }
        Ok(hists)
    }

    /// perf's `-G` says where chains begin, unless `-g` does.
    fn chains(&self) -> Result<ChainOptions> {
        let given = self.call_graph.as_deref().map(ChainOptions::parse).transpose();
        let mut chains = given.map_err(usage)?.unwrap_or_default();
        chains.order = chains.order.or(self.inverted.then_some(ChainOrder::Caller));
        Ok(chains)
    }

    /// Latency is that of samples.
    fn check_latency(&self, hists: &HistsOptions) -> Result<()> {
        if hists.count != Counted::Samples && hists.shares.has_latency() {
            bail_usage!(
                "latency is that of CPU time: leave out --branch-stack and --mem-mode, or latency"
            );
        }
        Ok(())
    }

    /// Scripts read the text of a pipe or a file as perf writes it; people and readers of JSON want to know more.
    fn wants_intervals(&self) -> bool {
        let are_shown = self.json || (io::stdout().is_terminal() && self.html.is_none());
        // Blocks of time have the samples that filters leave out, too.
        let is_relative = self.percentage == "relative";
        !self.no_intervals && !is_relative && (self.intervals || are_shown)
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
            profile.warnings.iter().map(warning_text).for_each(message::error);
            return Ok(());
        }
        Ok(stdio::write_report(out, profile, &self.stdio_options(hists))?)
    }

    fn stdio_options(&self, hists: HistsOptions) -> StdioOptions {
        StdioOptions {
            hists,
            separator: self.field_separator,
            show_samples: self.rows.show_nr_samples,
            show_period: self.rows.show_total_period,
            column_widths: self.rows.column_widths.clone(),
            nanoseconds: self.rows.ns,
            quiet: self.quiet,
            colour: self.terminal.colour(),
            width: self.width.columns().filter(|_| self.is_cut()),
            counts_left_out: io::stdout().is_terminal() && self.is_cut(),
            is_live: false,
        }
    }

    /// Lines are cut in text whose columns the user does not lay out.
    fn is_cut(&self) -> bool {
        !self.json && self.field_separator.is_none() && self.rows.column_widths.is_empty()
    }

    /// People rarely read on below half a percent; programs get all rows.
    fn percent_limit(&self) -> Option<f64> {
        let is_for_people =
            io::stdout().is_terminal() && !self.json && self.field_separator.is_none();
        self.percent_limit.or(is_for_people.then_some(TERMINAL_PERCENT_LIMIT))
    }
}
