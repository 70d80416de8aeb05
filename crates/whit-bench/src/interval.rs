//! Cost of short intervals: the comparison behind `whit bench stat`.
//!
//! A program computes on all CPUs. Meanwhile `perf stat -I` and `whit stat -I` count it, or the
//! whole machine, and print the counts at each interval, into a file. Compared are the CPU time
//! that each takes and how many intervals it really prints. All run once a round, in turn.

mod render;
mod tool;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Serialize;

pub use render::markdown;
pub use tool::{Run, Tool, ToolKind};

use crate::Error;
use crate::named::show_by_name;
use crate::record::workload::Workload;
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;
use crate::turns::order;
use tool::Job;
use whit_measure::summary::Spread;

/// Version of the JSON form; a change that readers must know of raises it.
pub const SCHEMA: u32 = 1;
/// The counted events, which every machine has.
const EVENTS: &str = "cpu-clock,context-switches,page-faults,cpu-migrations";
/// Products to compute: more than anybody waits for.
const ITERATIONS: u64 = 1 << 40;

/// Settings of the comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs of each.
    pub rounds: usize,
    /// How long each counts.
    pub duration: Duration,
    /// Lengths of intervals, in milliseconds.
    pub intervals_ms: Vec<u64>,
    /// Programs, directories and the limit.
    pub setup: Setup,
}

/// Target of the counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The program, with all its threads.
    Process,
    /// All CPUs.
    Machine,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Process => "-p",
            Target::Machine => "-a",
        }
    }
}

show_by_name!(Target);

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Version of this document: [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub system: System,
    /// The events that were counted.
    pub events: String,
    /// How long each run counted, in seconds.
    pub duration_s: f64,
    /// The tools that took part.
    pub tools: Vec<Tool>,
    /// Absent tools, with the reason.
    pub absent: Vec<String>,
    /// One for each target, length of interval and tool.
    pub rows: Vec<Row>,
}

/// Runs that are alike.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Target of the counts.
    pub target: Target,
    /// How often, in milliseconds.
    pub interval_ms: u64,
    /// The tool that counted in these rows.
    pub tool: ToolKind,
    /// One for each round.
    pub runs: Vec<Run>,
    /// Why there are no runs, or fewer.
    pub refused: Option<String>,
}

impl Row {
    /// A figure over all rounds.
    pub fn spread(&self, of: impl Fn(&Run) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(of))
    }
}

impl Comparison {
    /// Whether every run of whit came through.
    pub fn whit_succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.tool != ToolKind::Whit || row.refused.is_none())
    }

    /// The other tool's row beside this one.
    fn beside(&self, row: &Row, tool: ToolKind) -> Option<&Row> {
        let is_alike =
            |other: &&Row| (other.target, other.interval_ms) == (row.target, row.interval_ms);
        self.rows.iter().filter(is_alike).find(|other| other.tool == tool)
    }
}

/// Compares.
///
/// # Errors
/// Where the workload or a tool does not run, or counts cannot be written.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let (tools, absent) = Tool::detect_all(&options.setup.whit);
    let scratch = Scratch::new(&options.setup.directory)?;
    let load = Load::start(&options.setup.workloads)?;
    let mut rows = Vec::new();
    for target in [Target::Process, Target::Machine] {
        for &interval_ms in &options.intervals_ms {
            say(&format!("{target}, every {interval_ms} ms"));
            let job = Job {
                target,
                pid: load.0.id(),
                interval_ms,
                events: EVENTS,
                output: &scratch.path().join("counts"),
                duration: options.duration,
                limit: options.setup.limit,
            };
            rows.extend(rounds(&job, &tools, options.rounds)?);
        }
    }
    Ok(Comparison {
        schema: SCHEMA,
        system: System::detect(),
        events: EVENTS.to_owned(),
        duration_s: options.duration.as_secs_f64(),
        tools,
        absent,
        rows,
    })
}

/// All rounds of one target and interval, a row for each tool. A refused tool is not run again.
fn rounds(job: &Job<'_>, tools: &[Tool], rounds: usize) -> Result<Vec<Row>, Error> {
    let row = |tool: &Tool| Row {
        target: job.target,
        interval_ms: job.interval_ms,
        tool: tool.kind,
        runs: Vec::new(),
        refused: None,
    };
    let mut rows: Vec<Row> = tools.iter().map(row).collect();
    for round in 0..rounds {
        for index in order(round, tools.len()) {
            if rows[index].refused.is_some() {
                continue;
            }
            match job.run(&tools[index])? {
                Ok(run) => rows[index].runs.push(run),
                Err(reason) => rows[index].refused = Some(reason),
            }
        }
    }
    Ok(rows)
}

/// The program that computes until it is dropped.
struct Load(Child);

impl Load {
    fn start(workloads: &Path) -> Result<Load, Error> {
        let program = workloads.join(Workload::Matrix.program());
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = Workload::Matrix.threads(cpus);
        let mut command = Command::new(&program);
        command.args(Workload::Matrix.arguments(threads, ITERATIONS));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|source| Error::Run { program, source })?;
        Ok(Load(child))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Both fail where it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
