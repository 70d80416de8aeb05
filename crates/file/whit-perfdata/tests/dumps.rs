//! Recordings with large stack dumps: whichever part of them is read at once, the samples are the same.

use proptest::prelude::*;
use std::fs::File;
use std::io::{Cursor, Seek, Write};
use std::path::Path;
use std::sync::Arc;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::push_record;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::Sample;
use whit_perfdata::stream::{Block, BlockInfo, BlockReader, Stream, StreamReader};
use whit_perfdata::writer::FileWriter;

const REGISTERS: u64 = 0b11;

/// Samples of one event have dumps, those of the other have none.
fn events() -> [EventDesc; 2] {
    let fields = SampleType::IDENTIFIER | SampleType::IP | SampleType::CALLCHAIN;
    let with_stack = fields | SampleType::REGS_USER | SampleType::STACK_USER | SampleType::WEIGHT;
    let event = |sample_type, id| EventDesc {
        attr: Attr {
            pmu_type: 1,
            sample_type,
            sample_regs_user: REGISTERS,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        },
        ids: vec![id],
        name: "cpu-clock".into(),
    };
    [event(with_stack, 1), event(fields, 2)]
}

fn push_words(out: &mut Vec<u8>, words: &[u64]) {
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// A record of the stream.
#[derive(Clone, Debug)]
enum Item {
    /// Words of its call chain and of its dump, and bytes of the dump in use.
    Dumped(u16, u16, u16),
    /// The same without a dump.
    Bare(u16),
    /// A sample of no event.
    Orphan(u16),
    /// A sample whose dump is said to be longer than the record.
    Lying(u16),
    Other(u16),
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        8 => (0u16..120, 0u16..8000, any::<u16>()).prop_map(|(a, b, c)| Item::Dumped(a, b, c)),
        2 => (0u16..900).prop_map(Item::Bare),
        1 => (0u16..3000).prop_map(Item::Orphan),
        1 => (0u16..3000).prop_map(Item::Lying),
        2 => (0u16..400).prop_map(Item::Other),
    ]
}

fn push(item: &Item, salt: u64, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    let filler = |words: u16| (0..u64::from(words)).map(|at| at << 20 | salt).collect::<Vec<_>>();
    let head = |body: &mut Vec<u8>, id: u64, chain: u16| {
        push_words(body, &[id, 0x1000 + salt, u64::from(chain)]);
        push_words(body, &filler(chain));
    };
    let kind = if let Item::Other(_) = item { record_type::COMM } else { record_type::SAMPLE };
    match *item {
        Item::Dumped(chain, words, used) => {
            head(&mut body, 1, chain);
            push_words(&mut body, &[2, 0x7000, salt, u64::from(words) * 8]);
            push_words(&mut body, &filler(words));
            let used = u64::from(used).min(u64::from(words) * 8);
            push_words(&mut body, &[used, 77][usize::from(words == 0)..]);
        }
        Item::Bare(chain) => head(&mut body, 2, chain),
        Item::Orphan(words) => push_words(&mut body, &[&[3, 4][..], &filler(words)].concat()),
        Item::Lying(words) => {
            head(&mut body, 1, 3);
            push_words(&mut body, &[2, 0x7000, salt, 60_000]);
            push_words(&mut body, &filler(words));
        }
        Item::Other(words) => push_words(&mut body, &filler(words)),
    }
    push_record(out, kind, 0, &body);
}

/// A finished recording, and where its records begin and end.
fn file(items: &[Item]) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut records = Vec::new();
    for (salt, item) in items.iter().enumerate() {
        push(item, salt as u64, &mut records);
    }
    let mut writer = FileWriter::create(Cursor::new(Vec::new()), &events()).unwrap();
    writer.append(&records).unwrap();
    let bytes = writer.finish(&Features::default()).unwrap().into_inner();
    let start = bytes.windows(records.len()).position(|part| part == records).unwrap();
    (bytes, start..start + records.len())
}

fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn open(file: File) -> (Stream, Arc<EventTable>) {
    let recording = Recording::from_file(Path::new("test.data"), file).unwrap();
    (recording.streams[0].clone(), Arc::new(EventTable::new(&recording.events)))
}

/// Blocks and their bytes, and all that the reader says at the end.
type Reading = (Vec<(BlockInfo, Vec<u8>)>, String);

fn read(mut reader: StreamReader) -> Reading {
    let (mut blocks, mut block) = (Vec::new(), Vec::new());
    let error = loop {
        match reader.next_block(&mut block) {
            Ok(Some(info)) => blocks.push((info, block.clone())),
            Ok(None) => break String::new(),
            Err(error) => break format!("{error} {}", error.lost_bytes()),
        }
    };
    let (cut, holes) = (reader.truncation(), reader.holes());
    (blocks, format!("{error} {cut:?} {holes:?} {:?}", reader.record_counts()))
}

/// The same records, but for the bytes of dumps that were left out. Gives back how many those were.
fn compare(whole: &[u8], parts: &Block, events: &EventTable, kept: usize) -> usize {
    assert_eq!(whole.len(), parts.len());
    let (mut rest, mut left_out, mut dump) = (whole, 0, Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        let (other, _) = RawRecord::split(&parts[whole.len() - rest.len()..]).unwrap();
        rest = tail;
        assert_eq!(other.header, record.header);
        let layout = events.event_of_sample(record.body).and_then(|event| events.layout(event));
        let is_sample = record.header.kind == record_type::SAMPLE;
        let parsed = layout.filter(|_| is_sample).and_then(|layout| layout.parse(record.body));
        let Some(expected) = parsed else {
            // No reader takes a sample that makes no sense, whether its dump is there or not.
            match layout.filter(|_| is_sample) {
                Some(layout) => assert_eq!(layout.parse(other.body), None),
                None => assert!(other.body == record.body),
            }
            continue;
        };
        let mut sample = layout.unwrap().parse(other.body).unwrap();
        parts.complete(&mut sample);
        assert_eq!(sample.has_user_stack(), expected.has_user_stack());
        if let Some(more) = sample.user_stack_rest.take() {
            let present = sample.user_stack.len();
            assert!(present >= kept.min(expected.user_stack.len()));
            assert!(expected.user_stack.starts_with(sample.user_stack));
            assert_eq!(more.size_bytes(), expected.user_stack.len());
            assert!(more.read(present + 8, &mut dump));
            assert_eq!(dump, expected.user_stack[..expected.user_stack.len().min(present + 8)]);
            assert!(more.read(usize::MAX, &mut dump));
            assert!(dump == expected.user_stack);
            sample.user_stack = expected.user_stack;
            left_out += dump.len() - present;
        }
        assert_eq!(sample, expected);
    }
    left_out
}

/// Compares records; the second ones may have any bytes for dumps.
fn compare_without_dumps(bytes: &[u8], other: &[u8], events: &EventTable) {
    let (mut rest, mut others) = (bytes, other);
    while let Some((record, tail)) = RawRecord::split(rest) {
        let (copy, copies) = RawRecord::split(others).unwrap();
        (rest, others) = (tail, copies);
        assert_eq!(copy.header, record.header);
        let layout = events.event_of_sample(record.body).and_then(|event| events.layout(event));
        let is_sample = record.header.kind == record_type::SAMPLE;
        match layout.filter(|_| is_sample) {
            Some(layout) => {
                let parse = |body| layout.parse(body).map(|it| Sample { user_stack: &[], ..it });
                assert_eq!(parse(copy.body), parse(record.body));
            }
            None => assert!(copy.body == record.body),
        }
    }
    assert!(others.is_empty() || rest.len() == others.len());
}

/// Reads a file in all ways. Gives back how many bytes of dumps were left out.
fn check(file: File, kept: usize) -> usize {
    let (stream, events) = open(file);
    let whole = read(StreamReader::new(stream.clone()));
    let skimmed = read(StreamReader::without_dumps(&stream, &events, 2));
    assert_eq!(skimmed.1, whole.1);
    assert_eq!(skimmed.0.len(), whole.0.len());
    let mapped = read(StreamReader::mapped_without_dumps(&stream, &events, 2));
    assert_eq!((mapped.0.len(), &mapped.1), (whole.0.len(), &whole.1));
    for ((info, bytes), (same, others)) in whole.0.iter().zip(&mapped.0) {
        assert_eq!((info, bytes.len()), (same, others.len()));
        compare_without_dumps(bytes, others, &events);
    }
    let parts = stream.leaving_out_dumps(&events, kept);
    let (mut reader, mut block, mut left_out) = (BlockReader::default(), Block::default(), 0);
    for ((info, bytes), (same, headers)) in whole.0.iter().zip(&skimmed.0) {
        assert_eq!((info, bytes.len()), (same, headers.len()));
        // A corrupt header may say that records are compressed.
        let Some(range) = info.range else { continue };
        reader.read(&parts, range, &mut block).unwrap();
        left_out += compare(bytes, &block, &events, kept);
    }
    assert!(parts.take_failure().is_none());
    left_out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn samples_are_the_same_whatever_is_left_out(
        items in prop::collection::vec(item(), 1..60),
        kept in prop_oneof![Just(0usize), 0usize..9000],
    ) {
        check(on_disk(&file(&items).0), kept);
    }

    #[test]
    fn a_cut_recording_ends_at_the_same_record(
        items in prop::collection::vec(item(), 1..60),
        at in any::<prop::sample::Index>(),
    ) {
        let (bytes, records) = file(&items);
        check(on_disk(&bytes[..records.start + at.index(records.len() + 1)]), 512);
    }

    /// Headers change too, so that the sizes of records are wrong.
    #[test]
    fn corrupt_bytes_are_read_alike(
        items in prop::collection::vec(item(), 1..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..56, any::<u8>()), 1..6),
    ) {
        let (mut bytes, records) = file(&items);
        let mut starts = vec![records.start];
        while let Some((record, _)) = starts.last().and_then(|at| RawRecord::split(&bytes[*at..records.end])) {
            starts.push(starts[starts.len() - 1] + usize::from(record.header.size_bytes));
        }
        for (at, inside, value) in changes {
            let at = starts[at.index(starts.len())] + inside;
            if records.contains(&at) {
                bytes[at] = value;
            }
        }
        check(on_disk(&bytes), 512);
    }
}

/// Some MiB of samples with the largest dumps.
fn large() -> Vec<u8> {
    file(&vec![Item::Dumped(5, 8000, u16::MAX); 100]).0
}

#[test]
fn most_of_a_large_dump_is_left_out() {
    let left_out = check(on_disk(&large()), 4096);
    assert!(left_out > 100 * (64_000 - 4096 - 1000), "{left_out}");
}

#[test]
fn bytes_that_are_not_in_memory_are_waited_for() {
    let file = on_disk(&large());
    for _ in 0..2 {
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        check(file.try_clone().unwrap(), 4096);
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_read_gives_the_error_of_a_read() {
    let bytes = large();
    let file = on_disk(&bytes);
    let (stream, events) = open(file.try_clone().unwrap());
    let (blocks, _) = read(StreamReader::new(stream.clone()));
    let parts = stream.leaving_out_dumps(&events, 0);
    let (mut reader, mut block, mut bytes_of_dump) =
        (BlockReader::default(), Block::default(), Vec::new());
    let range = |at: usize| blocks[at].0.range.unwrap();
    reader.read(&parts, range(1), &mut block).unwrap();
    // Behind the first record of the second block, and the beginning of its dump.
    file.set_len(range(1).offset + 8192).unwrap();
    let (record, _) = RawRecord::split(&block).unwrap();
    let mut sample = events.layout(0).unwrap().parse(record.body).unwrap();
    block.complete(&mut sample);
    let rest = sample.user_stack_rest.unwrap();
    assert!(rest.read(4096, &mut bytes_of_dump) && parts.take_failure().is_none());
    assert!(!rest.read(16_384, &mut bytes_of_dump));
    let said = |error: whit_perfdata::stream::StreamError| error.to_string();
    let failure = said(parts.take_failure().unwrap());
    assert!(failure.starts_with("cannot read test.data at offset "), "{failure}");
    assert!(failure.ends_with("failed to fill whole buffer"), "{failure}");
    for at in [1, 2] {
        let of = |stream: &Stream| {
            BlockReader::default().read(stream, range(at), &mut Block::default()).map_err(said)
        };
        assert_eq!(of(&parts), of(&stream));
        assert!(of(&parts).is_err());
    }
    // Opened before, the first pass meets the same error at the same block.
    let whole = read(StreamReader::new(stream.clone()));
    let skimmed = read(StreamReader::without_dumps(&stream, &events, 1));
    assert!(whole.1.contains("failed to fill whole buffer"), "{}", whole.1);
    assert_eq!((skimmed.0.len(), &skimmed.1), (whole.0.len(), &whole.1));
    let mapped = read(StreamReader::mapped_without_dumps(&stream, &events, 1));
    assert_eq!((mapped.0.len(), mapped.1), (whole.0.len(), whole.1));
}

#[test]
fn recordings_without_dumps_are_read_as_they_are() {
    let (bytes, _) = file(&vec![Item::Bare(500); 300]);
    assert_eq!(check(on_disk(&bytes), 0), 0);
}
