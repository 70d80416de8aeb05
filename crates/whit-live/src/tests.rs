//! Streams cut anywhere, old records, processes that come and go.

use super::*;
use proptest::prelude::*;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::record::{RawRecord, SideBand, misc, record_type};

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
    let (first, _) = RawRecord::split(&written).unwrap();
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

proptest! {
    #[test]
    fn cuts_of_the_stream_change_nothing(cuts in prop::collection::vec(1usize..200, 1..40)) {
        let stream = std::fs::read("../../tests/recordings/golden/perf-pipe-tracepoint/recording.data").unwrap();
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
