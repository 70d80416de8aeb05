//! Agents that run all the time, beside the same loads: their cost, their memory, and the stacks of their profiles.
//!
//! Each agent begins before the load, and watches the whole machine. Each load knows its own stacks, so a stack is
//! whole or not without any other unwinder. Profiles are read as pprof, or as OTLP from an agent that sends them; names that
//! such an agent leaves to others come from `whit-symbolize`. Agents and loads take turns.
//!
//! The times of BPF programs are the kernel's, whose own counting is in them. They are on the account of the
//! interrupted program, and in no agent's CPU time.

mod binaries;
mod collector;
mod cost;
mod loads;
mod otlp;
mod pprof;
mod render;
mod run;
mod running;
mod tool;

#[cfg(test)]
mod otlp_tests;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

pub use loads::{Load, WORKLOADS};
pub use render::markdown;
pub use run::{Run, Samples};
pub use tool::Agent;

use crate::Error;
use crate::setup::Setup;
use crate::system::System;
use crate::turns::order;
use run::Stop;
use tool::Programs;

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples a second of each CPU.
    pub frequency_hz: u32,
    /// Length of a load.
    pub length: Duration,
    /// Runs of each agent beside each load.
    pub rounds: usize,
    /// Agents to compare.
    pub agents: Vec<Agent>,
    /// Loads to watch.
    pub loads: Vec<Load>,
    /// The folder of agents other than whit.
    pub folder: PathBuf,
    /// OpenTelemetry's collector, which takes what an agent sends.
    pub collector: PathBuf,
    /// Programs and files.
    pub setup: Setup,
}

impl Options {
    fn programs(&self) -> Programs<'_> {
        Programs {
            whit: &self.setup.whit,
            folder: &self.folder,
            collector: &self.collector,
            frequency_hz: self.frequency_hz,
        }
    }
}

/// Why an agent has no figures.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotRun(pub String);

/// All runs of an agent beside a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Work of the machine.
    pub load: Load,
    /// Watches it.
    pub agent: Agent,
    /// One for each round.
    pub runs: Vec<Run>,
    /// Why there are none, or fewer.
    pub refused: Option<NotRun>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The machine.
    pub system: System,
    /// Agents with their versions and their own frequencies.
    pub versions: Vec<(Agent, String)>,
    /// Agents that are not here, with the reason.
    pub missing: Vec<(Agent, String)>,
    /// Samples a second.
    pub frequency_hz: u32,
    /// Seconds of a load.
    pub seconds: f64,
    /// One for each load and agent.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Whether whit ran each time, where it was asked for.
    pub fn whit_succeeded(&self) -> bool {
        self.missing.iter().all(|(agent, _)| !agent.is_whit())
            && self.rows.iter().all(|row| !row.agent.is_whit() || row.refused.is_none())
    }
}

/// Runs all of them in turns.
///
/// # Errors
/// A load or a folder cannot be made.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let (mut versions, mut missing) = (Vec::new(), Vec::new());
    for agent in options.agents.iter().copied() {
        match agent.version(&options.programs()) {
            Ok(version) => versions.push((agent, version)),
            Err(why) => missing.push((agent, why)),
        }
    }
    missing.iter().for_each(|(agent, why)| say(&format!("without {agent}: {why}")));
    let mut rows = Vec::new();
    for load in options.loads.iter().copied() {
        let agents = versions.iter().map(|(agent, _)| *agent);
        let mut found: Vec<Row> =
            agents.map(|agent| Row { load, agent, runs: Vec::new(), refused: None }).collect();
        for round in 0..options.rounds {
            for turn in order(round, found.len()) {
                let row = &mut found[turn];
                say(&format!("round {} of {}: {}, {load}", round + 1, options.rounds, row.agent));
                match run::run(row.agent, load, options) {
                    Ok(run) => row.runs.push(run),
                    Err(Stop::Agent(why)) => row.refused = Some(why),
                    Err(Stop::Benchmark(error)) => return Err(error),
                }
            }
        }
        rows.extend(found);
    }
    Ok(Comparison {
        system: System::detect(),
        versions,
        missing,
        frequency_hz: options.frequency_hz,
        seconds: options.length.as_secs_f64(),
        rows,
    })
}
