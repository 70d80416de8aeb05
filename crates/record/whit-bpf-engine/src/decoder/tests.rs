//! A decoder's records are those that perf would have written.

use super::*;
use proptest::prelude::*;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::record::{RawRecord, SideBand};
use whit_perfdata::sample::SampleLayout;

use crate::schedule::tests::{IN_SCHEDULE, IN_TIMER, IN_WAKE_UP, scheduler_symbols};

/// The id of the bpf-output event.
pub(crate) const BPF_OUTPUT: u64 = 77;
const TRACED: u64 = 44;

/// The attributes of the bpf-output event.
pub(crate) fn attr() -> Attr {
    let sample_type = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU
        | SampleType::RAW;
    Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
}

fn given() -> DecoderConfig {
    let wakes = Some(crate::wakes::tests::format());
    DecoderConfig { scheduler_symbols: scheduler_symbols(), wakes, ..DecoderConfig::default() }
}

fn decoder() -> BpfRecordDecoder {
    BpfRecordDecoder::new((&attr(), BPF_OUTPUT), vec![(TRACED, 0x177)], given())
}

/// A record of the bpf-output event, as the kernel writes it: padded to whole words.
pub(crate) fn push(out: &mut Vec<u8>, thread: u64, time: u64, written: &[u8]) {
    let mut body: Vec<u8> =
        [BPF_OUTPUT, 0, thread, time, 3].iter().flat_map(|w| w.to_le_bytes()).collect();
    let size = (written.len() + 4).next_multiple_of(8) - 4;
    body.extend((size as u32).to_le_bytes());
    body.extend(written);
    body.resize(body.len() + size - written.len(), 0);
    push_record(out, record_type::SAMPLE, 0, &body);
}

fn stack(hash: u64, frames: &[u64]) -> Vec<u8> {
    let mut written = vec![1, 1, frames.len() as u8, 0, 0, 0, 0, 0];
    written.extend(hash.to_ne_bytes());
    frames.iter().for_each(|frame| written.extend(frame.to_ne_bytes()));
    written
}

/// The record of a sample: in user mode where there is no stack of the kernel.
pub(crate) fn sample(event: u64, user: u64, kernel: u64) -> Vec<u8> {
    let mut written = vec![2, u8::from(kernel == 0), 0, 0, 0, 0, 0, 0];
    [200_000, user, kernel, event].iter().for_each(|word: &u64| written.extend(word.to_ne_bytes()));
    written.extend([0; 4]);
    written
}

fn decode_all(decoder: &mut BpfRecordDecoder, bytes: &[u8], seam: usize) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let front = &bytes[at.min(seam)..seam];
        let back = &bytes[at.max(seam)..];
        at += decoder.decode(RingSlices([front, back]), 100, &mut out);
    }
    out
}

/// Process and thread as one word.
pub(crate) fn thread(pid: u64, tid: u64) -> u64 {
    tid << 32 | pid
}

#[test]
fn samples_become_records_that_everybody_knows() {
    let mut bytes = Vec::new();
    push_record(&mut bytes, record_type::COMM, 0, &[7; 48]);
    push(&mut bytes, thread(9, 10), 100, &stack(0x1_0001, &[0x401, 0x402]));
    push(&mut bytes, thread(9, 10), 100, &sample(55, 0x1_0001, 0));
    push(&mut bytes, thread(9, 10), 150, &sample(56, 0x1_0001, 0));
    push(&mut bytes, thread(9, 10), 200, &stack(0x1_0002, &[0xffff_ffff_8000_1008]));
    push(&mut bytes, thread(9, 11), 200, &sample(55, 0x1_0001, 0x1_0002));

    let mut described = attr();
    described.sample_type = Layout::new(&described).sample_type();
    let layout = SampleLayout::new(&described);
    for seam in (0..=bytes.len()).step_by(8) {
        let mut decoder = decoder();
        let out = decode_all(&mut decoder, &bytes, seam);
        let (mut rest, mut seen) = (&out[..], Vec::new());
        while let Some((record, tail)) = RawRecord::split(rest) {
            rest = tail;
            seen.push(match record.header.kind {
                record_type::SAMPLE => {
                    let sample = layout.parse(record.body).unwrap();
                    let chain: Vec<u64> = sample.callchain.iter().collect();
                    let tid = sample.pid_tid.unwrap().1.0;
                    let head = (sample.id.unwrap(), tid, sample.time.unwrap().0);
                    format!("{head:?} {} {:x?}", sample.period.unwrap(), chain)
                }
                kind => format!("kind {kind}"),
            });
        }
        let in_user = "fffffffffffffe00, 401, 402";
        let wanted = [
            "kind 3".to_owned(),
            format!("(55, 10, 100) 200000 [{in_user}]"),
            format!("(56, 10, 150) 200000 [{in_user}]"),
            format!("(55, 11, 200) 200000 [ffffffffffffff80, ffffffff80001008, {in_user}]"),
        ];
        assert_eq!(seen, wanted, "seam {seam}");
        let counts = decoder.counts;
        assert_eq!((counts.records, counts.stacks, counts.switches), (3, 2, 0));
        assert_eq!((counts.unknown_stacks, counts.unreadable), (0, 0));
    }
}

/// The kernel writes the cgroup behind the raw data. That of the program, which is of version 1, wins.
#[test]
fn samples_have_the_cgroup_of_their_record() {
    let mut bytes = Vec::new();
    let with_cgroup = |record: Vec<u8>, cgroup: u64, bytes: &mut Vec<u8>| {
        let body = [&record[HEADER_BYTES..], &cgroup.to_le_bytes()].concat();
        push_record(bytes, record_type::SAMPLE, 0, &body);
    };
    let mut of_program = sample(55, 0, 0);
    of_program.truncate(40);
    of_program.extend(77u64.to_ne_bytes());
    of_program.extend([0; 4]);
    let records =
        [stack(0x1_0001, &[0x401, 0x402]), sample(55, 0x1_0001, 0), sample(55, 0, 0), of_program];
    for (written, cgroup) in records.iter().zip([7, 8, 0x1_0000_0009, 1]) {
        let mut record = Vec::new();
        push(&mut record, thread(9, 10), 100, written);
        with_cgroup(record, cgroup, &mut bytes);
    }
    let mut bpf_output = attr();
    bpf_output.sample_type |= SampleType::CGROUP;
    let sample_type = Layout::new(&bpf_output).sample_type();
    let layout = SampleLayout::new(&Attr { sample_type, ..attr() });
    let mut decoder = BpfRecordDecoder::new((&bpf_output, BPF_OUTPUT), vec![], given());
    let out = decode_all(&mut decoder, &bytes, 0);
    let (mut rest, mut seen) = (&out[..], Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        rest = tail;
        let sample = layout.parse(record.body).unwrap();
        seen.push((sample.callchain.iter().count(), sample.cgroup));
    }
    assert_eq!(seen, [(3, Some(8)), (0, Some(0x1_0000_0009)), (0, Some(77))]);
    assert_eq!(decoder.counts.unreadable, 0);
}

/// A sample of a tracepoint as perf writes it.
fn traced(out: &mut Vec<u8>, thread: u64, time: u64, data: &[u8]) {
    let fields = [TRACED, 0xffff_ffff_8000_0007, thread, time, 3, 1];
    let mut body: Vec<u8> = fields.iter().flat_map(|word| word.to_le_bytes()).collect();
    body.extend((data.len() as u32).to_le_bytes());
    body.extend(data);
    push_record(out, record_type::SAMPLE, misc::USER, &body);
}

#[test]
fn samples_of_tracepoints_get_the_stacks_of_their_hits() {
    let mut bytes = Vec::new();
    let mut written = vec![4, 0, 0, 0, 0x77, 1, 0, 0];
    [0x1_0001u64, 0].iter().for_each(|word| written.extend(word.to_ne_bytes()));
    push(&mut bytes, thread(9, 10), 100, &stack(0x1_0001, &[0x401, 0x402]));
    push(&mut bytes, thread(9, 10), 100, &written);
    traced(&mut bytes, thread(9, 10), 101, b"data of one.");
    push_record(&mut bytes, record_type::LOST, 0, &[0; 16]);
    traced(&mut bytes, thread(9, 10), 102, b"data of two.");
    let mut described = attr();
    described.sample_type = Layout::new(&described).sample_type() | SampleType::RAW;
    let layout = SampleLayout::new(&described);
    let mut decoder = decoder();
    let out = decode_all(&mut decoder, &bytes, 0);
    let (mut rest, mut seen) = (&out[..], Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        rest = tail;
        if record.header.kind == record_type::SAMPLE {
            let sample = layout.parse(record.body).unwrap();
            let chain: Vec<u64> = sample.callchain.iter().collect();
            let raw = String::from_utf8_lossy(sample.raw.unwrap()).into_owned();
            seen.push((sample.id, sample.time.unwrap().0, chain, raw));
            assert_eq!((record.header.misc, sample.period), (misc::USER, Some(1)));
        }
    }
    let wanted = [
        (Some(TRACED), 101, vec![context::USER, 0x401, 0x402], "data of one.".to_owned()),
        (Some(TRACED), 102, vec![], "data of two.".to_owned()),
    ];
    assert_eq!(seen, wanted);
    assert_eq!((decoder.counts.records, decoder.counts.without_stacks), (2, 1));
}

#[test]
fn wake_ups_become_samples_of_their_tracepoint() {
    let mut bytes = Vec::new();
    let kernel = [0xffff_ffff_c000_0000, IN_SCHEDULE, IN_WAKE_UP, IN_TIMER];
    let mut written = vec![5, 1, 120, 0, 11, 0, 0, 0];
    [0x1_0001, 0x1_0002u64].iter().for_each(|word| written.extend(word.to_ne_bytes()));
    written.extend(*b"woken\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0ksoftirqd/0\0\0\0\0\0");
    push(&mut bytes, thread(9, 9), 200, &stack(0x1_0001, &[0x401]));
    let mut of_kernel = stack(0x1_0002, &kernel);
    of_kernel[1] = 0;
    push(&mut bytes, thread(9, 9), 200, &of_kernel);
    push(&mut bytes, thread(9, 9), 200, &written);
    let mut described = attr();
    described.sample_type = Layout::new(&described).raw_sample_type();
    let layout = SampleLayout::new(&described);
    let mut decoder = decoder();
    let out = decode_all(&mut decoder, &bytes, 0);
    let (name, rest) = RawRecord::split(&out).unwrap();
    assert_eq!(name.header.kind, record_type::COMM);
    let (record, rest) = RawRecord::split(rest).unwrap();
    let sample = layout.parse(record.body).unwrap();
    let chain: Vec<u64> = sample.callchain.iter().collect();
    assert_eq!(chain, [context::KERNEL, kernel[2], kernel[3]]);
    let tid = sample.pid_tid.unwrap().1.0;
    assert_eq!((sample.id, tid, sample.time.unwrap().0), (Some(WAKE_ID), 9, 200));
    let raw = sample.raw.unwrap();
    assert_eq!((raw.len(), raw[2], rest.len(), decoder.counts.wakes), (36, 8, 0, 1));
}

#[test]
fn a_sample_of_a_wait_begins_in_the_scheduler() {
    let frames = [0xffff_ffff_c000_0000, IN_SCHEDULE, 0xffff_ffff_8000_1008];
    let mut bytes = Vec::new();
    let mut kernel = stack(0x1_0002, &frames);
    kernel[1] = 0;
    push(&mut bytes, thread(9, 10), 100, &kernel);
    push(&mut bytes, thread(9, 10), 100, &sample(OFF_CPU_ID, 0, 0x1_0002));
    push(&mut bytes, thread(9, 10), 100, &sample(55, 0, 0x1_0002));
    let out = decode_all(&mut decoder(), &bytes, 0);
    let sample_type = Layout::new(&attr()).sample_type();
    let layout = SampleLayout::new(&Attr { sample_type, ..attr() });
    let (mut rest, mut seen) = (&out[..], Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        rest = tail;
        let sample = layout.parse(record.body).unwrap();
        seen.push((sample.id.unwrap(), sample.ip.unwrap().0, sample.callchain.len()));
    }
    assert_eq!(seen, [(OFF_CPU_ID, frames[1], 3), (55, frames[0], 4)]);
}

#[test]
fn a_place_keeps_two_stacks_and_counts_unknown_ones() {
    let mut bytes = Vec::new();
    let alike = |n: u64| 5 + n * PLACES as u64;
    (0..3).for_each(|n| push(&mut bytes, 1, 1, &stack(alike(n), &[0x400 + n])));
    (0..3).for_each(|n| push(&mut bytes, 1, 2, &sample(55, alike(n), 0)));
    push(&mut bytes, 1, 3, &[9, 9, 9, 9, 9]);
    let mut decoder = decoder();
    decode_all(&mut decoder, &bytes, 0);
    let counts = decoder.counts;
    assert_eq!((counts.records, counts.unknown_stacks, counts.unreadable), (3, 1, 1));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        written in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut all = Vec::new();
        push(&mut all, 1, 1, &written);
        all.extend(&bytes[..bytes.len() / 8 * 8]);
        let seam = all.len() / 16 * 8;
        let mut decoder = decoder();
        decode_all(&mut decoder, &all, seam);
    }
}

/// A function behind the records of a drain has the time of the last of them, and comes once in an output.
#[test]
fn functions_follow_the_records_of_any_ring_once_in_an_output() {
    let named = Arc::<Mutex<Named>>::default();
    let given = || DecoderConfig { named: named.clone(), ..given() };
    let mut decoders =
        [(); 2].map(|()| BpfRecordDecoder::new((&attr(), BPF_OUTPUT), vec![], given()));
    let layout = SampleLayout::new(&attr());
    let written = |decoder: &mut BpfRecordDecoder| {
        let mut out = Vec::new();
        while decoder.rest(1, &mut out) {}
        let (mut rest, mut written) = (&out[..], Vec::new());
        while let Some((record, tail)) = RawRecord::split(rest) {
            rest = tail;
            let Some(SideBand::Function(function)) = SideBand::parse(record) else {
                panic!("{record:?} is no function");
            };
            let id = layout.parse_id_trailer(record.body).unwrap();
            written.push((function.start, id.time.map(|time| time.0), id.id));
        }
        written
    };
    let mut bytes = Vec::new();
    push(&mut bytes, thread(9, 10), 100, &sample(55, 0, 0));
    assert!(!decode_all(&mut decoders[0], &bytes, 0).is_empty());
    named.lock().unwrap().add(crate::python::tests::function(1));
    named.lock().unwrap().add(crate::python::tests::function(2));
    let [first, second] = &mut decoders;
    assert_eq!(written(first), [1, 2].map(|start| (start, Some(100), Some(BPF_OUTPUT))));
    assert_eq!((written(first), written(second)), (vec![], vec![]));
    // The second one goes on in another output, which has none yet, and the first one still writes the old one.
    second.start_stream();
    named.lock().unwrap().add(crate::python::tests::function(3));
    assert_eq!(written(first), []);
    let all = [1, 2, 3].map(|start| (start, Some(100), Some(BPF_OUTPUT)));
    assert_eq!(written(second), all);
    first.start_stream();
    assert_eq!(written(first), []);
}
