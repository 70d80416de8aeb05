//! Go's allocator and collector run on the threads' own stacks, on behalf of a goroutine.

use std::process::Command;

use crate::support::script::{self, Sample};
use crate::support::tools::{perf, text, whit, workload};
use crate::support::{Skip, check, probe, record};

/// Functions as Go's linker names them begin so; assembly routines have a suffix.
const SWITCH: &str = "runtime.systemstack";
const ROOT: &str = "runtime.goexit";
const ALLOCATION: &str = "runtime.mallocgc";
const OWN: &str = "main.build";
/// Least share of the samples through the switch that go on to the goroutine's first frame. Without the
/// stack switches it was 0.5 %; with them, all do but those of a goroutine that the recorder noticed too
/// late.
const LEAST_WHOLE: f64 = 0.95;
/// Samples on the thread's own stack; a second at 999 Hz has 150 to 400.
const LEAST_SWITCHED: usize = 30;
/// On a busy machine the program gets little of a second, and runs longer.
const SECONDS: [&str; 3] = ["1.5", "6", "24"];

fn passes(sample: &Sample, name: &str) -> bool {
    sample.frames.iter().any(|frame| frame.symbol.starts_with(name))
}

/// Enough samples of `collect-go`, as `tool` records them.
fn samples(
    tool: impl Fn() -> Result<Command, Skip>,
    options: &[&str],
) -> Result<Vec<Sample>, Skip> {
    let mut samples = Vec::new();
    for seconds in SECONDS {
        samples = samples_of(tool()?, options, seconds)?;
        let of = |name| samples.iter().filter(|sample| passes(sample, name)).count();
        if of(SWITCH) >= LEAST_SWITCHED && of(ALLOCATION) >= LEAST_SWITCHED {
            break;
        }
    }
    Ok(samples)
}

fn samples_of(mut tool: Command, options: &[&str], seconds: &str) -> Result<Vec<Sample>, Skip> {
    let place = tempfile::tempdir().expect("make a directory");
    let data = place.path().join("perf.data");
    tool.args(["record", "-e", "cpu-clock:u", "-F", "999"]);
    tool.args(options).arg("-o").arg(&data);
    record(tool.arg("--").arg(workload("collect-go")?).args(["--seconds", seconds]))?;
    let samples =
        script::parse(&text(whit().args(["script", "-F", "comm,ip,sym", "-i"]).arg(data)));
    // Before the first whole chain the tables were not there.
    let first = samples.iter().position(|sample| sample.root().starts_with(ROOT));
    Ok(samples.into_iter().skip(first.unwrap_or(usize::MAX)).collect())
}

/// The share of the samples in a function that pass another one.
fn share(samples: &[Sample], of: &str, with: &str) -> (usize, f64) {
    let of: Vec<_> = samples.iter().filter(|sample| passes(sample, of)).collect();
    let with = of.iter().filter(|sample| passes(sample, with)).count();
    (of.len(), with as f64 / of.len().max(1) as f64)
}

fn assert_charged(samples: &[Sample]) {
    let (switched, whole) = share(samples, SWITCH, ROOT);
    assert!(switched >= LEAST_SWITCHED, "{switched} of {}", samples.len());
    let cut = samples.iter().find(|sample| passes(sample, SWITCH) && !passes(sample, ROOT));
    assert!(whole >= LEAST_WHOLE, "{whole} of {switched} are whole, not {cut:#?}");
    let (allocations, own) = share(samples, ALLOCATION, OWN);
    assert!(allocations >= LEAST_SWITCHED && own >= LEAST_WHOLE, "{own} of {allocations}");
}

#[test]
fn the_bpf_engine_charges_code_on_another_stack_to_the_goroutine() {
    check("go_stacks_bpf", || {
        probe::bpf_stacks()?;
        assert_charged(&samples(|| Ok(whit()), &["--engine=bpf"])?);
        Ok(())
    });
}

/// Chains by frame pointers, which the runtime keeps: the yardstick of the test above.
#[test]
fn frame_pointers_do_so_too() {
    check("go_stacks_frame_pointers", || {
        assert_charged(&samples(perf, &["-g"])?);
        Ok(())
    });
}
