//! Reports as OpenTelemetry's profiler sent them and its collector wrote them.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::Load;
use super::otlp::{Code, end_ns, read};
use super::run::judge;

/// Two reports of `deep`, `deep-go` and `deep-py` at 7 Hz. Other processes are taken out.
const REPORTS: &[u8] = include_bytes!("recorded/otel-ebpf-profiler.json.gz");
/// The names by `addr2line` of their addresses in `deep`: the outermost function first, inlined ones behind it. Names
/// of the C++ library are short here.
const NAMES_OF_DEEP: &str = include_str!("recorded/otel-ebpf-profiler.names");
const BUILD_ID_OF_DEEP: &str = "efd2665ac97c2610594d9db1a48b5c890c7439de";
const FIRST_END_NS: u64 = 1_795_716_169_076_342_972;
const LAST_END_NS: u64 = 1_795_716_173_191_054_024;

fn reports() -> String {
    let mut text = String::new();
    GzDecoder::new(REPORTS).read_to_string(&mut text).unwrap();
    text
}

/// The functions of `deep`, and nothing of other files.
fn names_of_deep(code: &Code<'_>) -> Vec<String> {
    if (code.file, code.build_id) != ("deep", Some(BUILD_ID_OF_DEEP)) {
        return vec![String::new()];
    }
    let lines = NAMES_OF_DEEP.lines().filter_map(|line| line.split_once(' '));
    let known: HashMap<&str, &str> = lines.collect();
    let names = known[&*format!("{:x}", code.address)];
    names.split(';').map(str::to_owned).collect()
}

fn no_names(_: &Code<'_>) -> Vec<String> {
    vec![String::new()]
}

#[test]
fn native_stacks_are_whole_by_the_names_of_their_file() {
    let stacks = read(&reports(), LAST_END_NS, &names_of_deep).unwrap();
    let samples = judge(&stacks, Load::Cpp, 29.0);
    assert_eq!((samples.all, samples.of_load, samples.complete), (37, 14, Some(14)));
    let inlined = ["kernels::hash_block", "scramble", "kernels::scramble_round"];
    let has = |frames: &[String]| frames.windows(3).any(|it| it == inlined);
    assert!(stacks.stacks.iter().any(|stack| has(&stack.frames)));
    let unnamed = read(&reports(), LAST_END_NS, &no_names).unwrap();
    assert_eq!(judge(&unnamed, Load::Cpp, 29.0).complete, Some(0));
}

#[test]
fn functions_of_go_and_python_have_the_names_of_the_agent() {
    let stacks = read(&reports(), LAST_END_NS, &no_names).unwrap();
    let go = judge(&stacks, Load::Go, 52.0);
    // One is in a thread of Go's runtime, which has no function of the program.
    assert_eq!((go.of_load, go.complete), (14, Some(13)));
    let python = judge(&stacks, Load::Python, 52.0);
    assert_eq!((python.of_load, python.complete), (9, Some(9)));
    let names = |stack: &super::pprof::Stack| stack.process.clone();
    let mut processes: Vec<_> = stacks.stacks.iter().filter_map(names).collect();
    processes.sort();
    processes.dedup();
    assert_eq!(processes, ["deep", "deep-go", "python3.11"]);
}

#[test]
fn samples_after_the_end_of_the_load_are_left_out() {
    let all = |until_ns| judge(&read(&reports(), until_ns, &no_names).unwrap(), Load::Cpp, 1.0).all;
    // One sample of that time is in the second report.
    assert_eq!((all(0), all(FIRST_END_NS), all(LAST_END_NS)), (0, 17, 37));
    // At the time of a sample.
    assert_eq!((all(1_795_716_165_763_539_284), all(1_795_716_165_763_539_285)), (0, 1));
}

#[test]
fn the_last_whole_report_says_how_far_samples_reach() {
    let text = reports();
    let first = text.find('\n').unwrap() + 1;
    assert_eq!((end_ns(""), end_ns(&text[..first - 1])), (0, 0));
    assert_eq!((end_ns(&text[..first]), end_ns(&text)), (FIRST_END_NS, LAST_END_NS));
    assert_eq!(end_ns(&text[..text.len() - 1]), FIRST_END_NS);
    // A line that is not yet whole is no defect.
    assert_eq!(
        judge(&read(&text[..first + 9], u64::MAX, &no_names).unwrap(), Load::Go, 1.0).all,
        16
    );
}

#[test]
fn reports_are_read_or_refused() {
    for line in [
        "<html>\n",
        "7\n",
        "{\"resourceProfiles\": 3}\n",
        "{\"dictionary\": {\"mappingTable\": [7]}}\n",
    ] {
        assert!(read(line, u64::MAX, &no_names).is_err(), "{line}");
    }
    let line = r#"{"dictionary": {"stringTable": ["", "outer", "inlined"], "stackTable": [{"locationIndices": [0]}],
        "functionTable": [{"nameStrindex": 1}, {"nameStrindex": 2}],
        "locationTable": [{"lines": [{"functionIndex": 1}, {"functionIndex": 0}]}]},
        "resourceProfiles": [{"scopeProfiles": [{"profiles": [{"samples": [{"timestampsUnixNano": [1]}]}]}]}]}"#;
    let stacks = read(&(line.replace('\n', "") + "\n"), 2, &no_names).unwrap();
    assert_eq!(stacks.stacks[0].frames, ["outer", "inlined"]);
    // Numbers that stand for nothing.
    let lost = r#"{"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"samples": [
        {"stackIndex": 9, "attributeIndices": [7], "timestampsUnixNano": ["1", 2]}]}]}]}]}"#;
    let stacks = read(&(lost.replace('\n', "") + "\n"), 2, &no_names).unwrap();
    assert_eq!((stacks.stacks[0].samples, stacks.stacks[0].frames.len()), (2, 0));
    assert_eq!(stacks.stacks[0].process, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Numbers of a report lead into its tables; each may be wrong.
    #[test]
    fn a_damaged_report_is_read_or_refused(places in prop::collection::vec((any::<prop::sample::Index>(), 0u8..=9), 1..40)) {
        let mut bytes = reports().into_bytes();
        let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
        for (place, digit) in places {
            bytes[digits[place.index(digits.len())]] = b'0' + digit;
        }
        let text = String::from_utf8(bytes).unwrap();
        if let Ok(stacks) = read(&text, u64::MAX, &no_names) {
            prop_assert!(stacks.stacks.len() <= 40);
        }
        end_ns(&text);
    }
}
