//! Binaries that ask for more than they are: reports over samples in them.
//!
//! Any user may run such a binary while another records. Each file is of one shape ([`shapes`]) and of a random size
//! up to 10 MB; some are damaged on top.

pub(crate) mod dwarf;
pub(crate) mod elf;
pub(crate) mod recording;
mod shapes;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Setting;
use crate::faces::{look, problem_beyond};
use crate::verdict::Verdict;

/// Files at full effort.
const FILES: u64 = 2_000;

/// Largest file, and the exponents of the sizes below.
const MAX_BYTES: usize = 10 << 20;
const SIZE_BITS: std::ops::RangeInclusive<u32> = 10..=23;

/// One file in so many is damaged.
const DAMAGED_OF: u64 = 4;

/// Most CPU time of a report over one such file.
const CPU_MAX: Duration = Duration::from_secs(10);

/// Reports that look up functions, inlined functions, lines, stacks and code.
const FACES: [&[&str]; 5] = [
    &["report", "--stdio", "-g"],
    &["report", "--json"],
    &["report", "--stdio", "-s", "dso,symbol,srcline"],
    &["script"],
    &["annotate", "--stdio"],
];

pub(crate) fn run(setting: &mut Setting) -> Result<Verdict> {
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    let (binary, data) = (scratch.path().join("hostile"), scratch.path().join("hostile.data"));
    std::fs::write(&data, recording::of(&binary)).context("cannot write a recording")?;
    let mut verdict = Verdict::default();
    let (mut slowest, mut largest) = ((Duration::ZERO, String::new()), (0, String::new()));
    for number in 0..setting.times(FILES) {
        let (name, bytes) = file(number, &mut setting.random);
        std::fs::write(&binary, &bytes).context("cannot write a binary")?;
        let face = FACES[number as usize % FACES.len()];
        let ended = look(&setting.whit, face, &data, scratch.path())?;
        let case = format!("{number}: {name}, {} bytes, {}", bytes.len(), face.join(" "));
        if ended.cpu > slowest.0 {
            slowest = (ended.cpu, case.clone());
        }
        if ended.peak_bytes > largest.0 {
            largest = (ended.peak_bytes, case.clone());
        }
        let bad =
            problem_beyond(CPU_MAX, face, &ended).or_else(|| nothing_said(face, &ended.stdout));
        if bad.is_some() {
            keep(setting, number, &binary)?;
        }
        verdict.attempt(bad.map(|why| format!("file {case}: {why}")));
    }
    let (cpu, of) = slowest;
    verdict.figures.push(format!("slowest: {:.2} s of CPU time, {of}", cpu.as_secs_f64()));
    verdict.figures.push(format!("largest: {} MiB, {}", largest.0 >> 20, largest.1));
    Ok(verdict)
}

/// A file of a shape, and its name. Shapes, sizes and faces come in all combinations.
fn file(number: u64, random: &mut fastrand::Rng) -> (String, Vec<u8>) {
    let (name, shape) = shapes::ALL[number as usize / FACES.len() % shapes::ALL.len()];
    let size = ((1usize << random.u32(SIZE_BITS)) + random.usize(0..1024)).min(MAX_BYTES);
    let mut bytes = shape(size, random);
    bytes.truncate(MAX_BYTES);
    if random.u64(0..DAMAGED_OF) > 0 {
        return (name.to_owned(), bytes);
    }
    let damage = damage(&mut bytes, random);
    (format!("{name} ({damage})"), bytes)
}

/// Damages a file in one way.
fn damage(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) -> &'static str {
    /// Where the header has the offset of the table of sections; the size of a row.
    const TABLE_AT: usize = 40;
    const ROW_BYTES: usize = 64;
    /// Type and flags, address, offset, size, size of an entry.
    const WORDS: [usize; 5] = [8, 16, 24, 32, 56];
    let table = bytes.get(TABLE_AT..).and_then(|rest| rest.first_chunk());
    let table = table.map_or(0, |word| u64::from_le_bytes(*word) as usize);
    match random.u8(0..3) {
        0 => {
            bytes.truncate(random.usize(0..bytes.len()));
            "cut"
        }
        1 => {
            for _ in 0..random.usize(1..100) {
                let at = random.usize(0..bytes.len());
                bytes[at] = random.u8(..);
            }
            "other bytes"
        }
        _ => {
            let rows = bytes.len().saturating_sub(table) / ROW_BYTES;
            let at = table + ROW_BYTES * random.usize(0..rows.max(1)) + WORDS[random.usize(0..5)];
            let huge = [0, 1, u64::MAX, 1 << 40, (1 << 63) - 7, bytes.len() as u64];
            let number = huge[random.usize(0..huge.len())];
            if let Some(word) = bytes.get_mut(at..at + 8) {
                word.copy_from_slice(&number.to_le_bytes());
            }
            "a wrong row of sections"
        }
    }
}

/// A report over these samples has lines, whatever the binary says.
fn nothing_said(face: &[&str], output: &[u8]) -> Option<String> {
    let is_report = matches!(face[0], "report" | "script");
    (is_report && output.is_empty()).then(|| "wrote no report".to_owned())
}

fn keep(setting: &Setting, number: u64, binary: &Path) -> Result<()> {
    let kept = setting.failures.join(format!("hostile-{number}"));
    std::fs::copy(binary, &kept).context("cannot keep a binary")?;
    Ok(())
}
