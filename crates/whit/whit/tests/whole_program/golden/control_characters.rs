//! Recordings whose names hold control characters: no face of whit's prints one raw.
//!
//! The kept recordings are changed where they hold text: names of threads, files, events, hosts, formats of
//! tracepoints. Many stay readable, others get corrupt; neither may reach the terminal.

use std::ops::Range;
use std::path::Path;

use crate::golden::kept::{files, whit_in};
use crate::golden::library::folder;
use whit_testing::assert_plain;

/// Text of this length and more is taken for a name.
const MIN_NAME_BYTES: usize = 4;

/// Texts for names: escape sequences, line ends, DEL, bytes that are no UTF-8 and would be C1 controls,
/// such controls and marks of direction in UTF-8, and the separator of lines.
const HOSTILE: [&[u8]; 8] = [
    b"\x1b[2J",
    b"\n",
    b"\r\x7f",
    b"\x9b",
    b"\xc2\x9b",
    b"\xe2\x80\xae",
    b"\xd8\x9c\x08",
    b"\xe2\x80\xa8",
];

/// Every form of text, and JSON. Most recordings lack data that one or the other form needs; the error
/// message is checked, too.
const FACES: [&[&str]; 11] = [
    &["report", "--header", "--stats", "--ledger"],
    &["report", "--stdio", "-n", "--sort", "comm,dso,symbol,srcline,tid,cpu"],
    &["report", "--stdio", "--no-children", "-g", "folded", "--sort", "tgid,srcfile"],
    &["script", "--ns"],
    &["script", "-F", "+symoff,+srcline"],
    &["script", "-F", "comm,event,trace,brstack,brstacksym,addr,dso"],
    &["switches", "--tree", "--flat", "--per-thread", "--worst", "--wakers"],
    &["annotate", "--limit", "20", "-l", "--asm-raw", "--group"],
    &["annotate", "--limit", "20", "--json"],
    &["report", "--json"],
    &["switches", "--json"],
];

/// Where the records of a recording stand: the third section that the header of a file names.
fn records(recording: &[u8]) -> Range<usize> {
    let word =
        |at: usize| recording[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let (offset, size_bytes) = (word(40) as usize, word(48) as usize);
    offset..offset.saturating_add(size_bytes)
}

/// The same with hostile text in place of parts of its names, each kind of it in turn.
fn changed(recording: &[u8], turn: usize, within: &Range<usize>) -> Vec<u8> {
    let mut changed = recording.to_vec();
    let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    // The first bytes of a file are left alone.
    let (mut at, mut number) = (b"PERFILE2".len(), turn);
    while at < recording.len() {
        let len = recording[at..].iter().take_while(|byte| is_text(byte)).count();
        if len >= MIN_NAME_BYTES && within.contains(&at) {
            let hostile = HOSTILE[number % HOSTILE.len()];
            number += 1;
            // The first character tells kinds of names apart: '/', '['.
            let inside = &mut changed[at + 1..at + len];
            let put = hostile.len().min(inside.len());
            inside[..put].copy_from_slice(&hostile[..put]);
        }
        at += len + 1;
    }
    changed
}

/// Runs every face; gives how many escapes they have printed.
fn show(name: &str, path: &Path) -> usize {
    let mut escapes = 0;
    for arguments in FACES {
        let mut whit = whit_in(&folder().join(name));
        whit.args(arguments).arg("-i").arg(path).args(["--threads", "1"]);
        whit.args(["--symfs", "../root", "--kallsyms", "../kallsyms"]);
        let output = whit.output().expect("run whit");
        let what = format!("{name}: {arguments:?}");
        assert!(output.status.code().is_some(), "{what}: {:?}", output.status);
        assert_plain(&what, &output.stdout);
        assert_plain(&format!("{what}, messages"), &output.stderr);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        escapes += text.matches("\\x").count() + text.matches("\\u").count();
    }
    escapes
}

/// Folded stacks are exact, but each is one line with its weight.
fn fold(name: &str, path: &Path) {
    let mut whit = whit_in(&folder().join(name));
    whit.args(["script", "--folded", "--threads", "1", "-i"]).arg(path);
    let output = whit.output().expect("run whit");
    assert_plain(name, &output.stderr);
    for line in output.stdout.split_inclusive(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let (_, weight) = line.rsplit_once(' ').expect("a weight");
        assert!(weight.trim_end_matches('\n').parse::<u64>().is_ok(), "{name}: {line:?}");
    }
}

fn every_face_of(turn: usize, within: impl Fn(&[u8]) -> Range<usize>) {
    let directory = tempfile::tempdir().expect("make a directory");
    let path = directory.path().join("hostile.data");
    let (mut recordings, mut with_escapes) = (0, 0);
    for (name, kept) in files() {
        let recording = std::fs::read(kept).expect("a kept recording");
        std::fs::write(&path, changed(&recording, turn, &within(&recording)))
            .expect("write a recording");
        with_escapes += usize::from(show(&name, &path) > 0);
        recordings += 1;
        fold(&name, &path);
    }
    // Most recordings still show names.
    assert!(with_escapes * 2 > recordings, "{with_escapes} of {recordings}");
}

#[test]
fn no_face_prints_them_raw_one() {
    every_face_of(0, |recording| 0..recording.len());
}

#[test]
fn no_face_prints_them_raw_two() {
    every_face_of(1, |recording| 0..recording.len());
}

#[test]
fn no_face_prints_them_raw_three() {
    every_face_of(2, |recording| 0..recording.len());
}

/// Formats of tracepoints stay whole, so that strings in samples are printed.
#[test]
fn no_face_prints_those_of_records_raw() {
    every_face_of(0, records);
}
