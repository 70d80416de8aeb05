//! Text and JSON of a golden recording of switches.

use super::{TextOptions, write_json, write_stacks, write_text};
use whit_perfdata::reader::Recording;
use whit_profile::LoadOptions;
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::golden::Golden;
use whit_why::{Interval, Why};

fn waits() -> Why {
    let path = Golden::folder().join("../waits/waits.data");
    // The recording carries all names: those of this machine's binaries and kernel are others.
    let options = LoadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
    let recording = Recording::open(&path).unwrap();
    Why::load(recording, options, &Interval::default(), &|_, _| ()).unwrap()
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
    assert_eq!(json["pieces"].as_array().unwrap().len(), why.path.pieces.len());
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
