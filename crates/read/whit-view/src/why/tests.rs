//! Text and JSON of a golden recording of switches.

use super::{TextOptions, write_json, write_stacks, write_text};
use whit_perfdata::reader::Recording;
use whit_profile::{ReadOptions, Reading};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::golden::Golden;
use whit_why::{ChosenRequests, Interval, WhichRequests, Why};

fn waits() -> Why {
    why("waits/waits.data", Interval::default())
}

fn why(recording: &str, interval: Interval) -> Why {
    let path = Golden::folder().join("..").join(recording);
    // The recording carries all names: those of this machine's binaries and kernel are others.
    let options = ReadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
    let recording = Recording::open(&path).unwrap();
    Reading::open(&recording, &options).answer(interval).unwrap()
}

fn text(why: &Why, options: &TextOptions) -> String {
    let mut out = Vec::new();
    write_text(&mut out, why, options).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn rows_add_up_to_the_interval() {
    let why = waits();
    let sum: u64 = why.groups.iter().map(|group| group.duration_ns).sum();
    assert_eq!(sum, why.duration_ns());
    let all = TextOptions { limit: None, is_path: false, is_quiet: false };
    insta::assert_snapshot!(text(&why, &all));
}

#[test]
fn rows_that_are_left_off_are_counted() {
    let why = waits();
    let one = TextOptions { limit: Some(1), is_path: false, is_quiet: true };
    let text = text(&why, &one);
    assert!(text.contains(&format!("# {} rows more: ", why.groups.len() - 1)), "{text}");
}

#[test]
fn json_has_rows_and_pieces() {
    let why = waits();
    let mut out = Vec::new();
    write_json(&mut out, &why).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(json["groups"].as_array().unwrap().len(), why.groups.len());
    assert_eq!(
        json["intervals"][0]["pieces"].as_array().unwrap().len(),
        why.intervals[0].path.pieces.len()
    );
    whit_schemas::assert_schema::<super::json::Document>("docs/schemas/why.json");
}

#[test]
fn stacks_add_up_to_the_interval() {
    let why = waits();
    let mut out = Vec::new();
    write_stacks(&mut out, &why.stacks().unwrap()).unwrap();
    let text = String::from_utf8(out).unwrap();
    let ns = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(text.lines().map(ns).sum::<u64>(), why.duration_ns());
    insta::assert_snapshot!(text);
}

fn slow_calls(which: WhichRequests) -> Why {
    let requests = Some(ChosenRequests { name: "call".to_owned(), key: None, which });
    why("requests/requests.data", Interval { requests, ..Interval::default() })
}

#[test]
fn paths_of_several_requests_are_added_up() {
    let why = slow_calls(WhichRequests::LongerThan(2_000_000));
    let lengths: Vec<u64> = why.intervals.iter().map(|it| it.to.since(it.from)).collect();
    assert_eq!(lengths.len(), 3);
    assert!(lengths.is_sorted_by(|longer, shorter| longer >= shorter), "{lengths:?}");
    let duration_ns: u64 = lengths.iter().sum();
    assert_eq!(why.duration_ns(), duration_ns);
    assert_eq!(why.groups.iter().map(|group| group.duration_ns).sum::<u64>(), duration_ns);
    let stacks: u64 = why.stacks().unwrap().iter().map(|stack| stack.duration_ns).sum();
    assert_eq!(stacks, duration_ns);
    let all = TextOptions { limit: None, is_path: false, is_quiet: false };
    insta::assert_snapshot!(text(&why, &all));
}

/// A path is the same, alone and with others.
#[test]
fn the_sum_of_all_paths_is_that_of_each() {
    let several = slow_calls(WhichRequests::Slowest(3));
    for (rank, of_several) in (1..).zip(&several.intervals) {
        let one = slow_calls(WhichRequests::Rank(rank));
        assert_eq!(one.intervals.len(), 1);
        assert_eq!(one.intervals[0].path, of_several.path);
        assert_eq!(one.intervals[0].key, of_several.key);
    }
}
