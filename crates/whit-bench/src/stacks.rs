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

use serde::Serialize;
use whit_perfdata::reader::Recording;

pub use agreement::Agreement;
pub use render::markdown;

use crate::Error;
use crate::disk;
use crate::named::go_by_name;
use crate::record::recorder::refusal;
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;
use memory::Memory;
use whit_measure::measure::{self, Outcome};
use whit_types::ByteSize;

/// Version of the JSON form; a change that readers must know of raises it.
pub const SCHEMA: u32 = 1;
/// Most frames of a stack in the kernel; longer ones are compared as far as that.
pub const FRAMES_MAX: usize = whit_bpf_engine::FRAMES_MAX;
/// Bytes of a sample beside its dump and its frames.
const SAMPLE_BYTES: u64 = 1024;

/// A workload of `bench/workloads`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Program {
    /// Signal handlers, linkage tables, vdso, a library that is loaded late, callbacks.
    C,
    /// Deep recursion without frame pointers, exceptions, templates.
    Cpp,
    /// The same, linked statically at a fixed address.
    StaticCpp,
    /// Deep generics, closures, trait objects.
    Rust,
    /// Goroutines, their scheduler and garbage collection.
    Go,
}

impl Program {
    /// Every program, in the order of printing.
    pub const ALL: [Program; 5] =
        [Program::C, Program::Cpp, Program::StaticCpp, Program::Rust, Program::Go];

    /// The program's file name.
    pub fn file_name(self) -> &'static str {
        match self {
            Program::C => "corners",
            Program::Cpp => "deep",
            Program::StaticCpp => "deep-static",
            Program::Rust => "deep-rs",
            Program::Go => "deep-go",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Program::C => "c",
            Program::Cpp => "c++",
            Program::StaticCpp => "c++-static",
            Program::Rust => "rust",
            Program::Go => "go",
        }
    }
}

go_by_name!(Program, "program", Program::ALL);

/// When stacks are taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Moments {
    /// At samples of an event.
    Samples {
        /// As perf names it: `cycles`.
        event: String,
        /// Samples a second.
        frequency_hz: u32,
    },
    /// At each context switch, while something else wants to run on each CPU.
    Switches,
}

/// Settings of the comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Programs, in the order of the result.
    pub programs: Vec<Program>,
    /// How long each runs.
    pub duration: Duration,
    /// When stacks are taken.
    pub moments: Moments,
    /// Bytes of the stack that are dumped.
    pub stack_bytes: u32,
    /// Programs, directories and the limit.
    pub setup: Setup,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Version of this document: [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub system: System,
    /// Options of `whit record`.
    pub options: String,
    /// One for each program.
    pub rows: Vec<Row>,
}

/// One program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The recorded program.
    pub program: Program,
    /// Agreement of one program's stacks.
    pub result: Option<Found>,
    /// Why there is nothing.
    pub refused: Option<String>,
}

/// Results of one recording.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Found {
    /// Samples with both stacks.
    pub samples: u64,
    /// Samples of one of both alone: of the other kind, the ring had no room.
    pub unpaired: u64,
    /// Agreement with framehop's stacks.
    pub framehop: Agreement,
    /// With whit's own offline unwinder.
    pub offline: Agreement,
    /// Samples that came before the recorder knew what their process had mapped: those in front of its
    /// first stack that led to the outermost frame on both sides.
    pub early: u64,
    /// With framehop, without the early samples.
    pub known_framehop: Agreement,
    /// With whit's own, without the early samples.
    pub known_offline: Agreement,
    /// Stacks that the program walked; it knew the others again.
    pub walks: u64,
    /// Walks by their end, as the recording's ledger has them.
    pub ended: BTreeMap<&'static str, u64>,
}

impl Comparison {
    /// Whether every program was recorded.
    pub fn succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.refused.is_none())
    }
}

/// Compares.
///
/// # Errors
/// Where a program cannot be run, a recording cannot be read, or there is no room for one.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let scratch = Scratch::new(&options.setup.directory)?;
    let way_out = "choose fewer --milliseconds, or another --dir";
    disk::require(&options.setup.directory, expected_bytes(options), way_out)?;
    let words = words(options);
    let mut rows = Vec::new();
    for &program in &options.programs {
        say(&program.to_string());
        rows.push(one_program(program, options, &words, &scratch)?);
    }
    Ok(Comparison { schema: SCHEMA, system: System::detect(), options: words.join(" "), rows })
}

/// An estimate from above of the size of one recording. The switches of a program are not known in
/// advance; such a run ends before the disk is full.
fn expected_bytes(options: &Options) -> ByteSize {
    let Moments::Samples { frequency_hz, .. } = options.moments else { return ByteSize(0) };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let frames = FRAMES_MAX as u64 * size_of::<u64>() as u64;
    let sample = u64::from(options.stack_bytes) + frames + SAMPLE_BYTES;
    let rate = u64::from(frequency_hz) * cpus * sample;
    disk::recorded_at_most(options.duration, Some(rate))
}

/// The options of `whit record`: no build ids, which take time after the end.
fn words(options: &Options) -> Vec<String> {
    let moments = match &options.moments {
        Moments::Samples { event, frequency_hz } => format!("-e {event} -F {frequency_hz}"),
        // PERF_COUNT_SW_CONTEXT_SWITCHES.
        Moments::Switches => {
            "--switch-events -m 32M -e software/config=0x3,period=1,name=dumps/".to_owned()
        }
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
    let ran = if options.moments == Moments::Switches { contended(run) } else { run() };
    let (run, printed) =
        ran.map_err(|source| Error::Run { program: options.setup.whit.clone(), source })?;
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
///
/// # Errors
/// Where the recording cannot be read.
pub fn compare_recording(path: &Path) -> Result<Found, Error> {
    let recording = Recording::open(path)?;
    let ledger = recording.features.ledger().unwrap_or_default().stacks;
    let ended = ledger.ends().map(|(end, walks)| (end.name(), walks)).collect();
    let mut found = Found { walks: ledger.walks, ended, ..Found::default() };
    let taken = pairs::take(&recording).map_err(|source| Error::Stream { source })?;
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
                found.framehop.add(&pair.told, &framehop);
                found.offline.add(&pair.told, &offline);
                if offline.is_complete && offline.frames == pair.told {
                    known.insert(pair.pid);
                }
                if known.contains(&pair.pid) {
                    found.known_framehop.add(&pair.told, &framehop);
                    found.known_offline.add(&pair.told, &offline);
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
