//! Recordings of programs that do not exist, whose shares are known.
//!
//! Samples come in clusters: the program stays in one function for some samples before it changes to another, which does
//! not depend on the one before. The recordings are ordinary `perf.data` files, read by the code that reads all others.

use std::io::{Seek, Write};
use std::path::Path;

use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::{RecordEncoder, push_record};
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_perfdata::writer::FileWriter;
use whit_profile::model::Profile;
use whit_profile::{LoadOptions, load};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_types::{Pid, Tid, TimestampNs};

use crate::Error;
use crate::random::Random;

/// Functions of a program. The first one is that of the power test.
pub(super) const FUNCTIONS: usize = 40;

/// Share of the first function.
pub(super) const FIRST_SHARE: f64 = 0.05;

/// Functions that one function of the next level calls.
const GROUP: usize = 8;

const PERIOD_NS: u64 = 1_000_000;
const PID: i32 = 4242;
const EVENT_ID: u64 = 1;
/// `PERF_CONTEXT_USER`: addresses of user space follow.
const USER: u64 = -512i64 as u64;
/// `PERF_RECORD_MISC_USER`.
const MISC_USER: u16 = 2;

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

/// The profile of a recording of these samples; `None` stands for a lost one.
pub(super) fn profile(samples: impl Iterator<Item = Option<u16>>) -> Result<Profile, Error> {
    let attr = Attr {
        pmu_type: 1,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::CALLCHAIN,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
        sample_period_or_freq: PERIOD_NS,
        ..Attr::default()
    };
    let encoder = RecordEncoder::new(SampleLayout::new(&attr));
    let events = [EventDesc { attr, ids: vec![EVENT_ID], name: "cpu-clock:u".into() }];
    let (mut records, mut lost, mut time) = (Vec::new(), 0, 0);
    for sample in samples {
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
    let file = file().map_err(Error::file("write", path))?;
    let recording = Recording::from_file(path, file)?;
    Ok(load(&recording, &options(), &|_, _| {})?)
}

/// Nothing of this machine is looked into: the program has no files.
fn options() -> LoadOptions {
    let nowhere = Path::new("/nonexistent/whit-bench");
    let dirs = DebugDirs { symfs: Some(nowhere.into()), ..DebugDirs::none() };
    let mut symbols = SymbolizerConfig::new(dirs);
    symbols.kernel.kallsyms = Some(nowhere.join("kallsyms"));
    symbols.perf_map_dirs.clear();
    LoadOptions { blocks: true, ..LoadOptions::new(1, symbols) }
}

fn push_sample(out: &mut Vec<u8>, function: usize, time: u64) {
    let caller = address(FUNCTIONS + function / GROUP);
    // Callers are looked up in front of the return address.
    let chain = [USER, address(function), caller + 1, address(2 * FUNCTIONS) + 1];
    let task = u64::from(PID as u32) | u64::from(PID as u32) << 32;
    let fields = [address(function), task, time, chain.len() as u64];
    let words = fields.into_iter().chain(chain);
    let body: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    push_record(out, record_type::SAMPLE, MISC_USER, &body);
}
