//! Written streams are read back: plain, compressed as perf does it, cut, and corrupted.

use proptest::prelude::*;
use std::io::Cursor;
use std::path::Path;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::reader::{Form, OpenError, Recording};
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{Block, BlockReader, Missing, StreamError, StreamReader};
use whit_perfdata::writer::{FileWriter, PipeWriter};
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

fn event() -> EventDesc {
    EventDesc {
        attr: Attr {
            pmu_type: 1,
            sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        },
        ids: vec![11, 12],
        name: "cpu-clock:u".into(),
    }
}

fn features() -> Features {
    let mut features = Features::default();
    features.set_string(Feature::HOSTNAME, "host");
    features.set_event_desc(&[event()]);
    features
}

fn write_file(records: &[u8]) -> Vec<u8> {
    let mut writer = FileWriter::create(Cursor::new(Vec::new()), &[event()]).unwrap();
    writer.append(records).unwrap();
    writer.finish(&features()).unwrap().into_inner()
}

fn open(bytes: &[u8]) -> Result<Recording, OpenError> {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Recording::from_file(Path::new("test.data"), file)
}

#[test]
fn events_are_called_as_the_recording_says_and_else_by_their_attributes() {
    let named_with = |info: &[u8], pmu_type: u32, name: &str| {
        let attr = Attr { pmu_type, config: 3, ..Attr::default() };
        let event = EventDesc { attr, ids: vec![11], name: name.into() };
        let events = std::slice::from_ref(&event);
        let writer = FileWriter::create(Cursor::new(Vec::new()), events).unwrap();
        let mut features = Features::default();
        features.set_event_desc(events);
        features.set(Feature::META_INFO, info.to_vec());
        let recording = open(writer.finish(&features).unwrap().get_ref()).unwrap();
        recording.events[0].name.clone()
    };
    let name = |pmu_type: u32, name: &str| named_with(b"", pmu_type, name);
    let (hardware, tracepoint) = (0, 2);
    assert_eq!([name(hardware, "mine"), name(tracepoint, "mine:own")], ["mine", "mine:own"]);
    // It counts the host and its guests.
    assert_eq!(name(hardware, ""), "cache-misses:HG");
    // No format says which one it is.
    assert_eq!(name(tracepoint, ""), "2:0x3");
    // simpleperf writes no descriptions of events.
    let info = b"event_type_info\0cpu-cycles,0,0\nsched:sched_switch,2,3\0";
    assert_eq!(named_with(info, tracepoint, ""), "sched:sched_switch");
    assert_eq!(named_with(info, tracepoint, "mine:own"), "mine:own");
}

/// All blocks in a row, and how the stream ended.
fn read_all(recording: &Recording) -> (Vec<u8>, Result<u64, StreamError>) {
    let mut reader = StreamReader::new(recording.streams[0].clone());
    let (mut all, mut block) = (Vec::new(), Vec::new());
    let mut blocks = BlockReader::default();
    loop {
        match reader.next_block(&mut block) {
            Ok(Some(info)) => {
                if let Some(range) = info.range {
                    let mut again = Block::default();
                    blocks.read(&recording.streams[0], range, &mut again).unwrap();
                    assert_eq!(*again, block[..]);
                }
                all.extend(&block);
            }
            Ok(None) => break (all, Ok(reader.truncation().map_or(0, |cut| cut.size_bytes))),
            Err(error) => break (all, Err(error)),
        }
    }
}

fn records(spec: &[(u32, u16)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, (kind, words)) in spec.iter().enumerate() {
        let body: Vec<u8> =
            (0..*words).flat_map(|w| (u64::from(w) + index as u64).to_le_bytes()).collect();
        push_record(&mut out, *kind, 0, &body);
    }
    out
}

/// As perf compresses: one zstd stream for the whole recording, flushed whenever a ring was
/// drained, cut into records without regard to their contents.
fn compress(stream: &[u8], drains: usize, record_size: usize, kind: u32) -> Vec<u8> {
    let mut encoder = Encoder::new(1).unwrap();
    let mut out = Vec::new();
    for drained in stream.chunks(stream.len().div_ceil(drains).max(1)) {
        let mut buffer = vec![0; zstd::zstd_safe::compress_bound(drained.len()) + 1024];
        let mut output = OutBuffer::around(&mut buffer);
        let mut input = InBuffer::around(drained);
        while input.pos() < drained.len() {
            encoder.run(&mut input, &mut output).unwrap();
        }
        while encoder.flush(&mut output).unwrap() > 0 {}
        let produced = output.pos();
        for payload in buffer[..produced].chunks(record_size) {
            if kind == record_type::COMPRESSED2 {
                let mut body = (payload.len() as u64).to_le_bytes().to_vec();
                body.extend(payload);
                body.resize(body.len().next_multiple_of(8), 0);
                push_record(&mut out, kind, 0, &body);
            } else {
                push_record(&mut out, kind, 0, payload);
            }
        }
        out.extend(whit_perfdata::encode::finished_round());
    }
    out
}

fn without_rounds(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = stream;
    while let Some((record, tail)) = RawRecord::split(rest) {
        if record.header.kind != record_type::FINISHED_ROUND {
            out.extend(record.header.to_bytes());
            out.extend(record.body);
        }
        rest = tail;
    }
    out
}

fn spec() -> impl Strategy<Value = Vec<(u32, u16)>> {
    let kinds = prop::sample::select(vec![
        record_type::SAMPLE,
        record_type::MMAP2,
        record_type::COMM,
        record_type::FINISHED_ROUND,
        200,
    ]);
    prop::collection::vec((kinds, prop_oneof![0u16..20, 900u16..1100]), 0..200)
}

#[test]
fn header_and_features_come_back() {
    let recording = open(&write_file(&[])).unwrap();
    assert_eq!(recording.form, Form::File);
    assert_eq!(recording.events, [event()]);
    assert_eq!(recording.features, features());
    assert!(recording.warnings.is_empty());
}

/// A section with one tracepoint.
fn tracing_data(system: &str, format: &str) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0\0\x08\x00\x10\x00\x00header_page\0".to_vec();
    out.extend(0u64.to_le_bytes());
    out.extend(b"header_event\0");
    out.extend(0u64.to_le_bytes());
    out.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    out.extend(system.as_bytes());
    out.extend([0, 1, 0, 0, 0]);
    out.extend((format.len() as u64).to_le_bytes());
    out.extend(format.as_bytes());
    out.extend([0; 16]);
    out
}

#[test]
fn tracepoints_without_a_name_take_that_of_their_format() {
    let format = "name: sched_switch\nID: 372\nformat:\n\nprint fmt: \"\"\n";
    let name = |config| {
        let mut event = EventDesc { name: String::new(), ..event() };
        event.attr.pmu_type = whit_perfdata::attr::pmu_type::TRACEPOINT;
        event.attr.config = config;
        let mut features = features();
        features.set_event_desc(&[]);
        features.set(Feature::TRACING_DATA, tracing_data("sched", format));
        let writer = FileWriter::create(Cursor::new(Vec::new()), &[event]).unwrap();
        let bytes = writer.finish(&features).unwrap().into_inner();
        open(&bytes).unwrap().events[0].name.clone()
    };
    assert_eq!(name(372), "sched:sched_switch");
    assert_eq!(name(371), "2:0x173");
}

#[test]
fn a_pipe_carries_the_same() {
    let (mut writer, left_out) = PipeWriter::create(Vec::new(), &[event()], &features()).unwrap();
    let stream = records(&[(record_type::COMM, 3), (record_type::SAMPLE, 3)]);
    writer.append(&stream).unwrap();
    let recording = open(&writer.finish().unwrap()).unwrap();
    assert!(left_out.is_empty());
    assert_eq!(recording.form, Form::Pipe);
    assert_eq!(recording.events, [event()]);
    assert_eq!(recording.features.string(Feature::HOSTNAME).unwrap(), "host");
    let (all, end) = read_all(&recording);
    assert!(all.ends_with(&stream));
    assert_eq!(end.unwrap(), 0);
}

#[test]
fn streams_longer_than_a_block() {
    let stream = records(&vec![(record_type::SAMPLE, 1100); 400]);
    assert!(stream.len() > 3 * whit_perfdata::stream::BLOCK_SIZE_BYTES);
    let (all, end) = read_all(&open(&write_file(&stream)).unwrap());
    assert_eq!((all, end.unwrap()), (stream, 0));
}

#[test]
fn extreme_compression_stays_in_bounded_blocks() {
    let mut stream = Vec::new();
    for _ in 0..2000 {
        push_record(&mut stream, record_type::SAMPLE, 0, &[0; 60_000]);
    }
    let recording = open(&write_file(&compress(&stream, 1, 60_000, 81))).unwrap();
    let mut reader = StreamReader::new(recording.streams[0].clone());
    let (mut block, mut total) = (Vec::new(), 0);
    while reader.next_block(&mut block).unwrap().is_some() {
        assert!(block.len() < 2 * whit_perfdata::stream::BLOCK_SIZE_BYTES);
        total += without_rounds(&block).len();
    }
    assert_eq!(total, stream.len());
    assert_eq!(reader.record_counts().decompressed_bytes, stream.len() as u64);
}

#[test]
fn auxtrace_payloads_are_stepped_over() {
    let payload = vec![0xff; 3 << 20];
    let mut stream = records(&[(record_type::COMM, 2)]);
    let mut body = (payload.len() as u64).to_le_bytes().to_vec();
    body.resize(40, 0);
    push_record(&mut stream, record_type::AUXTRACE, 0, &body);
    stream.extend(&payload);
    stream.extend(records(&[(record_type::SAMPLE, 2)]));
    let (all, end) = read_all(&open(&write_file(&stream)).unwrap());
    assert_eq!(all, records_pair());
    assert_eq!(end.unwrap(), 0);
}

#[test]
fn many_small_payloads_are_read_once() {
    let mut stream = Vec::new();
    let mut expected: Vec<u8> = Vec::new();
    for _ in 0..50_000 {
        let pair = records_pair();
        stream.extend(&pair);
        expected.extend(&pair);
        whit_perfdata::encode::tracing_data(&mut stream, &[0xff; 8]);
    }
    assert!(stream.len() > 3 * whit_perfdata::stream::BLOCK_SIZE_BYTES);
    let recording = open(&write_file(&stream)).unwrap();
    let mut reader = StreamReader::new(recording.streams[0].clone());
    let (mut block, mut all) = (Vec::new(), Vec::<u8>::new());
    while reader.next_block(&mut block).unwrap().is_some() {
        all.extend(&block);
    }
    assert!(all == expected);
    assert_eq!(reader.record_counts().tracing_data, 50_000);
    assert_eq!(reader.truncation(), None);
}

#[test]
fn a_cut_payload_is_a_cut_at_its_record() {
    let mut stream = records(&[(record_type::COMM, 2)]);
    let cut_at = stream.len();
    whit_perfdata::encode::tracing_data(&mut stream, &[0xff; 800]);
    let bytes = write_file(&stream[..cut_at + 100]);
    let recording = open(&bytes).unwrap();
    let mut reader = StreamReader::new(recording.streams[0].clone());
    let mut block = Vec::new();
    while reader.next_block(&mut block).unwrap().is_some() {}
    let start = (bytes.len() - features_size() - cut_at - 100) as u64;
    let expected = Missing { offset: start + cut_at as u64, size_bytes: 100 };
    assert_eq!(reader.truncation(), Some(expected));
    assert_eq!(reader.record_counts().tracing_data, 0);
}

#[test]
fn directories_say_which_parts_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let warnings = || {
        let recording = Recording::open(folder.path())?;
        Ok::<Vec<_>, OpenError>(recording.warnings.iter().map(ToString::to_string).collect())
    };
    assert!(warnings().unwrap_err().to_string().contains("data: No such file"));
    write("data", &write_file(&[]));
    assert!(warnings().unwrap()[0].ends_with("there is no data.N beside data"));
    write("data.0", &records_pair());
    write("data.1", &[]);
    assert!(warnings().unwrap().is_empty());
    write("data.4", &records_pair());
    assert!(warnings().unwrap()[0].ends_with("data.2 is missing (2 missing in all)"));
    std::fs::create_dir(folder.path().join("data.5")).unwrap();
    assert!(warnings().unwrap()[1].contains("data.5 cannot be read: it is not a regular file"));
}

fn records_pair() -> Vec<u8> {
    let mut out = records(&[(record_type::COMM, 2)]);
    out.extend(records(&[(record_type::SAMPLE, 2)]));
    out
}

#[test]
fn a_killed_recorder_leaves_a_readable_file() {
    let stream = records(&[(record_type::COMM, 2), (record_type::SAMPLE, 3)]);
    // As if `finish` had never been called: the header still says a size of zero. Cut in the
    // middle of a record too.
    let mut bytes = write_file(&stream);
    bytes.truncate(bytes.len() - features_size() - 4);
    bytes[48..56].fill(0);
    let recording = open(&bytes).unwrap();
    assert_eq!(recording.warnings.len(), 1);
    let (all, end) = read_all(&recording);
    assert_eq!(all, records(&[(record_type::COMM, 2)]));
    assert_eq!(end.unwrap(), 28);
}

fn features_size() -> usize {
    features().iter().map(|(_, bytes)| bytes.len() + 16).sum()
}

#[test]
fn files_that_are_no_recordings_are_named() {
    let error = |bytes: &[u8]| open(bytes).unwrap_err().to_string();
    assert!(error(b"").contains("it is empty"));
    assert!(error(b"#!/bin/sh\n").contains("it starts with \"#!/bin/s\""));
    assert!(error(b"2ELIFREP\0\0\0\0\0\0\0\0").contains("big-endian"));
    assert!(error(b"PERFILE2").contains("cut short"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn plain_round_trip(spec in spec()) {
        let stream = records(&spec);
        let (all, end) = read_all(&open(&write_file(&stream)).unwrap());
        prop_assert_eq!(end.unwrap(), 0);
        prop_assert!(all == stream);
    }

    #[test]
    fn compressed_round_trip(
        spec in spec(), drains in 1usize..8, record_size in 1usize..5000, second in any::<bool>()
    ) {
        let stream = without_rounds(&records(&spec));
        let kind = if second { record_type::COMPRESSED2 } else { record_type::COMPRESSED };
        let (all, end) = read_all(&open(&write_file(&compress(&stream, drains, record_size, kind))).unwrap());
        prop_assert_eq!(end.unwrap(), 0);
        prop_assert!(without_rounds(&all) == stream);
    }

    /// A cut anywhere gives all whole records before it and says how much is missing.
    #[test]
    fn cut_anywhere(spec in spec(), at in any::<prop::sample::Index>()) {
        let stream = records(&spec);
        let bytes = write_file(&stream);
        let start = bytes.len() - features_size() - stream.len();
        let keep = start + at.index(stream.len() + 1);
        let recording = open(&bytes[..keep]).unwrap();
        let (all, end) = read_all(&recording);
        prop_assert!(stream.starts_with(&all));
        prop_assert_eq!(all.len() as u64 + end.unwrap(), (keep - start) as u64);
        prop_assert!(keep - start == stream.len() || !recording.warnings.is_empty());
    }

    /// Changed bytes give other records or an error, never a panic or an endless loop.
    #[test]
    fn corrupted_anywhere(
        spec in spec(),
        compressed in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut stream = records(&spec);
        if compressed {
            stream = compress(&without_rounds(&stream), 3, 777, record_type::COMPRESSED);
        }
        let mut bytes = write_file(&stream);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(recording) = open(&bytes) {
            let _ = recording.features.build_ids();
            let _ = recording.features.event_desc();
            let (all, _) = read_all(&recording);
            let events = whit_perfdata::event_table::EventTable::new(&recording.events);
            let mut rest = &all[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                let _ = whit_perfdata::record::SideBand::parse(record);
                let _ = events.parse_id_trailer(record);
                if let Some(layout) = events.event_of_sample(record.body).and_then(|e| events.layout(e)) {
                    let _ = layout.parse(record.body);
                }
                rest = tail;
            }
        }
    }
}
