//! Second suite: what recorders leave behind that were killed, and files that were cut.

use std::path::Path;
use std::process::Output;

use crate::golden::encode::{Attr, Id, Kernel, Parts, Recording, field, kind, misc, record};
use crate::golden::kept;
use crate::golden::library::{NAME, folder, show, show_path};
use whit_profile::model::Profile;
use whit_view::warning::warning_text;

/// Offset in the header of the size of the records.
const DATA_SIZE: usize = 48;

/// Nine samples and a command name, and the file of them.
fn recording() -> (Recording, Vec<u8>, Parts) {
    let attr =
        Attr::software(0, field::IP | field::TID | field::TIME | field::CPU | field::IDENTIFIER);
    let kernel = Kernel::of(&attr);
    let id = |time| Id { pid: 500, tid: 500, time, cpu: 0, id: 11 };
    let mut data = kernel.comm("killed", true, id(1_000));
    for time in 2_000..2_009 {
        data.extend(record(kind::SAMPLE, misc::USER, |b| {
            b.u64(11).u64(0x40_0208).i32(500).i32(500).u64(time).u32(0).u32(0);
        }));
    }
    let recording = Recording::new(vec![(attr, vec![11], "cpu-clock")], data).described();
    let (file, parts) = recording.file_and_parts();
    (recording, file, parts)
}

/// Where each record of `data` starts, and the end.
fn boundaries(data: &[u8]) -> Vec<usize> {
    let mut boundaries = vec![0];
    let mut at = 0;
    while let Some(size) = data.get(at + 6..).and_then(|rest| rest.first_chunk()) {
        let size = usize::from(u16::from_le_bytes(*size));
        // Bytes that follow an AUXTRACE record are none.
        if size < 8 {
            break;
        }
        at += size;
        boundaries.push(at);
    }
    boundaries
}

fn samples(profile: &Profile) -> u64 {
    profile.events.iter().map(|event| event.samples).sum()
}

fn warned(profile: &Profile, words: &[&str]) -> bool {
    let mut texts = profile.warnings.iter().map(warning_text);
    texts.any(|text| words.iter().all(|word| text.exact().contains(word)))
}

/// The expected profile of records that end at `cut`, counted from the first one.
fn assert_cut(profile: &Profile, data: &[u8], start: usize, cut: usize) {
    let boundaries = boundaries(data);
    let whole = boundaries.iter().filter(|at| **at <= cut).count() - 1;
    // The first record is no sample.
    assert_eq!(samples(profile), whole.saturating_sub(1) as u64, "cut at {cut}");
    let rest = cut - boundaries[whole];
    assert_eq!(profile.losses.truncated_bytes, rest as u64, "cut at {cut}");
    if rest > 0 {
        let offset = format!("at offset {} ", start + boundaries[whole]);
        let words = [NAME, "cut short", &offset];
        assert!(warned(profile, &words), "cut at {cut}: {:?}", profile.warnings);
    }
}

#[test]
fn a_killed_recorder() {
    let (recording, file, parts) = recording();
    for cut in 0..=recording.data.len() {
        let mut killed = file[..parts.data + cut].to_vec();
        killed[DATA_SIZE..DATA_SIZE + 8].fill(0);
        let profile = show(&format!("killed after {cut} bytes"), &killed).profile();
        assert_cut(&profile, &recording.data, parts.data, cut);
        let says = warned(&profile, &[NAME, "did not end properly"]);
        assert_eq!(says, cut > 0, "killed after {cut} bytes: {:?}", profile.warnings);
    }
}

/// Writes may end in any order: one that did not end leaves zeros before the bytes of later ones.
#[test]
fn a_killed_recorder_that_wrote_in_another_order() {
    let (recording, file, parts) = recording();
    let boundaries = boundaries(&recording.data);
    let last = boundaries.len() - 1;
    for (from, to) in [(0, 1), (0, 4), (1, 2), (3, 8), (8, last), (0, last)] {
        let mut killed = file[..parts.data + recording.data.len()].to_vec();
        killed[DATA_SIZE..DATA_SIZE + 8].fill(0);
        let hole = boundaries[from]..boundaries[to];
        killed[parts.data + hole.start..parts.data + hole.end].fill(0);
        let profile = show(&format!("records {from} to {to} missing"), &killed).profile();
        // The first record is no sample.
        let lost = to - from.max(1);
        assert_eq!(samples(&profile), (last - 1 - lost) as u64, "{from} {to}");
        assert_eq!(profile.losses.truncated_bytes, hole.len() as u64, "{from} {to}");
        let offset = format!("from offset {} on", parts.data + hole.start);
        assert!(warned(&profile, &[NAME, "never written", &offset]), "{:?}", profile.warnings);
    }
}

#[test]
fn a_recording_without_records_is_no_killed_one() {
    let (recording, ..) = recording();
    let empty = Recording { data: Vec::new(), ..recording };
    let profile = show("empty", &empty.file()).profile();
    assert!(profile.warnings.is_empty(), "{:?}", profile.warnings);
    assert_eq!(profile.recording.hostname, "golden");
}

#[test]
fn a_file_that_was_cut() {
    let (recording, file, parts) = recording();
    for cut in 0..=recording.data.len() {
        let profile = show(&format!("cut at {cut}"), &file[..parts.data + cut]).profile();
        assert_cut(&profile, &recording.data, parts.data, cut);
        let offset = format!("at offset {}", parts.data + cut);
        let words = if cut < recording.data.len() {
            [NAME, "cut short", &offset]
        } else {
            [NAME, "the table of features", "past the end"]
        };
        assert!(warned(&profile, &words), "cut at {cut}: {:?}", profile.warnings);
    }
}

#[test]
fn features_that_were_cut() {
    let (_, file, parts) = recording();
    for cut in parts.features..file.len() {
        let profile = show(&format!("features cut at {cut}"), &file[..cut]).profile();
        assert_eq!(samples(&profile), 9);
        let words = [NAME, "at offset ", "past the end of the file"];
        assert!(warned(&profile, &words), "cut at {cut}: {:?}", profile.warnings);
    }
}

#[test]
fn nothing_but_a_header_or_less() {
    let (_, file, parts) = recording();
    for cut in 0..parts.data {
        let error = show(&format!("{cut} bytes"), &file[..cut]).error();
        assert!(error.contains(NAME), "{error}");
        let says = match cut {
            0 => "it is empty",
            1..8 => "shorter than a header",
            8..104 => "its header is cut short",
            _ => "past the end of the file",
        };
        assert!(error.contains(says), "{cut} bytes: {error}");
    }
}

#[test]
fn a_pipe_that_was_cut() {
    let (recording, ..) = recording();
    let pipe = recording.pipe();
    let start = pipe.len() - recording.data.len();
    for cut in 0..=recording.data.len() {
        let profile = show(&format!("pipe cut at {cut}"), &pipe[..start + cut]).profile();
        assert_cut(&profile, &recording.data, start, cut);
    }
    // The first record announces the event; a pipe cut in the features after it has no samples.
    let first = 16 + usize::from(u16::from_le_bytes([pipe[22], pipe[23]]));
    for cut in 16..start {
        let outcome = show(&format!("head of a pipe cut at {cut}"), &pipe[..cut]);
        if cut < first {
            let error = outcome.error();
            assert!(error.contains(NAME) && error.contains("announces no event"), "{error}");
        } else {
            assert_eq!(samples(&outcome.profile()), 0);
        }
    }
}

/// Kept recordings of every kind, cut between all records and within each, and at the ends.
#[test]
fn kept_recordings_that_were_cut() {
    for (name, path) in kept::files() {
        let bytes = std::fs::read(&path).expect("a kept recording");
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let start = if word(8) == 16 { 16 } else { word(40) as usize };
        let is_complete = word(8) != 16 && word(DATA_SIZE) > 0;
        let end = if is_complete { start + word(DATA_SIZE) as usize } else { bytes.len() };
        let boundaries = boundaries(&bytes[start..end]);
        let middles = boundaries.windows(2).map(|pair| usize::midpoint(pair[0], pair[1]));
        for cut in boundaries.iter().copied().chain(middles) {
            let kept = &bytes[..(start + cut).min(bytes.len())];
            show(&format!("{name} cut at {}", kept.len()), kept);
        }
    }
}

fn copy_directory(to: &Path) {
    for entry in
        std::fs::read_dir(folder().join("perf-threads/recording.data")).expect("a directory")
    {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copy a part");
    }
}

#[test]
fn directories_with_missing_and_empty_parts() {
    let temporary = tempfile::tempdir().expect("a folder");
    let directory = temporary.path();
    let shown = |what| show_path(what, directory);
    copy_directory(directory);
    let all = samples(&shown("whole").profile());
    assert!(all > 0);
    std::fs::write(directory.join("data.1"), b"").expect("empty a part");
    let profile = shown("empty part").profile();
    let rest = samples(&profile);
    assert!(rest <= all && profile.warnings.is_empty(), "{:?}", profile.warnings);
    std::fs::remove_file(directory.join("data.0")).expect("remove a part");
    let profile = shown("missing part").profile();
    assert!(warned(&profile, &["data.0 is missing"]), "{:?}", profile.warnings);
    std::fs::write(directory.join("data.1"), [9, 0, 0, 0, 0, 0, 4, 0]).expect("spoil a part");
    let profile = shown("corrupt part").profile();
    let words = ["data.1 is corrupt", "the record at offset 0 says a size of 4 bytes"];
    assert!(warned(&profile, &words), "{:?}", profile.warnings);
    std::fs::remove_file(directory.join("data.1")).expect("remove a part");
    assert!(warned(&shown("no part").profile(), &["there is no data.N"]));
    std::fs::remove_file(directory.join("data")).expect("remove the first part");
    let error = shown("no data").error();
    assert!(error.contains("data: No such file"), "{error}");
}

fn report(path: &Path, arguments: &[&str]) -> Output {
    let mut whit = kept::whit_in(&folder());
    whit.args(arguments).arg("-i").arg(path).output().expect("run whit")
}

/// Exit codes for a user of the program: 1 with the reason, or 0 with warnings.
#[test]
fn exit_codes() {
    let (_, file, parts) = recording();
    let temporary = tempfile::tempdir().expect("a folder");
    let path = temporary.path().join("perf.data");
    let mut killed = file[..file.len() - 100].to_vec();
    killed.truncate(parts.data + 200);
    killed[DATA_SIZE..DATA_SIZE + 8].fill(0);
    let cases: [(&str, &[u8], i32, &str); 4] = [
        ("empty", b"", 1, "it is empty"),
        ("text", b"#!/bin/sh\n", 1, "it starts with \"#!/bin/s\""),
        ("header alone", &file[..104], 1, "past the end of the file"),
        ("killed", &killed, 0, "did not end properly"),
    ];
    for (what, bytes, code, says) in cases {
        std::fs::write(&path, bytes).expect("write a recording");
        let views: [&[&str]; 4] =
            [&["report"], &["report", "--stats"], &["report", "--json"], &["script"]];
        for view in views {
            let output = report(&path, view);
            assert_eq!(output.status.code(), Some(code), "{what}: {view:?}");
            let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(code == 0 || output.stdout.is_empty(), "{what}: {view:?}");
            text.push_str(&String::from_utf8_lossy(&output.stdout));
            assert!(text.contains(says), "{what}: {view:?}: {text}");
            assert!(text.contains("perf.data"), "{what}: {view:?}: {text}");
        }
    }
    let absent = temporary.path().join("absent.data");
    let output = report(&absent, &["report"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("absent.data") && text.contains("No such file"), "{text}");
}
