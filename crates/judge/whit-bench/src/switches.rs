//! Cost of recording every context switch with its stack: the comparison behind
//! `whit bench switches`.
//!
//! Two loads: threads that hand a token to and fro, so that there is little but switches; and a program
//! that computes deep in its stack, sampled at 5 kHz. Recorders differ in how they get at user stacks
//! (a copy of the stack for later, or unwinding in the kernel) and at the data. Everything runs once a
//! round, in turn, and the load alone in between.

mod program_time;
mod recorders;
mod render;

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

pub(crate) use program_time::ProgramTime;
pub(crate) use recorders::{Load, Way};

use crate::args::{heading, milliseconds, rounds};
use crate::bench::{Bench, Say};
use crate::core_pmu;
use crate::disk;
use crate::error::Error;
use crate::record::SLOWDOWN_MAX;
use crate::record::recorded::BpfRuns;
use crate::record::run::{Run, RunLimits};
use crate::record::workload::{Alone, Job, calibrate};
use crate::rounds::{Row, order};
use crate::scratch::Scratch;
use crate::setup::Setup;
use recorders::Programs;
use whit_measure::summary::Spread;
use whit_types::ByteSize;

/// Runs of the load alone in each round.
const RUNS_ALONE: usize = 3;
/// No more is asked for in advance: a run ends before it fills the disk.
const RECORDING_MAX: ByteSize = ByteSize(8 << 30);

const EXAMPLES: &str = "\
Example:
  whit bench switches --loads pingpong --rounds 3";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Loads, separated by commas
    #[arg(long, value_name = "LOADS", value_delimiter = ',', default_values_t = Load::value_variants(),
          hide_possible_values = true,
          help_heading = heading::COMPARED)]
    loads: Vec<Load>,

    /// Runs of each recorder
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    /// Milliseconds of a load without a recorder
    #[arg(long = "milliseconds", value_name = "MS", default_value = "1000",
          value_parser = milliseconds(1..=600_000), help_heading = heading::RUNS)]
    duration: Duration,

    /// Event to sample [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT", default_value_t = core_pmu::default_event(),
          hide_default_value = true, help_heading = heading::EVENTS)]
    event: String,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) event: String,
    /// The recorders that took part, with their versions.
    pub(crate) versions: Vec<String>,
    /// Absent recorders, with the reason.
    pub(crate) absent: Vec<String>,
    /// One for each load.
    pub(crate) tables: Vec<Table>,
}

/// One load under all recorders.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Table {
    /// The program that switches.
    pub(crate) load: Load,
    pub(crate) command: String,
    /// Without a recorder, the medians of each round.
    pub(crate) alone: Vec<Alone>,
    /// Runs under a recorder, a row for each.
    pub(crate) rows: Vec<Row<Case, Cost>>,
    /// Programs of the recorder that samples waits ([`Way::WhitOffCpu`]), a row for each window of time.
    pub(crate) program_times: Vec<ProgramTime>,
}

/// One way to record: the recorder and its options.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) way: Way,
    pub(crate) options: String,
}

/// Cost of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Cost {
    /// Time of the load's main loop over that of the same round's runs alone.
    pub(crate) slowdown: f64,
    /// CPU time of the load over that of the same runs, without other programs and the recorder.
    pub(crate) load_cpu: f64,
    /// CPU time of the recorder without the load.
    pub(crate) recorder_cpu_s: f64,
    pub(crate) size_bytes: u64,
    /// Its contents, where its format has them.
    pub(crate) recorded: Option<Content>,
}

/// Contents and losses of a recording.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Content {
    /// Samples, those of switches included.
    pub(crate) samples: u64,
    /// Records dropped as a share of all, between 0 and 1.
    pub(crate) lost_share: f64,
    /// BPF programs of the recorder.
    pub(crate) bpf: Option<BpfRuns>,
}

impl Table {
    /// A figure over all rounds of one way to record.
    pub(crate) fn spread(&self, way: Way, of: impl Fn(&Cost) -> Option<f64>) -> Option<Spread> {
        self.rows.iter().find(|row| row.case.way == way && row.refused.is_none())?.spread(of)
    }
}

impl Bench for Options {
    type Figures = Comparison;

    const SCHEMA: u32 = 3;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        self.setup.require(&["pingpong", "deep"])?;
        let programs = Programs::detect(&self.setup.whit);
        let scratch = Scratch::new(&self.setup.directory)?;
        let duration = self.duration * SLOWDOWN_MAX;
        let needed = disk::recorded_at_most(duration, None).min(RECORDING_MAX);
        disk::require(
            &self.setup.directory,
            needed,
            "choose fewer --milliseconds, or another --dir",
        )?;
        let place = RunLimits { scratch: &scratch, limit: self.setup.limit };
        let mut tables = Vec::new();
        for &load in &self.loads {
            tables.push(one_load(load, self, &programs, place, say)?);
        }
        Ok(Comparison {
            event: self.event.clone(),
            versions: programs.versions(),
            absent: programs.absent().to_vec(),
            tables,
        })
    }
}

fn one_load(
    load: Load,
    options: &Options,
    programs: &Programs,
    place: RunLimits<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<Table, Error> {
    let (workload, threads) = load.workload();
    let directory = &options.setup.workloads;
    let job = calibrate(workload, directory, threads, options.duration, options.setup.limit)?;
    say(&format!("{load}: {}", job.words.join(" ")));
    let case = |way: Way| Case { way, options: way.options(load, &options.event).join(" ") };
    let ways = Way::of(load).iter().filter(|way| programs.has(**way));
    let rows = ways.map(|&way| Row::new(case(way))).collect();
    let mut table = Table {
        load,
        command: job.words.join(" "),
        alone: Vec::new(),
        rows,
        program_times: Vec::new(),
    };
    for round in 0..options.rounds {
        say(&format!("  round {} of {}", round + 1, options.rounds));
        one_round(round, &mut table, &job, &options.event, programs, place)?;
        let windows = programs.program_time(load, &options.event, &job, place)?;
        table.program_times.extend(windows);
    }
    Ok(table)
}

/// Every way once. Slowdowns are known only at the end, when the load has run alone often enough.
fn one_round(
    round: usize,
    table: &mut Table,
    job: &Job,
    event: &str,
    programs: &Programs,
    place: RunLimits<'_>,
) -> Result<(), Error> {
    let interval = table.rows.len().div_ceil(RUNS_ALONE).max(1);
    let (mut alone, mut measured) = (Vec::new(), Vec::new());
    for (turn, index) in order(round, table.rows.len()).into_iter().enumerate() {
        if turn % interval == 0 {
            alone.push(job.run(place.limit)?);
        }
        let row = &mut table.rows[index];
        if row.refused.is_some() {
            continue;
        }
        match programs.record(row.case.way, table.load, event, job, place)? {
            Run::Measured(figures) => measured.push((index, figures)),
            Run::Refused { message: reason } | Run::Failed { reason } => row.refused = Some(reason),
            ended => row.refused = Some(ended.to_string()),
        }
    }
    let Some(alone) = Alone::median(&alone) else { return Ok(()) };
    for (index, mut figures) in measured {
        figures.set_overheads(&alone);
        let row = &mut table.rows[index];
        let recorded = &figures.recorded;
        let content = Content {
            samples: recorded.samples,
            lost_share: recorded.lost_share(),
            bpf: recorded.bpf,
        };
        row.runs.push(Cost {
            slowdown: 1.0 + figures.run_overhead,
            load_cpu: figures.workload.cpu_s() / alone.result.cpu_s(),
            recorder_cpu_s: figures.recorder_cpu_s,
            size_bytes: recorded.size_bytes,
            recorded: row.case.way.has_content().then_some(content),
        });
    }
    table.alone.push(alone);
    Ok(())
}

#[cfg(test)]
mod tests;
