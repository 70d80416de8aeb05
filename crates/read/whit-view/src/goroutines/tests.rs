//! Text and JSON of a stored recording of `goroutines -rounds 2 -idle 2` (`whit record --goroutines --engine=bpf
//! --embed-symbols -e dummy:u`).

use super::{TextOptions, write_json, write_text};
use whit_perfdata::reader::Recording;
use whit_profile::{ReadOptions, Reading};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::golden::Golden;
use whit_why::{GoroutineWaits, Goroutines};

fn goroutines(question: GoroutineWaits) -> Goroutines {
    let path = Golden::folder().join("../goroutines/goroutines.data");
    // The recording carries all names.
    let options = ReadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
    let recording = Recording::open(&path).unwrap();
    Reading::open(&recording, &options).answer(question).unwrap()
}

fn text(question: GoroutineWaits, options: &TextOptions) -> String {
    let mut out = Vec::new();
    write_text(&mut out, &goroutines(question), options).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_has_waits_by_reason_and_function_with_their_wakers() {
    let options = TextOptions { limit: Some(5), worst: None, chains: false, is_quiet: false };
    insta::assert_snapshot!(text(GoroutineWaits::default(), &options));
}

#[test]
fn the_longest_waits_have_both_call_chains() {
    let options = TextOptions { limit: None, worst: Some(3), chains: true, is_quiet: true };
    let reason = Some("Lock".to_owned());
    let long = GoroutineWaits { reason, longer_than_ns: 1_000_000, ..GoroutineWaits::default() };
    insta::assert_snapshot!(text(long, &options));
}

#[test]
fn the_runtime_s_own_goroutines_are_apart() {
    let all = GoroutineWaits { runtime: true, ..GoroutineWaits::default() };
    let (all, without) = (goroutines(all), goroutines(GoroutineWaits::default()));
    assert_eq!(
        (all.of_runtime, all.waits.len() - without.waits.len()),
        (0, without.of_runtime as usize)
    );
    assert!(without.of_runtime > 0);
    let none = GoroutineWaits { function: Some("no such".to_owned()), ..GoroutineWaits::default() };
    assert!(goroutines(none).rows.is_empty());
}

#[test]
fn json_has_all_waits() {
    let goroutines = goroutines(GoroutineWaits::default());
    let mut out = Vec::new();
    write_json(&mut out, &goroutines, 1000).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let sum = |list: &str, of: &str| -> u64 {
        json[list].as_array().unwrap().iter().filter_map(|it| it[of].as_u64()).sum()
    };
    assert_eq!(sum("rows", "total_ns"), sum("worst", "duration_ns"));
    let waits = json["worst"].as_array().unwrap().len() as u64;
    assert_eq!(waits, sum("rows", "count") + sum("rows", "open"));
    whit_schemas::assert_schema::<super::json::Document>("docs/schemas/goroutines.json");
}
