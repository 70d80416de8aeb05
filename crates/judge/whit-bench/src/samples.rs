//! Recordings of many samples without stack dumps, of a program that does not exist.
//!
//! Real recorders take minutes for ten million samples, and hours for a hundred; a query reads both alike.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::{finished_round, push_record};
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::record::record_type;
use whit_perfdata::writer::FileWriter;
use whit_types::ByteSize;

use crate::disk;
use crate::error::{self, Error};
use crate::random::Random;

/// `PERF_CONTEXT_USER`: addresses of user space follow.
const USER: u64 = -512i64 as u64;
/// `PERF_RECORD_MISC_USER`.
const MISC_USER: u16 = 2;

const EVENT_ID: u64 = 1;
const PERIOD_NS: u64 = 1_000_000;
const PID: u64 = 4242;
const THREADS: usize = 4;
/// Innermost functions; each is called by one of few chains.
const FUNCTIONS: usize = 200;
/// Functions that one function of the next level calls.
const GROUP: usize = 4;
/// Callers of each innermost function.
const CALLERS: usize = 6;
/// Bytes that are written at once.
const CHUNK_BYTES: usize = 1 << 20;

/// The attribute of an event of samples with call chains.
pub(crate) fn attr() -> Attr {
    Attr {
        pmu_type: 1,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::CALLCHAIN,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
        sample_period_or_freq: PERIOD_NS,
        ..Attr::default()
    }
}

/// The event of [`attr`].
pub(crate) fn event(id: u64) -> EventDesc {
    EventDesc { attr: attr(), ids: vec![id], name: "cpu-clock:u".into() }
}

/// Appends a sample of [`attr`]. The chain has the innermost address first.
pub(crate) fn push_sample(out: &mut Vec<u8>, (pid, tid): (u64, u64), time: u64, chain: &[u64]) {
    let innermost = chain.first().copied().unwrap_or(0);
    let fields = [innermost, pid | tid << 32, time, chain.len() as u64 + 1, USER];
    let words = fields.iter().chain(chain);
    let body: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    push_record(out, record_type::SAMPLE, MISC_USER, &body);
}

/// Bytes of a sample with its header.
const SAMPLE_BYTES: u64 = 8 * (1 + 5 + 1 + CALLERS as u64);

/// The recording of so many samples below `directory`, made unless it is there; `say` gets a message before.
pub(crate) fn recording(
    directory: &Path,
    samples: u64,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, Error> {
    fs::create_dir_all(directory).map_err(error::file("create", directory))?;
    let path = directory.join(format!("samples-{samples}.data"));
    if !path.exists() {
        let size = ByteSize(samples.saturating_mul(SAMPLE_BYTES));
        disk::require(directory, size, "choose fewer --samples, or another --cache")?;
        say(&format!("writing {samples} samples ({size})"));
        let partial = path.with_extension("partial");
        write(&partial, samples).map_err(error::file("write", &partial))?;
        fs::rename(&partial, &path).map_err(error::file("rename to", &path))?;
    }
    Ok(path)
}

fn write(path: &Path, samples: u64) -> io::Result<()> {
    let mut writer = FileWriter::create(File::create(path)?, &[event(EVENT_ID)])?;
    let (mut records, mut random) = (Vec::with_capacity(2 * CHUNK_BYTES), Random::new(samples));
    for sample in 1..=samples {
        let thread = random.below(THREADS) as u64;
        let chain = chain(random.below(FUNCTIONS));
        push_sample(&mut records, (PID, PID + thread), sample * PERIOD_NS, &chain);
        if records.len() >= CHUNK_BYTES || sample == samples {
            records.extend(finished_round());
            writer.append(&records)?;
            records.clear();
        }
    }
    writer.finish(&Features::default())?;
    Ok(())
}

/// The addresses of an innermost function and of its callers; those of callers stand behind their calls.
fn chain(function: usize) -> [u64; CALLERS + 1] {
    let (mut place, mut level_begin, mut level_size) = (function, 0, FUNCTIONS);
    std::array::from_fn(|depth| {
        let address = 0x10_0000 + 0x100 * (level_begin + place) as u64 + u64::from(depth > 0);
        (level_begin, level_size) = (level_begin + level_size, level_size.div_ceil(GROUP));
        place /= GROUP;
        address
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::reader::Recording;
    use whit_profile::{ReadOptions, Reading, Samples};
    use whit_symbolize::{DebugDirs, SymbolizerConfig};

    #[test]
    fn all_samples_are_there_once_and_the_file_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let mut said = Vec::new();
        let mut make = || recording(root.path(), 30_000, &mut |text| said.push(text.to_owned()));
        let path = make().unwrap();
        assert_eq!(make().unwrap(), path);
        assert_eq!(said.len(), 1);
        let size = fs::metadata(&path).unwrap().len();
        assert!(size.abs_diff(30_000 * SAMPLE_BYTES) < 10_000, "{size}");
        let symbols = SymbolizerConfig::new(DebugDirs::none());
        let options = ReadOptions::new(1, symbols);
        let recording = Recording::open(&path).unwrap();
        let profile = Reading::open(&recording, &options).answer(Samples::default()).unwrap();
        assert_eq!(profile.events[0].samples, 30_000);
        assert_eq!(profile.threads.len(), THREADS);
    }

    #[test]
    fn chains_meet_in_one_outermost_function() {
        let chains: Vec<_> = (0..FUNCTIONS).map(chain).collect();
        let different = |depth: usize| {
            let mut places: Vec<_> = chains.iter().map(|chain| chain[depth]).collect();
            places.sort_unstable();
            places.dedup();
            places.len()
        };
        let levels: Vec<_> = (0..=CALLERS).map(different).collect();
        assert_eq!(levels, [200, 50, 13, 4, 1, 1, 1]);
    }

    #[test]
    fn more_than_the_disk_has_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let error = recording(root.path(), u64::MAX, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("--samples"), "{error}");
    }
}
