//! `whit switches`.

use crate::brief::check_handles;
use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::input::RecordingArgs;
use crate::interface::{self, FirstView};
use crate::page::{self, Loaded, PageArgs};
use crate::progress::answer;
use crate::symbol_args::{LoadArgs, needs_cgroups};
use crate::terminal::{TerminalArgs, WidthArgs, show};
use crate::unsupported_options::{OfSwitches, UnsupportedArgs};
use crate::wall::{StackFilterArgs, WaitArgs, chain_order, needs_switches};
use crate::without_match;
use anyhow::Result;
use std::path::PathBuf;
use whit_page::{HtmlOptions, MAX_SPANS};
use whit_perfdata::reader::Recording;
use whit_profile::handle::{self, BadHandle, WaitId};
use whit_profile::model::Profile;
use whit_profile::switches::{SamplesAndSwitches, SwitchOptions, Switches, WaitFilter};
use whit_profile::{CodeFinder, Reading, Samples, WithCode};
use whit_view::hists::{ChainOrder, HistsOptions};
use whit_view::stdio::StdioOptions;
use whit_view::switches::{
    DEFAULT_PERCENT_LIMIT, DEFAULT_RUN_QUEUE, DEFAULT_WORST, FlatSort, SwitchViewOptions, View,
    write_json, write_text,
};

/// An example for each face.
const EXAMPLES: &str = "\
Examples:
  whit switches                         # on a terminal: the interface
  whit switches --stdio -g caller       # text, from where threads start
  whit switches --worst 20 --wakers     # the longest waits, and who ended them
  whit switches --wait w-1234-7v2hk0m   # one wait of `whit report --brief`
  whit switches --html waits.html       # a page";

/// Arguments of `whit switches`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SwitchesArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Print text; without it, a terminal gets an interface with perf's keys (? lists them)
    #[arg(long, help_heading = heading::OUTPUT)]
    stdio: bool,
    /// Print the call tree (the default of text)
    #[arg(long, help_heading = heading::OUTPUT)]
    tree: bool,
    /// Print a table of functions
    #[arg(long, help_heading = heading::OUTPUT)]
    flat: bool,
    /// Print a table of threads
    #[arg(long, help_heading = heading::OUTPUT)]
    per_thread: bool,
    /// Print the N longest waits
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", help_heading = heading::OUTPUT)]
    worst: Option<usize>,
    /// Print one wait with both threads' stacks and all times: by its handle, which --brief and --json give
    #[arg(long, value_name = "HANDLE", help_heading = heading::OUTPUT)]
    wait: Option<String>,
    /// Print which threads ended the waits, where wake-ups were recorded
    #[arg(long, help_heading = heading::OUTPUT)]
    wakers: bool,
    /// Print how long threads were runnable before they ran: count, average, percentiles, longest (perf sched latency)
    #[arg(long, help_heading = heading::OUTPUT)]
    run_queue: bool,
    /// Print at most N threads of --run-queue, those with the longest single delays
    #[arg(long, value_name = "N", default_value_t = DEFAULT_RUN_QUEUE, help_heading = heading::ROWS)]
    limit: usize,
    /// Print everything as JSON
    #[arg(long, help_heading = heading::OUTPUT)]
    json: bool,
    /// Write a page with the call trees and a time line of the threads to this file
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    html: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Root of the call tree: callee, the function in which a thread leaves its CPU (the default), or
    /// caller, the function in which a thread starts
    #[arg(short = 'g', long, value_name = "ORDER", help_heading = heading::ROWS)]
    call_graph: Option<String>,
    /// Make rows of the table of functions by these keys: comm, comm_nodigit, dso, symbol, tid,
    /// pid, tgid, cgroup, container, pod, unit, wait_class
    #[arg(short, long, value_name = "KEY,..", help_heading = heading::ROWS)]
    sort: Option<String>,
    /// Sort by total: each function with the functions that it called (the default)
    #[arg(long, overrides_with = "no_children", help_heading = heading::ROWS)]
    children: bool,
    /// Sort by self: each function alone
    #[arg(long, help_heading = heading::ROWS)]
    no_children: bool,
    #[command(flatten)]
    stacks: StackFilterArgs,
    /// Omit rows below this share in every column
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_PERCENT_LIMIT, help_heading = heading::ROWS)]
    percent_limit: f64,
    /// Print only the tables
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    waits: WaitArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    width: WidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfSwitches>,
}

/// Runs `whit switches`.
pub(crate) fn run(args: &SwitchesArgs) -> Result<u8> {
    let options = args.view_options()?;
    args.html.as_deref().map_or(Ok(()), page::check)?;
    if args.is_interactive()
        && let Some(code) = interface::start(&args.load.symbols)?
    {
        return Ok(code);
    }
    let recording = args.input.open()?;
    if options.sort.has_cgroups() {
        needs_cgroups(&recording, "--sort")?;
    }
    let (mut profile, mut switches, code) = load(args, &recording)?;
    needs_switches(&profile, &switches)?;
    check_handles(&options.filters.symbols, &profile)?;
    without_match::warn(&mut profile, &options.filters);
    args.check_wait(&switches)?;
    if let Some(path) = &args.html {
        let page = HtmlOptions { begins_with_switches: true, ..HtmlOptions::default() };
        let code = args.page.wants_code().then_some(code);
        let read_options = args.load.options(&recording)?;
        let requests = page::requests(Reading::open(&recording, &read_options))?;
        let loaded = Loaded { profile, switches: Some(switches), code, requests };
        page::write(&loaded, &page, path)?;
        (profile, switches) = (loaded.profile, loaded.switches.unwrap_or_default());
        if !args.json && !args.wants_text() {
            page::say_place(path)?;
            return Ok(0);
        }
    }
    show(
        args.width.fit(args.terminal.output(), !args.json),
        args.json,
        |out| write_json(out, &profile, &switches, &options),
        |out| write_text(out, &profile, &switches, &args.views(), &options),
    )?;
    Ok(0)
}

fn load(args: &SwitchesArgs, recording: &Recording) -> Result<(Profile, Switches, CodeFinder)> {
    let options = args.load.options(recording)?;
    let mut samples = Samples::default();
    if args.html.is_some() {
        samples = page::samples(recording, samples, !args.json && !args.wants_text());
        samples.blocks = args.page.wants_code();
    }
    let max_spans = if args.html.is_some() { MAX_SPANS } else { 0 };
    let waits = WaitFilter { only: args.chosen_wait()?, ..args.waits.filter()? };
    let run_queue = args.run_queue || args.json;
    let objects = args.json || args.view_options()?.sort.has_object();
    let switches = SwitchOptions {
        max_worst: args.max_worst(),
        max_spans,
        run_queue,
        objects,
        waits,
        ..SwitchOptions::default()
    };
    let question = WithCode(SamplesAndSwitches { samples, switches });
    Ok(answer(Reading::open(recording, &options), question, args.quiet)?)
}

impl SwitchesArgs {
    /// Loads the first view of the interface.
    pub fn first_view(&self) -> Result<FirstView> {
        let view = self.view_options()?;
        let recording = self.input.open()?;
        let (mut profile, switches, _) = load(self, &recording)?;
        needs_switches(&profile, &switches)?;
        without_match::warn(&mut profile, &view.filters);
        let hists = HistsOptions {
            filters: view.filters,
            inline: view.inline,
            percent_limit: view.percent_limit,
            ..HistsOptions::default()
        };
        let text =
            StdioOptions { hists, colour: self.terminal.colour(), ..StdioOptions::default() };
        let (options, samples) = (Some(self.load.options(&recording)?), Samples::default());
        let (recordings, switches) = (vec![recording], Some(switches));
        let may_have_waits = true;
        Ok(FirstView { recordings, options, samples, profile, switches, may_have_waits, text })
    }

    /// Text is for pipes, for those who ask for it, and for views that the interface does not have.
    fn is_interactive(&self) -> bool {
        let wants_text = self.stdio
            || self.json
            || self.html.is_some()
            || self.quiet
            || self.call_graph.is_some()
            || self.wants_text()
            || self.terminal.has_no_pager();
        !wants_text && interface::is_possible()
    }

    fn view_options(&self) -> Result<SwitchViewOptions> {
        if self.worst.is_some_and(|count| count > SwitchOptions::MAX_WORST) {
            bail_usage!("at most {} waits can be kept one by one", SwitchOptions::MAX_WORST);
        }
        if !(0.0..=100.0).contains(&self.percent_limit) {
            bail_usage!("--percent-limit takes a share between 0 and 100");
        }
        let sort = match &self.sort {
            Some(keys) => FlatSort::parse(keys).map_err(usage)?,
            None => FlatSort::default(),
        };
        Ok(SwitchViewOptions {
            filters: self.stacks.filters(),
            inline: self.load.inline(),
            order: chain_order(self.call_graph.as_deref())?.unwrap_or(ChainOrder::Callee),
            percent_limit: self.percent_limit,
            sort,
            children: !self.no_children,
            limit: self.worst.unwrap_or(DEFAULT_WORST),
            run_queue_limit: self.limit,
            quiet: self.quiet,
            width: self.width.columns().filter(|_| !self.json),
        })
    }

    fn chosen_wait(&self) -> Result<Option<WaitId>> {
        self.wait.as_deref().map(handle::wait).transpose().map_err(usage)
    }

    fn check_wait(&self, switches: &Switches) -> Result<()> {
        match &self.wait {
            Some(wait) if switches.worst.is_empty() => {
                Err(usage(BadHandle::UnknownWait(wait.clone())))
            }
            _ => Ok(()),
        }
    }

    /// Filters look at the waits that were kept, so more are kept than shown.
    fn max_worst(&self) -> usize {
        let is_filtered =
            self.load.chooses_cgroups() || self.waits.choose_classes() || self.stacks.are_given();
        match self.worst {
            _ if self.wait.is_some() => 1,
            Some(_) if is_filtered => SwitchOptions::MAX_WORST,
            Some(count) => count,
            None if self.json && is_filtered => SwitchOptions::MAX_WORST,
            None if self.json => DEFAULT_WORST,
            None => 0,
        }
    }

    /// With `--html` alone, only the page is written.
    fn wants_text(&self) -> bool {
        let asked = [self.tree, self.flat, self.per_thread, self.wakers, self.run_queue];
        asked.contains(&true) || self.sort.is_some() || self.worst.is_some() || self.wait.is_some()
    }

    fn views(&self) -> Vec<View> {
        let mut views = Vec::new();
        for (is_wanted, view) in [
            (self.tree, View::Tree),
            (self.flat || self.sort.is_some(), View::Flat),
            (self.per_thread, View::Threads),
            (self.worst.is_some() || self.wait.is_some(), View::Worst),
            (self.wakers, View::Wakers),
            (self.run_queue, View::RunQueue),
        ] {
            views.extend(is_wanted.then_some(view));
        }
        if views.is_empty() {
            views.push(View::Tree);
        }
        views
    }
}
