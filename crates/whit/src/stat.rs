//! `whit stat`.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod events;
mod options;
mod parse;
mod plan;

use crate::event_args::EventArgs;
use crate::event_tables::EventTableArgs;
use crate::failure::bail_usage;
use crate::message;
use crate::output;
use crate::target_args::TargetArgs;
use crate::unsupported_options::{Unsupported, UnsupportedArgs};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::SystemTime;
use whit_capture::control::ControlSpec;
use whit_capture::notice::Level;
use whit_capture::roots::Roots;
use whit_stat::notice::Notice;
use whit_stat::options::{BpfCounters, Repeats, Start};
use whit_stat::session;
use whit_sys::wall_clock;

/// Arguments of `whit stat`: perf's names and meanings.
#[derive(clap::Args, Debug)]
// The last one counts: people add options to what a shell alias already gives.
#[command(args_override_self = true)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    events: EventArgs,
    #[command(flatten)]
    tables: EventTableArgs,
    #[command(flatten)]
    target: TargetArgs,
    /// More events of caches; twice: of translation buffers; three times: of prefetches
    #[arg(short, long, action = clap::ArgAction::Count)]
    detailed: u8,
    /// No events, only the time
    #[arg(short = 'n', long)]
    null: bool,
    /// Every event in each of these cgroups: names, shell patterns, regular expressions
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    for_each_cgroup: Vec<String>,
    /// Every event in each cgroup that there is
    #[arg(long, conflicts_with = "for_each_cgroup")]
    all_cgroups: bool,
    /// Count cgroups by BPF, which costs less at each change of cgroup: on, off, or auto (the
    /// default): where the kernel allows it. On by itself: on
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "on", hide_default_value = true,
          value_parser = parse::bpf_counters)]
    bpf_counters: BpfCounters,
    /// All events in one group
    #[arg(short, long, hide = true)]
    group: bool,
    /// Leave out children of what is counted
    #[arg(short = 'i', long)]
    no_inherit: bool,
    /// Only user mode, for all events
    #[arg(long, conflicts_with = "all_kernel")]
    all_user: bool,
    /// Only the kernel, for all events
    #[arg(long)]
    all_kernel: bool,
    /// Print counts of every interval of so many milliseconds
    #[arg(short = 'I', long, value_name = "MS")]
    interval_print: Option<u64>,
    /// End after so many intervals
    #[arg(long, value_name = "N", value_parser = parse::positive)]
    interval_count: Option<u64>,
    /// Clear the screen before each interval
    #[arg(long)]
    interval_clear: bool,
    /// Print all intervals together at the end
    #[arg(long, overrides_with = "no_summary")]
    summary: bool,
    /// Print intervals alone (the default)
    #[arg(long, hide = true)]
    no_summary: bool,
    /// No 'summary' in front of the lines of a summary in CSV
    #[arg(long)]
    no_csv_summary: bool,
    /// End after so many milliseconds
    #[arg(long, value_name = "MS", value_parser = parse::positive)]
    timeout: Option<u64>,
    /// Start counting so many milliseconds after the command; -1: not before it is asked for
    #[arg(short = 'D', long, value_name = "MS", allow_negative_numbers = true,
          value_parser = parse::delay)]
    delay: Option<Start>,
    /// Take commands: fd:CTL[,ACK] or fifo:CTL[,ACK]; there are enable, disable, evlist, stop and
    /// ping
    #[arg(long, value_name = "CHANNEL")]
    control: Option<ControlSpec>,
    /// Run the command so many times, and print means and how far they may be off; 0: for ever
    #[arg(short, long, value_name = "N", value_parser = parse::repeats)]
    repeat: Option<Repeats>,
    /// Show the time of each run
    #[arg(long)]
    table: bool,
    /// Count nothing, but say which events will share counters and how much of the time each will count;
    /// on the counters of this CPU, or of another that is named
    #[arg(long, value_name = "PMU", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    plan: Option<String>,
    /// Shell command before each run
    #[arg(long, value_name = "COMMAND")]
    pre: Option<OsString>,
    /// Shell command after each run
    #[arg(long, value_name = "COMMAND")]
    post: Option<OsString>,
    /// Write what is cached to the disks before each run
    #[arg(short = 'S', long)]
    sync: bool,
    /// Each CPU by itself
    #[arg(short = 'A', long)]
    no_aggr: bool,
    /// Each core by itself
    #[arg(long)]
    per_core: bool,
    /// The CPUs that share the last cache together
    #[arg(long)]
    per_cache: bool,
    /// Each die by itself
    #[arg(long)]
    per_die: bool,
    /// Each package by itself
    #[arg(long)]
    per_socket: bool,
    /// Each NUMA node by itself
    #[arg(long)]
    per_node: bool,
    /// Each thread by itself
    #[arg(long)]
    per_thread: bool,
    /// Counts as read: what was not seen is not estimated
    #[arg(long)]
    no_scale: bool,
    /// Estimate what was not seen (the default)
    #[arg(short = 'c', long, hide = true, overrides_with = "no_scale")]
    scale: bool,
    /// Show each instance of a PMU by itself
    #[arg(long)]
    no_merge: bool,
    /// Metrics alone, without counts
    #[arg(long)]
    metric_only: bool,
    /// Fields with this between them
    #[arg(short = 'x', long, value_name = "SEPARATOR", value_parser = parse::separator)]
    field_separator: Option<String>,
    /// A JSON object per line
    #[arg(short, long, conflicts_with = "field_separator")]
    json_output: bool,
    /// Group the digits of large numbers as the language does (the default)
    #[arg(short = 'B', long, hide = true, overrides_with = "no_big_num")]
    big_num: bool,
    /// Do not group digits
    #[arg(long)]
    no_big_num: bool,
    /// Output (default: standard error)
    #[arg(short, long, value_name = "FILE", conflicts_with = "log_fd")]
    output: Option<PathBuf>,
    /// Add to the output what it is given
    #[arg(long)]
    append: bool,
    /// Output as a descriptor
    #[arg(long, value_name = "FD")]
    log_fd: Option<i32>,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfStat>,
    /// Say more, and print counts as they were read
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print nothing
    #[arg(long)]
    quiet: bool,
    /// The command to count; options after its name are its own
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
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
                bail_usage!("unknown option '{option}' (see whit stat --help)")
            }
            _ => Ok(()),
        }
    }
}
