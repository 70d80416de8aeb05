//! Comparing programs on the same work: interleaved runs, medians, spread.
//!
//! A comparison runs every peer once per round, in turn, so that a slow minute of the machine
//! hits all of them alike. Each run's wall time, CPU time and peak memory come from `wait4(2)`;
//! results are medians with their minimum and maximum, and a run that exceeds its time limit is
//! killed and shown as `> N s`, never dropped.
//!
//! Each comparison is a type that implements [`bench::Bench`]: its fields are the arguments, and
//! [`bench::Bench::run`] runs its cases and gives figures. [`bench::Figures`] shows them on a
//! [`page::Page`] as columns and rows, and says whether whit got through. [`bench::Command`] does
//! everything else: progress, description of the machine, `--markdown`, `--json` with the version of
//! its form, and the exit code. Cases that take turns are rows of [`rounds`]. To add a comparison,
//! write such a type, and name it in [`What`].
//!
//! This crate makes no claims. It reports numbers as measured, and reads the recordings of all
//! recorders by the same code.

#![forbid(unsafe_code)]

mod accuracy;
mod agents;
mod args;
mod bench;
mod budget;
mod cgroup;
mod compare;
mod core_pmu;
mod counting;
mod diff;
mod disk;
mod error;
mod forms;
mod hand_overs;
mod installed;
mod interval;
mod load;
mod named;
mod page;
mod peer;
mod pmu;
mod process;
mod program_runs;
mod random;
mod readers;
mod record;
mod recording;
mod recordings;
mod report;
mod requests;
mod rounds;
mod running;
mod samples;
mod scratch;
mod setup;
mod stacks;
mod switches;
mod system;
mod top;
mod vpmu;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use bench::Command;
use error::Error;

const EXAMPLES: &str = "\
Examples:
  make -C bench/workloads                        # the programs to record
  whit bench report --sizes 50M --rounds 3       # reports, compared with perf
  whit bench record --quick                      # recorders
  whit bench pmi --markdown result.md            # simulated hardware

`whit bench COMPARISON --help` lists the options of a comparison.";

/// Compare whit with its peers, by interleaved runs on this machine or on simulated hardware
#[derive(Parser)]
#[command(
    name = "whit-bench", bin_name = "whit bench", version, after_help = EXAMPLES,
    subcommand_value_name = "COMPARISON", subcommand_help_heading = "Comparisons",
    max_term_width = 80
)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

/// A comparison with its options.
#[derive(Subcommand, Debug)]
enum What {
    /// Compare shares of functions with the programs' own counts: errors, intervals, work in step with the samples
    Accuracy(Command<accuracy::Options>),
    /// Compare `whit watch` with other agents on the same loads: cost, memory, whole stacks, losses
    Agents(Command<agents::Options>),
    /// Compare `whit report --brief` with `perf report`: time, memory and printed bytes
    Brief(Command<readers::Brief>),
    /// Measure `whit record --max-overhead`: the cost while loads come and go, and the slowdown of other programs
    Budget(Command<budget::Options>),
    /// Compare ways to count per cgroup: time added to each switch between cgroups
    Cgroup(Command<cgroup::Options>),
    /// Prove the verdicts of `whit diff` and the intervals of reports: false calls, coverage, power,
    /// losses
    Diff(Command<diff::Options>),
    /// Compare `whit export` in each format with `whit report`: time and memory
    Export(Command<readers::Export>),
    /// Compare names from all forms of debug information: functions, inlined functions, lines
    Forms(Command<forms::Options>),
    /// Compare `whit query` with `whit report`: time and memory
    Query(Command<readers::Query>),
    /// Compare policies for branch records over context switches, on simulated hardware
    Lbr(Command<pmu::lbr::Options>),
    /// Compare protocols of PMU interrupts, on simulated hardware or on this machine (--host)
    Pmi(Command<pmu::pmi::Options>),
    /// Compare `whit record` with `perf record`: overhead, losses, sizes
    Record(Command<record::Options>),
    /// Compare `whit report` with `perf report`, `perf script` and `samply import`
    Report(Command<readers::Report>),
    /// Compare recorders of requests: the cost of a call, and calls that are recorded
    Requests(Command<requests::Options>),
    /// Compare ways to switch events between cgroups, on simulated hardware
    Sched(Command<pmu::sched::Options>),
    /// Compare stacks that are unwound in the kernel with offline unwinders on the same samples
    Stacks(Command<stacks::Options>),
    /// Compare `whit stat -I` with `perf stat -I`: CPU time, and intervals really printed
    Stat(Command<interval::Options>),
    /// Compare ways to record every context switch with its stack: slowdown, losses, sizes
    Switches(Command<switches::Options>),
    /// Compare `whit top` with `perf top` on a terminal: CPU time and memory
    Top(Command<top::Options>),
    /// Compare ways of backing a guest's PMU with this machine's events
    Vpmu(Command<vpmu::Options>),
    /// Measure `whit watch`: CPU, memory, wake-ups, bytes and losses of the service and of its recorder
    Watch(Command<watch::Options>),
    /// Compare `whit why` with `whit switches`: time and memory
    Why(Command<readers::Why>),
}

impl What {
    /// Gives the exit code, which is 1 where whit itself did not get through.
    fn run(&self) -> Result<i32, Error> {
        match self {
            What::Accuracy(bench) => bench.run(),
            What::Agents(bench) => bench.run(),
            What::Brief(bench) => bench.run(),
            What::Budget(bench) => bench.run(),
            What::Cgroup(bench) => bench.run(),
            What::Diff(bench) => bench.run(),
            What::Export(bench) => bench.run(),
            What::Forms(bench) => bench.run(),
            What::Query(bench) => bench.run(),
            What::Lbr(bench) => bench.run(),
            What::Pmi(bench) => bench.run(),
            What::Record(bench) => bench.run(),
            What::Report(bench) => bench.run(),
            What::Requests(bench) => bench.run(),
            What::Sched(bench) => bench.run(),
            What::Stacks(bench) => bench.run(),
            What::Stat(bench) => bench.run(),
            What::Switches(bench) => bench.run(),
            What::Top(bench) => bench.run(),
            What::Vpmu(bench) => bench.run(),
            What::Watch(bench) => bench.run(),
            What::Why(bench) => bench.run(),
        }
    }
}

/// Exit code for wrong usage, as whit's.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            eprint!("whit: {}", text.strip_prefix("error: ").unwrap_or(&text));
            return ExitCode::from(WRONG_USAGE);
        }
        // Help and version.
        Err(error) => error.exit(),
    };
    match cli.what.run() {
        Ok(code) => ExitCode::from((code & 0xff) as u8),
        Err(error) => {
            eprintln!("whit: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes, each said once: many errors already quote their cause.
fn describe(error: &Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text {
        text if text.is_empty() => cause,
        text if text.contains(&cause) => text,
        text => format!("{text}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, CommandFactory};
    use whit_testing::prose::assert_prose;

    /// The program's help, and that of each comparison.
    fn helps() -> Vec<(Command, String)> {
        let mut cli = Cli::command();
        cli.build();
        let text = cli.render_help().to_string();
        let comparisons = cli.get_subcommands().filter(|it| it.get_name() != "help").cloned();
        let mut helps: Vec<(Command, String)> = comparisons
            .map(|mut it| {
                let text = it.render_help().to_string();
                (it, text)
            })
            .collect();
        helps.push((cli, text));
        helps
    }

    #[test]
    fn help_fits_80_columns_and_is_plain_language() {
        let helps = helps();
        assert!(helps.len() > 10, "{}", helps.len());
        for (command, text) in helps {
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{}", command.get_name());
            assert_prose(command.get_name(), &text);
        }
    }

    #[test]
    fn options_of_comparisons_are_listed_under_headings() {
        for (command, text) in helps() {
            let own = command.get_arguments();
            let own = own.filter(|it| !["help", "version"].contains(&it.get_id().as_str()));
            let alone: Vec<_> = own.filter(|it| it.get_help_heading().is_none()).collect();
            assert!(alone.is_empty(), "{}: {alone:?}", command.get_name());
            assert!(text.contains("\nExample"), "{text}");
        }
    }

    #[test]
    fn examples_are_valid_command_lines() {
        let mut seen = 0;
        for (command, text) in helps() {
            let behind = text.split("\nExample").nth(1).unwrap();
            let lines = behind.lines().filter_map(|line| line.split(" # ").next());
            for line in lines.filter_map(|line| line.trim().strip_prefix("whit bench")) {
                let words = std::iter::once("whit-bench").chain(line.split_whitespace());
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{}: {line}: {error}", command.get_name());
                }
                seen += 1;
            }
        }
        assert!(seen > 15, "{seen}");
    }
}
