//! Compressed streams of independent frames, of endless ones, and of both: however they are read,
//! they give what reading them from the start, record by record, gives.

use proptest::prelude::*;
use std::path::Path;
use whit_perfdata::attr::{Attr, SampleType};
use whit_perfdata::encode::{finished_round, push_record};
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{
    BLOCK_SIZE_BYTES, Block, BlockInfo, BlockReader, MAX_INFLATED_BLOCK_BYTES, Missing, ReadAhead,
    RecordCounts, Stream, StreamError, StreamReader,
};
use whit_perfdata::writer::FileWriter;
use zstd::stream::raw::{Decoder, Encoder, InBuffer, Operation, OutBuffer};

const PATH: &str = "test.data";

/// The file, and where its records begin and end.
struct Made {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

fn file(stream: &[u8]) -> Made {
    let attr = Attr { sample_type: SampleType::IP | SampleType::TIME, ..Attr::default() };
    let events = [EventDesc { attr, ids: vec![1], name: "cpu-clock".into() }];
    let mut writer = FileWriter::create(std::io::Cursor::new(Vec::new()), &events).unwrap();
    writer.append(stream).unwrap();
    let bytes = writer.finish(&Features::default()).unwrap().into_inner();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (start, size) = (word(40), word(48));
    Made { bytes, start, end: start + size }
}

fn open(bytes: &[u8]) -> Stream {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Recording::from_file(Path::new(PATH), file).unwrap().streams.remove(0)
}

/// The result of a reading.
#[derive(PartialEq, Debug, Default)]
struct Reading {
    records: Vec<u8>,
    positions: Vec<u64>,
    counts: RecordCounts,
    truncation: Option<Missing>,
    holes: Option<Missing>,
    error: Option<String>,
    lost_bytes: u64,
}

impl Reading {
    fn add(&mut self, block: &[u8], mut position: u64) {
        let mut rest = block;
        while let Some((record, tail)) = RawRecord::split(rest) {
            self.positions.push(position);
            position += u64::from(record.header.size_bytes);
            rest = tail;
        }
        assert!(rest.is_empty());
        self.records.extend(block);
    }

    fn truncate(&mut self, offset: usize, size: usize) {
        miss(&mut self.truncation, offset, size);
    }
}

fn miss(missing: &mut Option<Missing>, offset: usize, size: usize) {
    if size > 0 {
        let before = missing.unwrap_or(Missing { offset: offset as u64, size_bytes: 0 });
        let size_bytes = before.size_bytes + size as u64;
        *missing = Some(Missing { size_bytes, ..before });
    }
}

/// Reads from the start, record by record, with all bytes in memory: correct by definition.
struct Reference<'b> {
    bytes: &'b [u8],
    end: usize,
    position: u64,
    partial: Vec<u8>,
    decoder: Decoder<'static>,
    reading: Reading,
}

impl Reference<'_> {
    fn bad(&self, offset: u64, size_bytes: u16, lost_from: usize) -> StreamError {
        let lost_bytes = (self.end - lost_from) as u64;
        StreamError::BadRecord { path: PATH.into(), offset, size_bytes, lost_bytes }
    }

    fn give(&mut self, record: &[u8]) {
        self.reading.add(record, self.position);
        self.position += record.len() as u64;
    }

    fn read(&mut self, start: usize) -> Result<(), StreamError> {
        let (mut at, mut in_compressed) = (start, false);
        while at + 8 <= self.end {
            if self.bytes[at..at + 8] == [0; 8] {
                at += self.hole(at, in_compressed);
                continue;
            }
            let header = RawRecordHeader::at(self.bytes, at);
            if header.size < 8 {
                let offset = if in_compressed { at as u64 } else { self.position };
                return Err(self.bad(offset, header.size as u16, at));
            }
            if at + header.size > self.end {
                break;
            }
            let record = &self.bytes[at..at + header.size];
            let mut step = header.size;
            match header.kind {
                record_type::COMPRESSED => {
                    self.reading.counts.compressed += 1;
                    in_compressed = true;
                    self.inflate(&record[8..], at)?;
                }
                record_type::COMPRESSED2 => {
                    self.reading.counts.compressed2 += 1;
                    in_compressed = true;
                    let body = record.get(16..).unwrap_or_default();
                    let size =
                        record.get(8..16).map_or(0, |w| u64::from_le_bytes(w.try_into().unwrap()));
                    self.inflate(&body[..(size as usize).min(body.len())], at)?;
                }
                record_type::AUXTRACE => {
                    let payload =
                        record.get(8..16).map(|w| u64::from_le_bytes(w.try_into().unwrap()));
                    let whole = payload.and_then(|p| p.checked_add(header.size as u64));
                    let whole = whole.filter(|w| *w <= (self.end - at) as u64);
                    self.skip(whole, at, in_compressed, true);
                    step = whole.map_or(self.end - at, |w| w as usize);
                }
                record_type::TRACING_DATA => {
                    let payload =
                        record.get(8..12).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
                    let behind = |p: u32| match header.size >= 12 + p as usize {
                        true => 0,
                        false => u64::from(p),
                    };
                    let whole = payload.map(|p| behind(p) + header.size as u64);
                    let whole = whole.filter(|w| *w <= (self.end - at) as u64);
                    self.skip(whole, at, in_compressed, false);
                    step = whole.map_or(self.end - at, |w| w as usize);
                }
                _ => self.give(record),
            }
            at += step;
        }
        self.reading.truncate(at, self.end - at);
        self.reading.truncate(self.end, self.partial.len());
        Ok(())
    }

    /// No record crosses the hole.
    fn hole(&mut self, at: usize, in_compressed: bool) -> usize {
        self.reading.truncate(at, self.partial.len());
        self.partial.clear();
        self.decoder = Decoder::new().unwrap();
        let size = self.bytes[at..self.end].iter().take_while(|byte| **byte == 0).count();
        miss(&mut self.reading.holes, at, size);
        if !in_compressed {
            self.position += size as u64;
        }
        size
    }

    fn skip(&mut self, whole: Option<u64>, at: usize, in_compressed: bool, aux: bool) {
        let counts = &mut self.reading.counts;
        let count = if aux { &mut counts.auxtrace } else { &mut counts.tracing_data };
        match whole {
            Some(_) => *count += 1,
            None => self.reading.truncate(at, self.end - at),
        }
        if !in_compressed {
            self.position += whole.unwrap_or((self.end - at) as u64);
        }
    }

    fn inflate(&mut self, payload: &[u8], record_at: usize) -> Result<(), StreamError> {
        self.reading.counts.compressed_bytes += payload.len() as u64;
        let mut output = vec![0; 128 << 10];
        let (mut used, mut more) = (0, false);
        while used < payload.len() || more {
            let mut input = InBuffer::around(&payload[used..]);
            let mut out = OutBuffer::around(&mut output[..]);
            let hint = self.decoder.run(&mut input, &mut out).map_err(|source| {
                let (offset, lost_bytes) = (record_at as u64, (self.end - record_at) as u64);
                StreamError::Decompress { path: PATH.into(), offset, source, lost_bytes }
            })?;
            let produced = out.pos();
            used += input.pos();
            more = produced == output.len() && hint > 0;
            self.reading.counts.decompressed_bytes += produced as u64;
            self.partial.extend(&output[..produced]);
            self.records(record_at)?;
        }
        Ok(())
    }

    fn records(&mut self, record_at: usize) -> Result<(), StreamError> {
        let partial = std::mem::take(&mut self.partial);
        let mut at = 0;
        while at + 8 <= partial.len() {
            let header = RawRecordHeader::at(&partial, at);
            if header.size < 8 || matches!(header.kind, 66 | 71 | 81 | 83) {
                return Err(self.bad(self.position, header.size as u16, record_at));
            }
            if at + header.size > partial.len() {
                break;
            }
            self.give(&partial[at..at + header.size]);
            at += header.size;
        }
        self.partial = partial[at..].to_vec();
        Ok(())
    }
}

struct RawRecordHeader {
    kind: u32,
    size: usize,
}

impl RawRecordHeader {
    fn at(bytes: &[u8], at: usize) -> RawRecordHeader {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let size = usize::from(u16::from_le_bytes(bytes[at + 6..at + 8].try_into().unwrap()));
        RawRecordHeader { kind, size }
    }
}

fn reference(bytes: &[u8], start: usize, end: usize) -> Reading {
    let mut reference = Reference {
        bytes,
        end,
        position: start as u64,
        partial: Vec::new(),
        decoder: Decoder::new().unwrap(),
        reading: Reading::default(),
    };
    let error = reference.read(start).err();
    let lost_bytes = error.as_ref().map_or(0, StreamError::lost_bytes);
    Reading { error: error.as_ref().map(message), lost_bytes, ..reference.reading }
}

/// An error without zstd's own reason, which depends on how much room it was given at a time.
fn message(error: &StreamError) -> String {
    match error {
        StreamError::Decompress { source, .. } => {
            error.to_string().replace(&source.to_string(), "")
        }
        other => other.to_string(),
    }
}

/// All that a reader gives, and its blocks.
fn read(stream: &Stream, threads: usize) -> (Reading, Vec<(BlockInfo, Vec<u8>)>) {
    let mut reader = StreamReader::with_threads(stream.clone(), threads);
    let (mut reading, mut blocks, mut block) = (Reading::default(), Vec::new(), Vec::new());
    loop {
        match reader.next_block(&mut block) {
            Ok(Some(info)) => {
                assert!(!block.is_empty() && block.len() < 2 * MAX_INFLATED_BLOCK_BYTES);
                reading.add(&block, info.position);
                blocks.push((info, block.clone()));
            }
            Ok(None) => break,
            Err(error) => {
                reading.error = Some(message(&error));
                reading.lost_bytes = error.lost_bytes();
                assert!(matches!(reader.next_block(&mut block), Ok(None)), "errors are the end");
                break;
            }
        }
    }
    reading.truncation = reader.truncation();
    reading.holes = reader.holes();
    reading.counts = reader.record_counts();
    assert_eq!(reader.consumed_bytes(), stream.size_bytes());
    (reading, blocks)
}

/// Blocks on their own from the last to the first, others from where their row starts.
fn read_again(stream: &Stream, blocks: &[(BlockInfo, Vec<u8>)]) {
    let (mut one, mut again) = (BlockReader::default(), Block::default());
    for (info, block) in blocks.iter().rev() {
        if let Some(range) = info.range {
            assert_eq!(range.offset, info.start);
            one.read(stream, range, &mut again).unwrap();
            assert!(*again == block[..]);
        }
    }
    for row in blocks.chunk_by(|a, b| a.0.range.is_none() && a.0.start == b.0.start) {
        if row[0].0.range.is_none() {
            let mut reader = StreamReader::resume(stream.clone(), row[0].0.start).unwrap();
            for (_, block) in row {
                assert!(reader.fill(&mut again).unwrap());
                assert!(*again == block[..]);
            }
        }
    }
    let mut ahead = ReadAhead::new(3);
    let mut ranges = blocks.iter().filter_map(|(info, block)| Some((info.range?, block)));
    let mut pushed = std::collections::VecDeque::new();
    loop {
        while ahead.has_room()
            && let Some((range, block)) = ranges.next()
        {
            ahead.push(stream, range);
            pushed.push_back(block);
        }
        let Some(read) = ahead.next(&mut again) else { break };
        read.unwrap();
        assert!(*again == pushed.pop_front().unwrap()[..]);
    }
    assert!(pushed.is_empty());
}

/// A compressed record may be corrupt in two ways: it does not decompress, or its decoded bytes are
/// no record. The buffer of the decoder decides which is met first.
fn assert_damaged_alike(reading: &Reading, expected: &Reading) {
    let (Some(error), Some(other)) = (&reading.error, &expected.error) else {
        panic!("{:?} {:?}", reading.error, expected.error)
    };
    let undone = |error: &String| error.contains("does not decompress");
    assert!(undone(error) != undone(other), "{error}\n{other}");
    assert_eq!(reading.lost_bytes, expected.lost_bytes, "{error}\n{other}");
    let common = reading.records.len().min(expected.records.len());
    assert!(reading.records[..common] == expected.records[..common]);
}

/// Reads in every way. Says how many bytes can be read on their own.
fn check(bytes: &[u8], start: usize, end: usize) -> usize {
    let expected = reference(bytes, start, end);
    let stream = open(bytes);
    let mut own_bytes = None;
    for threads in [1, 2, 5] {
        let (reading, blocks) = read(&stream, threads);
        if reading.error == expected.error {
            assert_eq!(reading.truncation, expected.truncation);
            assert_eq!(reading.holes, expected.holes);
            assert_eq!(reading.counts, expected.counts);
            assert!(reading == expected, "{threads} threads");
        } else {
            assert_damaged_alike(&reading, &expected);
        }
        read_again(&stream, &blocks);
        let own = blocks.iter().filter(|(info, _)| info.range.is_some_and(|r| r.compressed));
        let own: usize = own.map(|(_, block)| block.len()).sum();
        assert_eq!(*own_bytes.get_or_insert(own), own, "{threads} threads");
    }
    own_bytes.unwrap_or(0)
}

fn check_stream(stream: &[u8]) -> usize {
    let made = file(stream);
    check(&made.bytes, made.start, made.end)
}

/// Records: kind, words, and whether they compress.
type Spec = Vec<(u32, u16, bool)>;

fn records(spec: &Spec) -> Vec<u8> {
    let mut out = Vec::new();
    let mut state = 88_172_645_463_325_252_u64;
    for (index, (kind, words, noise)) in spec.iter().enumerate() {
        let mut word = |w: u16| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if *noise { state } else { u64::from(w) + index as u64 }
        };
        let body: Vec<u8> = (0..*words).flat_map(|w| word(w).to_le_bytes()).collect();
        push_record(&mut out, *kind, 0, &body);
    }
    out
}

fn wrap(out: &mut Vec<u8>, compressed: &[u8], record_size: usize, kind: u32) {
    for payload in compressed.chunks(record_size) {
        if kind == record_type::COMPRESSED2 {
            let mut body = (payload.len() as u64).to_le_bytes().to_vec();
            body.extend(payload);
            body.resize(body.len().next_multiple_of(8), 0);
            push_record(out, kind, 0, &body);
        } else {
            push_record(out, kind, 0, payload);
        }
    }
}

/// A frame, padded with a skippable one as whit does it.
fn frame(bytes: &[u8], level: i32) -> Vec<u8> {
    let mut frame = zstd::bulk::compress(bytes, level).unwrap();
    let padding = 8 - frame.len() % 8;
    frame.extend(0x184d_2a50_u32.to_le_bytes());
    frame.extend((padding as u32).to_le_bytes());
    frame.resize(frame.len() + padding, 0);
    frame
}

/// One frame that never ends, flushed now and then.
fn endless(bytes: &[u8], drains: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(1).unwrap();
    let mut out = vec![0; zstd::zstd_safe::compress_bound(bytes.len()) + (drains + 1) * 1024];
    let mut output = OutBuffer::around(&mut out);
    for drained in bytes.chunks(bytes.len().div_ceil(drains).max(1)) {
        let mut input = InBuffer::around(drained);
        while input.pos() < drained.len() {
            encoder.run(&mut input, &mut output).unwrap();
        }
        while encoder.flush(&mut output).unwrap() > 0 {}
    }
    let len = output.pos();
    out.truncate(len);
    out
}

/// A piece of a stream.
#[derive(Clone, Debug)]
enum Part {
    /// A frame of whole records.
    Frame(Spec, i32),
    /// Two frames that meet inside a record.
    Torn(Spec, prop::sample::Index),
    /// A frame with plain records between its compressed ones.
    Mixed(Spec),
    /// Records as they are.
    Plain(Spec),
    /// A record with bytes behind it.
    Payload(bool, u16),
    /// A frame without an end: the rest cannot be decoded.
    Endless(Spec, usize),
    /// Bytes that were never written.
    Hole(usize),
}

fn push_part(out: &mut Vec<u8>, part: &Part, record_size: usize, kind: u32) {
    match part {
        Part::Frame(spec, level) => wrap(out, &frame(&records(spec), *level), record_size, kind),
        Part::Torn(spec, at) => {
            let records = records(spec);
            let (front, back) = records.split_at(at.index(records.len() + 1));
            wrap(out, &frame(front, 1), record_size, kind);
            wrap(out, &frame(back, 1), record_size, kind);
        }
        Part::Mixed(spec) => {
            for piece in frame(&records(spec), 1).chunks(record_size) {
                wrap(out, piece, record_size, kind);
                out.extend(finished_round());
            }
        }
        Part::Plain(spec) => out.extend(records(spec)),
        Part::Payload(true, size) => {
            let size = size & !7;
            let mut body = u64::from(size).to_le_bytes().to_vec();
            body.resize(40, 0);
            push_record(out, record_type::AUXTRACE, 0, &body);
            out.resize(out.len() + usize::from(size), 0xff);
        }
        Part::Payload(false, size) => {
            whit_perfdata::encode::tracing_data(out, &vec![0xff; usize::from(size & !7)]);
        }
        Part::Endless(spec, drains) => {
            wrap(out, &endless(&records(spec), *drains), record_size, kind)
        }
        Part::Hole(size) => out.resize(out.len() + size, 0),
    }
}

fn spec(most: usize) -> impl Strategy<Value = Spec> {
    let kinds = prop::sample::select(vec![record_type::SAMPLE, record_type::COMM, 68, 200]);
    let words = prop_oneof![8 => 0u16..20, 4 => 900u16..1100, 1 => 6000u16..8000];
    prop::collection::vec((kinds, words, any::<bool>()), 0..most)
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        12 => (spec(30), 1i32..5).prop_map(|(spec, level)| Part::Frame(spec, level)),
        1 => (spec(20), any::<prop::sample::Index>()).prop_map(|(spec, at)| Part::Torn(spec, at)),
        1 => spec(20).prop_map(Part::Mixed),
        2 => spec(10).prop_map(Part::Plain),
        1 => (any::<bool>(), 0u16..5000).prop_map(|(aux, size)| Part::Payload(aux, size)),
        1 => prop_oneof![1usize..100, Just(BLOCK_SIZE_BYTES), 300_000usize..400_000]
            .prop_map(Part::Hole),
    ]
}

/// A stream and the parts that it was built from.
struct Built {
    bytes: Vec<u8>,
    of: String,
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.of)
    }
}

fn stream() -> impl Strategy<Value = Built> {
    let last = prop::option::weighted(0.2, (spec(40), 1usize..5));
    let kind = prop::sample::select(vec![record_type::COMPRESSED, record_type::COMPRESSED2]);
    let record_size = prop_oneof![1 => 1usize..100, 3 => 1000usize..60_000];
    (prop::collection::vec(part(), 1..12), last, record_size, kind).prop_map(
        |(mut parts, last, record_size, kind)| {
            parts.extend(last.map(|(spec, drains)| Part::Endless(spec, drains)));
            let mut out = Vec::new();
            parts.iter().for_each(|part| push_part(&mut out, part, record_size, kind));
            Built { bytes: out, of: format!("{parts:?}, {record_size} {kind}") }
        },
    )
}

fn samples(count: usize, words: u16, noise: bool) -> Spec {
    vec![(record_type::SAMPLE, words, noise); count]
}

#[test]
fn frames_of_whole_records_are_read_on_their_own() {
    for (count, words, noise) in [(60, 1030, false), (60, 1030, true), (3, 20, true)] {
        let records = records(&samples(count, words, noise));
        let mut stream = Vec::new();
        for _ in 0..40 {
            wrap(&mut stream, &frame(&records, 1), 65_000, record_type::COMPRESSED);
        }
        assert_eq!(check_stream(&stream), 40 * records.len(), "{count} {words} {noise}");
    }
}

#[test]
fn an_endless_frame_is_read_from_the_start() {
    let records = records(&samples(600, 1030, false));
    let mut stream = Vec::new();
    wrap(&mut stream, &endless(&records, 20), 3000, record_type::COMPRESSED);
    assert_eq!(check_stream(&stream), 0);
}

#[test]
fn a_frame_that_inflates_hugely_is_read_in_order_and_others_on_their_own() {
    let one = records(&samples(50, 1030, false));
    let huge = records(&samples(600, 8000, false));
    let mut stream = Vec::new();
    for bytes in [&one, &huge, &one, &huge, &huge, &one] {
        wrap(&mut stream, &frame(bytes, 3), 65_000, record_type::COMPRESSED);
    }
    assert_eq!(check_stream(&stream), 3 * one.len());
}

#[test]
fn the_magic_number_inside_a_frame_is_no_beginning() {
    // Noise is stored as it is, so that the number can stand where a record begins.
    let mut records = Vec::new();
    let mut body = 0xfd2f_b528_u32.to_le_bytes().repeat(2);
    body.extend(self::records(&samples(1, 3000, true)));
    for _ in 0..40 {
        push_record(&mut records, record_type::SAMPLE, 0, &body);
    }
    let frame = zstd::bulk::compress(&records[..body.len() + 8], 1).unwrap();
    let magic = 0xfd2f_b528_u32.to_le_bytes();
    let inside = (4..frame.len() - 4).find(|at| frame[*at..*at + 4] == magic).unwrap();
    let mut stream = Vec::new();
    for _ in 0..5 {
        push_record(&mut stream, record_type::COMPRESSED, 0, &frame[..inside]);
        push_record(&mut stream, record_type::COMPRESSED, 0, &frame[inside..]);
    }
    assert_eq!(check_stream(&stream), 5 * (body.len() + 8));
}

#[test]
fn formats_of_tracepoints_inside_their_record_hide_no_record() {
    let samples = records(&samples(20, 3, false));
    for padding in [0, 4] {
        let mut stream = samples.clone();
        let mut body = 64u32.to_le_bytes().to_vec();
        body.resize(4 + 64 + padding, 0xff);
        push_record(&mut stream, record_type::TRACING_DATA, 0, &body);
        stream.extend(&samples);
        let made = file(&stream);
        let (reading, _) = read(&open(&made.bytes), 1);
        assert_eq!(reading.records, [&samples[..], &samples].concat());
        assert_eq!((reading.truncation, reading.error), (None, None));
        check_stream(&stream);
    }
}

#[test]
fn a_header_at_the_end_of_a_window_is_read_whole() {
    let mut stream = Vec::new();
    push_part(&mut stream, &Part::Payload(true, 64), 1, 0);
    // The next AUXTRACE begins eight bytes before the end of the bytes that are read at once.
    let filler = BLOCK_SIZE_BYTES - 8 - stream.len();
    for size in [filler / 32 / 8 * 8; 31] {
        push_record(&mut stream, record_type::SAMPLE, 0, &vec![0; size - 8]);
    }
    let last = BLOCK_SIZE_BYTES - 8 - stream.len() - 8;
    push_record(&mut stream, record_type::SAMPLE, 0, &vec![0; last]);
    assert_eq!(stream.len(), BLOCK_SIZE_BYTES - 8);
    push_part(&mut stream, &Part::Payload(true, 64), 1, 0);
    stream.extend(records(&samples(2, 3, false)));
    check_stream(&stream);
}

#[test]
fn records_behind_a_hole_are_read() {
    let records = records(&samples(50, 1030, true));
    let hole = |stream: &mut Vec<u8>, size: usize| stream.resize(stream.len() + size, 0);
    let (mut plain, mut compressed) = (Vec::new(), Vec::new());
    for size in [8, 3 * BLOCK_SIZE_BYTES, 40] {
        for (stream, is_plain) in [(&mut plain, true), (&mut compressed, false)] {
            hole(stream, size);
            match is_plain {
                true => stream.extend(&records),
                false => wrap(stream, &frame(&records, 1), 65_000, record_type::COMPRESSED),
            }
        }
    }
    for stream in [&mut plain, &mut compressed] {
        hole(stream, 100);
        let made = file(stream);
        let (reading, _) = read(&open(&made.bytes), 1);
        let size_bytes = (8 + 3 * BLOCK_SIZE_BYTES + 40 + 100) as u64;
        assert_eq!(reading.holes, Some(Missing { offset: made.start as u64, size_bytes }));
        assert!(reading.records == records.repeat(3));
        assert_eq!((reading.truncation, &reading.error), (None, &None));
        check_stream(stream);
    }
}

#[test]
fn a_block_that_is_gone_is_said_to_be() {
    let records = records(&samples(50, 1030, true));
    let mut stream = Vec::new();
    wrap(&mut stream, &frame(&records, 1), 65_000, record_type::COMPRESSED);
    let made = file(&stream);
    let opened = open(&made.bytes);
    let (_, blocks) = read(&opened, 1);
    let mut other = made.bytes.clone();
    other[made.start + 8] ^= 1;
    let error = BlockReader::default()
        .read(&open(&other), blocks[0].0.range.unwrap(), &mut Block::default())
        .unwrap_err();
    let start = made.start;
    let said = format!("the records at offset {start} of {PATH} are no longer what they were");
    assert_eq!(error.to_string(), said);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_mixture_reads_the_same_in_every_way(stream in stream()) {
        check_stream(&stream.bytes);
    }

    #[test]
    fn cut_anywhere(stream in stream(), at in any::<prop::sample::Index>()) {
        let made = file(&stream.bytes);
        let end = made.start + at.index(stream.bytes.len() + 1);
        check(&made.bytes[..end], made.start, end);
    }

    /// Bytes at random places, some of them of records' headers and of frames' first bytes.
    #[test]
    fn corrupted_anywhere(
        stream in stream(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..24, any::<u8>()), 1..6),
        at_records in any::<bool>(),
    ) {
        let mut made = file(&stream.bytes);
        let mut starts = vec![made.start];
        while let Some(&at) = starts.last().filter(|at| **at + 8 <= made.end) {
            starts.push(at + RawRecordHeader::at(&made.bytes, at).size.max(8));
        }
        for (at, inside, value) in changes {
            let at = if at_records {
                starts[at.index(starts.len())] + inside
            } else {
                made.start + at.index(stream.bytes.len().max(1))
            };
            if (made.start..made.end).contains(&at) {
                made.bytes[at] = value;
            }
        }
        check(&made.bytes, made.start, made.end);
    }
}
