//! The samples of instructions are added up in one reading, and are those that two readings find.

use crate::support::options;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{misc, record_type};
use whit_perfdata::writer::FileWriter;
use whit_profile::model::{BlockWeight, Profile};
use whit_profile::{ReadOptions, Reading, Samples};
use whit_testing::golden::Golden;
use whit_types::{Pid, Tid};

/// The rule in the crate: a recording with more distinct threads and addresses is read twice.
const MAX_LEAVES: u64 = 1 << 18;
const CODE: u64 = 0x40_0000;

/// A recording in the making.
#[derive(Default)]
struct Records(Vec<u8>);

impl Records {
    fn push(mut self, kind: u32, mode: u16, words: &[u64], text: &[u8], trailer: &[u64]) -> Self {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(text);
        body.extend(trailer.iter().flat_map(|word| word.to_le_bytes()));
        push_record(&mut self.0, kind, mode, &body);
        self
    }

    fn map(self, pid: u64, path: &[u8; 16], time: u64) -> Self {
        let thread = pid << 32 | pid;
        self.push(record_type::MMAP, misc::USER, &[thread, CODE, 1 << 20, 0], path, &[thread, time])
    }

    fn sample(self, pid: u64, at: u64, time: u64) -> Self {
        let words = [CODE + at, pid << 32 | pid, time, 3];
        self.push(record_type::SAMPLE, misc::USER, &words, b"", &[])
    }

    fn file(&self) -> File {
        let attr = Attr {
            pmu_type: 1,
            sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD,
            flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::EXCLUDE_KERNEL,
            ..Attr::default()
        };
        let events = [EventDesc { attr, ids: vec![1], name: "cpu-clock".into() }];
        let mut writer = FileWriter::create(Cursor::new(Vec::new()), &events).unwrap();
        writer.append(&self.0).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&writer.finish(&Features::default()).unwrap().into_inner()).unwrap();
        file.rewind().unwrap();
        file
    }

    fn recording(&self) -> Recording {
        Recording::from_file(Path::new("test.data"), self.file()).unwrap()
    }
}

/// Samples and periods by event, thread, binary and address.
type Rows = BTreeMap<(u32, Pid, Tid, String, u64), (u64, u64)>;

fn rows(profile: &Profile) -> Rows {
    let mut all = Rows::new();
    for row in &profile.rows {
        let thread = &profile.threads[row.thread.index()];
        let frame = &profile.frames[profile.nodes[row.node.index()].frame.index()];
        let dso = &profile.dsos[profile.functions[frame.function.index()].dso.index()];
        let path = dso.path.exact().to_owned();
        let key = (row.event.0, thread.pid, thread.tid, path, frame.address.0);
        let sum = all.entry(key).or_default();
        *sum = (sum.0 + row.samples, sum.1 + row.period);
    }
    all
}

/// The leaves of samples, and nothing else.
fn leaves() -> Samples {
    Samples { leaves: true, ..Samples::default() }
}

/// A profile, and whether the recording was read once.
fn loaded(recording: &Recording, options: &ReadOptions, samples: Samples) -> (Profile, bool) {
    let (most, all) = (AtomicU64::new(0), AtomicU64::new(0));
    let progress = |done, total| {
        most.fetch_max(done, Ordering::Relaxed);
        all.store(total, Ordering::Relaxed);
    };
    let reading = Reading::open(recording, options).with_progress(&progress);
    let profile = reading.answer(samples).unwrap();
    (profile, 2 * most.into_inner() <= all.into_inner())
}

/// The same from two readings, which examples of samples need.
fn loaded_twice(recording: &Recording, options: &ReadOptions, samples: Samples) -> Profile {
    let (profile, is_once) = loaded(recording, options, Samples { examples: 1, ..samples });
    assert!(!is_once || rows(&profile).is_empty(), "a reading that was to be the second of two");
    profile
}

/// Length of the blocks of time, and the weights of each by event, thread and address.
type Blocks = (u64, Vec<BTreeMap<(u32, Tid, u64), u64>>);

fn blocks(profile: &Profile) -> Option<Blocks> {
    let blocks = profile.blocks.as_ref()?;
    let of_block = |weights: &Vec<BlockWeight>| {
        let mut all = BTreeMap::new();
        for weight in weights {
            let context = &blocks.contexts[weight.context as usize];
            let frame = &profile.frames[profile.nodes[weight.node.index()].frame.index()];
            let tid = profile.threads[context.thread.index()].tid;
            *all.entry((context.event.0, tid, frame.address.0)).or_default() += weight.period;
        }
        all
    };
    Some((blocks.length_ns, blocks.weights.iter().map(of_block).collect()))
}

fn assert_alike(one: &Profile, two: &Profile, what: &str) {
    assert_eq!(rows(one), rows(two), "{what}");
    assert_eq!(blocks(one), blocks(two), "{what}");
    assert_eq!(format!("{:?}", one.warnings), format!("{:?}", two.warnings), "{what}");
    assert_eq!(format!("{:?}", one.stats), format!("{:?}", two.stats), "{what}");
    assert_eq!(format!("{:?}", one.losses), format!("{:?}", two.losses), "{what}");
    assert_eq!(format!("{:?}", one.recording), format!("{:?}", two.recording), "{what}");
}

#[test]
fn kept_recordings_give_the_same_in_one_reading_and_in_two() {
    let mut read_once = 0;
    for golden in Golden::all() {
        let Ok(recording) = Recording::open(&golden.path) else { continue };
        for (threads, blocks) in [(1, false), (3, false), (2, true)] {
            let (options, samples) = (options(threads), Samples { blocks, ..leaves() });
            let (one, is_once) = loaded(&recording, &options, samples);
            assert_alike(&one, &loaded_twice(&recording, &options, samples), &golden.name);
            read_once += usize::from(is_once && !one.rows.is_empty());
        }
    }
    assert!(read_once >= 18, "{read_once} readings, of which three are of one recording");
}

#[test]
fn code_that_stays_needs_no_second_reading() {
    let names = [b"/nonexistent/a\0\0", b"/nonexistent/b\0\0"];
    let mut records = Records::default().map(7, names[0], 1).map(8, names[1], 2);
    for time in 10..20 {
        records = records.sample(7, 16 * (time % 3), time).sample(8, 16 * (time % 3), time);
    }
    let recording = records.recording();
    let (profile, is_once) = loaded(&recording, &options(1), leaves());
    assert!(is_once);
    assert_alike(&profile, &loaded_twice(&recording, &options(1), leaves()), "two processes");
    let found: Vec<_> = rows(&profile).into_iter().collect();
    assert_eq!(found.len(), 6);
    assert_eq!(found.iter().map(|(_, sum)| sum.0).sum::<u64>(), 20);
    assert!(found.iter().all(|((_, _, _, path, _), sum)| {
        (path == "/nonexistent/a" || path == "/nonexistent/b") && sum.1 == 3 * sum.0
    }));

    let with_blocks = Samples { blocks: true, ..leaves() };
    let (profile, is_once) = loaded(&recording, &options(1), with_blocks);
    assert!(is_once && profile.blocks.is_some());
    assert_alike(&profile, &loaded_twice(&recording, &options(1), with_blocks), "blocks of time");

    let mut only = options(1);
    only.selection.pids = vec![Pid(8)];
    let (profile, is_once) = loaded(&recording, &only, leaves());
    assert!(is_once);
    assert_eq!(rows(&profile).into_values().map(|sum| sum.0).sum::<u64>(), 10);
    assert_alike(&profile, &loaded_twice(&recording, &only, leaves()), "one process");
}

#[test]
fn code_that_replaces_other_code_is_distinguished() {
    let (old, new) = (b"/nonexistent/a\0\0", b"/nonexistent/b\0\0");
    let records = Records::default()
        .map(7, old, 1)
        .sample(7, 0, 10)
        .sample(7, 0, 11)
        .map(7, new, 20)
        .sample(7, 0, 30)
        .map(7, old, 40)
        .sample(7, 0, 50);
    let recording = records.recording();
    let (profile, is_once) = loaded(&recording, &options(1), leaves());
    assert!(!is_once);
    let sums: Vec<_> =
        rows(&profile).into_iter().map(|((_, _, _, path, _), sum)| (path, sum.0)).collect();
    assert_eq!(sums, [("/nonexistent/a".to_owned(), 3), ("/nonexistent/b".to_owned(), 1)]);
    assert_alike(&profile, &loaded_twice(&recording, &options(1), leaves()), "replaced code");
}

#[test]
fn more_addresses_than_are_kept_take_a_second_reading() {
    let mut records = Records::default().map(7, b"/nonexistent/c\0\0", 1);
    for number in 0..MAX_LEAVES {
        records = records.sample(7, number, 10 + number);
    }
    let (profile, is_once) = loaded(&records.recording(), &options(1), leaves());
    assert!(is_once);
    assert_eq!(profile.rows.len() as u64, MAX_LEAVES);
    let records = records.sample(7, MAX_LEAVES, 1 << 30);
    let (profile, is_once) = loaded(&records.recording(), &options(1), leaves());
    assert!(!is_once);
    assert_eq!(profile.rows.len() as u64, MAX_LEAVES + 1);
}

#[test]
fn a_sample_that_is_too_short_is_counted_in_one_reading_too() {
    let mut records = Records::default().map(7, b"/nonexistent/c\0\0", 1).sample(7, 0, 10);
    records = records.push(record_type::SAMPLE, misc::USER, &[CODE, 7 << 32 | 7], b"", &[]);
    let recording = records.recording();
    let (profile, is_once) = loaded(&recording, &options(1), leaves());
    assert!(is_once);
    let twice = loaded_twice(&recording, &options(1), leaves());
    assert_alike(&profile, &twice, "a short sample");
    assert!(format!("{:?}", profile.warnings).contains("Unreadable"), "{:?}", profile.warnings);
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error() {
    let mut records = Records::default().map(7, b"/nonexistent/c\0\0", 1);
    for number in 0..200_000 {
        records = records.sample(7, number % 64, 10 + number);
    }
    let file = records.file();
    let recording = Recording::from_file(Path::new("test.data"), file.try_clone().unwrap());
    let cut = |done: u64, total: u64| {
        if done * 100 > total * 20 {
            file.set_len(100 << 10).unwrap();
        }
    };
    let (recording, options) = (recording.unwrap(), options(1));
    let reading = Reading::open(&recording, &options).with_progress(&cut);
    let error = match reading.answer(leaves()) {
        Ok(profile) => panic!("a profile with the warnings {:?}", profile.warnings),
        Err(error) => error.to_string(),
    };
    assert!(error.starts_with("the recording changed while it was read: cannot read"), "{error}");
}
