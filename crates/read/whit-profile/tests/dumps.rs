//! Recordings of large stack dumps: walks that go deep into them, and files that somebody cuts while they are read.

use crate::support::options;
use std::fs::File;
use std::io::{Cursor, Seek, Write, sink};
use std::iter::successors;
use std::path::Path;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type;
use whit_perfdata::writer::FileWriter;
use whit_profile::model::NodeId;
use whit_profile::script::{self, Script};
use whit_profile::{Reading, Samples};

const SAMPLES: u64 = 200;
const DUMP_BYTES: usize = 32 << 10;
const THREAD: u64 = 7 << 32 | 7;
const CODE: u64 = 0x40_0000;
const SP: u64 = 0x7fff_0000;
/// Frame records in the dump, in words; one lies at the end of the part that is read with the sample.
const FRAME_RECORDS: [u64; 5] = [4, 511, 2000, 3001, 4094];

fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Frame records that lead to each other: the caller's frame pointer, and the return address.
fn dump() -> Vec<u64> {
    let mut words = vec![0; DUMP_BYTES / 8];
    for (index, at) in FRAME_RECORDS.iter().enumerate() {
        let caller = FRAME_RECORDS.get(index + 1).map_or(0, |caller| SP + 8 * caller);
        words[*at as usize] = caller;
        words[*at as usize + 1] = CODE + 0x1000 * (index as u64 + 1);
    }
    words
}

/// Samples with an address, a time and a stack dump.
fn bytes() -> Vec<u8> {
    let fields = SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CALLCHAIN
        | SampleType::REGS_USER
        | SampleType::STACK_USER;
    let attr = Attr {
        pmu_type: 1,
        sample_type: fields,
        // Frame pointer, stack pointer and instruction pointer.
        sample_regs_user: 1 << 6 | 1 << 7 | 1 << 8,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
        ..Attr::default()
    };
    let events = [EventDesc { attr, ids: vec![1], name: "cpu-clock".into() }];
    let mut writer = FileWriter::create(Cursor::new(Vec::new()), &events).unwrap();
    let mut records = Vec::new();
    let mut map = to_bytes(&[THREAD, CODE, 1 << 20, 0]);
    map.extend(b"/nonexistent/whit\0\0\0\0\0\0\0");
    map.extend(to_bytes(&[THREAD, 0]));
    push_record(&mut records, record_type::MMAP, 2, &map);
    for number in 0..SAMPLES {
        let dump_bytes = DUMP_BYTES as u64;
        let registers = [SP + 8 * FRAME_RECORDS[0], SP, CODE + number];
        let head = [CODE + number, THREAD, number, 0, 2];
        let mut body = to_bytes(&head);
        body.extend(to_bytes(&registers));
        body.extend(to_bytes(&[dump_bytes]));
        body.extend(to_bytes(&dump()));
        body.extend(dump_bytes.to_le_bytes());
        push_record(&mut records, record_type::SAMPLE, 2, &body);
    }
    writer.append(&records).unwrap();
    let mut features = Features::default();
    features.set_string(Feature::ARCH, "x86_64");
    writer.finish(&features).unwrap().into_inner()
}

/// A recording, and its file.
fn recording(bytes: &[u8]) -> (Recording, File) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    let recording = Recording::from_file(Path::new("test.data"), file.try_clone().unwrap());
    (recording.unwrap(), file)
}

/// The addresses of call chains.
struct Chains;

impl script::Format for Chains {
    fn wants_chain(&self, _event: usize) -> bool {
        true
    }

    fn frame(&self, _event: usize, frame: &script::ScriptedFrame<'_>, out: &mut Vec<u8>) {
        out.extend(frame.address.0.to_le_bytes());
    }

    fn sample(&self, sample: &script::ScriptedSample<'_>, out: &mut Vec<u8>) {
        sample.chain.append(out);
    }
}

/// Cuts a file when so many percent of the reading is done.
fn cut_at(file: &File, percent: u64) -> impl Fn(u64, u64) + Sync {
    move |done, total| {
        if done * 100 > total * percent {
            file.set_len(100 << 10).unwrap();
        }
    }
}

#[test]
fn walks_find_the_frames_of_the_whole_dump() {
    let (whole, _) = recording(&bytes());
    for threads in [1, 2] {
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        let options = options(threads);
        let reading = Reading::open(&whole, &options);
        reading.answer(Script { format: &Chains, out: &mut out }).unwrap();
        for number in 0..SAMPLES {
            expected.push(CODE + number);
            expected.extend((1..=FRAME_RECORDS.len() as u64).map(|caller| CODE + 0x1000 * caller));
        }
        assert_eq!(out.len(), expected.len() * 8);
        assert!(out == to_bytes(&expected));
        let profile = reading.answer(Samples::default()).unwrap();
        let parent = |node: &NodeId| profile.nodes.get(node.0 as usize).map(|node| node.parent);
        for row in &profile.rows {
            let chain = successors(Some(row.node), parent).take_while(|node| *node != NodeId::NONE);
            assert_eq!(chain.count(), FRAME_RECORDS.len() + 1);
        }
        assert_eq!(profile.rows.len() as u64, SAMPLES);
    }
}

#[test]
fn a_file_that_is_cut_in_the_second_pass_is_an_error() {
    let bytes = bytes();
    for threads in [1, 2] {
        let options = options(threads);
        let (whole, file) = recording(&bytes);
        let reading = Reading::open(&whole, &options);
        let samples = |percent| {
            let cut = cut_at(&file, percent);
            reading.with_progress(&cut).answer(Samples::default())
        };
        let profile = samples(100).unwrap();
        assert_eq!(profile.events[0].samples, SAMPLES);

        let error = samples(60).unwrap_err().to_string();
        assert!(
            error.starts_with("the recording changed while it was read: cannot read"),
            "{error}"
        );

        let (whole, file) = recording(&bytes);
        let cut = cut_at(&file, 60);
        let reading = Reading::open(&whole, &options).with_progress(&cut);
        let error = reading.answer(Script { format: &Chains, out: &mut sink() });
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("the recording changed while it was read: cannot read"),
            "{error}"
        );
    }
}

#[test]
fn a_file_that_is_cut_in_the_first_pass_is_an_error_too() {
    let (whole, file) = recording(&bytes());
    let (options, cut) = (options(1), cut_at(&file, 20));
    let reading = Reading::open(&whole, &options).with_progress(&cut);
    let error = reading.answer(Samples::default()).map(|profile| profile.events[0].samples);
    // The second pass meets the end before the blocks that the first one has seen.
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("the recording changed while it was read: cannot read"), "{error}");
}
