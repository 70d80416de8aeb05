//! Recordings of programs that do not exist, whose shares are known.
//!
//! Samples come in clusters: the program stays in one function for some samples before it changes to another, which does
//! not depend on the one before. The recordings are ordinary `perf.data` files, read by the code that reads all others.

use std::io::{Seek, Write};
use std::path::Path;

use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::feature::Features;
use whit_perfdata::reader::Recording;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_perfdata::writer::FileWriter;
use whit_profile::model::Profile;
use whit_profile::{ReadOptions, Reading, Samples};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_types::{Pid, Tid, TimestampNs};

use crate::error::{self, Error};
use crate::random::Random;
use crate::samples;

/// Functions of a program. The first one is that of the power test.
pub(super) const FUNCTIONS: usize = 40;

/// Share of the first function.
pub(super) const FIRST_SHARE: f64 = 0.05;

/// Functions that one function of the next level calls.
const GROUP: usize = 8;

const PERIOD_NS: u64 = 1_000_000;
const PID: i32 = 4242;
const EVENT_ID: u64 = 1;

/// A program: the share of each function, and how many samples it stays in one on average.
#[derive(Clone, Debug)]
pub(super) struct Program {
    shares: Vec<f64>,
    stay: f64,
}

impl Program {
    /// The first function has its share, the others fall off like the reciprocals of whole numbers.
    pub(super) fn new(stay: f64) -> Program {
        let weights: Vec<f64> = (1..FUNCTIONS).map(|rank| 1.0 / rank as f64).collect();
        let sum: f64 = weights.iter().sum();
        let others = weights.iter().map(|weight| (1.0 - FIRST_SHARE) * weight / sum);
        Program { shares: std::iter::once(FIRST_SHARE).chain(others).collect(), stay }
    }

    /// The same program, whose first function takes `factor` of its time.
    pub(super) fn with_first(&self, factor: f64) -> Program {
        let mut shares = self.shares.clone();
        shares[0] *= factor;
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        Program { shares, stay: self.stay }
    }

    /// The share of a function in a run without end.
    pub(super) fn share(&self, function: usize) -> f64 {
        self.shares[function]
    }

    /// Samples that fall into one stay scatter as fewer independent ones: so many count as one.
    pub(super) fn design_effect(&self) -> f64 {
        2.0 * self.stay - 1.0
    }

    /// The function of each sample of one run.
    pub(super) fn run(&self, samples: usize, random: &mut Random) -> Vec<u16> {
        let mut function = self.choose(random);
        let sample = |_| {
            if random.unit() * self.stay < 1.0 {
                function = self.choose(random);
            }
            function
        };
        (0..samples).map(sample).collect()
    }

    fn choose(&self, random: &mut Random) -> u16 {
        let mut rest = random.unit();
        let found = self.shares.iter().position(|share| {
            rest -= share;
            rest < 0.0
        });
        found.unwrap_or(FUNCTIONS - 1) as u16
    }
}

/// Address of a function without a symbol; reports name it so.
pub(super) fn address(function: usize) -> u64 {
    0x10_0000 + 0x100 * function as u64
}

/// Name of a function in reports.
pub(super) fn name(function: usize) -> String {
    format!("{:#018x}", address(function))
}

/// The profile of a recording with samples in these functions; `None` stands for a lost one.
pub(super) fn profile(functions: impl Iterator<Item = Option<u16>>) -> Result<Profile, Error> {
    let events = [samples::event(EVENT_ID)];
    let encoder = RecordEncoder::new(SampleLayout::new(&events[0].attr));
    let (mut records, mut lost, mut time) = (Vec::new(), 0, 0);
    for sample in functions {
        time += PERIOD_NS;
        match sample {
            Some(function) => push_sample(&mut records, usize::from(function), time),
            None => lost += 1,
        }
    }
    if lost > 0 {
        let task = Some((Pid(PID), Tid(PID)));
        let id = SampleId { pid_tid: task, time: Some(TimestampNs(time)), ..SampleId::default() };
        encoder.lost(&mut records, EVENT_ID, lost, None, id);
    }
    let path = Path::new("synthetic.data");
    let file = || -> std::io::Result<std::fs::File> {
        let mut writer = FileWriter::create(tempfile::tempfile()?, &events)?;
        writer.append(&records)?;
        let mut file = writer.finish(&Features::default())?;
        file.flush()?;
        file.rewind()?;
        Ok(file)
    };
    let file = file().map_err(error::file("write", path))?;
    let recording = Recording::from_file(path, file)?;
    let question = Samples { blocks: true, ..Samples::default() };
    Ok(Reading::open(&recording, &options()).answer(question)?)
}

/// Nothing of this machine is looked into: the program has no files.
fn options() -> ReadOptions {
    let nowhere = Path::new("/nonexistent/whit-bench");
    let dirs = DebugDirs { symfs: Some(nowhere.into()), ..DebugDirs::none() };
    let mut symbols = SymbolizerConfig::new(dirs);
    symbols.kernel.kallsyms = Some(nowhere.join("kallsyms"));
    symbols.perf_map_dirs.clear();
    ReadOptions::new(1, symbols)
}

fn push_sample(out: &mut Vec<u8>, function: usize, time: u64) {
    let caller = address(FUNCTIONS + function / GROUP);
    // Callers are looked up in front of the return address.
    let chain = [address(function), caller + 1, address(2 * FUNCTIONS) + 1];
    samples::push_sample(out, (PID as u64, PID as u64), time, &chain);
}
