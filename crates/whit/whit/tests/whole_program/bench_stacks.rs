//! `whit bench stacks`: the stacks that the kernel unwinds equal those of offline unwinders on the
//! same samples.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::support::tools::{whit, workload};
use crate::support::{Skip, check, probe};

/// Frames that must be the same once the recorder knows what the program has mapped. On a busy machine
/// that takes some milliseconds.
const LEAST_EQUAL: f64 = 0.99;
/// One recording at a time: the recorder must get a CPU.
static RECORDING: Mutex<()> = Mutex::new(());
/// Stacks of samples, and of context switches.
const SAMPLES: Moments =
    Moments { options: &["-e", "cpu-clock"], milliseconds: "3000", fewest: 200 };
const SWITCHES: Moments = Moments { options: &["--switches"], milliseconds: "5000", fewest: 100 };

/// When stacks are taken, how long a program runs for that, and the fewest that say something.
struct Moments {
    options: &'static [&'static str],
    milliseconds: &'static str,
    fewest: u64,
}

/// Compares one program; the second recording finds its unwind tables in the cache.
fn compare(program: &str, file: &str, moments: &Moments) -> Result<Value, Skip> {
    probe::bpf_stacks()?;
    let built = workload(file)?;
    let place = tempfile::tempdir().expect("make a directory");
    let json = place.path().join("stacks.json");
    let run = |milliseconds: &str| {
        let mut bench: Command = whit();
        bench.args(["bench", "stacks", "--programs", program]).args(moments.options);
        bench
            .arg("--milliseconds")
            .arg(milliseconds)
            .arg("--workloads")
            .arg(built.parent().expect("a directory"));
        bench.arg("--dir").arg(place.path()).arg("--json").arg(&json);
        let output = whit_testing::run::run(&mut bench);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    run("300");
    let printed = run(moments.milliseconds);
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
fn assert_accounted(found: &Value, fewest: u64) {
    let number = |of: &Value| of.as_u64().expect("a number");
    let ended = found["ended"].as_object().expect("ends");
    let sum: u64 = ended.values().map(number).sum();
    assert_eq!(sum, number(&found["walks"]), "{found}");
    let (samples, unpaired) = (number(&found["samples"]), number(&found["unpaired"]));
    assert!(samples >= fewest && unpaired * 20 <= samples, "{found}");
    // How late the recorder knows the process is a matter of how busy the machine is.
    assert!(samples - number(&found["early"]) >= fewest / 2, "{found}");
}

fn test(name: &str, program: &str, file: &str, with: &[&str]) {
    test_at(name, program, file, with, &SAMPLES);
}

fn test_at(name: &str, program: &str, file: &str, with: &[&str], moments: &Moments) {
    check(name, || {
        let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
        let found = compare(program, file, moments)?;
        assert_accounted(&found, moments.fewest);
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

/// Wherever the clock takes a program off its CPU.
#[test]
fn stacks_of_switches_are_those_of_offline_unwinders() {
    for (name, program, file, with) in [
        ("bench_stacks_switches_cpp", "c++", "deep", &["framehop", "offline"][..]),
        ("bench_stacks_switches_c", "c", "corners", &["offline"]),
        ("bench_stacks_switches_go", "go", "deep-go", &["offline"]),
    ] {
        test_at(name, program, file, with, &SWITCHES);
    }
}
