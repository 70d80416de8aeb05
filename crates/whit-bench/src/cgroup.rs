//! What counting per cgroup costs: the comparison behind `whit bench cgroup`.
//!
//! Processes in cgroups of their own pass a token around on one CPU, so that every hop is a switch
//! between cgroups. Meanwhile somebody counts two events in each cgroup, in their parent and in the
//! whole system, and prints them every second: the command line of the patches that made cgroup
//! switches cheaper in the kernel. What a hop takes longer than with nobody counting is the cost.
//! Everything is measured once a round, in turn, and nobody counting before and after each: the same
//! processes all the time, since others would be a little faster or slower, and what is looked for is small.

mod counter;
mod groups;
mod load;
mod render;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use counter::{Counter, CounterKind};
pub use load::Hops;
pub use render::markdown;

use crate::Error;
use crate::scratch::Scratch;
use crate::summary::Spread;
use crate::system::System;
use crate::turns::order;
use counter::Command;
use groups::Groups;
use load::Load;

/// Version of the JSON form; a change that readers must know of raises it.
pub const SCHEMA: u32 = 1;
/// Where the kernel lists the core's PMU.
const CORE_PMUS: [&str; 2] =
    ["/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core"];
/// What is counted where there is a PMU that counts, and where there is none.
const HARDWARE: [&str; 2] = ["cycles", "instructions"];
const SOFTWARE: [&str; 2] = ["cpu-clock", "page-faults"];

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs of each.
    pub rounds: usize,
    /// How long the token goes around in a run.
    pub duration: Duration,
    /// Numbers of sibling cgroups.
    pub cgroups: Vec<usize>,
    /// Work of a hop, in nanoseconds; each with the smallest number of cgroups, the first with all.
    pub work_ns: Vec<u64>,
    /// The events; `None`: two of the PMU where there is one, else of the kernel.
    pub events: Option<Vec<String>>,
    /// The whit to compare.
    pub whit: PathBuf,
    /// Where workloads are.
    pub workloads: PathBuf,
    /// Where counts are written.
    pub directory: PathBuf,
    /// Limit for one run.
    pub limit: Duration,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub system: System,
    /// The events that were counted.
    pub events: Vec<String>,
    /// Who counted.
    pub counters: Vec<Counter>,
    /// Who is not here, and why.
    pub absent: Vec<String>,
    /// One for each number of cgroups and amount of work.
    pub tables: Vec<Table>,
}

/// Runs with the same number of cgroups and the same work.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// Siblings.
    pub cgroups: usize,
    /// Work of a hop.
    pub work_ns: u64,
    /// With somebody counting.
    pub rows: Vec<Row>,
}

/// Runs while one counter counted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Which.
    pub counter: CounterKind,
    /// One for each round.
    pub runs: Vec<Run>,
    /// Why there are no runs, or fewer.
    pub refused: Option<String>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// The token's way.
    pub hops: Hops,
    /// The same with nobody counting, just before and just after.
    pub alone: [Hops; 2],
    /// CPU time of the counter in both modes, as a share of the time that it ran.
    pub counter_cpu: f64,
}

impl Run {
    /// By medians: a mean has whatever else had the CPU for a while.
    fn added_ns(&self) -> f64 {
        let [before, after] = self.alone;
        self.hops.median_ns - (before.median_ns + after.median_ns) / 2.0
    }
}

impl Table {
    fn new(cgroups: usize, work_ns: u64, counters: &[Counter]) -> Table {
        let row =
            |counter: &Counter| Row { counter: counter.kind, runs: Vec::new(), refused: None };
        Table { cgroups, work_ns, rows: counters.iter().map(row).collect() }
    }

    /// What half of the hops took longer than with nobody counting, in nanoseconds.
    pub fn added_ns(&self, counter: CounterKind) -> Option<Spread> {
        let row = self.rows.iter().find(|row| row.counter == counter)?;
        Spread::of(row.runs.iter().map(Run::added_ns))
    }
}

impl Comparison {
    /// Whether every run of whit came through.
    pub fn whit_succeeded(&self) -> bool {
        let rows = || self.tables.iter().flat_map(|table| &table.rows);
        rows().all(|row| row.counter == CounterKind::Perf || row.refused.is_none())
    }
}

/// Compares.
///
/// # Errors
/// Where cgroups cannot be made, or the workload does not run without anybody counting.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let events = options.events.clone().unwrap_or_else(default_events);
    let (counters, absent) = Counter::detect_all(&options.whit);
    let scratch = Scratch::new(&options.directory)?;
    let sizes: Vec<(Groups, Table)> = pairs(options)
        .into_iter()
        .map(|(cgroups, work_ns)| {
            Ok((Groups::make(cgroups)?, Table::new(cgroups, work_ns, &counters)))
        })
        .collect::<Result<_, Error>>()?;
    let mut sizes = sizes;
    for round in 0..options.rounds {
        say(&format!("round {} of {}", round + 1, options.rounds));
        for size in order(round, sizes.len()) {
            let (groups, table) = &mut sizes[size];
            round_of(round, groups, table, &counters, &events, options, &scratch)?;
        }
    }
    let tables = sizes.into_iter().map(|(_, table)| table).collect();
    Ok(Comparison { schema: SCHEMA, system: System::detect(), events, counters, absent, tables })
}

/// All numbers of cgroups with the first amount of work, then the first number with the others.
fn pairs(options: &Options) -> Vec<(usize, u64)> {
    let work = options.work_ns.first().copied().unwrap_or(0);
    let all = options.cgroups.iter().map(|&cgroups| (cgroups, work));
    let first = options.cgroups.first().copied();
    let more = options.work_ns.iter().skip(1).filter_map(|&work_ns| Some((first?, work_ns)));
    all.chain(more).collect()
}

fn default_events() -> Vec<String> {
    let has_pmu = CORE_PMUS.iter().any(|pmu| Path::new(pmu).is_dir());
    if has_pmu { HARDWARE } else { SOFTWARE }.map(str::to_owned).to_vec()
}

/// Everybody once; who was refused is not asked again.
fn round_of(
    round: usize,
    groups: &Groups,
    table: &mut Table,
    counters: &[Counter],
    events: &[String],
    options: &Options,
    scratch: &Scratch,
) -> Result<(), Error> {
    let limit = options.limit;
    let mut load = Load::start(&options.workloads, groups, options.duration, table.work_ns, limit)?;
    // The first is to warm up.
    load.measure()?;
    let mut before = load.measure()?;
    for turn in order(round, counters.len()) {
        let row = &mut table.rows[turn];
        if row.refused.is_some() {
            continue;
        }
        let output = &scratch.path().join("counts");
        let command = Command { counter: &counters[turn], events, groups, output };
        let counted = measure_with(&command, &mut load, limit)?;
        let after = load.measure()?;
        match counted {
            Ok((hops, counter_cpu)) => {
                row.runs.push(Run { hops, alone: [before, after], counter_cpu });
            }
            Err(reason) => row.refused = Some(reason),
        }
        before = after;
    }
    Ok(())
}

/// With somebody counting, and that one's share of a CPU; or why it does not count.
fn measure_with(
    command: &Command<'_>,
    load: &mut Load,
    limit: Duration,
) -> Result<Result<(Hops, f64), String>, Error> {
    let running = match command.start(limit)? {
        Ok(running) => running,
        Err(reason) => return Ok(Err(reason)),
    };
    let hops = load.measure()?;
    Ok(running.stop(limit)?.map(|counter_cpu| (hops, counter_cpu)))
}

#[cfg(test)]
mod tests;
