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
mod tool;

#[cfg(test)]
mod otlp_tests;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

pub(crate) use loads::{Load, WORKLOADS};
pub(crate) use run::Run;
pub(crate) use tool::Agent;

use crate::args::{heading, rounds, seconds};
use crate::bench::{Bench, Say};
use crate::error::Error;
use crate::rounds::{Row, interleave};
use crate::setup::Setup;
use run::Stop;
use tool::Programs;

/// Where `make setup-bench` puts the agents that it builds.
const FOLDER: &str = "target/setup/agents/bin";
/// Where `make setup-test` puts the collector.
const COLLECTOR: &str = "target/setup/receivers/bin/collector";

const EXAMPLES: &str = "\
Examples:
  whit bench agents --frequency 19 --seconds 30
  whit bench agents --agents whit-watch,lightswitch --loads cpp,execs";

#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Compare these agents [default: all]
    #[arg(long, value_name = "AGENT,..", value_delimiter = ',', default_values_t = Agent::value_variants(),
          hide_possible_values = true,
          hide_default_value = true, help_heading = heading::COMPARED)]
    agents: Vec<Agent>,

    /// With these loads: cpp, go, python, ping-pong, execs, idle [default: all]
    #[arg(long, value_name = "LOAD,..", value_delimiter = ',', default_values_t = Load::value_variants(),
          hide_possible_values = true,
          hide_default_value = true, help_heading = heading::COMPARED)]
    loads: Vec<Load>,

    /// Samples a second; lightswitch takes prime numbers alone
    #[arg(long = "frequency", value_name = "HZ", default_value_t = 97,
          value_parser = clap::value_parser!(u32).range(1..=1001), help_heading = heading::COMPARED)]
    frequency_hz: u32,

    /// Seconds of a load
    #[arg(long = "seconds", value_name = "SECONDS", default_value = "10",
          value_parser = seconds(1..=3600), help_heading = heading::RUNS)]
    length: Duration,

    /// Runs of each agent with each load
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    /// Folder of the other agents' programs
    #[arg(long, value_name = "DIR", default_value = FOLDER, help_heading = heading::SETUP)]
    folder: PathBuf,

    /// OpenTelemetry's collector, which takes what OpenTelemetry's profiler sends
    #[arg(long, value_name = "FILE", default_value = COLLECTOR, help_heading = heading::SETUP)]
    collector: PathBuf,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
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

/// An agent, and the work of the machine that it watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) load: Load,
    pub(crate) agent: Agent,
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.agent, self.load)
    }
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Agents with their versions and their own frequencies.
    pub(crate) versions: Vec<(Agent, String)>,
    /// Agents that are not here, with the reason.
    pub(crate) missing: Vec<(Agent, String)>,
    pub(crate) frequency_hz: u32,
    pub(crate) seconds: f64,
    /// One for each load and agent.
    pub(crate) rows: Vec<Row<Case, Run>>,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        self.setup.require(&WORKLOADS)?;
        let options = self.with_absolute_paths()?;
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
            let case = |(agent, _): &(Agent, String)| Row::new(Case { load, agent: *agent });
            let mut of_load: Vec<Row<Case, Run>> = versions.iter().map(case).collect();
            interleave(&mut of_load, options.rounds, say, &mut |case| match run::run(
                case.agent, case.load, &options,
            ) {
                Ok(run) => Ok(Ok(run)),
                Err(Stop::Agent(why)) => Ok(Err(why)),
                Err(Stop::Benchmark(error)) => Err(error),
            })?;
            rows.extend(of_load);
        }
        let (frequency_hz, seconds) = (options.frequency_hz, options.length.as_secs_f64());
        Ok(Comparison { versions, missing, frequency_hz, seconds, rows })
    }
}

impl Options {
    /// Agents run in a folder of their own.
    fn with_absolute_paths(&self) -> Result<Options, Error> {
        let mut options = self.clone();
        let Setup { whit, workloads, directory, .. } = &mut options.setup;
        for path in [whit, workloads, directory, &mut options.folder, &mut options.collector] {
            *path = std::path::absolute(&*path)?;
        }
        Ok(options)
    }
}
