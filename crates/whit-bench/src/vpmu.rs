//! The comparison behind `whit bench vpmu`: what a guest's profiler waits for its virtual PMU, by way of
//! using host events.
//!
//! The guest is `whit-pmu`'s driver in this process; its registers are those of a `whit_vpmu::Vpmu`
//! whose counters are events of this thread. So the benchmark measures the device and the host's
//! kernel, without the exits from a real guest, which cost the same in every way.

mod guest;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod kvm;
mod render;
mod ways;

use std::time::{Duration, Instant};

use serde::Serialize;
use whit_vpmu::host::{HostOptions, HostPerf, OverflowSignal};

use crate::Error;
use crate::system::System;
use guest::{Guest, Session};

pub use render::markdown;
pub use ways::{Events, Way};

/// Version of the JSON form; a change that readers must know of raises it.
pub const SCHEMA: u32 = 1;
/// The kernel forgets that there were events a second after the last one of a task has gone.
const FORGOTTEN: Duration = Duration::from_millis(1500);
/// Interrupts of a session that begins with the machine's first event.
pub const COLD_INTERRUPTS: u64 = 100;

/// Settings of the measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// Interrupts of each session.
    pub interrupts: u64,
    /// Stops and starts of the counting event in each session.
    pub switches: u64,
    /// Sessions of each way, in turn with the others.
    pub rounds: usize,
    /// Events between two interrupts.
    pub period: u64,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Version of this document: [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub system: System,
    /// The guest's events on the host, in words.
    pub events: String,
    /// Events between two interrupts.
    pub period: u64,
    /// Sessions of each way.
    pub rounds: usize,
    /// Opening the machine's first event of a task, and the next, in nanoseconds.
    pub opening: Vec<Opening>,
    /// Sampling ten events, multiplexed.
    pub sampling: Vec<Row>,
    /// Counting one event.
    pub counting: Vec<Row>,
    /// Sessions that begin without any event on the machine.
    pub cold: Vec<Cold>,
}

/// The first event of a task on the machine, and one after it.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Opening {
    /// Where there was none for a while.
    pub first_ns: f64,
    /// While that one is open.
    pub next_ns: f64,
}

/// One way, over all its sessions.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Way of using host events.
    pub way: Way,
    /// Length of each handler (sampling), or of each stop and start (counting), in nanoseconds.
    #[serde(skip)]
    pub lengths_ns: Vec<f64>,
    /// Average of each session, in nanoseconds.
    pub averages_ns: Vec<f64>,
    /// Minimum, median, average and maximum over all sessions, in nanoseconds.
    pub summary_ns: [f64; 4],
    /// Host events opened, after the start.
    pub opens: u64,
    /// Times that an event was used again instead.
    pub opens_avoided: u64,
    /// System calls of one handler and of its delivery.
    pub calls_per_operation: f64,
    /// Changes of the set of events.
    pub rotations: u64,
    /// Counters that stood still although they were enabled.
    pub failures: u64,
}

/// One way, in sessions that begin without any event on the machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cold {
    /// Way of using host events.
    pub way: Way,
    /// The guest's waits for its PMU in each session, start and handlers, divided by its
    /// interrupts.
    pub averages_ns: Vec<f64>,
    /// The start of each session alone.
    pub starts_ns: Vec<f64>,
}

/// Measures.
///
/// # Errors
/// Where this machine lets no event be opened.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let signal = OverflowSignal::block()
        .map_err(|error| Error::HostEvents { reason: format!("block SIGIO: {error}") })?;
    let events = Events::detect();
    say(&format!("events: {}", events.words()));
    let mut opening = Vec::new();
    let mut cold: Vec<Cold> = ways::COLD.map(Cold::new).to_vec();
    for round in 1..=options.rounds {
        say(&format!("the machine's first event, round {round} of {}", options.rounds));
        opening.push(measure_opening()?);
        for row in &mut cold {
            row.add(&events, options, &signal)?;
        }
    }
    let mut sampling: Vec<Row> = Way::ALL.map(Row::new).to_vec();
    let mut counting: Vec<Row> = Way::ALL.map(Row::new).to_vec();
    // With an event open, so that none is the first.
    let _other = host(&events, HostOptions::default())?;
    for round in 1..=options.rounds {
        say(&format!("round {round} of {}", options.rounds));
        for (index, row) in sampling.iter_mut().enumerate() {
            let way = row.way;
            let mut guest = Guest::new(way, &events)?;
            row.add(guest.sample(options.interrupts, options.period, &signal));
            let mut guest = Guest::new(way, &events)?;
            counting[index].add(guest.count(options.switches));
        }
    }
    sampling.iter_mut().chain(&mut counting).for_each(Row::sum_up);
    Ok(Comparison {
        schema: SCHEMA,
        system: System::detect(),
        events: events.words(),
        period: options.period,
        rounds: options.rounds,
        opening,
        sampling,
        counting,
        cold,
    })
}

fn host(events: &Events, options: HostOptions) -> Result<HostPerf, Error> {
    HostPerf::for_this_thread(events.map(), options)
        .map_err(|error| Error::HostEvents { reason: error.to_string() })
}

/// Two anchors. The first is the machine's first event unless another program has one.
fn measure_opening() -> Result<Opening, Error> {
    std::thread::sleep(FORGOTTEN);
    let mut times = [0.0; 2];
    let mut open = Vec::new();
    for time in &mut times {
        let start = Instant::now();
        open.push(host(&Events::detect_nothing(), HostOptions::default())?);
        *time = start.elapsed().as_nanos() as f64;
    }
    Ok(Opening { first_ns: times[0], next_ns: times[1] })
}

impl Row {
    fn new(way: Way) -> Row {
        Row {
            way,
            lengths_ns: Vec::new(),
            averages_ns: Vec::new(),
            summary_ns: [0.0; 4],
            opens: 0,
            opens_avoided: 0,
            calls_per_operation: 0.0,
            rotations: 0,
            failures: 0,
        }
    }

    fn add(&mut self, session: Session) {
        let before = self.lengths_ns.len() as f64;
        self.averages_ns.push(mean(&session.lengths_ns));
        self.lengths_ns.extend(&session.lengths_ns);
        let calls = self.calls_per_operation * before + session.calls as f64;
        self.calls_per_operation = calls / (self.lengths_ns.len() as f64).max(1.0);
        self.opens += session.opens;
        self.opens_avoided += session.opens_avoided;
        self.rotations += session.rotations;
        self.failures += session.failures;
    }

    fn sum_up(&mut self) {
        self.lengths_ns.sort_by(f64::total_cmp);
        let lengths = &self.lengths_ns;
        let at = |place: usize| lengths.get(place).copied().unwrap_or_default();
        let (last, middle) = (lengths.len().saturating_sub(1), lengths.len() / 2);
        self.summary_ns = [at(0), at(middle), mean(lengths), at(last)];
    }
}

impl Cold {
    fn new(way: Way) -> Cold {
        Cold { way, averages_ns: Vec::new(), starts_ns: Vec::new() }
    }

    fn add(
        &mut self,
        events: &Events,
        options: &Options,
        signal: &OverflowSignal,
    ) -> Result<(), Error> {
        std::thread::sleep(FORGOTTEN);
        // An anchor is opened here, when the VM starts, and not by the guest.
        let mut guest = Guest::new(self.way, events)?;
        let session = guest.sample_one(COLD_INTERRUPTS, options.period, signal);
        let waited = session.start_ns + session.lengths_ns.iter().sum::<f64>();
        self.averages_ns.push(waited / (session.lengths_ns.len() as f64).max(1.0));
        self.starts_ns.push(session.start_ns);
        Ok(())
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len() as f64).max(1.0)
}

#[cfg(test)]
mod tests;
