//! The comparisons, and the options that all of them have.

mod accuracy;
mod agents;
mod archive;
mod brief;
mod budget;
mod cgroup;
mod day;
mod diff;
mod export;
mod flight;
mod forms;
mod frames;
mod heading;
mod pmu;
mod query;
mod readers;
mod record;
mod report;
mod serve;
mod setup;
mod stacks;
mod stat;
mod switches;
mod top;
mod vpmu;
mod watch;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde::Serialize;

/// Where `make -C bench/workloads` puts the programs that are recorded.
const WORKLOADS: &str = "target/workloads";

/// A comparison with its options.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Compare shares of functions with the programs' own counts: errors, intervals, work in step with the samples
    Accuracy(accuracy::AccuracyArgs),
    /// Measure recordings that carry their names, and copies of binaries: sizes and times
    Archive(archive::ArchiveArgs),
    /// Compare `whit watch` with other agents on the same loads: cost, memory, whole stacks, losses
    Agents(agents::AgentsArgs),
    /// Compare `whit report --brief` with `perf report`: time, memory and printed bytes
    Brief(brief::BriefArgs),
    /// Measure `whit record --max-overhead`: the cost while loads come and go, and the slowdown of programs beside it
    Budget(budget::BudgetArgs),
    /// Compare ways to count per cgroup: time added to each switch between cgroups
    Cgroup(cgroup::CgroupArgs),
    /// Simulate a day of `whit top` or `whit watch`: memory by the hour
    Day(day::DayArgs),
    /// Prove the verdicts of `whit diff` and the intervals of reports: false calls, coverage, power,
    /// losses
    Diff(diff::DiffArgs),
    /// Compare `whit export` in each format with `whit report`: time and memory
    Export(export::ExportArgs),
    /// Measure the flight recorder of `whit watch`: event to file, whole dumps, cost of waiting
    Flight(flight::FlightArgs),
    /// Compare names from all forms of debug information: functions, inlined functions, lines
    Forms(forms::FormsArgs),
    /// Measure the time that the BPF engine takes for a frame of Python
    Frames(frames::FramesArgs),
    /// Compare `whit query` with `whit report`: time and memory
    Query(query::QueryArgs),
    /// Compare policies for branch records over context switches, on simulated hardware
    Lbr(pmu::LbrArgs),
    /// Compare protocols of PMU interrupts, on simulated hardware or on this machine (--host)
    Pmi(pmu::PmiArgs),
    /// Compare `whit record` with `perf record`: overhead, losses, sizes
    Record(record::RecordArgs),
    /// Compare `whit report` with `perf report`, `perf script` and `samply import`
    Report(report::ReportArgs),
    /// Compare ways to switch events between cgroups, on simulated hardware
    Sched(pmu::SchedArgs),
    /// Compare stacks that are unwound in the kernel with offline unwinders on the same samples
    Stacks(stacks::StacksArgs),
    /// Compare `whit stat -I` with `perf stat -I`: CPU time, and intervals really printed
    Stat(stat::StatArgs),
    /// Measure `whit serve`: the first page, sums of random ranges of time, memory
    Serve(serve::ServeArgs),
    /// Compare ways to record every context switch with its stack: slowdown, losses, sizes
    Switches(switches::SwitchesArgs),
    /// Compare `whit top` with `perf top` on a terminal: CPU time and memory
    Top(top::TopArgs),
    /// Compare ways of backing a guest's PMU with this machine's events
    Vpmu(vpmu::VpmuArgs),
    /// Measure `whit watch`: CPU, memory, wake-ups, bytes and losses of the service and of its recorder
    Watch(watch::WatchArgs),
}

/// Where results go beside standard output.
#[derive(Args, Clone, Debug)]
struct Results {
    /// Write every run, as JSON, to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Append the result to this Markdown file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs the command; the exit code is 1 where whit itself did not get through.
pub(crate) fn run(args: &BenchArgs) -> Result<i32> {
    match &args.what {
        What::Accuracy(args) => accuracy::run(args),
        What::Archive(args) => archive::run(args),
        What::Agents(args) => agents::run(args),
        What::Brief(args) => brief::run(args),
        What::Budget(args) => budget::run(args),
        What::Cgroup(args) => cgroup::run(args),
        What::Day(args) => day::run(args),
        What::Diff(args) => diff::run(args),
        What::Export(args) => export::run(args),
        What::Flight(args) => flight::run(args),
        What::Forms(args) => forms::run(args),
        What::Frames(args) => frames::run(args),
        What::Query(args) => query::run(args),
        What::Lbr(args) => pmu::lbr(args),
        What::Pmi(args) => pmu::pmi(args),
        What::Record(args) => record::run(args),
        What::Report(args) => report::run(args),
        What::Sched(args) => pmu::sched(args),
        What::Serve(args) => serve::run(args),
        What::Stacks(args) => stacks::run(args),
        What::Stat(args) => stat::run(args),
        What::Switches(args) => switches::run(args),
        What::Top(args) => top::run(args),
        What::Vpmu(args) => vpmu::run(args),
        What::Watch(args) => watch::run(args),
    }
}

impl Results {
    fn publish(&self, text: &str, comparison: &impl Serialize) -> Result<()> {
        print!("{text}");
        if let Some(path) = &self.markdown {
            append(path, text)?;
        }
        if let Some(path) = &self.json {
            write_json(path, comparison)?;
        }
        Ok(())
    }
}

/// The whit that lies beside this program.
fn installed_whit() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let whit = own.with_file_name("whit");
    anyhow::ensure!(
        whit.is_file(),
        "there is no {} to compare: build it with `cargo build -p whit`, or name another whit with --whit",
        whit.display()
    );
    Ok(whit)
}

fn default_cache() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.context("there is no home directory to keep recordings in: use --cache")?;
    Ok(cache.join("whit/bench"))
}

fn append(path: &Path, text: &str) -> Result<()> {
    let open = || OpenOptions::new().append(true).create(true).open(path);
    let write = || open()?.write_all(format!("\n{text}").as_bytes());
    write().with_context(|| format!("cannot append to {}", path.display()))
}

fn write_json(path: &Path, comparison: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string_pretty(comparison).context("cannot form the JSON")?;
    std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))
}
