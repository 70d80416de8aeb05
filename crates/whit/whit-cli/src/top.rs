//! `whit top`: `whit record` writes into a pipe, and the interface shows the last while of it.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::interface;
use crate::symbol_args::SymbolArgs;
use crate::terminal::{TerminalArgs, WidthArgs};
use anyhow::Result;
use std::io::{self, IsTerminal};
use std::time::Duration;
use whit_view::hists::{ChainMode, HistsOptions, SortKey};
use whit_view::stdio::{Colour, StdioOptions};

/// An example for each face.
const EXAMPLES: &str = "\
Examples:
  whit top                              # the whole machine
  whit top -p 1234 --switches           # a process, with its waits (v)
  whit top --cgroup nginx.service -F 999
  whit top --stdio -n 3                 # three tables as text
  whit top --json -n 1                  # one snapshot for programs";

/// Shortest time between two pictures, and longest one. The recorder empties its rings once a second.
const DELAYS_S: std::ops::RangeInclusive<f64> = 1.0..=3600.0;
/// Rows of text end at this share.
const TEXT_PERCENT_LIMIT: f64 = 0.5;
/// The rate without `-F` and `-c`, in Hz.
const DEFAULT_RATE: &str = "99";

/// Arguments of `whit top`: perf's names and meanings.
#[derive(clap::Args, Debug)]
#[command(args_override_self = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools)]
pub struct TopArgs {
    /// Sample this event; may be repeated [default: cycles, or cpu-clock]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Vec<String>,
    /// Take N samples a second; 'max' for the highest rate that the kernel allows [default: 99]
    #[arg(short = 'F', long, visible_alias = "frequency", value_name = "HZ", help_heading = heading::EVENTS)]
    freq: Option<String>,
    /// Sample every N events
    #[arg(short, long, value_name = "N", conflicts_with = "freq", help_heading = heading::EVENTS)]
    count: Option<String>,
    /// Show all CPUs (the default)
    #[arg(short, long, help_heading = heading::TARGET)]
    all_cpus: bool,
    /// Show these CPUs: 0-3,8
    #[arg(short = 'C', long, value_name = "LIST", help_heading = heading::TARGET)]
    cpu: Option<String>,
    /// Show these running processes
    #[arg(short, long, value_name = "PID,..", help_heading = heading::TARGET)]
    pid: Option<String>,
    /// Show these running threads
    #[arg(short, long, value_name = "TID,..", help_heading = heading::TARGET)]
    tid: Option<String>,
    /// Show the running processes of this user (name or number)
    #[arg(short, long, value_name = "USER", help_heading = heading::TARGET)]
    uid: Option<String>,
    /// Show only these cgroups
    #[arg(short = 'G', long, value_name = "NAME,..", help_heading = heading::TARGET)]
    cgroup: Option<String>,
    /// Show only these containers, by their ids
    #[arg(long, value_name = "ID,..", help_heading = heading::TARGET)]
    container: Option<String>,
    /// Show only these systemd units
    #[arg(long, value_name = "NAME,..", help_heading = heading::TARGET)]
    unit: Option<String>,
    /// Show only threads and processes with these names
    #[arg(long, value_name = "NAME,..", help_heading = heading::TARGET)]
    comm: Option<String>,
    /// Take samples of idle CPUs by clocks, too
    #[arg(long, help_heading = heading::EVENTS)]
    pub idle: bool,
    /// Show the samples of whit top and its recorder, too
    #[arg(long = "self", help_heading = heading::TARGET)]
    pub itself: bool,
    /// Choose what takes call chains: ring, bpf, or auto (bpf where the kernel allows it)
    #[arg(long, value_name = "ENGINE", default_value = "auto", value_parser = ["auto", "bpf", "ring"], help_heading = heading::CHAINS)]
    engine: String,
    /// Record context switches, too: key v then shows waits
    #[arg(long, help_heading = heading::SIDEBAND)]
    pub switches: bool,
    /// Seconds between two pictures
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2.0, help_heading = heading::TIME)]
    delay: f64,
    /// Record less while the recording would cost more than PERCENT of the recorded CPUs, as `whit record` does
    #[arg(long, value_name = "PERCENT", help_heading = heading::TIME)]
    max_overhead: Option<String>,
    /// Seconds that a picture covers; older samples go
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, help_heading = heading::TIME)]
    keep: f64,
    /// Let each picture cover the time since the last one alone
    #[arg(short, long, help_heading = heading::TIME)]
    pub zero: bool,
    /// Sort rows by these keys, as in `whit report`
    #[arg(short, long, value_name = "KEY,..", help_heading = heading::ROWS, add = crate::completion::sort_keys())]
    sort: Option<String>,
    /// Sort by self: each function alone
    #[arg(long, help_heading = heading::ROWS)]
    no_children: bool,
    /// Omit rows below this share [default: 0.5 in text]
    #[arg(long, value_name = "PERCENT", help_heading = heading::ROWS)]
    percent_limit: Option<f64>,
    /// Print text; without it, a terminal gets an interface with perf's keys (? lists them)
    #[arg(long, help_heading = heading::OUTPUT)]
    pub stdio: bool,
    /// Print each picture as JSON, the document of `whit report --json`, on one line
    #[arg(long, help_heading = heading::OUTPUT)]
    pub json: bool,
    /// End after N pictures of text or JSON
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = heading::OUTPUT)]
    pub iterations: Option<u64>,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    width: WidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
}

/// Becomes the program of the interface, which starts the recorder: the recorder itself carries none of this.
pub(crate) fn start(args: &TopArgs) -> Result<u8> {
    args.check()?;
    interface::become_it(&args.symbols)
}

impl TopArgs {
    /// Refuses what would be refused after the recorder has begun.
    pub fn check(&self) -> Result<()> {
        for (option, value) in [("--delay", self.delay), ("--keep", self.keep)] {
            if !DELAYS_S.contains(&value) {
                bail_usage!("{option} takes seconds from 1 to 3600, not {value}");
            }
        }
        self.symbols.refuse_fetches("whit top waits for no server, but names code by what `whit report --debuginfod` fetched, where $DEBUGINFOD_URLS is set")?;
        self.hists().map(drop)
    }

    /// The time between two pictures.
    pub fn delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay)
    }

    /// The time that a picture covers.
    pub fn keep(&self) -> Duration {
        Duration::from_secs_f64(self.keep.max(self.delay))
    }

    /// How a name of a function is found.
    pub fn symbols(&self) -> &SymbolArgs {
        &self.symbols
    }

    /// The rows.
    pub fn hists(&self) -> Result<HistsOptions> {
        let mut hists = HistsOptions {
            children: !self.no_children,
            inline: self.symbols.inline(),
            intervals: self.json || (!self.stdio && io::stdout().is_terminal()),
            ..HistsOptions::default()
        };
        if let Some(keys) = &self.sort {
            hists.sort = SortKey::parse_list(keys).map_err(usage)?;
        }
        if let Some(percent) = self.percent_limit {
            hists.set_percent_limit(percent);
        }
        Ok(hists)
    }

    /// How rows look in the interface.
    pub fn stdio_options(&self, hists: &HistsOptions) -> StdioOptions {
        StdioOptions {
            hists: hists.clone(),
            colour: self.terminal.colour(),
            ..StdioOptions::default()
        }
    }

    /// Rows without call chains, as `perf top --stdio` prints them.
    pub fn text_options(&self, hists: &HistsOptions) -> StdioOptions {
        let mut options = self.stdio_options(hists);
        options.is_live = true;
        options.hists.chains.mode = ChainMode::None;
        options.width = self.width.columns();
        options.hists.set_percent_limit(self.percent_limit.unwrap_or(TEXT_PERCENT_LIMIT));
        if !io::stdout().is_terminal() {
            options.colour = Colour::Never;
        }
        options
    }

    /// The command line of the recorder.
    pub fn recorder_arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["record", "-o", "-", "--no-buildid", "--engine"].map(str::to_owned).into();
        arguments.push(self.engine.clone());
        let mut option = |name: &str, value: Option<&String>| {
            arguments.extend(value.map(|value| format!("{name}={value}")));
        };
        self.event.iter().for_each(|event| option("--event", Some(event)));
        option("--count", self.count.as_ref());
        let default = self.count.is_none().then(|| DEFAULT_RATE.to_owned());
        option("--freq", self.freq.as_ref().or(default.as_ref()));
        option("--max-overhead", self.max_overhead.as_ref());
        let targets = [
            ("--cpu", &self.cpu),
            ("--pid", &self.pid),
            ("--tid", &self.tid),
            ("--uid", &self.uid),
            ("--cgroup", &self.cgroup),
            ("--container", &self.container),
            ("--unit", &self.unit),
            ("--comm", &self.comm),
        ];
        targets.iter().for_each(|(name, value)| option(name, value.as_ref()));
        let is_named = targets.iter().any(|(_, value)| value.is_some());
        let flags = [
            ("--all-cpus", self.all_cpus || !is_named),
            ("--exclude-idle", !self.idle),
            ("--switch-events", self.switches),
            // Packed switches name stacks of records that may be gone.
            ("--no-pack", self.switches),
        ];
        arguments.extend(flags.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (*name).into()));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        top: TopArgs,
    }

    fn recorder(line: &str) -> String {
        let line = Line::try_parse_from(line.split(' ')).unwrap();
        line.top.recorder_arguments().join(" ")
    }

    #[test]
    fn the_recorder_gets_the_target_the_rate_and_the_events() {
        let start = "record -o - --no-buildid --engine";
        assert_eq!(recorder("top"), format!("{start} auto --freq=99 --all-cpus --exclude-idle"));
        assert_eq!(
            recorder("top -p 1,2 -F 999 -e cycles:u -e faults --switches"),
            format!(
                "{start} auto --event=cycles:u --event=faults --freq=999 --pid=1,2 --exclude-idle --switch-events --no-pack"
            )
        );
        assert_eq!(
            recorder("top --idle --engine ring -c 5 -C 0-1 -a --max-overhead 0.5"),
            format!("{start} ring --count=5 --max-overhead=0.5 --cpu=0-1 --all-cpus")
        );
    }

    #[test]
    fn times_have_bounds() {
        for line in ["top -d 0.5", "top --keep 1e9", "top -d NaN"] {
            let args = Line::try_parse_from(line.split(' ')).unwrap();
            let error = args.top.check().unwrap_err().to_string();
            assert!(error.contains("1 to 3600"), "{error}");
        }
    }
}
