use super::*;
use crate::sample::Sample;
use std::collections::HashMap;

const FIELDS: [SampleType; 7] = [
    SampleType::IDENTIFIER,
    SampleType::IP,
    SampleType::TID,
    SampleType::TIME,
    SampleType::ID,
    SampleType::READ,
    SampleType::CALLCHAIN,
];

fn attr() -> Attr {
    let sample_type = FIELDS.into_iter().fold(SampleType::default(), |all, field| all | field);
    let read_format = ReadFormat::GROUP | ReadFormat::ID;
    Attr { sample_type, read_format, sample_period_or_freq: 4000, ..Attr::default() }
}

/// Events with the ids 1, 2 and so on.
fn events(attrs: &[Attr]) -> Vec<EventDesc> {
    let event = |(attr, id): (&Attr, u64)| EventDesc {
        attr: attr.clone(),
        ids: vec![id],
        name: "event".to_owned(),
    };
    attrs.iter().zip(1..).map(event).collect()
}

/// A sample of the event with the id 1: thread 7, chain of one address.
fn sample(period: Option<u64>, read: &[u64]) -> Vec<u8> {
    sample_at(99, period, read)
}

fn sample_at(time: u64, period: Option<u64>, read: &[u64]) -> Vec<u8> {
    let words =
        [&[1, 0x40, 7 << 32 | 6, time, 1][..], period.as_slice(), read, &[1, 0x40]].concat();
    let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut record = Vec::new();
    push_record(&mut record, record_type::SAMPLE, 2, &body);
    record
}

/// The events, periods and ids of the samples that a block becomes. Each is at the place of the block's sample, and whole.
fn split(split: &ReadSplit, block: &[u8]) -> (Vec<(usize, u64)>, SplitCounts) {
    let (mut counted, mut out) = (HashMap::new(), Vec::new());
    let mut since = |key, count: u64| count.wrapping_sub(counted.insert(key, count).unwrap_or(0));
    let counts = split.split(block, &mut since, &mut out);
    let (mut rest, mut made) = (&out[..], Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        let event = split.events().event_of_sample(record.body).unwrap();
        let Sample { ip, pid_tid, time, callchain, id, period, .. } =
            split.events().layout(event).unwrap().parse(record.body).unwrap();
        assert_eq!((ip.unwrap().0, pid_tid.unwrap().1.0, time.unwrap().0), (0x40, 7, 99));
        assert_eq!((callchain.iter().collect(), record.header.misc), (vec![0x40], 2));
        assert_eq!(id, Some(event as u64 + 1));
        made.push((event, period.unwrap()));
        rest = tail;
    }
    assert!(rest.is_empty());
    (made, counts)
}

#[test]
fn each_count_is_a_sample_of_what_was_counted_since() {
    let it = ReadSplit::of(&events(&[attr(), attr(), attr()])).unwrap();
    let reads: [&[u64]; 4] = [
        &[3, 100, 1, 5, 2, 0, 3],
        &[3, 250, 1, 5, 2, 2, 3],
        // One that decreased wraps around, as in perf.
        &[3, 251, 1, 4, 2, 2, 3],
        &[1, 300, 1],
    ];
    let block: Vec<u8> = reads.iter().flat_map(|read| sample(None, read)).collect();
    let (made, counts) = split(&it, &block);
    let expected = [(0, 100), (1, 5), (0, 150), (2, 2), (0, 1), (1, u64::MAX), (0, 49)];
    assert_eq!(made, expected);
    assert_eq!(counts, SplitCounts { split: 4, made: 7, ..SplitCounts::default() });
}

#[test]
fn counts_follow_each_other_in_order_of_time() {
    let it = ReadSplit::of(&events(&[attr(), attr()])).unwrap();
    let later = sample_at(200, None, &[2, 100, 1, 7, 2]);
    let block = [later, sample_at(100, None, &[2, 60, 1, 7, 2])].concat();
    let (mut counted, mut out) = (HashMap::new(), Vec::new());
    let mut since = |key, count: u64| count.wrapping_sub(counted.insert(key, count).unwrap_or(0));
    it.split(&block, &mut since, &mut out);
    let (mut rest, mut made) = (&out[..], Vec::new());
    while let Some((record, tail)) = RawRecord::split(rest) {
        let sample = it.events().layout(0).unwrap().parse(record.body).unwrap();
        made.push((sample.time.unwrap().0, sample.id.unwrap(), sample.period.unwrap()));
        rest = tail;
    }
    assert_eq!(made, [(200, 1, 40), (100, 1, 60), (100, 2, 7)]);
}

#[test]
fn a_period_of_the_sample_itself_is_replaced() {
    let with = Attr { sample_type: attr().sample_type | SampleType::PERIOD, ..attr() };
    let it = ReadSplit::of(&events(&[with.clone(), with])).unwrap();
    assert_eq!(split(&it, &sample(Some(77), &[2, 100, 1, 5, 2])).0, [(0, 100), (1, 5)]);
    // Members of older perfs have no period where their leader has one.
    let mixed = [Attr { sample_type: attr().sample_type | SampleType::PERIOD, ..attr() }, attr()];
    let it = ReadSplit::of(&events(&mixed)).unwrap();
    assert_eq!(split(&it, &sample(Some(77), &[2, 100, 1, 5, 2])).0, [(0, 100), (1, 5)]);
}

#[test]
fn counts_are_found_in_every_format() {
    use ReadFormat as F;
    let times = F::TOTAL_TIME_ENABLED | F::TOTAL_TIME_RUNNING;
    let formats: [(ReadFormat, &[u64]); 4] = [
        (F::GROUP | F::ID | F::LOST, &[2, 100, 1, 9, 5, 2, 9]),
        (F::GROUP | F::ID | times, &[2, 11, 12, 100, 1, 5, 2]),
        (F::ID | F::LOST, &[100, 1, 9]),
        (F::ID | times, &[100, 11, 12, 1]),
    ];
    for (read_format, read) in formats {
        let attr = Attr { read_format, ..attr() };
        let it = ReadSplit::of(&events(&[attr.clone(), attr])).unwrap();
        let expected = [(0, 100), (1, 5)];
        let members = if read_format.contains(F::GROUP) { 2 } else { 1 };
        assert_eq!(split(&it, &sample(None, read)).0, expected[..members], "{read_format:?}");
    }
}

#[test]
fn threads_that_inherit_an_event_count_apart() {
    let inherited = Attr { flags: AttrFlags::INHERIT, ..attr() };
    for (attr, tid) in [(inherited, Some(Tid(7))), (attr(), None)] {
        let it = ReadSplit::of(&events(&[attr])).unwrap();
        let mut keys = Vec::new();
        let mut since = |key, _| {
            keys.push(key);
            1
        };
        it.split(&sample(None, &[1, 100, 1]), &mut since, &mut Vec::new());
        assert_eq!(keys, [CountKey { id: 1, tid }]);
    }
}

#[test]
fn counts_of_unknown_events_and_of_other_forms_make_no_samples() {
    let other = Attr { sample_type: SampleType::IDENTIFIER | SampleType::IP, ..Attr::default() };
    let it = ReadSplit::of(&events(&[attr(), attr(), other])).unwrap();
    let (made, counts) = split(&it, &sample(None, &[3, 100, 1, 5, 77, 6, 3]));
    assert_eq!((made, counts.unknown), (vec![(0, 100)], 1));
    let (made, counts) = split(&it, &sample(None, &[1, 5, 0]));
    assert_eq!((made, counts.unknown), (vec![], 1));
    assert!(it.splits(0, 0) && it.splits(0, 1));
    assert!(!it.splits(0, 2) && !it.splits(2, 0) && !it.splits(0, 3));
}

#[test]
fn other_records_stay_as_they_are() {
    let plain = Attr { sample_type: SampleType::IDENTIFIER | SampleType::IP, ..Attr::default() };
    assert!(ReadSplit::of(&events(std::slice::from_ref(&plain))).is_none());
    for flags_and_format in [
        (AttrFlags::WRITE_BACKWARD, ReadFormat::GROUP | ReadFormat::ID),
        (AttrFlags::default(), ReadFormat::GROUP),
    ] {
        let (flags, read_format) = flags_and_format;
        assert!(ReadSplit::of(&events(&[Attr { flags, read_format, ..attr() }])).is_none());
    }
    let it = ReadSplit::of(&events(&[attr(), plain])).unwrap();
    let mut block = Vec::new();
    let of_other: Vec<u8> = [2u64, 0x80].iter().flat_map(|word| word.to_le_bytes()).collect();
    push_record(&mut block, record_type::COMM, 0, b"12345678");
    push_record(&mut block, record_type::SAMPLE, 0, &of_other);
    push_record(&mut block, record_type::EXIT, 0, b"12345678");
    let mut out = Vec::new();
    assert_eq!(it.split(&block, &mut |_, _| 1, &mut out), SplitCounts::default());
    assert_eq!(out, block);
}

#[test]
fn a_sample_that_is_cut_stays_too_short() {
    let it = ReadSplit::of(&events(&[attr()])).unwrap();
    // Without its counts, the second one would have a period of 5 and an empty chain.
    for (read, lens) in [(&[2, 100, 1, 5, 2][..], 8..9 * 8), (&[5, 0], 7 * 8..7 * 8 + 1)] {
        let body = &sample(None, read)[8..];
        for len in lens.step_by(8) {
            let (mut block, mut out) = (Vec::new(), Vec::new());
            push_record(&mut block, record_type::SAMPLE, 0, &body[..len]);
            it.split(&block, &mut |_, _| 1, &mut out);
            let (record, rest) = RawRecord::split(&out).unwrap();
            assert!(rest.is_empty());
            assert_eq!(it.events().event_of_sample(record.body), Some(0));
            assert!(it.events().layout(0).unwrap().parse(record.body).is_none(), "{len}");
        }
    }
}

#[test]
fn a_sample_has_no_more_counts_than_there_are_ids() {
    let it = ReadSplit::of(&events(&[attr(), attr()])).unwrap();
    let (made, _) = split(&it, &sample(None, &[4, 10, 1, 20, 1, 30, 1, 40, 1]));
    assert_eq!(made, [(0, 10), (0, 10)]);
}

proptest::proptest! {
    /// No panic, and a bound.
    #[test]
    fn any_bytes_are_split(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        format in 0u64..32,
    ) {
        let attr = Attr { read_format: ReadFormat(format | 4), ..attr() };
        let it = ReadSplit::of(&events(&[attr.clone(), attr])).unwrap();
        let (mut block, mut out) = (Vec::new(), Vec::new());
        push_record(&mut block, record_type::SAMPLE, 0, &[&1u64.to_le_bytes(), &bytes[..]].concat());
        let counts = it.split(&block, &mut |_, count| count, &mut out);
        proptest::prop_assert!(counts.made <= 2 && out.len() <= 2 * (block.len() + 8));
    }
}

/// Each sample has a count of every id, and a long chain.
#[test]
fn a_block_grows_by_a_bounded_factor() {
    let mut group = events(&[attr(), attr()]);
    group[0].ids = (1..1000).collect();
    group[1].ids = (1000..2000).collect();
    let it = ReadSplit::of(&group).unwrap();
    let sample = |round: u64| {
        let counts = (1..2000u64).flat_map(|id| [round, id]);
        let read: Vec<u64> = [1999].into_iter().chain(counts).collect();
        let words = [&[1, 0x40, 7 << 32 | 6, 99, 1][..], &read, &[3000], &[0x40; 3000]].concat();
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut record = Vec::new();
        push_record(&mut record, record_type::SAMPLE, 2, &body);
        record
    };
    let block: Vec<u8> = (1..20).flat_map(sample).collect();
    let (mut counted, mut out) = (HashMap::new(), Vec::new());
    let mut since = |key, count: u64| count.wrapping_sub(counted.insert(key, count).unwrap_or(0));
    let counts = it.split(&block, &mut since, &mut out);
    // The last sample that is split may pass the bound by its own counts.
    let most = block.len() * ReadSplit::GROWTH_MAX + 1999 * sample(1).len();
    assert!(out.len() <= most, "{} of {}", out.len(), block.len());
    assert_eq!(counts.split, 19);
    assert_eq!(counts.left_out, 19 - counts.made.div_ceil(1999));
    assert!(counts.left_out > 0);
}
