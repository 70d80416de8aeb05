//! The recorder that runs all week: the cost of `whit watch` and of its recorder, each for itself.
//!
//! The service runs beside loads, at several rates, with waits and without. After it has set itself up, the figures of
//! both processes are read twice. `--soak` lets one service run for long, and reads its figures each minute.

use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::args::{heading, seconds};
use crate::bench::{Bench, Figures, Say};
use crate::error::Error;
pub(crate) use crate::load::Machine;
use crate::page::Page;
use crate::record::recorded::Recorded;
use crate::scratch::Scratch;
use crate::setup::Setup;

mod process;
mod render;
mod service;
mod soak;

pub(crate) use process::ProcessCost;
pub(crate) use service::Between;
use service::{Service, State};
pub(crate) use soak::{Soak, SoakRow};

/// The settings of a service.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Settings {
    pub(crate) frequency_hz: u32,
    /// Whether context switches are recorded, too.
    pub(crate) has_waits: bool,
    pub(crate) window_s: u64,
    /// Further options of `whit watch`.
    pub(crate) more: Vec<String>,
}

impl Settings {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--freq={}", self.frequency_hz),
            format!("--switches={}", self.has_waits),
            format!("--window={}s", self.window_s),
        ];
        arguments.extend(self.more.iter().cloned());
        arguments
    }
}

const EXAMPLES: &str = "\
Examples:
  whit bench watch --frequencies 19,99 --machines idle
  whit bench watch --soak 3600 --frequencies 99 --window 10 --markdown soak.md";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Samples a second
    #[arg(long = "frequencies", value_name = "HZ,..", default_value = "19,99,997",
          value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000),
          help_heading = heading::COMPARED)]
    frequencies_hz: Vec<u32>,

    /// Other work of the machine: idle, busy, execs, ping-pong
    #[arg(long, value_name = "NAME,..", default_values_t = Machine::value_variants(),
          hide_possible_values = true, value_delimiter = ',',
          help_heading = heading::COMPARED)]
    machines: Vec<Machine>,

    /// Seconds of a window
    #[arg(long = "window", value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=600), help_heading = heading::COMPARED)]
    window_s: u64,

    /// A further option of whit watch, several times
    #[arg(long = "with", value_name = "OPTION", allow_hyphen_values = true,
          help_heading = heading::COMPARED)]
    more: Vec<String>,

    /// Seconds that each run is measured
    #[arg(long = "seconds", value_name = "SECONDS", default_value = "20",
          value_parser = seconds(1..=86_400), help_heading = heading::RUNS)]
    measured: Duration,

    /// Seconds before that, in which the service sets itself up
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds(0..=3600),
          help_heading = heading::RUNS)]
    warm_up: Duration,

    /// Run one service for so long, with the first machine and frequency, and show a row each minute
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1..=31_536_000),
          help_heading = heading::RUNS)]
    soak: Option<Duration>,

    /// Seconds between two rows of --soak
    #[arg(long, value_name = "SECONDS", default_value = "60", requires = "soak",
          value_parser = seconds(1..=86_400), help_heading = heading::RUNS)]
    interval: Duration,

    /// Record no waits in --soak
    #[arg(long, requires = "soak", help_heading = heading::RUNS)]
    no_waits: bool,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// The cost of a service in one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Cost {
    /// Seconds between the two readings.
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) between: Between,
    /// Records in all files of the run.
    pub(crate) records: u64,
    /// Records that the kernel or a bound dropped, by the files.
    pub(crate) records_lost: u64,
    /// Counters of the service that tell losses.
    pub(crate) losses: Vec<(String, u64)>,
}

/// A load with a service beside it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    /// Other work beside it.
    pub(crate) machine: Machine,
    pub(crate) settings: Settings,
    /// `None` where the service or its recorder did not run to the end.
    pub(crate) cost: Option<Cost>,
    /// The last line of the service then.
    pub(crate) refused: Option<String>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Measured {
    /// One for each run.
    pub(crate) rows: Vec<Row>,
}

/// All runs, or one long run.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Watched {
    All(Measured),
    Soak(Soak),
}

impl Figures for Watched {
    fn show(&self, page: &mut Page) {
        match self {
            Watched::All(measured) => render::show(measured, page),
            Watched::Soak(soak) => render::show_soak(soak, page),
        }
    }

    fn succeeded(&self) -> bool {
        match self {
            Watched::All(measured) => measured.rows.iter().all(|row| row.cost.is_some()),
            Watched::Soak(soak) => soak.is_whole,
        }
    }
}

impl Bench for Options {
    type Figures = Watched;

    fn run(&self, say: Say<'_>) -> Result<Watched, Error> {
        self.setup.require(&[])?;
        Ok(match self.soak {
            Some(length) => Watched::Soak(soak::soak(self, length, say)?),
            None => Watched::All(self.measure(say)?),
        })
    }
}

impl Options {
    fn settings(&self, frequency_hz: u32, has_waits: bool) -> Settings {
        Settings { frequency_hz, has_waits, window_s: self.window_s, more: self.more.clone() }
    }

    fn measure(&self, say: Say<'_>) -> Result<Measured, Error> {
        let mut rows = Vec::new();
        for machine in &self.machines {
            for frequency_hz in &self.frequencies_hz {
                for has_waits in [false, true] {
                    let waits = if has_waits { "waits" } else { "no waits" };
                    say(&format!("{machine}, {frequency_hz} Hz, {waits}"));
                    rows.push(run(*machine, self.settings(*frequency_hz, has_waits), self)?);
                }
            }
        }
        Ok(Measured { rows })
    }
}

fn run(machine: Machine, settings: Settings, options: &Options) -> Result<Row, Error> {
    let scratch = Scratch::new(&options.setup.directory)?;
    let _load = machine.start()?;
    let mut service = Service::start(&options.setup.whit, scratch.path(), &settings)?;
    sleep(options.warm_up);
    let (begin, before) = (Instant::now(), service.state());
    sleep(options.measured);
    let (seconds, after) = (begin.elapsed().as_secs_f64(), service.state());
    service.end();
    let (cost, refused) = match (before, after) {
        (Some(before), Some(after)) if before.recorder_pid == after.recorder_pid => {
            (Some(cost(&before, after, seconds, &service)?), None)
        }
        _ => (None, Some(service.log().lines().last().unwrap_or_default().to_owned())),
    };
    Ok(Row { machine, settings, cost, refused })
}

fn cost(before: &State, after: State, seconds: f64, service: &Service) -> Result<Cost, Error> {
    let (mut records, mut records_lost) = (0, 0);
    for file in service.files() {
        let recorded = Recorded::read(&file)?;
        records += recorded.records;
        records_lost += recorded.lost;
    }
    Ok(Cost {
        seconds,
        between: after.since(before, seconds),
        records,
        records_lost,
        losses: after.losses,
    })
}
