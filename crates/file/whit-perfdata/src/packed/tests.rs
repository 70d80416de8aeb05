use super::*;
use crate::attr::AttrFlags;
use crate::encode::push_record;
use crate::record::{RawRecord, record_type};
use crate::sample::context;
use proptest::prelude::*;

const ID: u64 = 4711;

fn event(has_cpu: bool) -> EventDesc {
    let sample_type = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::RAW;
    let sample_type = if has_cpu { sample_type | SampleType::CPU } else { sample_type };
    describe(&Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() })
}

fn chain(addresses: &[u64]) -> Vec<u8> {
    [&[context::USER], addresses].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn records(bytes: &[u8]) -> Vec<(u32, usize)> {
    let mut rest = bytes;
    let mut seen = Vec::new();
    while let Some((record, tail)) = RawRecord::split(rest) {
        seen.push((record.header.kind, usize::from(record.header.size_bytes)));
        rest = tail;
    }
    assert!(rest.is_empty());
    seen
}

#[derive(Clone, Debug)]
enum Step {
    Stack(Vec<u64>),
    /// The numbers are indices of stacks that were defined before.
    Switch(Switch, usize, usize),
    Came(Thread, u64),
    /// A record of somebody else's.
    Other(usize),
    /// The packed ones so far are to be read.
    Close,
}

fn thread() -> impl Strategy<Value = Thread> {
    (any::<u32>(), 0u32..4).prop_map(|(pid, tid)| Thread { pid, tid })
}

fn switch() -> impl Strategy<Value = Switch> {
    let state = prop_oneof![Just(0), (0u32..0x200).prop_map(|state| 1 << 31 | state)];
    let next = proptest::option::of(thread());
    let futex = prop_oneof![3 => Just(0), 1 => 1u64..4, 1 => any::<u64>()];
    (any::<u64>(), thread(), next, any::<bool>(), state, futex).prop_map(
        |(time_ns, thread, next, is_preemption, state, futex)| Switch {
            time_ns,
            thread,
            next,
            is_preemption,
            state,
            futex,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => proptest::collection::vec(any::<u64>(), 0..CHAIN_WORDS_MAX).prop_map(Step::Stack),
        9 => (switch(), any::<usize>(), any::<usize>()).prop_map(|(s, k, u)| Step::Switch(s, k, u)),
        1 => (thread(), any::<u64>()).prop_map(|(thread, time)| Step::Came(thread, time)),
        1 => (1usize..20).prop_map(Step::Other),
        1 => Just(Step::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn packed_switches_are_unpacked_as_perf_writes_them(
        steps in proptest::collection::vec(step(), 0..400),
        has_cpu: bool,
        is_cpu_wide: bool,
        cut in any::<prop::sample::Index>(),
    ) {
        let origin = Origin { id: ID, cpu: 3, has_cpu, is_cpu_wide };
        let (mut packer, ordinary) = (Packer::new(origin), Ordinary::new(origin));
        let (mut out, mut wanted, mut stacks) = (Vec::new(), Vec::new(), vec![(0, Vec::new())]);
        let (mut blocks, mut counted) = (vec![0], (0, 0));
        for step in steps {
            match step {
                Step::Stack(addresses) => {
                    let chain = chain(&addresses);
                    stacks.push((packer.define(&chain), chain));
                }
                Step::Switch(switch, kernel, user) => {
                    packer.finish_if_full(&mut out);
                    let (kernel, user) = (&stacks[kernel % stacks.len()], &stacks[user % stacks.len()]);
                    packer.switch(&switch, kernel.0, user.0);
                    ordinary.switch(&switch, &kernel.1, &user.1, &mut wanted);
                }
                Step::Came(thread, time) => {
                    packer.came(thread, time);
                    ordinary.came(thread, time, &mut wanted);
                }
                Step::Other(words) => {
                    packer.finish(&mut out);
                    for out in [&mut out, &mut wanted] {
                        push_record(out, record_type::COMM, 0, &vec![7; words * 8]);
                    }
                }
                Step::Close => {
                    packer.finish(&mut out);
                    blocks.push(out.len());
                }
            }
        }
        packer.finish(&mut out);
        prop_assert_eq!(packer.pending_bytes(), 0);
        blocks.push(out.len());
        let mut rest = &out[..];
        while let Some((record, tail)) = RawRecord::split(rest) {
            let last = word(&rest[usize::from(record.header.size_bytes) - 8..], 0);
            let (records, samples) = match record.header.kind {
                record_type::SAMPLE => tally(last),
                _ => (1, 0),
            };
            counted = (counted.0 + records, counted.1 + samples);
            rest = tail;
        }
        let seen = records(&wanted);
        let samples = seen.iter().filter(|(kind, _)| *kind == record_type::SAMPLE).count();
        prop_assert_eq!(counted, (seen.len() as u64, samples as u64));

        let unpacker = Unpacker::new(&event(has_cpu)).unwrap();
        let mut all = Vec::new();
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for range in blocks.windows(2) {
            let mut part = Vec::new();
            unpacker.unpack(&out[range[0]..range[1]], &mut part);
            all.extend_from_slice(&part);
            parts.push(part);
        }
        prop_assert!(all == wanted);
        // After that, blocks in any order.
        let number = cut.index(parts.len());
        let mut again = Vec::new();
        unpacker.unpack(&out[blocks[number]..blocks[number + 1]], &mut again);
        prop_assert!(again == parts[number]);
    }

    /// Nonsense comes through unchanged, and the rest is unpacked.
    #[test]
    fn nonsense_stays_as_it_is(
        words in proptest::collection::vec(prop_oneof![any::<u64>(), 0u64..4, Just(PACKED_ID)], 0..60),
        has_cpu: bool,
    ) {
        let body: Vec<u8> =
            [PACKED_ID].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
        let mut block = Vec::new();
        push_record(&mut block, record_type::SAMPLE, 0, &body);
        push_record(&mut block, record_type::COMM, 0, &[1; 16]);
        let unpacker = Unpacker::new(&event(has_cpu)).unwrap();
        let mut out = Vec::new();
        unpacker.unpack(&block, &mut out);
        prop_assert!(out.ends_with(&block[block.len() - 24..]));
        records(&out);
    }
}

#[test]
fn a_switch_takes_forty_bytes_and_a_stack_is_said_once() {
    let origin = Origin { id: ID, cpu: 0, has_cpu: true, is_cpu_wide: false };
    let mut packer = Packer::new(origin);
    let stack = packer.define(&chain(&[1; 20]));
    let mut out = Vec::new();
    for time_ns in 0..10_000 {
        packer.finish_if_full(&mut out);
        packer.switch(&Switch { time_ns, ..Switch::default() }, 0, stack);
    }
    packer.finish(&mut out);
    assert!(out.len() < 10_000 * 41, "{}", out.len());
    assert!(records(&out).iter().all(|(kind, _)| *kind == record_type::SAMPLE));
    let mut unpacked = Vec::new();
    Unpacker::new(&event(true)).unwrap().unpack(&out, &mut unpacked);
    assert_eq!(records(&unpacked).len(), 20_000);
}

#[test]
fn a_stack_that_is_not_defined_is_none() {
    let origin = Origin { id: ID, cpu: 0, has_cpu: true, is_cpu_wide: false };
    let mut packer = Packer::new(origin);
    packer.switch(&Switch::default(), 9, u32::MAX);
    let (mut out, mut unpacked, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    packer.finish(&mut out);
    Unpacker::new(&event(true)).unwrap().unpack(&out, &mut unpacked);
    Ordinary::new(origin).switch(&Switch::default(), &[], &[], &mut wanted);
    assert_eq!(unpacked, wanted);
}

#[test]
fn cut_and_unknown_records_stay_as_they_are() {
    let origin = Origin { id: ID, cpu: 0, has_cpu: true, is_cpu_wide: false };
    let mut packer = Packer::new(origin);
    let stack = packer.define(&chain(&[1, 2]));
    packer.switch(&Switch::default(), stack, 0);
    packer.came(Thread::default(), 9);
    let mut block = Vec::new();
    packer.finish(&mut block);
    let unpacked = |block: &[u8]| {
        let mut out = Vec::new();
        Unpacker::new(&event(true)).unwrap().unpack(block, &mut out);
        out
    };
    assert_eq!(records(&unpacked(&block)).len(), 3);
    // Header, fields of the sample, its size, and two words in front.
    let first = 9 * 8;
    for (at, byte) in [(first, 0), (first, 7), (first + 2, 200), (first + 4 * 8, 3)] {
        let mut other = block.clone();
        other[at] = byte;
        assert!(unpacked(&other) == other, "{at} {byte}");
    }
}

#[test]
fn only_layouts_that_can_be_read_are_packed() {
    assert!(is_packed(&event(true)) && is_packed(&event(false)));
    let mut other = event(true);
    other.attr.sample_type |= SampleType::PERIOD;
    assert!(!is_packed(&other) && Unpacker::new(&other).is_none());
    assert!(!is_packed(&EventDesc { ids: vec![PACKED_ID, 1], ..event(true) }));
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The words of docs/format.md, and those of perf's records.
#[test]
fn files_and_perf_have_these_words() {
    let origin = Origin { id: ID, cpu: 3, has_cpu: true, is_cpu_wide: true };
    let (leaves, comes) = (Thread { pid: 10, tid: 11 }, Thread { pid: 20, tid: 21 });
    let state = 0x8000_0005;
    let switch = Switch {
        time_ns: 600,
        thread: leaves,
        next: Some(comes),
        is_preemption: true,
        state,
        futex: 0,
    };
    let mut packer = Packer::new(origin);
    let stack = packer.define(&chain(&[0x10]));
    packer.switch(&switch, 0, stack);
    packer.came(Thread { pid: 30, tid: 31 }, 500);
    let mut packed = Vec::new();
    packer.finish(&mut packed);
    let sample = [9 | 1 << 32 | 176 << 48, 0x8000_0000_0000_0001, 0, 0, 600, 3, 124];
    let head = [3 | 1 << 32 | 1 << 33, ID];
    let define = [1 | 2 << 16 | 1 << 32, context::USER, 0x10];
    let leaving = [2 | 3 << 8 | 0x8005 << 16 | 11 << 32, 600, 10 | 20 << 32, 1 << 32, 21];
    let coming = [3 | 31 << 32, 500, 30];
    let tail = [500, 4 | 1 << 32];
    let words = [&sample[..], &head, &define, &leaving, &coming, &tail].concat();
    assert_eq!(packed, bytes_of(&words));

    let mut unpacked = Vec::new();
    Unpacker::new(&event(true)).unwrap().unpack(&packed, &mut unpacked);
    let (thread, next, other) = (11 << 32 | 10, 21 << 32 | 20, 31 << 32 | 30);
    let sample = [9 | 1 << 32 | 88 << 48, ID, 0x10, thread, 600, 3, 1, 2, context::USER, 0x10];
    let raw = [4 | u64::from(state) << 32];
    let leaves_words = [15 | 3 << (32 + 13) | 48 << 48, next, thread, 600, 3, ID];
    let comes_words = [15 | 48 << 48, thread, next, 600, 3, ID];
    let came = [15 | 48 << 48, 0, other, 500, 3, ID];
    let words = [&sample[..], &raw, &leaves_words, &comes_words, &came].concat();
    assert_eq!(unpacked, bytes_of(&words));

    let mut went = Vec::new();
    Ordinary::new(origin).went(leaves, comes, 600, &mut went);
    assert_eq!(went, bytes_of(&[15 | 1 << (32 + 13) | 48 << 48, next, thread, 600, 3, ID]));
    // The switches of some threads, in records without CPU.
    let own = Origin { has_cpu: false, is_cpu_wide: false, ..origin };
    went.clear();
    Ordinary::new(own).went(leaves, comes, 600, &mut went);
    assert_eq!(went, bytes_of(&[14 | 1 << (32 + 13) | 32 << 48, thread, 600, ID]));
}

/// A futex is defined once, in front of the first wait at it. Its address follows the state.
#[test]
fn futexes_are_defined_as_stacks_are() {
    let origin = Origin { id: ID, cpu: 3, has_cpu: true, is_cpu_wide: false };
    let wait = |time_ns, futex| Switch {
        time_ns,
        thread: Thread { pid: 10, tid: 11 },
        state: 0x8000_0001,
        futex,
        ..Switch::default()
    };
    let mut packer = Packer::new(origin);
    let mut packed = Vec::new();
    for futex in [0xabcd, 0xabcd, 0, 0xef] {
        packer.switch(&wait(600, futex), 0, 0);
    }
    // Two definitions of three words, and four switches of five.
    assert_eq!(packer.pending_bytes(), (2 * 3 + 4 * 5) * 8);
    packer.finish(&mut packed);
    packer.switch(&wait(700, 0xabcd), 0, 0);
    assert_eq!(packer.pending_bytes(), 5 * 8);
    packer.finish(&mut packed);
    packer.forget();
    packer.switch(&wait(800, 0xef), 0, 0);
    assert_eq!(packer.pending_bytes(), 8 * 8);
    let mut unpacked = Vec::new();
    Unpacker::new(&event(true)).unwrap().unpack(&packed, &mut unpacked);
    let (mut rest, mut seen) = (&unpacked[..], Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        rest = tail;
        if record.header.kind == record_type::SAMPLE {
            let raw = &record.body[56..];
            seen.push((word(raw, 0), (raw.len() > 8).then(|| word(raw, 1))));
        }
    }
    let (with, without) = (12 | 0x8000_0001 << 32, 4 | 0x8000_0001 << 32);
    let wanted = [
        (with, Some(0xabcd)),
        (with, Some(0xabcd)),
        (without, None),
        (with, Some(0xef)),
        (with, Some(0xabcd)),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_new_stream_defines_its_stacks_anew() {
    let mut packer = Packer::new(Origin { id: ID, cpu: 0, has_cpu: true, is_cpu_wide: false });
    assert_eq!([packer.define(&chain(&[1])), packer.define(&chain(&[2]))], [1, 2]);
    assert_eq!(packer.pending_bytes(), 6 * 8);
    packer.forget();
    assert_eq!(packer.define(&chain(&[3])), 1);
    // A chain that is too long keeps its inner part.
    assert_eq!(packer.define(&chain(&[4; 200])), 2);
    assert_eq!(packer.pending_bytes(), (9 + 129) * 8);
}
