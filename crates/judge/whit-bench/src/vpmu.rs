//! The comparison behind `whit bench vpmu`: what a guest's profiler waits for its virtual PMU, by way of
//! using host events.
//!
//! The guest is `whit-pmu`'s driver in this process; its registers are those of a `whit_vpmu::Vpmu`
//! whose counters are events of this thread. So the benchmark measures the device and the host's
//! kernel, without the exits from a real guest, which cost the same in every way.

mod guest;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(crate) mod kvm;
pub(crate) mod registers;
mod render;
mod ways;

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use clap::Args;
use serde::Serialize;
use whit_vpmu::host::{HostOptions, HostPerf, OverflowSignal};

use crate::args::{heading, rounds};
use crate::bench::{Bench, Figures, Say};
use crate::error::Error;
use crate::page::Page;
use guest::{Guest, Session};

pub(crate) use ways::{Events, Way};

/// The kernel forgets that there were events a second after the last one of a task has gone.
const FORGOTTEN: Duration = Duration::from_millis(1500);
/// Interrupts of a session that begins with the machine's first event.
pub(crate) const COLD_INTERRUPTS: u64 = 100;

const EXAMPLES: &str = "\
Examples:
  whit bench vpmu --interrupts 1000
  whit bench vpmu --kvm
  whit bench vpmu --registers";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Interrupts of each session
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help_heading = heading::RUNS)]
    interrupts: u64,

    /// Stops and starts of each counting session
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help_heading = heading::RUNS)]
    switches: u64,

    /// Sessions of each way
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    /// Events between two interrupts; nanoseconds for a clock
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(20_000..=1 << 40),
          help_heading = heading::EVENTS)]
    period: u64,

    /// Boot a small guest through /dev/kvm instead, which samples its vCPU's task clock
    #[arg(long, help_heading = heading::COMPARED)]
    kvm: bool,

    /// Count register accesses and exits of each kind of virtual PMU on simulated hardware instead
    #[arg(long, conflicts_with = "kvm", help_heading = heading::COMPARED)]
    registers: bool,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// The guest's events on the host, in words.
    pub(crate) events: String,
    /// Events between two interrupts.
    pub(crate) period: u64,
    /// Sessions of each way.
    pub(crate) rounds: usize,
    /// Opening the machine's first event of a task, and the next, in nanoseconds.
    pub(crate) opening: Vec<Opening>,
    /// Sampling ten events, multiplexed.
    pub(crate) sampling: Vec<Row>,
    pub(crate) counting: Vec<Row>,
    /// Sessions that begin without any event on the machine.
    pub(crate) cold: Vec<Cold>,
}

/// The first event of a task on the machine, and one after it.
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Opening {
    /// Where there was none for a while.
    pub(crate) first_ns: f64,
    /// While that one is open.
    pub(crate) next_ns: f64,
}

/// One way, over all its sessions.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Row {
    /// Way of using host events.
    pub(crate) way: Way,
    /// Length of each handler (sampling), or of each stop and start (counting), in nanoseconds.
    #[serde(skip)]
    pub(crate) lengths_ns: Vec<f64>,
    pub(crate) averages_ns: Vec<f64>,
    /// Minimum, median, average and maximum over all sessions, in nanoseconds.
    pub(crate) summary_ns: [f64; 4],
    /// Host events opened, after the start.
    pub(crate) opens: u64,
    /// Times that an event was used again instead.
    pub(crate) opens_avoided: u64,
    /// System calls of one handler and of its delivery.
    pub(crate) calls_per_operation: f64,
    /// Changes of the set of events.
    pub(crate) rotations: u64,
    /// Counters that stood still although they were enabled.
    pub(crate) failures: u64,
}

/// One way, in sessions that begin without any event on the machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Cold {
    /// Way of using host events.
    pub(crate) way: Way,
    /// The guest's waits for its PMU in each session, start and handlers, divided by its
    /// interrupts.
    pub(crate) averages_ns: Vec<f64>,
    /// The start of each session alone.
    pub(crate) starts_ns: Vec<f64>,
}

/// Figures of a guest in this process, or in KVM.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Vpmu {
    Process(Comparison),
    Registers(registers::Comparison),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Kvm(kvm::Comparison),
}

impl Figures for Vpmu {
    fn show(&self, page: &mut Page) {
        match self {
            Vpmu::Process(comparison) => render::show(comparison, page),
            Vpmu::Registers(comparison) => registers::show(comparison, page),
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            Vpmu::Kvm(comparison) => kvm::show(comparison, page),
        }
    }

    fn of_this_machine(&self) -> bool {
        !matches!(self, Vpmu::Registers(_))
    }

    fn succeeded(&self) -> bool {
        match self {
            Vpmu::Process(_) | Vpmu::Registers(_) => true,
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            Vpmu::Kvm(comparison) => comparison.agrees(),
        }
    }
}

impl Bench for Options {
    type Figures = Vpmu;

    fn run(&self, say: Say<'_>) -> Result<Vpmu, Error> {
        if self.kvm {
            return in_kvm(self, say);
        }
        if self.registers {
            return registers::compare().map(Vpmu::Registers);
        }
        compare(self, say).map(Vpmu::Process)
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn in_kvm(options: &Options, say: Say<'_>) -> Result<Vpmu, Error> {
    kvm::compare(options, say).map(Vpmu::Kvm)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn in_kvm(_: &Options, _: Say<'_>) -> Result<Vpmu, Error> {
    anyhow::bail!("--kvm boots a guest for x86-64 on Linux, and this is another machine")
}

fn compare(options: &Options, say: Say<'_>) -> Result<Comparison, Error> {
    let signal =
        OverflowSignal::block().map_err(|error| no_events(format!("block SIGIO: {error}")))?;
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
        events: events.words(),
        period: options.period,
        rounds: options.rounds,
        opening,
        sampling,
        counting,
        cold,
    })
}

fn no_events(reason: impl Display) -> Error {
    anyhow!(
        "cannot open events of this thread: {reason}; `whit doctor` says what this user may count"
    )
}

fn host(events: &Events, options: HostOptions) -> Result<HostPerf, Error> {
    HostPerf::for_this_thread(events.map(), options).map_err(no_events)
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
        Row { way, ..Row::default() }
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
