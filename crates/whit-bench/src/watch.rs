//! The recorder that runs all week: the cost of `whit watch` and of its recorder, each for itself.
//!
//! The service runs beside loads, at several rates, with waits and without. After it has set itself up, the figures of
//! both processes are read twice. [`soak()`] lets one service run for long, and reads its figures each minute.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Error;
use crate::load::{PingPong, Shells};
use crate::named::go_by_name;
use crate::record::recorded::Recorded;
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;

mod process;
mod render;
mod service;
mod soak;

pub use process::ProcessCost;
pub use render::{markdown, soak_markdown};
use service::{Service, State};
pub use soak::{Soak, SoakOptions, SoakRow, soak};

/// Other work of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// Nothing of ours.
    Idle,
    /// A busy process on each CPU.
    Busy,
    /// Processes that begin and end.
    Execs,
    /// Two threads that wake each other all the time.
    PingPong,
}

impl Machine {
    /// In the order in which they run.
    pub const ALL: [Machine; 4] = [Machine::Idle, Machine::Busy, Machine::Execs, Machine::PingPong];

    fn name(self) -> &'static str {
        match self {
            Machine::Idle => "idle",
            Machine::Busy => "busy",
            Machine::Execs => "execs",
            Machine::PingPong => "ping-pong",
        }
    }

    fn start(self) -> Result<Load, Error> {
        Ok(match self {
            Machine::Idle => Load::None,
            Machine::Busy => Load::Shells(Shells::busy()?),
            Machine::Execs => Load::Shells(Shells::execs()?),
            Machine::PingPong => Load::PingPong(PingPong::start()),
        })
    }
}

go_by_name!(Machine, "machine", Machine::ALL);

/// A load until it is dropped.
enum Load {
    None,
    Shells(#[expect(dead_code, reason = "it ends with this")] Shells),
    PingPong(#[expect(dead_code, reason = "it ends with this")] PingPong),
}

/// The settings of a service.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Settings {
    /// Samples a second.
    pub frequency_hz: u32,
    /// Whether context switches are recorded, too.
    pub has_waits: bool,
    /// Seconds of a window.
    pub window_s: u64,
    /// Further options of `whit watch`.
    pub more: Vec<String>,
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

/// Settings of the measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// Loads.
    pub machines: Vec<Machine>,
    /// Samples a second.
    pub frequencies_hz: Vec<u32>,
    /// Seconds of a window.
    pub window_s: u64,
    /// Length of a run, and the time before.
    pub measured: Duration,
    /// Time in which the service sets itself up.
    pub warm_up: Duration,
    /// Further options of `whit watch`.
    pub more: Vec<String>,
    /// Programs and files.
    pub setup: Setup,
}

/// The cost of a service in one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cost {
    /// Seconds between the two readings.
    pub seconds: f64,
    /// The service.
    pub watch: ProcessCost,
    /// The process that records for it.
    pub recorder: ProcessCost,
    /// Windows that were written.
    pub windows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records in all files of the run.
    pub records: u64,
    /// Records that the kernel or a bound dropped, by the files.
    pub records_lost: u64,
    /// Counters of the service that tell losses.
    pub losses: Vec<(String, u64)>,
}

/// A load with a service beside it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Other work beside it.
    pub machine: Machine,
    /// Settings of the service.
    pub settings: Settings,
    /// `None` where the service or its recorder did not run to the end.
    pub cost: Option<Cost>,
    /// The last line of the service then.
    pub refused: Option<String>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// The machine.
    pub system: System,
    /// One for each run.
    pub rows: Vec<Row>,
}

impl Measured {
    /// Whether each run came to its end.
    pub fn whit_succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.cost.is_some())
    }
}

/// Measures all.
///
/// # Errors
/// A folder or a load cannot be made, or a service does not begin.
pub fn measure(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Measured, Error> {
    let mut rows = Vec::new();
    for machine in &options.machines {
        for frequency_hz in &options.frequencies_hz {
            for has_waits in [false, true] {
                let (frequency_hz, window_s) = (*frequency_hz, options.window_s);
                let more = options.more.clone();
                let settings = Settings { frequency_hz, has_waits, window_s, more };
                let waits = if has_waits { "waits" } else { "no waits" };
                say(&format!("{machine}, {frequency_hz} Hz, {waits}"));
                rows.push(run(*machine, settings, options)?);
            }
        }
    }
    Ok(Measured { system: System::detect(), rows })
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
        watch: after.watch.since(&before.watch, seconds),
        recorder: after.recorder.since(&before.recorder, seconds),
        windows: after.windows - before.windows,
        bytes: after.window_bytes - before.window_bytes,
        records,
        records_lost,
        losses: after.losses,
    })
}
