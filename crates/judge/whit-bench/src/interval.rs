//! Cost of short intervals: the comparison behind `whit bench stat`.
//!
//! A program computes on all CPUs. Meanwhile `perf stat -I` and `whit stat -I` count it, or the
//! whole machine, and print the counts at each interval, into a file. Compared are the CPU time
//! that each takes and how many intervals it really prints. All run once a round, in turn.

mod render;
mod tool;

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;

use tool::{Job, Run, Tool, ToolKind};

use crate::args::{heading, milliseconds, rounds};
use crate::bench::{Bench, Say};
use crate::error::Error;
use crate::installed::{apart, in_words};
use crate::named::named;
use crate::record::workload::Workload;
use crate::rounds::{Row, interleave};
use crate::running::Running;
use crate::scratch::Scratch;
use crate::setup::Setup;

/// The counted events, which every machine has.
const EVENTS: &str = "cpu-clock,context-switches,page-faults,cpu-migrations";
/// Products to compute: more than anybody waits for.
const ITERATIONS: u64 = 1 << 40;

const EXAMPLES: &str = "\
Example:
  whit bench stat --intervals 1,10 --rounds 3";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Lengths of intervals in milliseconds, separated by commas
    #[arg(long = "intervals", value_name = "MS,..", value_delimiter = ',', default_value = "1,10,100",
          value_parser = clap::value_parser!(u64).range(1..=60_000),
          help_heading = heading::COMPARED)]
    intervals_ms: Vec<u64>,

    /// Runs of each length
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    /// Milliseconds that each run counts
    #[arg(long = "milliseconds", value_name = "MS", default_value = "2000",
          value_parser = milliseconds(1..=600_000), help_heading = heading::RUNS)]
    duration: Duration,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// Target of the counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Target {
    /// The program, with all its threads.
    #[value(name = "-p")]
    Process,
    /// All CPUs.
    #[value(name = "-a")]
    Machine,
}

named!(Target);

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) events: String,
    /// How long each run counted, in seconds.
    pub(crate) duration_s: f64,
    /// The tools that took part.
    pub(crate) tools: Vec<Tool>,
    /// Absent tools, with the reason.
    pub(crate) absent: Vec<String>,
    /// One for each target, length of interval and tool.
    pub(crate) rows: Vec<Row<Case, Run>>,
}

/// A tool with its target and interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) target: Target,
    pub(crate) interval_ms: u64,
    pub(crate) tool: ToolKind,
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, every {} ms", self.tool, self.target, self.interval_ms)
    }
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        self.setup.require(&[Workload::Matrix.program()])?;
        let kinds = [ToolKind::Perf, ToolKind::Whit].into_iter();
        let (tools, absent) =
            apart(kinds.map(|kind| Tool::detect(kind, kind.program(&self.setup.whit))));
        let absent = in_words(&absent);
        let scratch = Scratch::new(&self.setup.directory)?;
        let load = load(&self.setup.workloads)?;
        let mut rows = Vec::new();
        for target in [Target::Process, Target::Machine] {
            for &interval_ms in &self.intervals_ms {
                let case = |tool: &Tool| Row::new(Case { target, interval_ms, tool: tool.kind });
                let mut alike: Vec<Row<Case, Run>> = tools.iter().map(case).collect();
                let job = Job {
                    target,
                    pid: load.child.id(),
                    interval_ms,
                    events: EVENTS,
                    output: &scratch.path().join("counts"),
                    duration: self.duration,
                    limit: self.setup.limit,
                };
                interleave(&mut alike, self.rounds, say, &mut |case| {
                    let tool = tools.iter().find(|tool| tool.kind == case.tool);
                    job.run(tool.context("a case has a tool")?)
                })?;
                rows.extend(alike);
            }
        }
        let duration_s = self.duration.as_secs_f64();
        Ok(Comparison { events: EVENTS.to_owned(), duration_s, tools, absent, rows })
    }
}

/// The program that computes.
fn load(workloads: &Path) -> Result<Running, Error> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = Workload::Matrix.threads(cpus);
    let mut command = Command::new(workloads.join(Workload::Matrix.program()));
    Running::silent(command.args(Workload::Matrix.arguments(threads, ITERATIONS)))
}
