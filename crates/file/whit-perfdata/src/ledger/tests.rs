use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use whit_types::{OpenFailure, StackEnd};

use super::*;

/// Fields of the ledger and of a reader in the version before PMIs and BPF programs were there.
const OLD_FIELDS: usize = 21;
const OLD_READER_FIELDS: usize = 10;

/// Words of the file, those that no field has left out.
fn ledger(words: &[u64], readers: &[[u64; OLD_READER_FIELDS]]) -> Ledger {
    let mut ledger = Ledger::default();
    set(fields(), &mut ledger, words);
    for words in readers {
        let mut reader = ReaderLedger::default();
        set(READER_FIELDS.iter(), &mut reader, words);
        ledger.readers.push(reader);
    }
    ledger
}

fn set<T: 'static>(fields: impl Iterator<Item = &'static Field<T>>, of: &mut T, words: &[u64]) {
    for field in fields {
        for (index, number) in field.numbers.iter().enumerate() {
            if let Some(word) = words.get(*number) {
                (field.set_word)(of, index, *word);
            }
        }
    }
}

/// How many words the file has.
fn stored() -> usize {
    fields().flat_map(|field| field.numbers).max().map_or(0, |last| last + 1)
}

/// The words as the file keeps them: words without a field are zero.
fn known(words: &[u64]) -> Vec<u64> {
    let is_known = |number| fields().any(|field| field.numbers.contains(&number));
    let word = |(number, word): (usize, &u64)| if is_known(number) { *word } else { 0 };
    words.iter().enumerate().map(word).collect()
}

/// A section with so many fields, and `width` in each reader, by any version of whit.
fn section(words: &[u64], readers: &[Vec<u64>], width: usize) -> Vec<u8> {
    let mut out = VERSION.to_le_bytes().to_vec();
    out.extend((words.len() as u32).to_le_bytes());
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out.extend((readers.len() as u32).to_le_bytes());
    out.extend((width as u32).to_le_bytes());
    out.extend(readers.concat().iter().flat_map(|word| word.to_le_bytes()));
    out
}

/// Codes that are known, and others.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![0..12u64, any::<u64>()]
}

proptest! {
    #[test]
    fn written_sections_are_read_back(
        words in vec(word(), stored()),
        readers in vec(any::<[u64; OLD_READER_FIELDS]>(), 0..4),
    ) {
        let ledger = ledger(&words, &readers);
        let bytes = ledger.to_bytes();
        let readers: Vec<_> = readers.iter().map(|reader| reader.to_vec()).collect();
        prop_assert_eq!(&bytes, &section(&known(&words), &readers, OLD_READER_FIELDS));
        prop_assert_eq!(Ledger::from_bytes(&bytes), Some(ledger));
    }

    /// Any number of fields in front of any number of readers: what older and newer versions write.
    #[test]
    fn other_versions_are_read_as_far_as_they_are_known(
        words in vec(word(), 0..stored() + 9),
        readers in vec(vec(any::<u64>(), 13), 0..3),
        width in 0..13usize,
    ) {
        let readers: Vec<_> = readers.iter().map(|reader| reader[..width].to_vec()).collect();
        let read = Ledger::from_bytes(&section(&words, &readers, width)).unwrap();
        let mut wanted = ledger(&words, &[]);
        for words in &readers {
            let mut known = [0; OLD_READER_FIELDS];
            known.iter_mut().zip(words).for_each(|(known, word)| *known = *word);
            wanted.readers.extend(ledger(&[], &[known]).readers);
        }
        prop_assert_eq!(read, wanted);
    }

    #[test]
    fn no_bytes_are_too_bad(bytes in vec(any::<u8>(), 0..300), is_ours in any::<bool>()) {
        let mut bytes = bytes;
        if is_ours && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
        }
        let _ = Ledger::from_bytes(&bytes);
    }
}

#[test]
fn round_trip_and_older_shorter_versions() {
    let words: Vec<u64> = (1..=stored() as u64).collect();
    let reader = |n: u64| std::array::from_fn(|i| 100 * n + i as u64);
    let ledger = ledger(&words, &[reader(0), reader(1), reader(2)]);
    let bytes = ledger.to_bytes();
    assert_eq!(Ledger::from_bytes(&bytes), Some(ledger));
    let mut short = bytes[..24].to_vec();
    short[4] = 2;
    let old = Ledger::from_bytes(&short).unwrap();
    assert_eq!((old.wall_ns, old.setup_ns, old.teardown_ns), (1, 2, 0));
    assert_eq!(Ledger::from_bytes(&bytes[..20]), None);
}

#[test]
fn an_older_recording_says_that_it_lacks_figures() {
    let words = [7; OLD_FIELDS];
    let old =
        Ledger::from_bytes(&section(&words, &[vec![9; OLD_READER_FIELDS]], OLD_READER_FIELDS))
            .unwrap();
    assert_eq!((old.unwritten_records, old.readers[0].stall_ns), (7, 9));
    assert_eq!((old.pmi, old.bpf), (PmiLedger::default(), BpfLedger::default()));
    assert!(old.pmi.measurement.reason().is_some() && old.bpf.measurement.reason().is_some());
}

#[test]
fn the_cost_of_recording_is_separate_from_that_of_setting_up() {
    let ledger = Ledger {
        wall_ns: 3_410,
        setup_ns: 2_400,
        teardown_ns: 10,
        user_cpu_ns: 600,
        system_cpu_ns: 290,
        setup_cpu_ns: 870,
        teardown_cpu_ns: 5,
        ..Ledger::default()
    };
    assert_eq!((ledger.recorded_ns(), ledger.cpu_ns()), (1_000, 890));
    assert_eq!(ledger.recording_cpu_ns(), Some(15));
    let untold = Ledger { setup_cpu_ns: 0, teardown_cpu_ns: 0, ..ledger };
    assert_eq!(untold.recording_cpu_ns(), None);
    // A ledger of any version.
    let odd =
        Ledger { setup_ns: u64::MAX, setup_cpu_ns: u64::MAX, user_cpu_ns: u64::MAX, ..untold };
    assert_eq!((odd.recorded_ns(), odd.recording_cpu_ns()), (0, Some(0)));
}

#[test]
fn kernel_side_fields_are_where_the_format_says() {
    let ledger = Ledger {
        pmi: PmiLedger {
            measurement: PmiMeasurement::AllHandlers,
            count: 21,
            time_ns: 22,
            longest_ns: 23,
            measured_ns: 24,
        },
        bpf: BpfLedger {
            measurement: BpfMeasurement::NotPermitted,
            programs: 1,
            runs: 26,
            run_time_ns: 27,
            timed_ns: 28,
        },
        stacks: StackLedger {
            walks: 1,
            known_again: 2,
            frames: 3,
            tables: 4,
            cached_tables: 5,
            without_table: 6,
            refused_tables: 7,
            unknown_mappings: 38,
            rows: 8,
            rules: 9,
            table_bytes: 10,
            build_ns: 11,
            // Later fields stand behind the time for which programs were timed.
            ended: std::array::from_fn(|number| 12 + number as u64 + u64::from(number > 15)),
            not_opened: std::array::from_fn(|number| 30 + number as u64),
        },
        cut_processes: 37,
        setup_cpu_ns: 41,
        teardown_cpu_ns: 42,
        watched_threads: 43,
        ran_threads: 44,
        lost_cpus: 45,
        late_cpus: 46,
        ..Ledger::default()
    };
    let bytes = ledger.to_bytes();
    let word = |field: usize| bytes[8 + 8 * field];
    let kernel_side: Vec<u8> = (OLD_FIELDS..30).map(word).collect();
    assert_eq!(kernel_side, [2, 21, 22, 23, 24, 3, 1, 26, 27]);
    let stacks: Vec<u8> = (30..57).map(word).collect();
    assert_eq!(stacks, (1..=27).collect::<Vec<u8>>());
    let later: Vec<u8> = (57..76).map(word).collect();
    let words: Vec<u8> = (28..=38).chain([0, 0]).chain(41..=46).collect();
    assert_eq!(later, words);
    assert_eq!(bytes.len(), 8 + stored() * 8 + 8);
    assert_eq!(ledger.pmi.average_ns(), 1);
}

#[test]
fn no_two_fields_have_a_number_or_a_name_in_common() {
    let (mut numbers, mut names) = (HashSet::new(), HashSet::new());
    for group in &GROUPS {
        for field in group.fields {
            assert!(names.insert((group.member, field.name)), "{}", field.name);
            for number in field.numbers {
                assert!(numbers.insert(number), "{}: {number}", field.name);
            }
        }
    }
    let readers: Vec<_> = READER_FIELDS.iter().flat_map(|field| field.numbers).collect();
    assert_eq!(readers.iter().collect::<HashSet<_>>().len(), readers.len());
    assert_eq!(readers.len(), OLD_READER_FIELDS);
}

#[test]
fn conditions_of_lines_name_fields() {
    for field in fields() {
        if let Line::If(_, name) | Line::Noted(_, name, _) = field.line {
            assert!(fields().any(|other| other.name == name), "{}", field.name);
        }
    }
}

fn group(title: &str) -> &'static Group {
    GROUPS.iter().find(|group| group.title == title).expect(title)
}

fn field<'a>(group: &'a Group, name: &str) -> &'a Field<Ledger> {
    group.fields.iter().find(|field| field.name == name).expect(name)
}

#[test]
fn a_group_of_zeros_is_left_out_only_where_nothing_of_the_kind_was_done() {
    let none = Ledger::default();
    let titles = |ledger: &Ledger| {
        let reported = GROUPS.iter().filter(|group| group.is_reported(ledger));
        reported.map(|group| group.title).collect::<Vec<_>>()
    };
    let stacks = "Stacks unwound in the kernel";
    let without: Vec<_> =
        GROUPS.iter().map(|group| group.title).filter(|title| *title != stacks).collect();
    assert_eq!(titles(&none), without);
    for change in [
        |stacks: &mut StackLedger| stacks.walks = 1,
        |stacks: &mut StackLedger| stacks.build_ns = 2,
        |stacks: &mut StackLedger| *stacks.not_opened.last_mut().unwrap() = 1,
    ] {
        let mut ledger = none.clone();
        change(&mut ledger.stacks);
        assert_eq!(titles(&ledger).last(), Some(&stacks));
    }
}

#[test]
fn figures_that_were_not_measured_are_reasons() {
    let mut ledger = Ledger { wall_ns: 70, ..Ledger::default() };
    (ledger.pmi.count, ledger.bpf.programs, ledger.bpf.runs) = (21, 3, 26);
    let (time, pmi, bpf) =
        (&GROUPS[0], group("Interrupts of the PMU"), group("BPF programs of the recorder"));
    assert_eq!((pmi.member, bpf.member, time.member), (Some("pmi"), Some("bpf"), None));
    assert_eq!(group("Stacks unwound in the kernel").member, Some("stacks"));
    let figures = |ledger: &Ledger| {
        [(time, "wall_ns"), (pmi, "count"), (bpf, "programs"), (bpf, "runs")]
            .map(|(group, name)| group.figure(field(group, name), ledger))
    };
    let untold = PmiMeasurement::Untold.reason().unwrap();
    assert_eq!(figures(&ledger), [Ok(70), Err(untold), Ok(3), Err(untold)]);
    ledger.pmi.measurement = PmiMeasurement::AllHandlers;
    ledger.bpf.measurement = BpfMeasurement::NoStatistics;
    let no_statistics = BpfMeasurement::NoStatistics.reason().unwrap();
    assert_eq!(figures(&ledger), [Ok(70), Ok(21), Ok(3), Err(no_statistics)]);
    ledger.bpf.measurement = BpfMeasurement::Statistics;
    assert_eq!(figures(&ledger), [Ok(70), Ok(21), Ok(3), Ok(26)]);
    let names = [time, pmi, bpf].map(|group| group.measurement(&ledger).map(|how| how.name));
    assert_eq!(names, [None, Some("all_handlers"), Some("statistics")]);
    let can_fail = [(time, "wall_ns"), (pmi, "count"), (bpf, "programs"), (bpf, "runs")]
        .map(|(group, name)| group.can_fail(field(group, name)));
    assert_eq!(can_fail, [false, true, false, true]);
}

#[test]
fn arrays_are_named_element_by_element_and_zeros_left_out() {
    let mut ledger = Ledger::default();
    let [first, .., last] = StackEnd::ALL;
    (ledger.stacks.ended[first as usize], ledger.stacks.ended[last as usize]) = (5, 1);
    ledger.stacks.not_opened[2] = 4;
    let stacks = group("Stacks unwound in the kernel");
    let elements = |name: &str| field(stacks, name).elements(&ledger).collect::<Vec<(&str, u64)>>();
    assert_eq!(elements("ended"), [(first.name(), 5), (last.name(), 1)]);
    assert_eq!(elements("not_opened"), [(OpenFailure::ALL[2].name(), 4)]);
    assert_eq!(elements("walks"), []);
    assert_eq!(field(stacks, "ended").value(&ledger), 5);
    assert_eq!(ledger.stacks.ends().collect::<Vec<_>>(), [(first, 5), (last, 1)]);
    assert_eq!(ledger.stacks.failures().collect::<Vec<_>>(), [(OpenFailure::ALL[2], 4)]);
    assert_eq!((ledger.stacks.ended(first), ledger.stacks.ended(last)), (5, 1));
    let computed = field(&GROUPS[0], "recorded_ns");
    assert!(!computed.is_stored() && field(stacks, "walks").is_stored());
}

#[test]
fn sums_and_shares_are_those_of_the_fields() {
    let ledger = Ledger {
        lost_records: 9,
        paused_ns: 2,
        elapsed_ns: 100,
        compressed_from_bytes: 500,
        compressed_to_bytes: 200,
        watched_threads: 2,
        pmi: PmiLedger { count: 3, time_ns: 90, ..PmiLedger::default() },
        ..Ledger::default()
    };
    assert_eq!(ledger.data_loss(), DataLoss { lost: 9, paused_ns: 2, elapsed_ns: 100 });
    assert_eq!((ledger.compression_ratio(), Ledger::default().compression_ratio()), (2.5, 1.0));
    assert_eq!((ledger.pmi.average_ns(), PmiLedger::default().average_ns()), (30, 0));
    let ran = Ledger { ran_threads: 1, ..ledger.clone() };
    let no_thread_ran = [&ledger, &ran, &Ledger::default()].map(Ledger::no_thread_ran);
    assert_eq!(no_thread_ran, [true, false, false]);
}

#[test]
fn threads_that_never_ran_are_reported_with_the_way_to_see_more() {
    let text = no_thread_ran_text(1, "17", true);
    assert_eq!(
        text,
        "the thread that was recorded never ran meanwhile: it waited all the time (whit switches shows where)"
    );
    let text = no_thread_ran_text(3, "17", false);
    let begin = "none of the 3 threads that were recorded ran meanwhile: they waited all the time (gdb -p 17 ";
    assert!(text.starts_with(begin) && text.contains("whit record --engine=bpf"), "{text}");
}

#[test]
fn another_version_is_not_read() {
    let mut bytes = Ledger::default().to_bytes();
    assert_eq!(Ledger::from_bytes(&bytes), Some(Ledger::default()));
    bytes[0] += 1;
    assert_eq!(Ledger::from_bytes(&bytes), None);
}
