//! `whit bench stacks`: what the kernel unwinds is what offline unwinders make of the same samples.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::support::tools::{whit, workload};
use crate::support::{Skip, check};

/// Frames that must be the same once the recorder knows what the program has mapped. On a busy machine
/// that takes some milliseconds.
const LEAST_EQUAL: f64 = 0.99;
/// What whit says where the kernel does not take its programs.
const REFUSAL: &str = "BPF program";
/// One recording at a time: the recorder must get a CPU.
static RECORDING: Mutex<()> = Mutex::new(());
/// Fewest samples that say something.
const SAMPLES_MIN: u64 = 200;

/// Compares one program; the second recording finds its unwind tables in the cache.
fn compare(program: &str, file: &str) -> Result<Value, Skip> {
    let built = workload(file)?;
    let place = tempfile::tempdir().expect("make a directory");
    let json = place.path().join("stacks.json");
    let run = |milliseconds: &str| {
        let mut bench: Command = whit();
        bench.env("XDG_CACHE_HOME", place.path().join("cache"));
        bench.args(["bench", "stacks", "-e", "cpu-clock", "--programs", program, "--milliseconds"]);
        bench.arg(milliseconds).arg("--workloads").arg(built.parent().expect("a directory"));
        bench.arg("--dir").arg(place.path()).arg("--json").arg(&json);
        let output = bench.output().expect("run whit");
        let printed =
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        match output.status.success() {
            true => Ok(printed),
            false if printed.contains(REFUSAL) => Err(Skip(format!("no BPF here: {printed}"))),
            false => panic!("{bench:?}: {printed}"),
        }
    };
    run("300")?;
    let printed = run("3000")?;
    assert!(printed.contains("How the walks ended"), "{printed}");
    let text = std::fs::read_to_string(json).expect("read the JSON");
    let comparison: Value = serde_json::from_str(&text).expect("JSON");
    Ok(comparison["rows"][0]["result"].clone())
}

fn assert_equal(found: &Value, with: &str) {
    let number = |field: &str| found[with][field].as_u64().expect("a number");
    let share = number("equal") as f64 / number("frames") as f64;
    assert!(share >= LEAST_EQUAL, "{:.3} % of {with}'s frames: {found}", 100.0 * share);
    assert!(number("complete") > 0, "{found}");
}

/// Every stack that was walked has an end, and every sample both stacks.
fn assert_accounted(found: &Value) {
    let number = |of: &Value| of.as_u64().expect("a number");
    let ended = found["ended"].as_object().expect("ends");
    let sum: u64 = ended.values().map(number).sum();
    assert_eq!(sum, number(&found["walks"]), "{found}");
    let (samples, unpaired) = (number(&found["samples"]), number(&found["unpaired"]));
    assert!(samples >= SAMPLES_MIN && unpaired * 20 <= samples, "{found}");
    // How late the recorder knows the process is a matter of how busy the machine is.
    assert!(samples - number(&found["early"]) >= SAMPLES_MIN / 2, "{found}");
}

fn test(name: &str, program: &str, file: &str, with: &[&str]) {
    check(name, || {
        let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
        let found = compare(program, file)?;
        assert_accounted(&found);
        for other in with {
            assert_equal(&found, &format!("known_{other}"));
        }
        Ok(())
    });
}

#[test]
fn cpp_stacks_are_those_of_offline_unwinders() {
    test("bench_stacks_cpp", "c++", "deep", &["framehop", "offline"]);
}

#[test]
fn static_cpp_stacks_are_those_of_offline_unwinders() {
    test("bench_stacks_static", "c++-static", "deep-static", &["framehop", "offline"]);
}

#[test]
fn rust_stacks_are_those_of_offline_unwinders() {
    test("bench_stacks_rust", "rust", "deep-rs", &["framehop", "offline"]);
}

#[test]
fn go_stacks_are_those_of_offline_unwinders() {
    test("bench_stacks_go", "go", "deep-go", &["framehop", "offline"]);
}

/// Through frames of signals framehop follows frame pointers, which lead elsewhere.
#[test]
fn c_stacks_through_signals_linkage_tables_and_the_vdso_are_those_of_the_offline_unwinder() {
    test("bench_stacks_c", "c", "corners", &["offline"]);
}
