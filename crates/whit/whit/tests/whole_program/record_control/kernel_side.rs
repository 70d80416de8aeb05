//! The ledger's figures on the kernel's side of a recording: interrupts of the PMU, BPF programs.

use super::support::{Skip, TestFolder, probe, stderr};
use serde_json::Value;
use std::process::Command;

/// Work that a PMU and a timer both sample many times.
const BUSY: &str = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";

fn report(place: &TestFolder, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    let command = command.arg("report").args(arguments).args(["-i", "out"]);
    let output = command.current_dir(place.dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Records, and gives the ledger as lines and as JSON. Without -v nobody hears of the meter.
fn record(event: &str) -> (Vec<String>, Value) {
    let place = TestFolder::new();
    let output = place.run(&["-e", event, "-o", "out", "--", "sh", "-c", BUSY]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("PMU interrupts") && !said.contains("BPF"), "{said}");
    let lines = report(&place, &["--ledger"]).lines().map(str::to_owned).collect();
    let json: Value = serde_json::from_str(&report(&place, &["--json"])).unwrap();
    (lines, json["ledger"].clone())
}

fn line<'l>(lines: &'l [String], name: &str) -> &'l str {
    let found = lines.iter().find(|line| line.trim_start().starts_with(name));
    found.unwrap_or_else(|| panic!("no line '{name}' in {lines:#?}"))
}

#[test]
fn software_events_raise_no_interrupts_of_the_pmu_and_the_ledger_says_so() {
    for event in ["cpu-clock", "page-faults", "cpu-clock,context-switches"] {
        let (lines, ledger) = record(event);
        let text = line(&lines, "PMIs");
        let reason = "not measured:  no event of the PMU was sampled, and others raise none";
        assert!(text.contains(reason) && text.contains("cpu-clock"), "{event}: {text}");
        assert_eq!(ledger["pmi"]["measurement"], "no_pmu_event", "{event}");
        assert_eq!(ledger["pmi"]["count"], Value::Null, "{event}");
        assert!(text.contains(ledger["pmi"]["reason"].as_str().unwrap()), "{event}: {text}");
        assert!(line(&lines, "BPF programs").trim_end().ends_with(" 0"), "{event}: {lines:?}");
        assert_eq!(ledger["bpf"]["measurement"], "no_program", "{event}");
        assert_eq!(ledger["bpf"]["programs"], 0, "{event}");
    }
}

/// Where there is no PMU, cycles become cpu-clock; where there is one, there are figures or a reason
/// of another kind.
#[test]
fn figures_go_with_the_pmu() {
    let (lines, ledger) = record("cycles");
    let (pmi, bpf) = (&ledger["pmi"], &ledger["bpf"]);
    let text = line(&lines, "PMIs");
    let measurement = pmi["measurement"].as_str().unwrap();
    match measurement {
        "perf_handlers" | "all_handlers" => {
            let figure = |name: &str| pmi[name].as_u64().unwrap();
            assert!(figure("longest_ns") <= figure("time_ns") || figure("count") == 0, "{pmi}");
            assert!(text.contains("each on average") && text.contains("of wall time"), "{text}");
            assert_eq!(bpf["programs"], 1);
        }
        _ => {
            let lacks = probe::hardware_events().and_then(|()| probe::bpf_interrupts());
            let Err(Skip(reason)) = lacks else {
                panic!("not measured on a machine that can: {pmi}")
            };
            whit_testing::skip("PMIs of a recording", &reason);
            assert!(text.contains(pmi["reason"].as_str().unwrap()), "{text}");
            assert_eq!((&bpf["programs"], &pmi["count"]), (&0.into(), &Value::Null));
        }
    }
}

#[test]
fn the_ledger_has_the_memory_of_the_recorder() {
    let (lines, ledger) = record("cpu-clock");
    let peak_kib = ledger["peak_memory_bytes"].as_u64().unwrap() / 1024;
    // The rings alone are larger than the lower bound; the upper one is far above the memory of a shell's
    // recording.
    assert!((512..4 << 20).contains(&peak_kib), "{peak_kib} KiB");
    let line = lines.iter().find(|line| line.starts_with("  peak memory "));
    assert!(line.is_some_and(|line| line.ends_with("MiB")), "{lines:?}");
}
