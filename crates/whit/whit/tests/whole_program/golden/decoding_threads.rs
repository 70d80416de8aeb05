//! A report does not depend on the number of threads that decode the recording.

use std::io::{Seek, Write};
use std::path::Path;

use whit_profile::{Reading, Samples};
use whit_view::hists::HistsOptions;
use whit_view::stdio::{self, StdioOptions};

use crate::golden::encode::{Attr, Id, Kernel, Recording, field, kind, marker, misc, record};
use crate::golden::library::{NAME, options};

/// Threads that were recorded, and samples of each: enough for a dozen blocks of the file.
const TASKS: i32 = 60;
const ROUNDS: u64 = 220;
/// Frames of each call chain.
const DEPTH: u64 = 25;
/// Loads with several threads; each time, they share the blocks differently.
const LOADS: usize = 12;

/// All functions of all tasks weigh the same, and later tasks have lower numbers.
fn many_ties() -> Vec<u8> {
    let fields = field::IP | field::TID | field::TIME | field::CALLCHAIN;
    let attr = Attr::software(0, fields);
    let kernel = Kernel::of(&attr);
    let tid_of = |task: i32| 1000 - task;
    let mut data = Vec::new();
    for task in 0..TASKS {
        let id = Id { pid: 1000, tid: tid_of(task), time: 1, cpu: 0, id: 11 };
        data.extend(kernel.comm("worker", false, id));
    }
    for time in 0..ROUNDS {
        for task in 0..TASKS {
            let ip = 0x40_0000 + 0x1000 * task as u64;
            data.extend(record(kind::SAMPLE, misc::USER, |b| {
                b.u64(ip).i32(1000).i32(tid_of(task)).u64(10 + time).u64(DEPTH + 1);
                b.u64(marker::USER);
                (0..DEPTH).for_each(|frame| _ = b.u64(ip + 8 * frame));
            }));
        }
    }
    Recording::new(vec![(attr, vec![11], "cpu-clock")], data).file()
}

/// The report as text and as JSON.
fn shown(recording: &whit_perfdata::reader::Recording, threads: usize) -> (Vec<u8>, Vec<u8>) {
    let options = options(threads);
    let profile = Reading::open(recording, &options).answer(Samples::default()).expect("load");
    let (mut text, mut json) = (Vec::new(), Vec::new());
    stdio::write_report(&mut text, &profile, &StdioOptions::default()).expect("write");
    whit_view::json::write_json(&mut json, &profile, &HistsOptions::default()).expect("write");
    (text, json)
}

#[test]
fn do_not_show_in_the_report() {
    let bytes = many_ties();
    assert!(bytes.len() > 10 * whit_perfdata::stream::BLOCK_SIZE_BYTES);
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(&bytes).and_then(|()| file.rewind()).expect("fill a temporary file");
    let recording =
        whit_perfdata::reader::Recording::from_file(Path::new(NAME), file).expect("open");
    let alone = shown(&recording, 1);
    assert!(alone.0.len() > 10_000 && alone.1.len() > 10_000);
    for load in 0..LOADS {
        let together = shown(&recording, 2 + load % 3);
        // Not assert_eq: the texts are long.
        assert!(alone.0 == together.0, "the text of load {load} differs");
        assert!(alone.1 == together.1, "the JSON of load {load} differs");
    }
}
