//! The comparison behind `whit bench record`: the cost of recording, and its losses.
//!
//! Each table records one workload with several settings. A round runs every recorder with every
//! setting, and the workload alone in between; overheads are against the same round's runs alone.
//! The workload's amount of work is fixed beforehand, so that run times can be compared. The same
//! code, [`recorded`], reads the recordings of every recorder.

mod arguments;
pub(crate) mod recorded;
pub(crate) mod recorder;
pub(crate) mod render;
pub(crate) mod run;
pub(crate) mod summary;
pub(crate) mod tables;
pub(crate) mod workload;

use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::recorder::{Recorder, RecorderKind};
use self::run::{Run, RunLimits, record};
use self::summary::RowSummary;
use self::tables::{Setting, Table, TableKind, Tuning};
use self::workload::{Alone, Job, Workload, calibrate};
use crate::args::{count, heading, rounds};
use crate::bench::{Bench, Say};
use crate::disk;
use crate::error::Error;
use crate::installed::Absent;
use crate::rounds::order;
use crate::scratch::Scratch;
use crate::setup::Setup;
use whit_measure::measure::command_line;
use whit_types::ByteSize;

/// Runs of the workload alone in each round.
const RUNS_ALONE: usize = 3;
/// Recording slows a workload down at most by about this factor: for the estimate of disk space.
pub(crate) const SLOWDOWN_MAX: u32 = 8;
/// The rate that `-F max` stands for where the kernel does not tell.
const MAX_RATE_HZ: u64 = 100_000;
/// Bytes of a sample beside its stack.
const SAMPLE_BYTES: u64 = 1024;

const EXAMPLES: &str = "\
Examples:
  whit bench record --quick
  whit bench record --tables affinity,compression --rounds 7";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Tables to make, separated by commas
    #[arg(long, value_name = "TABLES", value_delimiter = ',', default_values_t = TableKind::value_variants(),
          hide_possible_values = true,
          help_heading = heading::COMPARED)]
    tables: Vec<TableKind>,

    /// Runs of each recorder with each setting
    #[arg(long, value_name = "N", default_value_t = 5, default_value_if("quick", "true", "1"),
          value_parser = rounds(), help_heading = heading::RUNS)]
    rounds: usize,

    /// Seconds of a workload without a recorder; tables with high rates take a part of it
    #[arg(long = "seconds", value_name = "SECONDS", default_value = "2",
          default_value_if("quick", "true", "0.1"), value_parser = arguments::seconds,
          help_heading = heading::RUNS)]
    duration: Duration,

    /// Check that everything works, in one round of 0.1 seconds; the figures mean nothing
    #[arg(long, help_heading = heading::RUNS)]
    quick: bool,

    /// Threads of the workloads [default: by the number of CPUs]
    #[arg(long, value_name = "N", value_parser = count(2048), help_heading = heading::RUNS)]
    threads: Option<usize>,

    /// Event to sample [default: cycles where the PMU has it, else cpu-clock]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Option<String>,

    /// Samples a second, or 'max' [default: the rate of each table]
    #[arg(short = 'F', long, visible_alias = "freq", value_name = "HZ",
          value_parser = arguments::frequency, help_heading = heading::EVENTS)]
    frequency: Option<String>,

    /// Size of each ring, the same for all recorders: a power of two, with K or M
    #[arg(short = 'm', long = "mmap-pages", value_name = "SIZE", default_value = "512K",
          value_parser = arguments::ring_size, help_heading = heading::EVENTS)]
    ring_size: String,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Parts that are the same in all tables.
    pub(crate) tuning: Tuning,
    /// Those that took part.
    pub(crate) recorders: Vec<Recorder>,
    /// Those that could not.
    pub(crate) absent: Vec<Absent<RecorderKind>>,
    /// One entry per table.
    pub(crate) tables: Vec<TableResult>,
}

/// One table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct TableResult {
    /// Name of the table, as on the command line.
    pub(crate) table: TableKind,
    pub(crate) workload: Workload,
    pub(crate) workload_command: String,
    pub(crate) common_options: Vec<String>,
    /// Without a recorder: the medians of each round.
    pub(crate) alone: Vec<Alone>,
    /// One entry per setting and recorder.
    pub(crate) rows: Vec<Row>,
}

/// One recorder with one setting.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) recorder: RecorderKind,
    /// Options under which the recorder ran.
    pub(crate) setting: Setting,
    /// Results of the runs.
    pub(crate) summary: RowSummary,
    pub(crate) runs: Vec<Run>,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        let workloads = Workload::value_variants().iter();
        self.setup.require(&workloads.map(|it| it.program()).collect::<Vec<_>>())?;
        let (recorders, absent) = Recorder::detect_all(&self.setup.whit);
        for missing in &absent {
            say(&format!("{} does not take part: {}", missing.kind, missing.reason));
        }
        let scratch = Scratch::new(&self.setup.directory)?;
        let place = RunLimits { scratch: &scratch, limit: self.setup.limit };
        let event = match &self.event {
            Some(event) => event.clone(),
            None => default_event(&recorders, place, say)?,
        };
        let tuning =
            Tuning { event, frequency: self.frequency.clone(), ring_size: self.ring_size.clone() };
        let mut tables = Vec::new();
        for kind in &self.tables {
            let table = Table::new(*kind, &tuning);
            tables.push(run_table(&table, self, &recorders, place, say)?);
        }
        Ok(Comparison { tuning, recorders, absent, tables })
    }
}

/// Whether the PMU counts cycles is only seen by trying: whit takes another event where it does
/// not, and the recording says which.
fn default_event(
    recorders: &[Recorder],
    place: RunLimits<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<String, Error> {
    let whit = recorders.iter().find(|recorder| recorder.kind == RecorderKind::Whit);
    let has_cycles = match whit {
        Some(whit) => run::records_hardware_event(whit, "cycles", place)?,
        None => false,
    };
    let event = if has_cycles { "cycles" } else { "cpu-clock" };
    say(&format!("event: {event}"));
    Ok(event.to_owned())
}

fn run_table(
    table: &Table,
    options: &Options,
    recorders: &[Recorder],
    place: RunLimits<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<TableResult, Error> {
    say(&format!("{}: {}", table.kind, table.kind.title()));
    let target = options.duration / table.time_divisor;
    require_space(table, target, &options.setup.directory)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = table.workload.threads(options.threads.unwrap_or(cpus));
    let job =
        calibrate(table.workload, &options.setup.workloads, threads, target, options.setup.limit)?;
    let workload_command = command_line(job.words[0].as_ref(), &job.words[1..]);
    say(&format!("  {workload_command}"));
    let mut rows: Vec<Row> = rows(table, recorders);
    let mut alone = Vec::new();
    for round in 0..options.rounds {
        alone.extend(run_round(round, table, &job, recorders, &mut rows, place, say)?);
    }
    for row in &mut rows {
        row.summary = RowSummary::of(&row.runs);
    }
    Ok(TableResult {
        table: table.kind,
        workload: table.workload,
        workload_command,
        common_options: table.common.clone(),
        alone,
        rows,
    })
}

/// Runs every row once, and the workload alone in between: one slow run of it would distort the
/// overheads of all rows. Gives the medians of its runs.
fn run_round(
    round: usize,
    table: &Table,
    job: &Job,
    recorders: &[Recorder],
    rows: &mut [Row],
    place: RunLimits<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<Option<Alone>, Error> {
    let interval = rows.len().div_ceil(RUNS_ALONE).max(1);
    let mut alone = Vec::new();
    for (turn, index) in order(round, rows.len()).into_iter().enumerate() {
        if turn % interval == 0 {
            let run = job.run(place.limit)?;
            say(&format!("  round {}: {:<28} {:8.2} s", round + 1, "alone", run.result.seconds));
            alone.push(run);
        }
        let row = &mut rows[index];
        let Some(recorder) = recorders.iter().find(|r| r.kind == row.recorder) else { continue };
        run_row(row, recorder, table, job, place)?;
        if let Some(run) = row.runs.get(round) {
            say(&render::progress(round, row, run));
        }
    }
    let alone = Alone::median(&alone);
    for row in rows {
        if let (Some(Run::Measured(figures)), Some(alone)) = (row.runs.get_mut(round), &alone) {
            figures.set_overheads(alone);
        }
    }
    Ok(alone)
}

/// A row that has refused, failed or taken too long is not run again.
fn run_row(
    row: &mut Row,
    recorder: &Recorder,
    table: &Table,
    job: &Job,
    place: RunLimits<'_>,
) -> Result<(), Error> {
    if row.runs.last().is_none_or(|run| matches!(run, Run::Measured(_))) {
        let options = [&table.common[..], &row.setting.options[..]].concat();
        row.runs.push(record(recorder, &options, job, place)?);
    }
    Ok(())
}

/// Recorders with the same setting follow each other.
fn rows(table: &Table, recorders: &[Recorder]) -> Vec<Row> {
    let each = table.settings.iter().flat_map(|setting| {
        recorders.iter().map(|recorder| Row {
            recorder: recorder.kind,
            setting: setting.clone(),
            summary: RowSummary::NotRun,
            runs: Vec::new(),
        })
    });
    each.collect()
}

fn require_space(table: &Table, target: Duration, directory: &Path) -> Result<(), Error> {
    let needed = expected_bytes(table, target);
    disk::require(directory, needed, "choose a lower --frequency, or another --dir")
}

/// An estimate from above of the size of one recording.
fn expected_bytes(table: &Table, target: Duration) -> ByteSize {
    let max = || {
        let path = "/proc/sys/kernel/perf_event_max_sample_rate";
        let rate = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
        rate.unwrap_or(MAX_RATE_HZ)
    };
    let frequency_hz = table.frequency.parse().unwrap_or_else(|_| max());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let sample_bytes = u64::from(table.stack_bytes) + SAMPLE_BYTES;
    let rate = frequency_hz.saturating_mul(cpus).saturating_mul(sample_bytes);
    disk::recorded_at_most(target * SLOWDOWN_MAX, Some(rate))
}

#[cfg(test)]
mod tests;
