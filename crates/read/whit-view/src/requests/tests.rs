//! Text and JSON of a stored recording with requests.

use super::{TextOptions, write_json, write_text};
use whit_perfdata::reader::Recording;
use whit_profile::{ReadOptions, Reading};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::golden::Golden;
use whit_why::{AllRequests, Requests};

fn requests(question: AllRequests) -> Requests {
    let path = Golden::folder().join("../requests/requests.data");
    // The recording carries all names: those of this machine's binaries and kernel are others.
    let options = ReadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
    let recording = Recording::open(&path).unwrap();
    Reading::open(&recording, &options).answer(question).unwrap()
}

fn text(question: AllRequests, options: &TextOptions) -> String {
    let mut out = Vec::new();
    write_text(&mut out, &requests(question), options).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_has_quantiles_and_what_the_slowest_did() {
    let options = TextOptions { limit: None, slowest: 3, is_quiet: false };
    insta::assert_snapshot!(text(AllRequests::default(), &options));
}

#[test]
fn filters_leave_calls_out() {
    let options = TextOptions { limit: Some(1), slowest: 100, is_quiet: true };
    let name = Some("call".to_owned());
    let slow = AllRequests { name, key: None, longer_than_ns: 20_000_000, nested: true };
    insta::assert_snapshot!(text(slow, &options));
}

#[test]
fn json_has_the_parts_of_each_call() {
    let requests = requests(AllRequests { nested: true, ..AllRequests::default() });
    let mut out = Vec::new();
    write_json(&mut out, &requests, 1000).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let calls = json["requests"][0]["slowest"].as_array().unwrap();
    assert_eq!(calls.len(), 135);
    for call in calls {
        let parts = call["parts"].as_array().unwrap().iter();
        let sum: u64 = parts.map(|part| part["duration_ns"].as_u64().unwrap()).sum();
        assert_eq!(call["duration_ns"], sum, "{call}");
    }
    whit_schemas::assert_schema::<super::json::Document>("docs/schemas/requests.json");
}
