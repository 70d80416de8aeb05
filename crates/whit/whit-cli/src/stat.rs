//! `whit stat`.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod events;
mod options;
mod parse;
mod plan;

use crate::completion;
use crate::event_args::EventArgs;
use crate::event_tables::EventTableArgs;
use crate::failure::bail_usage;
use crate::heading;
use crate::message;
use crate::output;
use crate::record::parse_overhead;
use crate::short_options;
use crate::target_args::TargetArgs;
use crate::unsupported_options::{Unsupported, UnsupportedArgs};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::SystemTime;
use whit_host::control::ControlSpec;
use whit_host::level::Level;
use whit_host::roots::Roots;
use whit_stat::notice::Notice;
use whit_stat::options::{BpfCounters, Repeats, Start};
use whit_stat::session;
use whit_sys::wall_clock;

/// An example for each group of options.
const EXAMPLES: &str = "\
Examples:
  Events             whit stat -e cycles,instructions,page-faults -- ./bench
  Target             whit stat -a --for-each-cgroup web,batch -- sleep 10
  Time and control   whit stat -r 5 -- ./bench
  Aggregation        whit stat -a --per-socket -- sleep 10
  Output             whit stat -a -I 1000 -j -o counts.json
  General            whit stat -v -- ./bench";

/// Arguments of `whit stat`: perf's names and meanings.
#[derive(clap::Args, Debug)]
// The last one of repeated options counts: people add options to those of a shell alias.
#[command(args_override_self = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct StatArgs {
    #[command(flatten, next_help_heading = heading::EVENTS)]
    events: EventArgs,
    #[command(flatten, next_help_heading = heading::EVENTS)]
    tables: EventTableArgs,
    #[command(flatten, next_help_heading = heading::TARGET)]
    target: TargetArgs,
    /// Count more cache events; -dd: also TLB events; -ddd: also prefetches
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = heading::EVENTS)]
    detailed: u8,
    /// Count no events, only measure the time
    #[arg(short = 'n', long, help_heading = heading::EVENTS)]
    null: bool,
    /// Count each event in each of these cgroups: names, shell patterns or regular expressions
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', add = completion::cgroups(), help_heading = heading::TARGET)]
    for_each_cgroup: Vec<String>,
    /// Count each event in each cgroup of this machine
    #[arg(long, conflicts_with = "for_each_cgroup", help_heading = heading::TARGET)]
    all_cgroups: bool,
    /// Count cgroups by a BPF program, which costs less at each switch between cgroups: on, off, or
    /// auto (on where the kernel allows it) [default: auto; without a value: on]
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "on", hide_default_value = true,
          value_parser = parse::bpf_counters, help_heading = heading::TARGET)]
    bpf_counters: BpfCounters,
    /// All events in one group
    #[arg(short, long, hide = true)]
    group: bool,
    /// Do not count child processes and threads
    #[arg(short = 'i', long, help_heading = heading::TARGET)]
    no_inherit: bool,
    /// Count in user mode only, for all events
    #[arg(long, conflicts_with = "all_kernel", help_heading = heading::EVENTS)]
    all_user: bool,
    /// Count in the kernel only, for all events
    #[arg(long, help_heading = heading::EVENTS)]
    all_kernel: bool,
    /// Print the counts every N milliseconds
    #[arg(short = 'I', long, value_name = "MS", help_heading = heading::TIME)]
    interval_print: Option<u64>,
    /// End after N intervals
    #[arg(long, value_name = "N", value_parser = parse::positive, help_heading = heading::TIME)]
    interval_count: Option<u64>,
    /// Clear the screen before each interval
    #[arg(long, help_heading = heading::TIME)]
    interval_clear: bool,
    /// Make intervals longer while reading and printing counts would cost more than PERCENT of the counted CPUs; counts
    /// stay exact. Costs in the kernel depend on the events alone (-I)
    #[arg(long, value_name = "PERCENT", value_parser = parse_overhead, help_heading = heading::TIME)]
    max_overhead: Option<u32>,
    /// Print the sum of all intervals at the end
    #[arg(long, overrides_with = "no_summary", help_heading = heading::TIME)]
    summary: bool,
    /// Print intervals alone (the default)
    #[arg(long, hide = true)]
    no_summary: bool,
    /// Do not print the word 'summary' before the lines of a summary in CSV
    #[arg(long, help_heading = heading::OUTPUT)]
    no_csv_summary: bool,
    /// End after N milliseconds
    #[arg(long, value_name = "MS", value_parser = parse::positive, help_heading = heading::TIME)]
    timeout: Option<u64>,
    /// Start counting N milliseconds after the command; -1: only when the control channel says so
    #[arg(short = 'D', long, value_name = "MS", allow_negative_numbers = true,
          value_parser = parse::delay, help_heading = heading::TIME)]
    delay: Option<Start>,
    /// Read commands from a channel: fd:CTL[,ACK] or fifo:CTL[,ACK]. Commands: enable, disable, evlist,
    /// stop, ping
    #[arg(long, value_name = "CHANNEL", help_heading = heading::TIME)]
    control: Option<ControlSpec>,
    /// Run the command N times, and print means with their errors; 0: run it until Ctrl-C
    #[arg(short, long, value_name = "N", value_parser = parse::repeats, help_heading = heading::TIME)]
    repeat: Option<Repeats>,
    /// Print the time of each run
    #[arg(long, help_heading = heading::TIME)]
    table: bool,
    /// Count nothing; print which events will share counters and how much of the time each will count,
    /// on the counters of this CPU or of the named PMU
    #[arg(long, value_name = "PMU", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = heading::EVENTS)]
    plan: Option<String>,
    /// Run this shell command before each run
    #[arg(long, value_name = "COMMAND", help_heading = heading::TIME)]
    pre: Option<OsString>,
    /// Run this shell command after each run
    #[arg(long, value_name = "COMMAND", help_heading = heading::TIME)]
    post: Option<OsString>,
    /// Call sync() before each run
    #[arg(short = 'S', long, help_heading = heading::TIME)]
    sync: bool,
    /// Print the counts of each CPU
    #[arg(short = 'A', long, help_heading = heading::AGGREGATION)]
    no_aggr: bool,
    /// Print the counts of each core
    #[arg(long, help_heading = heading::AGGREGATION)]
    per_core: bool,
    /// Print the counts of each last-level cache
    #[arg(long, help_heading = heading::AGGREGATION)]
    per_cache: bool,
    /// Print the counts of each die
    #[arg(long, help_heading = heading::AGGREGATION)]
    per_die: bool,
    /// Print the counts of each package
    #[arg(long, help_heading = heading::AGGREGATION)]
    per_socket: bool,
    /// Print the counts of each NUMA node
    #[arg(long, help_heading = heading::AGGREGATION)]
    per_node: bool,
    /// Print the counts of each thread
    #[arg(long, help_heading = heading::AGGREGATION)]
    per_thread: bool,
    /// Print counts as they were read; do not estimate the time without a counter
    #[arg(long, help_heading = heading::AGGREGATION)]
    no_scale: bool,
    /// Scale counts of multiplexed events to the whole time (the default)
    #[arg(short = 'c', long, hide = true, overrides_with = "no_scale")]
    scale: bool,
    /// Print each instance of a PMU
    #[arg(long, help_heading = heading::AGGREGATION)]
    no_merge: bool,
    /// Print metrics only, without counts
    #[arg(long, help_heading = heading::OUTPUT)]
    metric_only: bool,
    /// Print fields with this separator between them (CSV)
    #[arg(short = 'x', long, value_name = "SEPARATOR", value_parser = parse::separator, help_heading = heading::OUTPUT)]
    field_separator: Option<String>,
    /// Print one JSON object on each line
    #[arg(short, long, conflicts_with = "field_separator", help_heading = heading::OUTPUT)]
    json_output: bool,
    /// Group the digits of large numbers as the language does (the default)
    #[arg(short = 'B', long, hide = true, overrides_with = "no_big_num")]
    big_num: bool,
    /// Do not group digits
    #[arg(long, help_heading = heading::OUTPUT)]
    no_big_num: bool,
    /// Output file [default: standard error]
    #[arg(short, long, value_name = "FILE", conflicts_with = "log_fd", help_heading = heading::OUTPUT)]
    output: Option<PathBuf>,
    /// Append to the output file
    #[arg(long, help_heading = heading::OUTPUT)]
    append: bool,
    /// Write the output to this file descriptor
    #[arg(long, value_name = "FD", help_heading = heading::OUTPUT)]
    log_fd: Option<i32>,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfStat>,
    /// Print more messages, and counts as they were read
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = heading::GENERAL)]
    verbose: u8,
    /// Print nothing
    #[arg(long, help_heading = heading::GENERAL)]
    quiet: bool,
    /// Command to count; the options after its name belong to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND", help_heading = heading::TARGET)]
    command: Vec<OsString>,
}

/// Why there are no metrics by name.
const NO_METRICS: &str = "whit has no tables of vendors' metrics; the usual ones (insn per cycle, \
                          GHz, misses) stand beside their events";

/// Options of `perf stat` that whit does not have.
#[derive(Clone, Debug)]
pub(crate) struct OfStat;

impl Unsupported for OfStat {
    const SUBCOMMAND: &'static str = "stat";
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)] = &[
        ("metrics", Some('M'), NO_METRICS),
        ("metric-no-group", None, NO_METRICS),
        ("metric-no-merge", None, NO_METRICS),
        ("topdown", None, NO_METRICS),
        ("td-level", None, NO_METRICS),
        ("transaction", Some('T'), "name its events with -e: tx-start, tx-abort, cycles-t, .."),
        ("smi-cost", None, "count it with -e msr/aperf/,msr/smi/,cycles -a"),
        ("iostat", None, "count the events of the uncore PMUs with -e"),
        ("bpf-prog", Some('b'), "name the programs' run times with bpftool prog profile"),
        ("cputype", None, "name the kind of core with -e: cpu_core/cycles/"),
        ("hybrid-merge", None, "counts of different kinds of core mean different things"),
        ("percore-show-thread", None, "the term percore adds up the threads of a core with -A"),
    ];
}

/// Counts; gives the exit code.
pub(crate) fn run(args: &StatArgs) -> Result<u8> {
    let mut out = args.open_output()?;
    let roots = Roots::default();
    let options = args.options(out.is_terminal())?;
    if let Some(pmu) = &args.plan {
        args.print_plan(pmu, options, &roots, &mut out)?;
        return Ok(0);
    }
    let mut listener = |notice: Notice| args.print(&notice);
    let outcome = session::count(&options, &roots, &mut out, &mut listener)?;
    Ok(u8::try_from(outcome.exit_code()).unwrap_or(u8::MAX))
}

/// Where counts are printed.
enum Output {
    Nowhere,
    Stderr,
    File(File),
}

impl Output {
    fn is_terminal(&self) -> bool {
        match self {
            Output::Nowhere => false,
            Output::Stderr => io::stderr().is_terminal(),
            Output::File(file) => file.is_terminal(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Nowhere => Ok(bytes.len()),
            Output::Stderr => io::stderr().write(bytes),
            Output::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File(file) => file.flush(),
            Output::Nowhere | Output::Stderr => Ok(()),
        }
    }
}

impl StatArgs {
    /// The command to count, with its arguments.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    fn open_output(&self) -> Result<Output> {
        if self.quiet {
            return Ok(Output::Nowhere);
        }
        if let Some(number) = self.log_fd {
            let fd = whit_sys::descriptor::duplicate(number)
                .with_context(|| format!("cannot write to descriptor {number} (--log-fd)"))?;
            return Ok(Output::File(fd.into()));
        }
        let Some(path) = &self.output else { return Ok(Output::Stderr) };
        output::check_no_recording(path)?;
        let mut how = OpenOptions::new();
        how.create(true).write(true).append(self.append).truncate(!self.append);
        let file = how.open(path);
        let mut file = file.with_context(|| format!("cannot write to {}", path.display()))?;
        let started = whit_stat::show::started_on(&wall_clock::ctime(SystemTime::now()));
        file.write_all(started.as_bytes())
            .with_context(|| format!("cannot write to {}", path.display()))?;
        Ok(Output::File(file))
    }

    fn print(&self, notice: &Notice) {
        if self.quiet {
            return;
        }
        match notice.level() {
            Level::Verbose if self.verbose == 0 => {}
            level => message::of_level(level, notice),
        }
    }

    fn check(&self) -> Result<()> {
        match self.command.first().and_then(|name| name.to_str()) {
            Some(word @ ("record" | "report")) => bail_usage!(
                "whit stat does not keep counts in recordings: print them with -x or -j into a \
                 file with -o (to run a program called '{word}', write ./{word})"
            ),
            Some(option) if option.starts_with('-') => {
                bail_usage!("unknown option '{option}'{}", short_options::similar("stat", option))
            }
            _ => Ok(()),
        }
    }
}
