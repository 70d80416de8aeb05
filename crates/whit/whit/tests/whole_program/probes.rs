//! Probes in programs (uprobes) with stacks that are unwound in the kernel.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::script::{self, Sample};
use crate::support::tools::{command, perf, text, whit, workload};
use crate::support::{Skip, check, probe};

/// Calls of the probed functions.
const ITERATIONS: usize = 300;
const FUNCTIONS: [&str; 2] = ["inner_a", "inner_b"];
/// A program's tables may come a moment after its start.
const MOST_CUT: usize = ITERATIONS / 20;

/// Probes in `callers`, until the test ends.
struct Probes {
    file: PathBuf,
    /// The group of these probes; other tests have others.
    group: String,
}

impl Probes {
    fn put(program: &Path, group: &str) -> Result<Probes, Skip> {
        let file = probe::uprobes()?;
        probe::program("nm")?;
        let probes = Probes { file, group: format!("whit_{group}_{}", std::process::id()) };
        let symbols = text(command("nm").arg(program));
        for function in FUNCTIONS {
            let is_it = |line: &&str| line.ends_with(&format!(" {function}"));
            let line = symbols.lines().find(is_it).expect("a function of the program");
            // The linker puts code of such a program at its offset in the file.
            let offset = line.split(' ').next().expect("an address");
            let (group, program) = (&probes.group, program.display());
            probes.write(&format!("p:{group}/{function} {program}:0x{offset}")).expect("a probe");
        }
        Ok(probes)
    }

    fn write(&self, line: &str) -> std::io::Result<()> {
        OpenOptions::new().append(true).open(&self.file)?.write_all(line.as_bytes())
    }

    /// As events that are sampled at each hit.
    fn events(&self) -> Vec<String> {
        FUNCTIONS.iter().map(|name| format!("-e{}:{name}/period=1/", self.group)).collect()
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        for function in FUNCTIONS {
            // Nobody has the event any more.
            let _ = self.write(&format!("-:{}/{function}", self.group));
        }
    }
}

/// The calls in `callers`, whose sequence is fixed.
fn calls() -> Vec<String> {
    let mut state = 1_u64;
    let mut call = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (state >> 33) as u32;
        let depth = if random & 12 != 0 { 2 } else { random >> 4 & 7 };
        let letter = |bit: u32| if random >> bit & 1 == 1 { 'b' } else { 'a' };
        format!("{}{}{depth}", letter(0), letter(1))
    };
    (0..ITERATIONS).map(|_| call()).collect()
}

/// The same, as a sample's event and call chain have it.
fn call(sample: &Sample) -> String {
    let outer = sample.frames.iter().find_map(|frame| frame.symbol.strip_prefix("outer_"));
    let inner = FUNCTIONS.iter().find(|function| sample.head.contains(&format!(":{function}")));
    let inner = inner.and_then(|name| name.strip_prefix("inner_"));
    let depth = sample.frames.iter().filter(|frame| frame.symbol == "dig").count();
    format!("{}{}{}", outer.unwrap_or("-"), inner.unwrap_or("-"), depth.saturating_sub(1))
}

/// The samples of the recording are those calls, with their stacks; few are cut.
fn assert_calls(printed: &str, said: &str) {
    let samples = script::parse(printed);
    let hits: Vec<_> = samples.iter().filter(|sample| sample.head.contains("inner_")).collect();
    assert_eq!(hits.len(), ITERATIONS, "{said}");
    let wanted = calls();
    let found: Vec<String> = hits.into_iter().map(call).collect();
    let right = found.iter().zip(&wanted).filter(|(found, wanted)| found == wanted).count();
    // A cut stack lacks the outer function.
    let is_other =
        |(found, wanted): &(&String, &String)| found != wanted && !found.starts_with('-');
    let wrong = found.iter().zip(&wanted).find(is_other);
    assert_eq!(wrong, None, "{said}");
    assert!(right >= ITERATIONS - MOST_CUT, "{right} of {ITERATIONS}: {said}");
}

#[test]
fn each_hit_of_a_probe_has_its_stack_with_samples_of_a_clock() {
    check("probes_bpf", || {
        probe::bpf_stacks()?;
        let (place, program) =
            (tempfile::tempdir().expect("make a directory"), workload("callers")?);
        let probes = Probes::put(&program, "bpf")?;
        let out = place.path().join("perf.data");
        let count = ITERATIONS.to_string();
        for engine in ["--engine=bpf", "--engine=auto"] {
            let mut recorder = whit();
            recorder.args(["record", "-v", engine, "-e", "cpu-clock"]).args(probes.events());
            recorder.arg("-o").arg(&out).arg("--").arg(&program).args(["--iterations", &count]);
            let said = whit_testing::run::stderr(&whit_testing::run::record(&mut recorder)?);
            assert!(said.contains(&format!("{ITERATIONS} hits of probes")), "{said}");
            let script = ["script", "-F", "comm,event,ip,sym", "-i"];
            assert_calls(&text(whit().args(script).arg(&out)), &said);
            assert_calls(&text(perf()?.args(script).arg(&out)), &said);
        }
        Ok(())
    });
}

/// The list calls good what the engine records.
#[test]
fn the_list_says_that_probes_open() {
    check("probes_listed", || {
        probe::root()?;
        let probes = Probes::put(&workload("callers")?, "list")?;
        let listed = text(whit().args(["list", &format!("{}:*", probes.group)]));
        for function in FUNCTIONS {
            let is_ok =
                |line: &str| line.contains(&format!(":{function} ")) && line.ends_with("ok");
            assert!(listed.lines().any(is_ok), "{listed}");
        }
        Ok(())
    });
}
