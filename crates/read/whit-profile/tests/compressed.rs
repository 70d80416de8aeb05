//! The same records, plain and compressed in every way, give the same profile and the same samples
//! in the same order, with one thread and with several.

use crate::support::options;
use proptest::prelude::*;
use std::io::{Cursor, Seek, Write};
use std::path::Path;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::{finished_round, push_record};
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type;
use whit_perfdata::writer::FileWriter;
use whit_profile::script::{self, Script};
use whit_profile::{Reading, Samples};
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

fn recording(stream: &[u8]) -> Recording {
    let attr = Attr {
        pmu_type: 1,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::RAW,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
        sample_period_or_freq: 1,
        ..Attr::default()
    };
    let events = [EventDesc { attr, ids: vec![1], name: "cpu-clock".into() }];
    let mut writer = FileWriter::create(Cursor::new(Vec::new()), &events).unwrap();
    writer.append(stream).unwrap();
    let bytes = writer.finish(&Features::default()).unwrap().into_inner();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    file.rewind().unwrap();
    Recording::from_file(Path::new("test.data"), file).unwrap()
}

/// Text of samples: their times and addresses.
struct Plainly;

impl script::Format for Plainly {
    fn wants_chain(&self, _event: usize) -> bool {
        false
    }

    fn frame(&self, _event: usize, _frame: &script::ScriptedFrame<'_>, _out: &mut Vec<u8>) {}

    fn sample(&self, sample: &script::ScriptedSample<'_>, out: &mut Vec<u8>) {
        out.extend(sample.start.time.0.to_le_bytes());
        out.extend(sample.sample.ip.map_or(0, |ip| ip.0).to_le_bytes());
    }
}

/// The content of a recording, apart from its form.
#[derive(PartialEq)]
struct Given {
    rows: Vec<(u32, u64, u64)>,
    samples: Vec<u8>,
    warnings: String,
}

fn given(recording: &Recording, threads: usize) -> Given {
    let options = options(threads);
    let reading = Reading::open(recording, &options);
    let profile = reading.answer(Samples::default()).unwrap();
    let mut rows: Vec<_> = profile
        .rows
        .iter()
        .map(|row| {
            let frame = profile.nodes[row.node.index()].frame;
            let address = profile.frames[frame.index()].address.0;
            (profile.threads[row.thread.index()].tid.0 as u32, address, row.samples)
        })
        .collect();
    rows.sort_unstable();
    let mut samples = Vec::new();
    let question = Script { format: &Plainly, out: &mut samples };
    let summary = reading.answer(question).unwrap();
    assert_eq!(samples.len() as u64, summary.samples * 16);
    Given { rows, samples, warnings: format!("{:?}", profile.warnings) }
}

/// Samples of different sizes, roughly in order of time.
fn records(spec: &[(u8, u16)]) -> Vec<Vec<u8>> {
    let made = spec.iter().zip(0u64..).map(|((late, words), index)| {
        let mut body = (0x1000 + index % 50).to_le_bytes().to_vec();
        body.extend([7u32, 7 + u32::from(late % 3)].iter().flat_map(|id| id.to_le_bytes()));
        body.extend((1_000_000 + index * 10 - u64::from(*late) * 20).to_le_bytes());
        let raw_bytes = u32::from(*words) * 8 + 4;
        body.extend(raw_bytes.to_le_bytes());
        body.extend((0..raw_bytes).map(|at| ((at as u64 * index * 0x9e37) >> 7) as u8));
        let mut out = Vec::new();
        push_record(&mut out, record_type::SAMPLE, 0, &body);
        out
    });
    made.collect()
}

/// How records are compressed.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Frames of so many records.
    Frames(usize),
    /// The same, with plain records and rounds in between.
    Mixed(usize),
    /// Frames that begin and end anywhere.
    Torn(usize),
    /// In turn a frame of so many records, and two that meet inside a record.
    Pairs(usize),
    /// One frame, flushed now and then.
    Endless(usize),
}

fn wrap(out: &mut Vec<u8>, compressed: &[u8]) {
    for payload in compressed.chunks(65_000) {
        push_record(out, record_type::COMPRESSED, 0, payload);
    }
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 1).unwrap()
}

fn compressed(records: &[Vec<u8>], form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    match form {
        Form::Frames(size) => {
            records.chunks(size).for_each(|part| wrap(&mut out, &frame(&part.concat())));
        }
        Form::Mixed(size) => {
            for part in records.chunks(size) {
                let (plain, rest) = part.split_at(part.len() / 3);
                out.extend(plain.concat());
                wrap(&mut out, &frame(&rest.concat()));
                out.extend(finished_round());
            }
        }
        Form::Torn(size) => {
            let parts = records.concat();
            parts.chunks(size * 777).for_each(|part| wrap(&mut out, &frame(part)));
        }
        Form::Pairs(size) => {
            for (part, own) in records.chunks(size).zip([true, false].into_iter().cycle()) {
                let part = part.concat();
                let (front, back) = part.split_at(if own { 0 } else { part.len() * 2 / 3 });
                wrap(&mut out, &frame(front));
                wrap(&mut out, &frame(back));
            }
        }
        Form::Endless(size) => {
            let mut encoder = Encoder::new(1).unwrap();
            for part in records.chunks(size) {
                let part = part.concat();
                let mut buffer = vec![0; zstd::zstd_safe::compress_bound(part.len()) + 1024];
                let (mut input, mut output) =
                    (InBuffer::around(&part), OutBuffer::around(&mut buffer));
                while input.pos() < part.len() {
                    encoder.run(&mut input, &mut output).unwrap();
                }
                while encoder.flush(&mut output).unwrap() > 0 {}
                wrap(&mut out, &output.as_slice()[..output.pos()]);
            }
        }
    }
    out
}

fn form() -> impl Strategy<Value = Form> {
    (0..5, 1usize..60).prop_map(|(form, size)| match form {
        0 => Form::Frames(size),
        1 => Form::Mixed(size),
        2 => Form::Torn(size),
        3 => Form::Pairs(size),
        _ => Form::Endless(size),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn compression_changes_nothing(
        spec in prop::collection::vec((any::<u8>(), prop_oneof![4 => 0u16..50, 1 => 0u16..8000]), 0..400),
        form in form(),
    ) {
        let records = records(&spec);
        let plain = given(&recording(&records.concat()), 1);
        prop_assert_eq!(plain.samples.len(), 16 * records.len());
        let recording = recording(&compressed(&records, form));
        for threads in [1, 3] {
            prop_assert!(given(&recording, threads) == plain, "{} threads", threads);
        }
    }

    /// The reported defects do not depend on the number of threads either.
    #[test]
    fn damage_is_the_same_for_all_threads(
        spec in prop::collection::vec((any::<u8>(), 0u16..600), 1..200),
        form in form(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut stream = compressed(&records(&spec), form);
        for (at, value) in changes {
            let at = at.index(stream.len());
            stream[at] = value;
        }
        let recording = recording(&stream);
        prop_assert!(given(&recording, 1) == given(&recording, 3));
    }
}
