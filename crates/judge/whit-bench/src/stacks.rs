//! Whether stacks that are unwound in the kernel are right: the comparison behind `whit bench stacks`.
//!
//! Programs of several languages are recorded with the BPF engine and with perf's dump of the same
//! samples. Each dump is unwound offline, by framehop, an unwinder that others wrote, and by whit's own;
//! then frames are compared one by one.

mod agreement;
mod memory;
mod pairs;
mod render;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use whit_perfdata::reader::Recording;

pub(crate) use agreement::Agreement;

use crate::args::{heading, milliseconds};
use crate::bench::{Bench, Say};
use crate::core_pmu;
use crate::disk;
use crate::error::{self, Error};
use crate::named::named;
use crate::record::recorder::refusal;
use crate::scratch::Scratch;
use crate::setup::Setup;
use memory::Memory;
use whit_measure::measure::{self, Outcome};
use whit_types::ByteSize;

/// Most frames of a stack in the kernel; longer ones are compared as far as that.
pub(crate) const FRAMES_MAX: usize = whit_bpf_engine::FRAMES_MAX;
/// Bytes of a sample beside its dump and its frames.
const SAMPLE_BYTES: u64 = 1024;

/// A workload of `bench/workloads`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum Program {
    /// Signal handlers, linkage tables, vdso, a library that is loaded late, callbacks.
    C,
    /// Deep recursion without frame pointers, exceptions, templates.
    #[value(name = "c++")]
    Cpp,
    /// The same, linked statically at a fixed address.
    #[value(name = "c++-static")]
    StaticCpp,
    /// Deep generics, closures, trait objects.
    Rust,
    /// Goroutines, their scheduler and garbage collection.
    Go,
}

impl Program {
    /// The program's file name.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Program::C => "corners",
            Program::Cpp => "deep",
            Program::StaticCpp => "deep-static",
            Program::Rust => "deep-rs",
            Program::Go => "deep-go",
        }
    }
}

named!(Program);

const EXAMPLES: &str = "\
Examples:
  whit bench stacks --programs c,rust --milliseconds 1000
  whit bench stacks --switches";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Programs, separated by commas
    #[arg(long, value_name = "PROGRAMS", value_delimiter = ',', default_values_t = Program::value_variants(),
          hide_possible_values = true,
          help_heading = heading::COMPARED)]
    programs: Vec<Program>,

    /// Milliseconds that each program runs
    #[arg(long = "milliseconds", value_name = "MS", default_value = "2000",
          value_parser = milliseconds(1..=600_000), help_heading = heading::RUNS)]
    duration: Duration,

    /// Event to sample [default: cycles where there is a PMU, else cpu-clock]
    #[arg(short, long, value_name = "EVENT", default_value_t = core_pmu::default_event(),
          hide_default_value = true, help_heading = heading::EVENTS)]
    event: String,

    /// Samples a second
    #[arg(short = 'F', long = "frequency", visible_alias = "freq", value_name = "HZ",
          default_value_t = 1999, value_parser = clap::value_parser!(u32).range(1..=100_000),
          help_heading = heading::EVENTS)]
    frequency_hz: u32,

    /// Compare the stacks of context switches in place of samples, while another program runs on each
    /// CPU
    #[arg(long, conflicts_with_all = ["event", "frequency_hz"], help_heading = heading::COMPARED)]
    switches: bool,

    /// Bytes of the stack in each dump
    #[arg(long = "stack-size", value_name = "BYTES", default_value_t = 16384,
          value_parser = clap::value_parser!(u32).range(8..=65528),
          help_heading = heading::EVENTS)]
    stack_bytes: u32,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    /// Options of `whit record`.
    pub(crate) options: String,
    /// One for each program.
    pub(crate) rows: Vec<Row>,
}

/// One program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) program: Program,
    /// Agreement of one program's stacks.
    pub(crate) result: Option<Found>,
    /// Why there is nothing.
    pub(crate) refused: Option<String>,
}

/// Results of one recording.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(crate) struct Found {
    /// Samples with both stacks.
    pub(crate) samples: u64,
    /// Samples of one of both alone: of the other kind, the ring had no room.
    pub(crate) unpaired: u64,
    /// Agreement with framehop's stacks.
    pub(crate) framehop: Agreement,
    /// With whit's own offline unwinder.
    pub(crate) offline: Agreement,
    /// Samples that came before the recorder knew what their process had mapped: those in front of its
    /// first stack that led to the outermost frame on both sides.
    pub(crate) early: u64,
    /// With framehop, without the early samples.
    pub(crate) known_framehop: Agreement,
    /// With whit's own, without the early samples.
    pub(crate) known_offline: Agreement,
    /// Stacks that the program walked; it knew the others again.
    pub(crate) walks: u64,
    /// Walks by their end, as the recording's ledger has them.
    pub(crate) ended: BTreeMap<&'static str, u64>,
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        let programs: Vec<_> = self.programs.iter().map(|program| program.file_name()).collect();
        self.setup.require(&programs)?;
        let scratch = Scratch::new(&self.setup.directory)?;
        let way_out = "choose fewer --milliseconds, or another --dir";
        disk::require(&self.setup.directory, expected_bytes(self), way_out)?;
        let words = words(self);
        let mut rows = Vec::new();
        for &program in &self.programs {
            say(&program.to_string());
            rows.push(one_program(program, self, &words, &scratch)?);
        }
        Ok(Comparison { options: words.join(" "), rows })
    }
}

/// An estimate from above of the size of one recording. The switches of a program are not known in
/// advance; such a run ends before the disk is full.
fn expected_bytes(options: &Options) -> ByteSize {
    if options.switches {
        return ByteSize(0);
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let frames = FRAMES_MAX as u64 * size_of::<u64>() as u64;
    let sample = u64::from(options.stack_bytes) + frames + SAMPLE_BYTES;
    let rate = u64::from(options.frequency_hz) * cpus * sample;
    disk::recorded_at_most(options.duration, Some(rate))
}

/// The options of `whit record`: no build ids, which take time after the end.
fn words(options: &Options) -> Vec<String> {
    let Options { event, frequency_hz, .. } = options;
    let moments = match options.switches {
        // PERF_COUNT_SW_CONTEXT_SWITCHES.
        true => "--switch-events -m 32M -e software/config=0x3,period=1,name=dumps/".to_owned(),
        false => format!("-e {event} -F {frequency_hz}"),
    };
    let text = format!(
        "--engine=bpf -N -B --sample-cpu {moments} --call-graph dwarf,{}",
        options.stack_bytes
    );
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn one_program(
    program: Program,
    options: &Options,
    words: &[String],
    scratch: &Scratch,
) -> Result<Row, Error> {
    scratch.clear()?;
    let output = scratch.path().join("recording");
    let mut command = Command::new(&options.setup.whit);
    command.arg("record").args(words).arg("-o").arg(&output).arg("--");
    command.arg(options.setup.workloads.join(program.file_name()));
    command.args(["--seconds", &options.duration.as_secs_f64().to_string()]);
    let watch = || disk::full(scratch.path());
    let run = || measure::run_watched(command, options.setup.limit, &watch);
    let ran = if options.switches { contended(run) } else { run() };
    let (run, printed) = ran.map_err(error::run(&options.setup.whit))?;
    let refused = match run.outcome {
        Outcome::Success => None,
        Outcome::TimedOut { limit_s } => Some(format!("took more than {limit_s} s")),
        Outcome::Failed { .. } => Some(refusal(&printed.stderr)),
    };
    let result = match refused {
        None => Some(compare_recording(&output)?),
        Some(_) => None,
    };
    scratch.clear()?;
    Ok(Row { program, result, refused })
}

/// Runs something while a thread on each CPU wants to run too, so that the scheduler takes programs off
/// wherever they are.
fn contended<T>(run: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = run();
        is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// Compares the stacks of a recording that has both.
pub(crate) fn compare_recording(path: &Path) -> Result<Found, Error> {
    let recording = Recording::open(path)?;
    let ledger = recording.features.ledger().unwrap_or_default().stacks;
    let ended = ledger.ends().map(|(end, walks)| (end.name(), walks)).collect();
    let mut found = Found { walks: ledger.walks, ended, ..Found::default() };
    let taken = pairs::take(&recording)?;
    found.unpaired = taken.unpaired;
    let (mut memory, mut known) = (Memory::default(), HashSet::new());
    for entry in &taken.entries {
        match entry {
            pairs::Entry::SideBand { time, bytes } => {
                if let Some(pid) = memory.record(bytes, *time) {
                    known.remove(&pid);
                }
            }
            pairs::Entry::Pair(pair) => {
                let Some((framehop, offline)) = memory.unwind(pair) else { continue };
                found.samples += 1;
                found.framehop.add(&pair.frames, &framehop);
                found.offline.add(&pair.frames, &offline);
                if offline.is_complete && offline.frames == pair.frames {
                    known.insert(pair.pid);
                }
                if known.contains(&pair.pid) {
                    found.known_framehop.add(&pair.frames, &framehop);
                    found.known_offline.add(&pair.frames, &offline);
                } else {
                    found.early += 1;
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
