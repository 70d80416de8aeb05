//! Whether shares are right: the tables behind `whit bench accuracy`.
//!
//! The workload `shares` counts what each of its functions does, and prints it. So the true shares are known without any
//! sampling, and the recordings of all recorders are judged by them. Each recording is read by the same code.

mod gain;
mod recorders;
mod render;
mod run;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use recorders::Recorder;
pub use render::markdown;

use crate::Error;
use crate::named::go_by_name;
use crate::setup::Setup;
use crate::system::System;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// The workload.
pub const PROGRAM: &str = "shares";

/// Programs whose work has nothing to do with the clock of the samples.
const FREE: [&str; 6] = ["flat", "twenty", "recursion", "threads", "processes", "phases"];
/// Samples a second of those.
const FREE_HZ: u32 = 999;

/// One of the tables that the comparison makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Shares of programs whose work has nothing to do with the clock of the samples.
    Free,
    /// Shares of programs that keep step with it.
    Locked,
    /// Predicted and measured gains.
    Gains,
    /// Whether `whit switches` notices recordings in step.
    Noticed,
}

impl Table {
    /// Every table, in the order of printing.
    pub const ALL: [Table; 4] = [Table::Free, Table::Locked, Table::Gains, Table::Noticed];

    fn name(self) -> &'static str {
        match self {
            Table::Free => "free",
            Table::Locked => "locked",
            Table::Gains => "gains",
            Table::Noticed => "noticed",
        }
    }
}

go_by_name!(Table, "table", Table::ALL);

/// How much to try.
#[derive(Clone, Debug)]
pub struct Options {
    /// The tables to make.
    pub tables: Vec<Table>,
    /// Recordings of each workload by each recorder.
    pub runs: usize,
    /// Seconds of each of them.
    pub seconds: u32,
    /// Name of the sampled event.
    pub event: String,
    /// Frequencies of work that keeps step with the samples.
    pub locked_hz: Vec<u32>,
    /// By how many percent a function is made faster, for each prediction.
    pub faster: Vec<u32>,
    /// Programs and directories.
    pub setup: Setup,
}

/// All tables.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    /// Version of this form.
    pub schema: u32,
    /// The machine.
    pub system: System,
    /// Name of the sampled event.
    pub event: String,
    /// Seconds of a recording.
    pub seconds: u32,
    /// Recordings of each workload by each recorder.
    pub runs: usize,
    /// Recorders, with their versions.
    pub recorders: Vec<(String, String)>,
    /// Recorders that are not compared, and why.
    pub missing: Vec<(String, String)>,
    /// Shares, by workload and recorder.
    pub shares: Vec<Row>,
    /// Predictions of a gain.
    pub gains: Vec<Gain>,
    /// Recordings of threads that wake up in step with the samples, and how many of them are called so.
    pub noticed: Vec<Noticed>,
}

/// The shares that a recorder gives of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Mode of the workload.
    pub workload: String,
    /// Samples a second.
    pub hz: u32,
    /// Name of the recorder.
    pub recorder: String,
    /// Samples of all recordings.
    pub samples: u64,
    /// Mean of the errors of all functions in all recordings, without their sign; in percentage points.
    pub mean_error: f64,
    /// The largest of them.
    pub largest_error: f64,
    /// Functions that were judged, in all recordings.
    pub functions: usize,
    /// Those whose interval at 95 % holds the true share.
    pub held: usize,
}

/// A function is made faster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gain {
    /// By so many percent.
    pub faster_percent: u32,
    /// The gain that the program's own counts predict, in percent of its time.
    pub by_counts: f64,
    /// The gain that the shares of each recorder predict.
    pub predicted: Vec<(String, f64)>,
    /// The median gain of pairs of runs, with the least and the greatest.
    pub measured: [f64; 3],
}

/// Recordings with samples in step, and the answer of `whit switches`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Noticed {
    /// Name of the way to record.
    pub recorder: String,
    /// Times a second that the threads wake up.
    pub waking_hz: u32,
    /// Samples a second.
    pub hz: u32,
    /// Number of recordings.
    pub recordings: usize,
    /// Recordings with the warning.
    pub said: usize,
    /// Mean of the errors of all shares, in percentage points.
    pub mean_error: f64,
}

/// Makes all tables; `tell` hears of each recording.
///
/// # Errors
/// A recording cannot be made or read.
pub fn compare(options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Accuracy, Error> {
    let (recorders, missing) = recorders::detect(&options.setup);
    let bench = run::Bench::new(options)?;
    let has = |table| options.tables.contains(&table);
    let hz_of = |table| if has(table) { &options.locked_hz[..] } else { &[] };
    let free = FREE.into_iter().filter(|_| has(Table::Free));
    let modes = free.map(|mode| (mode.to_owned(), FREE_HZ));
    let locked = hz_of(Table::Locked).iter().map(|hz| (format!("locked:{hz}"), *hz));
    let mut shares = Vec::new();
    for (mode, hz) in modes.chain(locked) {
        tell(&format!("{mode} at {hz} Hz"));
        shares.extend(bench.rows(&mode, hz, &recorders)?);
    }
    let mut gains = Vec::new();
    for percent in options.faster.iter().filter(|_| has(Table::Gains)) {
        tell(&format!("a function that is {percent} % faster"));
        gains.push(gain::gain(&bench, *percent, &recorders)?);
    }
    let mut noticed = Vec::new();
    for hz in hz_of(Table::Noticed) {
        tell(&format!("threads that wake up {hz} times a second"));
        noticed.extend(bench.noticed(*hz)?);
    }
    Ok(Accuracy {
        schema: SCHEMA,
        system: System::detect(),
        event: options.event.clone(),
        seconds: options.seconds,
        runs: options.runs,
        recorders: recorders
            .iter()
            .map(|one| (one.name().to_owned(), one.version.clone()))
            .collect(),
        missing,
        shares,
        gains,
        noticed,
    })
}
