//! Streams cut anywhere, old records, processes that come and go.

use super::*;
use proptest::prelude::*;
use std::path::Path;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::budget::{BudgetRecord, RecordedSettings};
use whit_perfdata::clocks::ClockReading;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::feature::{Feature, Features};
use whit_perfdata::interpreted::InterpretedFunction;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, misc, record_type};
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_perfdata::stream::StreamReader;
use whit_types::{Pid, TimestampNs};

const SECOND: u64 = 1_000_000_000;

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size_bytes = (8 + body.len()) as u16;
    let header = whit_perfdata::record::RecordHeader { kind, misc, size_bytes };
    [&header.to_bytes(), body].concat()
}

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Thread and time at the end of records that are no samples.
fn trailer(pid: i32, time: u64) -> Vec<u8> {
    [words(&[pid, pid]), time.to_le_bytes().to_vec()].concat()
}

fn comm(pid: i32, name: &str, is_exec: bool, time: u64) -> Vec<u8> {
    let mut text = name.as_bytes().to_vec();
    text.resize(16, 0);
    let body = [words(&[pid, pid]), text, trailer(pid, time)].concat();
    record(record_type::COMM, if is_exec { misc::COMM_EXEC } else { 0 }, &body)
}

fn mmap(pid: i32, start: u64, len: u64, path: &str, time: u64) -> Vec<u8> {
    let mut text = path.as_bytes().to_vec();
    text.resize(16, 0);
    let range: Vec<u8> = [start, len, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let body = [words(&[pid, pid]), range, text, trailer(pid, time)].concat();
    record(record_type::MMAP, misc::USER, &body)
}

/// Fork or exit.
fn task(kind: u32, [pid, parent, tid, parent_tid]: [i32; 4], time: u64) -> Vec<u8> {
    let ids = words(&[pid, parent, tid, parent_tid]);
    record(kind, 0, &[ids, time.to_le_bytes().to_vec(), trailer(pid, time)].concat())
}

fn fork(pid: i32, parent: i32, time: u64) -> Vec<u8> {
    task(record_type::FORK, [pid, parent, pid, parent], time)
}

fn exit(pid: i32, time: u64) -> Vec<u8> {
    task(record_type::EXIT, [pid, 1, pid, 1], time)
}

fn sample(time: u64) -> Vec<u8> {
    record(record_type::SAMPLE, misc::USER, &trailer(7, time))
}

fn head() -> Vec<u8> {
    let attr = Attr {
        sample_type: SampleType::TID | SampleType::TIME,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let body = [attr.to_bytes(), 5u64.to_le_bytes().to_vec()].concat();
    [b"PERFILE2".as_slice(), &16u64.to_le_bytes(), &record(record_type::HEADER_ATTR, 0, &body)]
        .concat()
}

fn window(keep_s: u64, bytes_max: usize) -> Window {
    let mut window = Window::new(Bounds { keep_ns: keep_s * SECOND, bytes_max });
    window.push(&head(), 0).unwrap();
    window
}

/// The records of the window's recording, without its head.
fn records(window: &Window) -> Vec<u8> {
    let mut out = Vec::new();
    window.write_to(&mut out).unwrap();
    out.split_off(head().len())
}

/// Mappings and names of a process, in words.
fn facts(bytes: &[u8], of: i32) -> Vec<String> {
    let mut facts = Vec::new();
    let mut rest = bytes;
    while let Some((record, behind)) = RawRecord::split(rest) {
        match SideBand::parse(record) {
            Some(SideBand::Mmap(it)) if it.pid.0 == of => {
                facts.push(format!("{:x} {}", it.start.0, String::from_utf8_lossy(it.path)));
            }
            Some(SideBand::Comm { pid, tid, name, .. }) if pid.0 == of => {
                facts.push(format!("{} {}", tid.0, String::from_utf8_lossy(name)));
            }
            _ => {}
        }
        rest = behind;
    }
    facts.sort();
    facts
}

#[test]
fn old_samples_go_and_what_they_need_stays() {
    let mut window = window(10, 1 << 20);
    window
        .push(&[comm(7, "app", true, 1), mmap(7, 0x1000, 0x1000, "/app", 2)].concat(), 0)
        .unwrap();
    window.push(&sample(3), 0).unwrap();
    assert!(records(&window).ends_with(&sample(3)));
    window.push(&sample(9), 9 * SECOND).unwrap();
    window.push(&[], 11 * SECOND).unwrap();
    let now = records(&window);
    assert!(now.ends_with(&sample(9)) && !now.windows(16).any(|it| it == &sample(3)[8..]));
    assert_eq!(facts(&now, 7), ["1000 /app", "7 app"]);
    assert_eq!(window.begun_ns(), Some(9 * SECOND));
    window.forget_all();
    assert_eq!(facts(&records(&window), 7), ["1000 /app", "7 app"]);
    assert_eq!((window.bytes(), window.begun_ns()), (0, None));
}

/// A record of settings; the stretch tells them apart.
fn settings(stretch: u32, time: u64) -> Vec<u8> {
    let sample_type = SampleType::TID | SampleType::TIME;
    let flags = AttrFlags::SAMPLE_ID_ALL;
    let layout = SampleLayout::new(&Attr { sample_type, flags, ..Attr::default() });
    let settings = RecordedSettings { stretch, ..RecordedSettings::default() };
    let mut out = Vec::new();
    let id = SampleId { time: Some(TimestampNs(time)), ..SampleId::default() };
    let record = BudgetRecord { settings, ..BudgetRecord::default() };
    RecordEncoder::new(layout).budget(&mut out, &record, id);
    out
}

/// The stretches that a recording tells, in its order.
fn stretches(bytes: &[u8]) -> Vec<u32> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some((record, behind)) = RawRecord::split(rest) {
        if let Some(SideBand::Budget(budget)) = SideBand::parse(record) {
            found.push(budget.settings.stretch);
        }
        rest = behind;
    }
    found
}

#[test]
fn settings_by_which_a_budget_was_kept_stay_until_others_come() {
    let mut window = window(10, 1 << 20);
    for (second, stretch) in [(0, 1), (2, 2), (4, 4), (8, 8)] {
        let records = [settings(stretch, second + 1), sample(second + 1)].concat();
        window.push(&records, second * SECOND).unwrap();
    }
    assert_eq!(stretches(&records(&window)), [1, 2, 4, 8]);
    // A history goes back to its first record: the window has one of before.
    let mut out = Vec::new();
    window.freeze(5 * SECOND).write_to(&mut out).unwrap();
    assert_eq!(stretches(&out[head().len()..]), [2, 4, 8]);
    let mut out = Vec::new();
    window.write_since(5 * SECOND, &mut out).unwrap();
    assert_eq!(stretches(&out[head().len()..]), [4, 8]);
    window.push(&[], 15 * SECOND).unwrap();
    assert_eq!(stretches(&records(&window)), [4, 8]);
    window.push(&[], 60 * SECOND).unwrap();
    assert_eq!(stretches(&records(&window)), [8]);
    // They are no loss.
    window.want_from(0);
    window.push(&settings(16, 90), 90 * SECOND).unwrap();
    window.push(&[], 200 * SECOND).unwrap();
    assert_eq!(window.want_from(0), Lost::default());
    assert_eq!(stretches(&records(&window)), [16]);
}

/// The clocks of records that a recording tells, in its order.
fn clock_readings(bytes: &[u8]) -> Vec<u64> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some((record, behind)) = RawRecord::split(rest) {
        if let Some(SideBand::Clocks(clocks)) = SideBand::parse(record) {
            found.push(clocks.record.0);
        }
        rest = behind;
    }
    found
}

#[test]
fn a_window_has_a_reading_of_the_clocks_from_before() {
    let mut window = window(10, 1 << 20);
    for second in [0, 2, 4] {
        let sample_type = SampleType::TID | SampleType::TIME;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        let layout = SampleLayout::new(&Attr { sample_type, flags, ..Attr::default() });
        let time = TimestampNs(second + 1);
        let id = SampleId { time: Some(time), ..SampleId::default() };
        let (mut records, record) = (Vec::new(), time);
        let reading = ClockReading { record, ..ClockReading::default() };
        RecordEncoder::new(layout).clocks(&mut records, &reading, id);
        records.extend(sample(second + 1));
        window.push(&records, second * SECOND).unwrap();
    }
    assert_eq!(clock_readings(&records(&window)), [1, 3, 5]);
    window.push(&[], 60 * SECOND).unwrap();
    assert_eq!(clock_readings(&records(&window)), [5]);
    // They are no loss.
    assert_eq!(window.want_from(0), Lost::default());
}

#[test]
fn a_child_has_its_parents_mappings_until_it_executes_another_program() {
    let mut window = window(1, 1 << 20);
    let parent = [comm(7, "app", true, 1), mmap(7, 0x1000, 0x1000, "/app", 2)].concat();
    window
        .push(&[parent, fork(8, 7, 3), fork(9, 7, 3), mmap(7, 0x5000, 16, "/later", 4)].concat(), 0)
        .unwrap();
    window.push(&[comm(9, "sh", true, 5), mmap(9, 0x9000, 16, "/sh", 6)].concat(), 0).unwrap();
    window.forget_all();
    let now = records(&window);
    assert_eq!(facts(&now, 7), ["1000 /app", "5000 /later", "7 app"]);
    assert_eq!(facts(&now, 8), ["1000 /app", "8 app"]);
    assert_eq!(facts(&now, 9), ["9 sh", "9000 /sh"]);
}

#[test]
fn a_mapping_takes_the_place_of_those_that_it_hides() {
    let mut window = window(1, 1 << 20);
    let maps = [mmap(7, 0x1000, 0x1000, "/a", 1), mmap(7, 0x3000, 0x1000, "/b", 2)];
    window.push(&[maps.concat(), mmap(7, 0x1000, 0x2000, "/c", 3)].concat(), 0).unwrap();
    window.forget_all();
    assert_eq!(facts(&records(&window), 7), ["1000 /c", "3000 /b"]);
}

#[test]
fn mappings_that_are_too_many_are_counted() {
    let mut window = window(1, 64 << 20);
    for number in 0..17_000u64 {
        window.push(&mmap(7, 0x1000 * (number + 1), 0x1000, "/a", number + 1), 0).unwrap();
    }
    window.forget_all();
    assert_eq!(window.sideband().dropped(), 17_000 - 16_384);
    assert_eq!(facts(&records(&window), 7).len(), 16_384);
}

#[test]
fn records_count_in_the_order_of_their_times() {
    // The rings of two CPUs: the end of the process stands in front of its beginning.
    let mut window = window(1, 1 << 20);
    window.push(&[exit(8, 9), fork(8, 7, 3), comm(8, "x", false, 4)].concat(), 0).unwrap();
    window.forget_all();
    assert_eq!(window.sideband().processes(), 0);
}

#[test]
fn short_processes_leave_nothing_behind() {
    let mut window = window(1, 1 << 20);
    window.push(&[comm(1, "init", true, 1), mmap(1, 0x1000, 64, "/init", 1)].concat(), 0).unwrap();
    for number in 0..10_000 {
        let (pid, time) = (100 + number % 30_000, 10 * (number as u64 + 1));
        let life = [fork(pid, 1, time), comm(pid, "short", true, time + 1), exit(pid, time + 2)];
        window.push(&[life.concat(), sample(time + 3)].concat(), time * SECOND / 100).unwrap();
    }
    window.forget_all();
    assert_eq!(window.sideband().processes(), 1);
    // Their ends may have been lost.
    window.push(&[fork(50, 1, 1 << 40), fork(51, 1, 1 << 40)].concat(), 1 << 40).unwrap();
    window.forget_all();
    assert_eq!(window.sideband().processes(), 3);
    window.prune(|pid| pid != 50);
    assert_eq!(window.sideband().processes(), 3, "the window may have samples of it");
    window.push(&[], (1 << 40) + SECOND).unwrap();
    window.prune(|pid| pid != 50);
    assert_eq!(window.sideband().processes(), 2);
}

#[test]
fn bytes_have_a_bound_whatever_the_time() {
    let mut window = window(1000, 1 << 20);
    for time in 0..200_000 {
        window.push(&sample(time), time).unwrap();
        assert!(window.bytes() <= 1 << 20);
    }
    assert!(window.bytes() > 1 << 19);
}

fn written_since(window: &Window, from_s: u64) -> Vec<u8> {
    let mut out = Vec::new();
    window.write_since(from_s * SECOND, &mut out).unwrap();
    out.split_off(head().len())
}

#[test]
fn windows_of_one_stream_share_no_sample_and_need_no_other() {
    let mut window = window(100, 1 << 20);
    window.want_from(0);
    let begin = [comm(7, "app", true, 1), mmap(7, 0x1000, 0x1000, "/app", 2), sample(3)];
    window.push(&begin.concat(), 0).unwrap();
    assert!(written_since(&window, 0).ends_with(&sample(3)));
    // Both come within one second: the cut is exact all the same.
    assert_eq!(window.want_from(SECOND / 2), Lost::default());
    window.push(&sample(9), SECOND / 2).unwrap();
    let mut second = Vec::new();
    window.write_since(SECOND / 2, &mut second).unwrap();
    let second = second.split_off(head().len());
    assert!(second.ends_with(&sample(9)));
    assert!(!second.windows(sample(3).len()).any(|it| it == sample(3)));
    assert_eq!(facts(&second, 7), ["1000 /app", "7 app"]);
}

#[test]
fn records_that_are_taken_are_written_once_and_leave_nothing_but_the_state() {
    let mut window = window(100, 1 << 20);
    window.want_from(0);
    let begin = [comm(7, "app", true, 1), mmap(7, 0x1000, 0x1000, "/app", 2), sample(3)];
    window.push(&begin.concat(), 0).unwrap();
    window.push(&sample(4), 2 * SECOND).unwrap();
    let expected = written_since(&window, 0);
    let (frozen, lost) = window.take_since(0, 3 * SECOND);
    assert_eq!((lost, window.bytes(), window.begun_ns()), (Lost::default(), 0, None));
    let mut taken = Vec::new();
    frozen.move_to(&mut taken).unwrap();
    assert_eq!(taken[..head().len()], head());
    assert_eq!(taken[head().len()..], expected);
    window.push(&sample(9), 3 * SECOND).unwrap();
    let next = written_since(&window, 3);
    assert!(next.ends_with(&sample(9)) && !next.windows(16).any(|it| it == &sample(4)[8..]));
    assert_eq!(facts(&next, 7), ["1000 /app", "7 app"]);
    // Nobody lost them.
    assert_eq!(window.want_from(4 * SECOND), Lost::default());
}

fn sample_of(pid: i32, time: u64) -> Vec<u8> {
    record(record_type::SAMPLE, misc::USER, &trailer(pid, time))
}

#[test]
fn mappings_are_those_of_processes_with_samples_and_of_their_parents() {
    let mut window = window(100, 1 << 20);
    window.want_from(0);
    for pid in [7, 8, 9] {
        let begin = [comm(pid, "app", true, 1), mmap(pid, 0x1000, 0x1000, "/app", 2)];
        window.push(&begin.concat(), 0).unwrap();
    }
    window.push(&[sample_of(7, 3), sample_of(8, 4), sample_of(9, 5)].concat(), 0).unwrap();
    window.want_from(SECOND);
    window.push(&[fork(10, 8, 6), sample_of(7, 7), sample_of(10, 8)].concat(), SECOND).unwrap();
    let written = |window: &Window| {
        let now = written_since(window, 1);
        [7, 8, 9].map(|pid| facts(&now, pid).len())
    };
    // Each process has its name.
    assert_eq!(written(&window), [2, 2, 1]);
    window.set_bounds(Bounds { keep_ns: SECOND, bytes_max: 1 << 20 });
    window.forget_old(SECOND + SECOND / 2);
    assert_eq!(window.begun_ns(), Some(SECOND));
    assert_eq!(written(&window), [2, 2, 1]);
    assert_eq!(facts(&records(&window), 9).len(), 2);
}

/// Cgroups that have gone stay known, and a file would have the names of all that there ever were.
#[test]
fn cgroups_are_those_of_samples() {
    let attr = Attr {
        sample_type: SampleType::TID | SampleType::TIME | SampleType::CGROUP,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let head = [attr.to_bytes(), 5u64.to_le_bytes().to_vec()].concat();
    let head = record(record_type::HEADER_ATTR, 0, &head);
    let mut window = Window::new(Bounds { keep_ns: 100 * SECOND, bytes_max: 1 << 20 });
    window.push(&[b"PERFILE2".as_slice(), &16u64.to_le_bytes(), &head].concat(), 0).unwrap();
    let sample = |id: u64, time| {
        record(
            record_type::SAMPLE,
            misc::USER,
            &[trailer(7, time), id.to_le_bytes().to_vec()].concat(),
        )
    };
    let named = |id: u64, time| {
        let body =
            [id.to_le_bytes().to_vec(), b"/a\0\0\0\0\0\0".to_vec(), trailer(7, time)].concat();
        record(record_type::CGROUP, 0, &body)
    };
    let names = |window: &Window| {
        let written = written_since(window, 1);
        let mut rest = &written[..];
        let mut ids = Vec::new();
        while let Some((record, behind)) = RawRecord::split(rest) {
            rest = behind;
            if let Some(SideBand::Cgroup { id, .. }) = SideBand::parse(record) {
                ids.push(id);
            }
        }
        ids
    };
    window.want_from(0);
    window.push(&[named(3, 1), named(4, 2), named(5, 3), sample(3, 4)].concat(), 0).unwrap();
    window.want_from(SECOND);
    window.push(&[sample(4, 5), named(6, 6), named(7, 7), sample(6, 8)].concat(), SECOND).unwrap();
    // A cgroup that comes while the window goes on is in it as it came.
    assert_eq!(names(&window), [4, 6, 7]);
    window.set_bounds(Bounds { keep_ns: SECOND, bytes_max: 1 << 20 });
    window.forget_old(SECOND + SECOND / 2);
    assert_eq!(names(&window), [4, 6, 7]);
}

#[test]
fn wanted_records_that_go_are_counted_in_the_recording() {
    let mut window = window(100, 300 << 10);
    window.want_from(0);
    let record = sample(1).len() as u64;
    let number = 400 * 1024 / record;
    for time in 0..number {
        window.push(&sample(time + 1), 0).unwrap();
    }
    let kept = window.bytes() as u64 / record;
    let written = written_since(&window, 0);
    let (feature, written) = RawRecord::split(&written).unwrap();
    let mut features = Features::default();
    features.set(Feature::WHIT_LET_GO, feature.body[8..].to_vec());
    let let_go = features.let_go().unwrap();
    assert_eq!((let_go.records, let_go.until.0), (number - kept, number - kept));
    let (first, _) = RawRecord::split(written).unwrap();
    assert_eq!(first.header.kind, record_type::LOST);
    assert_eq!(first.body[8..16], (number - kept).to_le_bytes());
    let lost = window.want_from(5 * SECOND);
    assert_eq!((lost.records, lost.bytes), (number - kept, (number - kept) * record));
    assert_eq!(lost.until, whit_types::TimestampNs(number - kept));
    // Nobody wants them any more: their going is no loss.
    window.forget_all();
    assert_eq!(window.want_from(6 * SECOND), Lost::default());
}

#[test]
fn damaged_streams_are_refused() {
    let bounds = Bounds { keep_ns: SECOND, bytes_max: 1 << 20 };
    let mut none = Window::new(bounds);
    assert_eq!(none.push(b"what is this stream", 0), Err(StreamError::NotAStream));
    let mut damaged = window(1, 1 << 20);
    assert_eq!(damaged.push(&[1, 0, 0, 0, 0, 0, 3, 0], 0), Err(StreamError::Damaged(3)));
    let mut endless = window(1, 1 << 20);
    let formats = record(record_type::TRACING_DATA, 0, &u32::MAX.to_le_bytes());
    assert_eq!(endless.push(&formats, 0), Err(StreamError::HeadTooLarge));
}

/// The records of a file that is written from a moment on, and the recording.
fn file_since(window: &Window, from_ns: u64) -> (Vec<u8>, Recording) {
    let mut more = Features::default();
    more.set_word(Feature::CLOCKID, 7);
    let dump = window.freeze(from_ns).begin_file(tempfile::tempfile().unwrap()).unwrap();
    recording_of(dump.finish(&more).unwrap())
}

/// The records of a file, and the recording.
fn recording_of(file: std::fs::File) -> (Vec<u8>, Recording) {
    let recording = Recording::from_file(Path::new("dump"), file).unwrap();
    let mut reader = StreamReader::new(recording.streams[0].clone());
    let (mut block, mut all) = (Vec::new(), Vec::new());
    while reader.next_block(&mut block).unwrap().is_some() {
        all.extend_from_slice(&block);
    }
    (all, recording)
}

#[test]
fn a_frozen_window_stays_while_the_stream_continues() {
    let mut window = window(10, 1 << 20);
    let begin = [comm(7, "app", true, 1), mmap(7, 0x1000, 0x1000, "/app", 2), sample(3)];
    assert_eq!(window.freeze(0).whole_since_ns(), None);
    window.push(&begin.concat(), 0).unwrap();
    let frozen = window.freeze(0);
    assert_eq!(frozen.whole_since_ns(), Some(0));
    window.push(&sample(9), 0).unwrap();
    assert!(records(&window).ends_with(&sample(9)));
    window.forget_all();
    let dump = frozen.clone().begin_file(std::io::Cursor::new(Vec::new())).unwrap();
    let bytes = dump.finish(&Features::default()).unwrap().into_inner();
    assert!(bytes.windows(begin.concat().len()).any(|it| it == begin.concat()));
    assert!(!bytes.windows(sample(9).len()).any(|it| it == sample(9)));
    assert_eq!(frozen.bytes(), begin.concat().len());
}

#[test]
fn a_dump_has_the_last_seconds_and_the_names_of_all_that_ran_in_them() {
    let mut window = window(100, 1 << 20);
    // This process ends before its last sample is written.
    let begin = [comm(7, "app", true, 1), mmap(7, 0x1000, 0x1000, "/app", 2), sample(3)];
    window.push(&begin.concat(), 0).unwrap();
    window.push(&[exit(6, 4), sample(5)].concat(), 2 * SECOND).unwrap();
    window.push(&[sample(6), exit(7, 7)].concat(), 4 * SECOND).unwrap();
    let since = window.freeze(3 * SECOND).whole_since_ns();
    assert_eq!(since, Some(2 * SECOND));
    let (records, recording) = file_since(&window, 3 * SECOND);
    assert_eq!(facts(&records, 7), ["1000 /app", "7 app"]);
    // The second piece may have records of any time up to the third one's beginning.
    let has = |time: u64| records.windows(sample(time).len()).any(|it| it == sample(time));
    assert_eq!([has(3), has(5), has(6)], [false, true, true]);
    assert_eq!(recording.events.len(), 1);
    assert_eq!(recording.features.word(Feature::CLOCKID), Some(7));
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
    let (all, _) = file_since(&window, 0);
    assert!(all.len() > records.len());
}

#[test]
fn a_dump_gets_the_records_that_came_while_it_was_written() {
    let mut window = window(100, 1 << 20);
    window.compress().unwrap();
    window.push(&[comm(7, "app", true, 1), sample(3)].concat(), 0).unwrap();
    let mut dump = window.freeze(0).begin_file(tempfile::tempfile().unwrap()).unwrap();
    assert_eq!(window.newer_than(dump.frozen()).unwrap().bytes(), 0);
    let newer = [sample(5), sample(6).repeat(200), comm(7, "later", false, 7)];
    window.push(&newer[0], SECOND / 2).unwrap();
    dump.add(window.newer_than(dump.frozen()).unwrap()).unwrap();
    window.push(&newer[1], SECOND).unwrap();
    // A later piece closes the one before, which is compressed then.
    window.push(&newer[2], 3 * SECOND).unwrap();
    dump.add(window.newer_than(dump.frozen()).unwrap()).unwrap();
    window.push(&sample(9), 3 * SECOND).unwrap();
    let (records, recording) = recording_of(dump.finish(&Features::default()).unwrap());
    let begin = [comm(7, "app", true, 1), sample(3)].concat();
    assert!(records == [begin, newer.concat()].concat(), "{} bytes", records.len());
    assert!(recording.features.compressed().is_some());
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
}

#[test]
fn a_dump_knows_when_records_behind_it_are_gone() {
    let mut window = window(100, 4 * sample(3).len());
    let empty = window.freeze(0);
    window.push(&sample(3), 0).unwrap();
    assert!(window.newer_than(&empty).is_none());
    let frozen = window.freeze(0);
    assert!(window.newer_than(&frozen).is_some_and(|newer| newer.bytes() == 0));
    window.push(&sample(4).repeat(3), 2 * SECOND).unwrap();
    assert!(window.newer_than(&frozen).is_some_and(|newer| newer.bytes() == 3 * sample(4).len()));
    // The bound lets the piece go behind which the newer ones would stand.
    window.push(&sample(5), 4 * SECOND).unwrap();
    assert!(window.newer_than(&frozen).is_none());
}

#[test]
fn the_first_sample_may_come_while_a_dump_is_written() {
    let mut window = window(100, 1 << 20);
    window.push(&comm(7, "app", true, 1), 0).unwrap();
    let mut dump = window.freeze(0).begin_file(std::io::Cursor::new(Vec::new())).unwrap();
    window.push(&sample(3), SECOND).unwrap();
    dump.add(window.newer_than(dump.frozen()).unwrap()).unwrap();
    assert_eq!(dump.frozen().whole_since_ns(), Some(SECOND));
}

#[test]
fn the_time_before_the_first_sample_is_not_covered() {
    let mut window = window(100, 1 << 20);
    window.push(&comm(7, "app", true, 1), 0).unwrap();
    assert_eq!(window.freeze(0).whole_since_ns(), None);
    window.push(&sample(3), SECOND / 2).unwrap();
    assert_eq!(window.freeze(0).whole_since_ns(), Some(SECOND / 2));
}

#[test]
fn compressed_windows_hold_more_and_write_the_same() {
    let mut plain = window(100, 1 << 20);
    let mut small = window(100, 1 << 20);
    small.compress().unwrap();
    let begin = [comm(7, "app", true, 1), mmap(7, 0x1000, 0x1000, "/app", 2)].concat();
    for window in [&mut plain, &mut small] {
        window.push(&begin, 0).unwrap();
        for time in 0..60_000 {
            window.push(&sample(100 + time), 0).unwrap();
        }
    }
    assert!(plain.begun_ns().is_some() && small.bytes() < plain.bytes() / 2);
    // The plain one had to let some go.
    assert!(!facts(&records(&plain), 7).is_empty());
    let (all, recording) = file_since(&small, 0);
    let wanted: Vec<u8> = (0..60_000).flat_map(|time| sample(100 + time)).collect();
    assert!(all == [begin, wanted].concat(), "{} bytes", all.len());
    assert!(recording.features.compressed().is_some());
    let mut pipe = Vec::new();
    small.write_to(&mut pipe).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &pipe).unwrap();
    let recording = Recording::from_file(Path::new("pipe"), file).unwrap();
    assert!(recording.features.compressed().is_some() && recording.warnings.is_empty());
}

#[test]
fn losses_of_compressed_windows_are_counted_by_record() {
    const NUMBER: u64 = 200_000;
    // Room for the piece that is open, and some that are compressed.
    let mut window = window(100, 320 << 10);
    window.compress().unwrap();
    window.want_from(0);
    for time in 0..NUMBER {
        window.push(&sample(time + 1), 0).unwrap();
    }
    let written = written_since(&window, 0);
    let decoded = crate::compress::decoded(&written).unwrap();
    let (mut rest, mut kept) = (&decoded[..], 0);
    while let Some((record, behind)) = RawRecord::split(rest) {
        kept += u64::from(record.header.kind == record_type::SAMPLE);
        rest = behind;
    }
    let lost = window.want_from(5 * SECOND);
    assert!(lost.records > 0 && kept > 20_000, "{lost:?}, {kept} kept");
    assert_eq!(lost.records, NUMBER - kept);
    assert_eq!(lost.until, whit_types::TimestampNs(lost.records));
}

#[test]
fn marks_say_which_order_was_carried_out() {
    let mut window = window(10, 1 << 20);
    let mark = whit_perfdata::encode::finished_round();
    window.push(&mark, 0).unwrap();
    assert_eq!((window.has_rounds(), window.drained()), (true, None));
    window.push(&whit_perfdata::encode::finished_round_of(7), 0).unwrap();
    window.push(&mark, 0).unwrap();
    assert_eq!(window.drained(), Some(7));
    assert_eq!(window.bytes(), 0);
}

proptest! {
    #[test]
    fn cuts_of_the_stream_change_nothing(cuts in prop::collection::vec(1usize..200, 1..40)) {
        let stream = std::fs::read("../../../tests/recordings/golden/perf-pipe-tracepoint/recording.data").unwrap();
        let bounds = Bounds { keep_ns: SECOND, bytes_max: 1 << 24 };
        let (mut whole, mut cut) = (Window::new(bounds), Window::new(bounds));
        whole.push(&stream, 0).unwrap();
        let mut rest = &stream[..];
        for size in cuts.iter().cycle() {
            let (piece, behind) = rest.split_at((*size).min(rest.len()));
            cut.push(piece, 0).unwrap();
            rest = behind;
            if rest.is_empty() { break; }
        }
        let written = |window: &Window| { let mut out = Vec::new(); window.write_to(&mut out).unwrap(); out };
        prop_assert_eq!(written(&whole), written(&cut));
    }

    #[test]
    fn no_stream_is_too_bad(bytes in prop::collection::vec(any::<u8>(), 0..400), is_ours: bool) {
        let mut window = Window::new(Bounds { keep_ns: 1, bytes_max: 100 });
        if is_ours {
            window.push(&head(), 0).unwrap();
        }
        let _ = window.push(&bytes, 1);
        window.forget_all();
        window.write_to(&mut Vec::new()).unwrap();
    }
}

/// A function of an interpreter, told by the recorder.
fn function(pid: i32, start: u64, name: &str, time: u64) -> Vec<u8> {
    let function = InterpretedFunction {
        pid: Pid(pid),
        start,
        size_bytes: 8,
        name: name.as_bytes().to_vec(),
        file: b"/app.py".to_vec(),
        lines: vec![(0, 1)],
    };
    let sample_type = SampleType::TID | SampleType::TIME;
    let attr = Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() };
    let mut out = Vec::new();
    let encoder = RecordEncoder::new(SampleLayout::new(&attr));
    encoder.function(&mut out, &function, TimestampNs(time), 5);
    out
}

/// The functions of a process, in words.
fn functions(mut bytes: &[u8], of: i32) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((record, behind)) = RawRecord::split(bytes) {
        if let Some(SideBand::Function(named)) = SideBand::parse(record)
            && named.pid.0 == of
        {
            names.push(String::from_utf8_lossy(&named.function().name).into_owned());
        }
        bytes = behind;
    }
    names.sort();
    names
}

#[test]
fn functions_of_interpreters_stay_until_their_process_ends_or_executes_another_program() {
    let mut window = window(10, 1 << 20);
    let stream = [
        comm(7, "python3", true, 1),
        function(7, 1, "py::a", 2),
        function(7, 2, "py::b", 2),
        // Told again.
        function(7, 1, "py::a", 3),
        function(8, 1, "py::c", 3),
        comm(9, "python3", true, 1),
        function(9, 1, "py::d", 3),
    ];
    window.push(&stream.concat(), 0).unwrap();
    let later = [fork(11, 7, 5), comm(9, "true", true, 5), exit(8, 5), sample(6)].concat();
    window.push(&later, 5 * SECOND).unwrap();
    window.push(&sample(30), 30 * SECOND).unwrap();
    let now = records(&window);
    assert_eq!(functions(&now, 7), ["py::a", "py::b"]);
    // A child has functions of its own, in its own records.
    assert_eq!([8, 9, 11].map(|pid| functions(&now, pid).len()), [0; 3]);
    // Only those of processes with samples are wanted.
    let mut out = Vec::new();
    window.push(&function(7, 3, "py::e", 31), 31 * SECOND).unwrap();
    window.push(&function(12, 3, "py::f", 31), 31 * SECOND).unwrap();
    window.push(&sample(50), 50 * SECOND).unwrap();
    window.write_since(50 * SECOND, &mut out).unwrap();
    let since = out.split_off(head().len());
    assert_eq!(functions(&since, 7), ["py::a", "py::b", "py::e"]);
    assert_eq!(functions(&since, 12).len(), 0);
}
