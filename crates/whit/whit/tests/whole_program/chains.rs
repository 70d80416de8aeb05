//! Call chains from dumped stacks are complete, and show inlined functions.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::support::script::{self, Sample};
use crate::support::tools::{record, text, whit, workload};
use crate::support::{Skip, check};

/// About a third of a second of the deep programs.
const ITERATIONS: &str = "40000";
/// Frames of deep.cpp below its entry that are never inlined, where a kernel is executing:
/// 32 stages, a recursion of eight, dispatch, drive, main and three of the C library.
const CPP_FRAMES: usize = 45;
/// The same of deep.rs: the stages and their closures, and a recursion of thirteen.
const RUST_FRAMES: usize = 40;
/// The same of deep.go: two functions of sixteen, drive, its goroutine's and goexit.
const GO_FRAMES: usize = 35;

/// Samples of a program, recorded with dumped stacks by whit and unwound by whit.
fn samples(program: &str, arguments: &[&str]) -> Result<Vec<Sample>, Skip> {
    let program: PathBuf = workload(program)?;
    let directory: TempDir = tempfile::tempdir().expect("make a directory");
    let path = directory.path().join("perf.data");
    let mut recorder = whit();
    recorder.args(["record", "-F", "5000", "--call-graph", "dwarf,16384", "-o"]).arg(&path);
    record(recorder.arg("--").arg(program).args(arguments))?;
    Ok(script::parse(&text(whit().args(["script", "-F", "comm,ip,sym", "-i"]).arg(&path))))
}

/// Panics unless every sample that passes `through` begins at one of `roots`, and there are many.
fn assert_complete(samples: &[Sample], through: &str, roots: &[&str]) {
    let below: Vec<_> = samples.iter().filter(|sample| sample.passes(through)).collect();
    assert!(below.len() > 100, "only {} of {} samples pass {through}", below.len(), samples.len());
    for sample in below {
        assert!(roots.contains(&sample.root()), "a chain is cut short: {sample:#?}");
    }
}

/// Panics unless every sample whose leaf is in `leaf` has so many physical frames.
fn assert_deep(samples: &[Sample], leaf: &str, frames: usize) {
    let in_leaf: Vec<_> = samples.iter().filter(|s| s.physical_leaf().contains(leaf)).collect();
    assert!(in_leaf.len() > 100, "only {} of {} in {leaf}", in_leaf.len(), samples.len());
    for sample in in_leaf {
        assert!(sample.physical_frames() >= frames, "a chain is not deep: {sample:#?}");
    }
}

fn assert_inlined(samples: &[Sample], symbol: &str) {
    let shown = samples
        .iter()
        .any(|s| s.frames.iter().any(|frame| frame.inlined && frame.symbol.contains(symbol)));
    assert!(shown, "no chain shows the inlined {symbol}");
}

#[test]
fn a_cpp_program_to_its_start() {
    check("a_cpp_program_to_its_start", || {
        let samples = samples("deep", &["--iterations", ITERATIONS])?;
        assert_complete(&samples, "main", &["_start"]);
        assert_deep(&samples, "hash_block", CPP_FRAMES);
        assert_inlined(&samples, "scramble_round");
        assert_inlined(&samples, "scramble");
        Ok(())
    });
}

#[test]
fn a_cpp_thread_to_its_clone() {
    check("a_cpp_thread_to_its_clone", || {
        let samples = samples("deep", &["--iterations", ITERATIONS, "--threads", "1"])?;
        let roots = ["clone3", "__clone3", "clone", "__clone", "thread_start"];
        // Neither is exported: a C library without symbols names them nowhere.
        if !samples.iter().any(|sample| sample.passes("start_thread")) {
            return Err(Skip("the C library here has no symbols (install libc6-dbg)".to_owned()));
        }
        assert_complete(&samples, "drive", &roots);
        assert_deep(&samples, "hash_block", CPP_FRAMES);
        Ok(())
    });
}

#[test]
fn a_static_program_to_its_start() {
    check("a_static_program_to_its_start", || {
        let samples = samples("deep-static", &["--iterations", ITERATIONS])?;
        assert_complete(&samples, "main", &["_start"]);
        assert_deep(&samples, "hash_block", CPP_FRAMES);
        Ok(())
    });
}

#[test]
fn a_rust_program_to_its_start() {
    check("a_rust_program_to_its_start", || {
        let samples = samples("deep-rs", &["--iterations", ITERATIONS])?;
        assert_complete(&samples, "main", &["_start"]);
        assert_deep(&samples, "Hash", RUST_FRAMES);
        assert_inlined(&samples, "scramble");
        Ok(())
    });
}

#[test]
fn a_goroutine_to_its_exit() {
    check("a_goroutine_to_its_exit", || {
        let samples = samples("deep-go", &["-iterations", ITERATIONS])?;
        assert_complete(&samples, "main.drive", &["runtime.goexit", "runtime.goexit.abi0"]);
        assert_deep(&samples, "main.hashKernel.run", GO_FRAMES);
        assert_inlined(&samples, "main.scrambleRound");
        Ok(())
    });
}
