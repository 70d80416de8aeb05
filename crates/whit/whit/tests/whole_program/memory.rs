//! Memory that views of many distinct places take, on a recording that is made here.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;
use std::time::Duration;

use whit_measure::measure;

use crate::support::whit;

/// Above seven eighths of a power of two: hash tables have just doubled, the worst of sizes.
const MANY: u64 = 240_000;
const FEW: u64 = 100;
/// Bytes of a table of context switches for one byte of a report. It was 1.6, and is 1.0.
const MOST: f64 = 1.25;
/// Samples of one run of the thread.
const RUN: u64 = 1000;
const LIMIT: Duration = Duration::from_secs(300);

const ATTR_BYTES: u32 = 112;
const HEADER_BYTES: u64 = 104;
/// IP, TID, TIME and CPU.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 128;
/// `mmap`, `comm`, `sample_id_all`, `context_switch`.
const FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 18 | 1 << 26;
const SAMPLE: u32 = 9;
const SWITCH: u32 = 14;
const USER: u16 = 2;
const SWITCH_OUT: u16 = 1 << 13;

fn put(out: &mut Vec<u8>, kind: u32, misc: u16, body: &[u64]) {
    out.extend(kind.to_le_bytes());
    out.extend(misc.to_le_bytes());
    out.extend((8 + 8 * body.len() as u16).to_le_bytes());
    body.iter().for_each(|word| out.extend(word.to_le_bytes()));
}

/// A thread that runs for a thousand samples at a time, each at the next of so many addresses. Gives the bytes.
fn put_records(out: &mut impl Write, samples: u64, places: u64) -> u64 {
    let (mut run, mut written) = (Vec::new(), 0);
    let ids = 7 << 32 | 7;
    for number in 0..samples {
        let time = 1_000_000 + number * 1000;
        if number % RUN == 0 {
            put(&mut run, SWITCH, 0, &[ids, time - 400, 0]);
        }
        put(&mut run, SAMPLE, USER, &[0x40_0000 + 16 * (number % places), ids, time, 0]);
        if number % RUN == RUN - 1 {
            put(&mut run, SWITCH, SWITCH_OUT, &[ids, time + 100, 0]);
        }
        if number % RUN == RUN - 1 || number == samples - 1 {
            out.write_all(&run).expect("write records");
            written += run.len() as u64;
            run.clear();
        }
    }
    written
}

fn header(records_bytes: u64) -> Vec<u8> {
    let (attr, data) = (HEADER_BYTES, HEADER_BYTES + u64::from(ATTR_BYTES) + 16);
    let attr_and_ids = u64::from(ATTR_BYTES) + 16;
    let mut out = b"PERFILE2".to_vec();
    let sections = [attr, attr_and_ids, data, records_bytes, 0, 0];
    let header = [HEADER_BYTES, attr_and_ids].into_iter().chain(sections).chain([0; 4]);
    header.for_each(|word| out.extend(word.to_le_bytes()));
    // cpu-clock, of a thousand microseconds each.
    out.extend(1u32.to_le_bytes());
    out.extend(ATTR_BYTES.to_le_bytes());
    let attr = [0, 1_000_000, SAMPLE_TYPE, 0, FLAGS].into_iter().chain([0; 8]).chain([0; 2]);
    attr.for_each(|word: u64| out.extend(word.to_le_bytes()));
    assert_eq!(out.len() as u64, data);
    out
}

/// The memory of this program counts as that of the programs which it starts: it holds no recording.
fn write(path: &Path, samples: u64, places: u64) {
    let mut file = File::create(path).expect("make a recording");
    file.write_all(&header(0)).expect("write a header");
    let bytes = put_records(&mut BufWriter::new(&mut file), samples, places);
    file.rewind().expect("go to the header");
    file.write_all(&header(bytes)).expect("write a header");
}

/// Most memory that the view took.
fn peak_bytes(data: &Path, view: &[&str]) -> f64 {
    let mut whit = whit();
    whit.args(view).args(["--threads", "1", "-i"]).arg(data);
    let measured = measure::run(whit, LIMIT).expect("run whit");
    assert!(measured.outcome == measure::Outcome::Success, "{view:?}: {measured:?}");
    measured.max_rss_bytes as f64
}

#[test]
fn switches_of_many_distinct_places_take_as_much_as_a_report() {
    let place = tempfile::tempdir().expect("make a directory");
    let of = |samples, view: &[&str]| {
        let data = place.path().join("perf.data");
        write(&data, samples, samples);
        peak_bytes(&data, view)
    };
    let grows = |view: &[&str]| of(MANY, view) - of(FEW, view);
    let report = grows(&["report", "--no-children", "-g", "none"]);
    let switches = grows(&["switches"]);
    // Something like 800 bytes for each place.
    assert!(report > 100.0 * MANY as f64, "{report}");
    assert!(switches < MOST * report, "{switches} and {report}");
}

/// SQLite sorts in 32 MiB before it writes to files. The rows would take more than a hundred megabytes.
const MOST_OF_STREAMS: f64 = 60e6;

#[test]
fn rows_of_a_query_take_no_memory() {
    let place = tempfile::tempdir().expect("make a directory");
    let of = |samples| {
        let data = place.path().join("perf.data");
        write(&data, samples, FEW);
        let sql = "SELECT COUNT(DISTINCT callsite_id), SUM(weight) FROM sample; SELECT SUM(dur) FROM sched;
            SELECT COUNT(*), MAX(dur) FROM wait; SELECT COUNT(*) FROM top_functions";
        peak_bytes(&data, &["query", "-c", sql])
    };
    let (few, many) = (of(20 * RUN), of(1500 * RUN));
    assert!(many - few < MOST_OF_STREAMS, "{few} and {many}");
}
