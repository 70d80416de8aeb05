//! Recordings that keep names or binaries: the size of names, the time that they take, and the cost of copies of binaries
//! at the end of a recording.
//!
//! Each program is recorded once a round in each way: without copies (`-N`), with copies into an empty cache and into the
//! cache that this left, and with `--embed-symbols=hot` and `=all`. The first recording is then written as an archive. A
//! recorder states the time of copies in its ledger and that of names in its last line; the archive is measured from
//! outside.

mod loads;
mod render;
mod runs;

use serde::Serialize;
use whit_measure::summary::Spread;

pub use loads::Load;
pub use render::markdown;

use crate::Error;
use crate::disk;
use crate::peer::version;
use crate::scratch::Scratch;
use crate::setup::Setup;
use crate::system::System;
use whit_types::ByteSize;

/// Recordings of one program at a time are smaller.
const RECORDINGS_MAX: ByteSize = ByteSize(1 << 30);

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The recorded programs, in the order of the result.
    pub loads: Vec<Load>,
    /// Runs in each way.
    pub rounds: usize,
    /// How long each program runs.
    pub seconds: u32,
    /// Programs, directories and the limit.
    pub setup: Setup,
}

/// The whole result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The machine.
    pub system: System,
    /// The version of whit.
    pub version: String,
    /// Seconds of each program.
    pub seconds: u32,
    /// One for each program.
    pub programs: Vec<Program>,
}

/// The recordings of one program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Program {
    /// The program.
    pub load: Load,
    /// The options of `whit record`, apart from the way.
    pub options: String,
    /// One for each round.
    pub rounds: Vec<Round>,
    /// Why there are no more of them.
    pub failed: Option<String>,
}

/// The recordings of one round.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Round {
    /// Without copies of binaries.
    pub without: Kept,
    /// With copies, into an empty cache.
    pub first: Kept,
    /// With copies, again: most binaries have one.
    pub again: Kept,
    /// `--embed-symbols=hot`.
    pub hot: Embedded,
    /// `--embed-symbols=all`.
    pub all: Embedded,
    /// `whit export --archive` of the recording without copies.
    pub archive: Archived,
}

/// A recording, and how it ended.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Kept {
    /// The number of samples.
    pub samples: u64,
    /// Size of the recording.
    pub bytes: u64,
    /// From the moment when events stopped to the end of the recorder's work, by its ledger.
    pub end_ms: f64,
    /// The part of that for copies.
    pub copying_ms: f64,
    /// Binaries with a copy in the end.
    pub binaries: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

/// A recording with names.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Embedded {
    /// Size of the recording with its names.
    pub bytes: u64,
    /// Size of the names.
    pub names_kib: u64,
    /// Time that they took, once recording had ended.
    pub seconds: f64,
}

/// A recording as `whit export --archive` writes it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Archived {
    /// Its size.
    pub bytes: u64,
    /// Wall time.
    pub seconds: f64,
    /// CPU time.
    pub cpu_s: f64,
    /// Peak resident memory, mapped files included.
    pub peak_bytes: u64,
}

impl Program {
    /// A figure over all rounds.
    pub fn spread(&self, of: impl Fn(&Round) -> f64) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(of))
    }
}

impl Comparison {
    /// Whether every run of whit came through.
    pub fn whit_succeeded(&self) -> bool {
        self.programs.iter().all(|program| program.failed.is_none())
    }
}

/// Records and measures.
///
/// # Errors
/// There is no room for recordings, or a file cannot be read or removed.
pub fn measure(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let scratch = Scratch::new(&options.setup.directory)?;
    disk::require(&options.setup.directory, RECORDINGS_MAX, "or choose another --dir")?;
    let mut programs = Vec::new();
    for &load in &options.loads {
        scratch.clear()?;
        let mut program =
            Program { load, options: load.options().join(" "), rounds: Vec::new(), failed: None };
        for round in 0..options.rounds {
            say(&format!("{load}: round {} of {}", round + 1, options.rounds));
            match runs::round(load, options, &scratch)? {
                Ok(round) => program.rounds.push(round),
                Err(reason) => {
                    program.failed = Some(reason);
                    break;
                }
            }
        }
        programs.push(program);
    }
    let version = version(&options.setup.whit).unwrap_or_default();
    Ok(Comparison { system: System::detect(), version, seconds: options.seconds, programs })
}

#[cfg(test)]
mod tests;
