use super::*;
use crate::attr::AttrFlags;
use crate::cpu_account::CpuAccount;
use crate::encode::push_record;
use crate::record::{RawRecord, SideBand, record_type};
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
    /// The numbers are indices of stacks that were defined before: of the kernel, of user mode, and of the object.
    Switch(Switch, [usize; 3]),
    Came(Thread, u64),
    Account(Thread, u64, CpuAccount),
    /// The number is an index of a stack that was defined before.
    Ready(Thread, u64, usize),
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
    (any::<u64>(), thread(), next, any::<bool>(), state).prop_map(
        |(time_ns, thread, next, is_preemption, state)| Switch {
            time_ns,
            thread,
            next,
            is_preemption,
            state,
        },
    )
}

fn account() -> impl Strategy<Value = CpuAccount> {
    (0u32..4, any::<[u32; 3]>()).prop_map(|(parts, ns)| CpuAccount::new(parts, ns.map(u64::from)))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => proptest::collection::vec(any::<u64>(), 0..CHAIN_WORDS_MAX).prop_map(Step::Stack),
        9 => (switch(), any::<[usize; 3]>()).prop_map(|(switch, of)| Step::Switch(switch, of)),
        1 => (thread(), any::<u64>()).prop_map(|(thread, time)| Step::Came(thread, time)),
        1 => (thread(), any::<u64>(), account()).prop_map(|(thread, time, account)| {
            Step::Account(thread, time, account)
        }),
        1 => (thread(), any::<u64>(), any::<usize>()).prop_map(|(thread, time, object)| {
            Step::Ready(thread, time, object)
        }),
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
                Step::Switch(switch, of) => {
                    packer.finish_if_full(&mut out);
                    let [kernel, user, object] = of.map(|at| &stacks[at % stacks.len()]);
                    let numbers = Numbers { kernel: kernel.0, user: user.0, object: object.0 };
                    packer.switch(&switch, numbers);
                    let (kernel, user, object) = (&*kernel.1, &*user.1, &*object.1);
                    ordinary.switch(&switch, Chains { kernel, user, object }, &mut wanted);
                }
                Step::Came(thread, time) => {
                    packer.came(thread, time);
                    ordinary.came(thread, time, &mut wanted);
                }
                Step::Account(thread, time, account) => {
                    packer.account(thread, time, &account);
                    ordinary.account(thread, time, &account, &mut wanted);
                }
                Step::Ready(thread, time, object) => {
                    let object = &stacks[object % stacks.len()];
                    packer.ready(thread, time, object.0);
                    ordinary.ready(thread, time, &object.1, &mut wanted);
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
        let numbers = Numbers { user: stack, ..Numbers::default() };
        packer.switch(&Switch { time_ns, ..Switch::default() }, numbers);
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
    packer.switch(&Switch::default(), Numbers { kernel: 9, user: u32::MAX, object: 3 });
    let (mut out, mut unpacked, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    packer.finish(&mut out);
    Unpacker::new(&event(true)).unwrap().unpack(&out, &mut unpacked);
    Ordinary::new(origin).switch(&Switch::default(), Chains::default(), &mut wanted);
    assert_eq!(unpacked, wanted);
}

#[test]
fn cut_and_unknown_records_stay_as_they_are() {
    let origin = Origin { id: ID, cpu: 0, has_cpu: true, is_cpu_wide: false };
    let mut packer = Packer::new(origin);
    let stack = packer.define(&chain(&[1, 2]));
    packer.switch(&Switch::default(), Numbers { kernel: stack, ..Numbers::default() });
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
    let switch =
        Switch { time_ns: 600, thread: leaves, next: Some(comes), is_preemption: true, state };
    let mut packer = Packer::new(origin);
    let stack = packer.define(&chain(&[0x10]));
    packer.switch(&switch, Numbers { user: stack, ..Numbers::default() });
    packer.came(Thread { pid: 30, tid: 31 }, 500);
    let mut packed = Vec::new();
    packer.finish(&mut packed);
    let sample = [9 | 1 << 32 | 176 << 48, 0x8000_0000_0000_0005, 0, 0, 600, 3, 124];
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
    let wait = |packer: &mut Packer, time_ns, futex| {
        let thread = Thread { pid: 10, tid: 11 };
        let switch = Switch { time_ns, thread, state: 0x8000_0001, ..Switch::default() };
        let object = if futex == 0 { 0 } else { packer.define_futex(futex) };
        packer.switch(&switch, Numbers { object, ..Numbers::default() });
    };
    let mut packer = Packer::new(origin);
    let mut packed = Vec::new();
    for futex in [0xabcd, 0xabcd, 0, 0xef] {
        wait(&mut packer, 600, futex);
    }
    // Two definitions of three words, and four switches of five.
    assert_eq!(packer.pending_bytes(), (2 * 3 + 4 * 5) * 8);
    packer.finish(&mut packed);
    wait(&mut packer, 700, 0xabcd);
    assert_eq!(packer.pending_bytes(), 5 * 8);
    packer.finish(&mut packed);
    packer.forget();
    wait(&mut packer, 800, 0xef);
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

#[test]
fn an_account_of_any_length_keeps_its_sums() {
    let origin = Origin { id: ID, cpu: 3, has_cpu: true, is_cpu_wide: true };
    let (thread, parts) = (Thread { pid: 5, tid: 6 }, 3);
    let large = [u64::from(u32::MAX) * 2 + 1, 7, u64::from(u32::MAX)];
    let mut packer = Packer::new(origin);
    packer.account(thread, 900, &CpuAccount::new(parts, large));
    let (mut packed, mut unpacked) = (Vec::new(), Vec::new());
    packer.finish(&mut packed);
    Unpacker::new(&event(true)).unwrap().unpack(&packed, &mut unpacked);
    let (mut rest, mut sums) = (&unpacked[..], [0; 3]);
    while let Some((record, tail)) = RawRecord::split(rest) {
        let Some(SideBand::CpuAccount(account)) = SideBand::parse(record) else { panic!() };
        assert_eq!(account.parts(), parts);
        sums.iter_mut().zip(account.times_ns()).for_each(|(sum, ns)| *sum += ns);
        rest = tail;
    }
    assert_eq!(sums, large);
}

#[test]
fn earlier_layouts_are_read() {
    let origin = Origin { id: ID, cpu: 3, has_cpu: true, is_cpu_wide: true };
    let mut packer = Packer::new(origin);
    packer.came(Thread { pid: 5, tid: 6 }, 900);
    let mut packed = Vec::new();
    packer.finish(&mut packed);
    for id in EARLIER_PACKED_IDS {
        packed[8..16].copy_from_slice(&id.to_le_bytes());
        let older = EventDesc { ids: vec![id], ..event(true) };
        assert!(is_packed(&older));
        let mut unpacked = Vec::new();
        Unpacker::new(&older).unwrap().unpack(&packed, &mut unpacked);
        assert_eq!(records(&unpacked), [(record_type::SWITCH_CPU_WIDE, 48)]);
    }
}
