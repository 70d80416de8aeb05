//! `whit serve` over a recording: the first page, sums of random ranges of time, and memory.
//!
//! Each run starts a server, gets the page, and asks for ranges one after the other, as a page does while the user
//! drags. The server states how long it took for the sums (`Server-Timing`); the rest is the connection.

pub(crate) mod client;
mod server;

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use whit_measure::summary::Spread;
use whit_perfdata::reader::Recording as Opened;

use crate::Error;
use crate::markdown::{line_to, spread, table_to};
use crate::peer::version;
use crate::random::Random;
use crate::recording::{Cache, Recording};
use crate::system::System;
use client::get;
use server::Served;
use whit_types::ByteSize;

const MIB: f64 = (1u64 << 20) as f64;
/// The seed of the ranges, which are the same in each run.
const SEED: u64 = 0x5eed;
/// After this time without requests, memory is settled.
const SETTLING: Duration = Duration::from_secs(1);

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sizes of the recordings to make.
    pub sizes: Vec<ByteSize>,
    /// Recordings to use as they are.
    pub files: Vec<std::path::PathBuf>,
    /// Program to record, which takes `--seconds S`.
    pub workload: std::path::PathBuf,
    /// Where recordings are kept.
    pub cache: std::path::PathBuf,
    /// How recordings are made, and the whit that serves.
    pub recorder: crate::recording::Recorder,
    /// Servers that are started for each recording.
    pub rounds: usize,
    /// Ranges that each is asked for.
    pub ranges: usize,
}

/// The answers of one server.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// From the start of the program to the last byte of the page.
    pub first_page_s: f64,
    /// Size of the HTML with its data.
    pub page_bytes: u64,
    /// One for each range.
    pub ranges: Vec<RangeTime>,
    /// The most resident memory that there was.
    pub peak_bytes: u64,
    /// Resident memory in the end.
    pub settled_bytes: u64,
}

/// The time of one range.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RangeTime {
    /// Computing the sums, as the server states it.
    pub server_ms: f64,
    /// From the connection to the last byte.
    pub total_ms: f64,
}

/// A recording with the runs of its servers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FileResult {
    /// The file that was served.
    pub recording: Recording,
    /// Time from its first sample to its last.
    pub span_ns: u64,
    /// One for each round.
    pub runs: Vec<Run>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The machine.
    pub system: System,
    /// The version of whit.
    pub version: String,
    /// Ranges of each run.
    pub ranges: usize,
    /// One for each recording.
    pub files: Vec<FileResult>,
}

/// Serves each recording, and measures its servers.
///
/// # Errors
/// A recording cannot be made or read, or the server does not answer.
pub fn measure(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let whit = &options.recorder.whit;
    let mut files = Vec::new();
    for recording in recordings(options, say)? {
        let span_ns = span_ns(&recording.path)?;
        let mut runs = Vec::new();
        for round in 0..options.rounds {
            say(&format!(
                "{}: round {} of {}",
                recording.path.display(),
                round + 1,
                options.rounds
            ));
            runs.push(run(whit, &recording.path, &ranges(span_ns, options.ranges))?);
        }
        files.push(FileResult { recording, span_ns, runs });
    }
    Ok(Comparison {
        system: System::detect(),
        version: version(whit).unwrap_or_else(|why| why),
        ranges: options.ranges,
        files,
    })
}

fn recordings(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Vec<Recording>, Error> {
    let existing = options.files.iter().map(|path| Recording::existing(path));
    let mut recordings: Vec<Recording> = existing.collect::<Result<_, _>>()?;
    if !options.sizes.is_empty() {
        let cache = Cache::open(&options.cache, &options.workload, options.recorder.clone())?;
        cache.require_space(&options.sizes)?;
        for size in &options.sizes {
            recordings.push(cache.recording(*size, say)?);
        }
    }
    Ok(recordings)
}

fn span_ns(path: &Path) -> Result<u64, Error> {
    let (first, last) = Opened::open(path)?
        .features
        .sample_time()
        .ok_or_else(|| Error::NoSpan { path: path.to_owned() })?;
    Ok(last.0.saturating_sub(first.0).max(1))
}

/// Ranges within so many nanoseconds.
fn ranges(span_ns: u64, count: usize) -> Vec<(u64, u64)> {
    let mut random = Random::new(SEED);
    let mut moment = || (random.unit() * span_ns as f64) as u64;
    let range = |_| {
        let (one, other) = (moment(), moment());
        (one.min(other), one.max(other) + 1)
    };
    (0..count).map(range).collect()
}

fn run(whit: &Path, recording: &Path, ranges: &[(u64, u64)]) -> Result<Run, Error> {
    let begin = Instant::now();
    let server = Served::start(whit, recording)?;
    let page = get(server.address(), server.path())?;
    let first_page_s = begin.elapsed().as_secs_f64();
    let mut times = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        let begin = Instant::now();
        let answer = get(server.address(), &format!("{}range?from={from}&to={to}", server.path()))?;
        let total_ms = begin.elapsed().as_secs_f64() * 1e3;
        times.push(RangeTime { server_ms: answer.server_ms.unwrap_or(f64::NAN), total_ms });
    }
    sleep(SETTLING);
    Ok(Run {
        first_page_s,
        page_bytes: page.body_bytes,
        ranges: times,
        peak_bytes: server.memory_bytes("VmHWM:"),
        settled_bytes: server.memory_bytes("VmRSS:"),
    })
}

/// The result as text.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    line_to(&mut text, &format!("- {}", comparison.version));
    for file in &comparison.files {
        let size = ByteSize(file.recording.size_bytes);
        let (events, span_s) = (file.recording.events.join(", "), file.span_ns as f64 / 1e9);
        line_to(&mut text, &format!("- recording of {size}: {span_s:.1} s of {events}"));
    }
    line_to(
        &mut text,
        &format!("- {} random ranges a run; median (minimum–maximum)", comparison.ranges),
    );
    line_to(&mut text, "");
    let headings = [
        "recording",
        "first page s",
        "page MiB",
        "sums of a range ms",
        "range in all ms",
        "peak MiB",
        "settled MiB",
    ];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(comparison.files.iter().map(row));
    table_to(&mut text, &table, 1);
    text
}

fn row(file: &FileResult) -> Vec<String> {
    let of_runs = |value: &dyn Fn(&Run) -> f64| cell(file.runs.iter().map(value));
    let of_ranges = |value: &dyn Fn(&RangeTime) -> f64| {
        cell(file.runs.iter().flat_map(|run| run.ranges.iter().map(value)))
    };
    vec![
        ByteSize(file.recording.size_bytes).to_string(),
        of_runs(&|run| run.first_page_s),
        of_runs(&|run| run.page_bytes as f64 / MIB),
        of_ranges(&|range| range.server_ms),
        of_ranges(&|range| range.total_ms),
        of_runs(&|run| run.peak_bytes as f64 / MIB),
        of_runs(&|run| run.settled_bytes as f64 / MIB),
    ]
}

fn cell(values: impl Iterator<Item = f64>) -> String {
    Spread::of(values.filter(|value| value.is_finite()))
        .map_or_else(|| "not stated".to_owned(), |known| spread(&known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_within_the_recording_and_are_the_same_in_each_run() {
        let first = ranges(1_000_000, 50);
        assert_eq!(first, ranges(1_000_000, 50));
        assert!(first.iter().all(|(from, to)| from < to && *to <= 1_000_000), "{first:?}");
        assert!(first.iter().any(|(from, to)| to - from > 300_000));
    }

    #[test]
    fn a_server_that_states_no_time_is_no_server_of_zero() {
        let times = |server_ms| vec![RangeTime { server_ms, total_ms: 4.0 }];
        let run = |server_ms| Run {
            first_page_s: 2.0,
            page_bytes: 3 << 20,
            ranges: times(server_ms),
            peak_bytes: 600 << 20,
            settled_bytes: 200 << 20,
        };
        let recording = Recording {
            path: "x".into(),
            size_bytes: 2 << 30,
            events: vec!["cycles".into()],
            command: String::new(),
        };
        let file = |server_ms| FileResult {
            recording: recording.clone(),
            span_ns: 1_500_000_000,
            runs: vec![run(server_ms)],
        };
        let comparison = |server_ms| Comparison {
            system: System::default(),
            version: "whit 1".to_owned(),
            ranges: 1,
            files: vec![file(server_ms)],
        };
        let text = markdown(&comparison(1.5));
        assert!(text.contains("1.50 (1.50–1.50)") && text.contains("1.5 s of cycles"), "{text}");
        assert!(text.contains("600 (600–600)") && !text.contains("not stated"), "{text}");
        let text = markdown(&comparison(f64::NAN));
        assert!(text.contains("not stated") && text.contains("4.00 (4.00–4.00)"), "{text}");
    }
}
