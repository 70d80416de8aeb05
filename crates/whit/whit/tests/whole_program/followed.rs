//! Facts that recordings of single processes have like those of whole CPUs: the CPU of a wait, and the word on names.

use std::process::Command;

use whit_testing::run::{record, stderr};
use whit_testing::wait::{Load, wait_until};

use crate::support::tools::{text, whit};
use crate::support::{Skip, check, probe};

/// Waits all the time.
const SLEEPER: &str = "import time\nfor _ in range(200): time.sleep(0.05)";
/// Text in front of the advice to take the other engine.
const ADVICE: &str = "to get names: whit record --engine=bpf";

fn sleeper() -> Result<Load, Skip> {
    probe::program("python3")?;
    let python = Load::start(Command::new("python3").args(["-c", SLEEPER]));
    wait_until("Python runs", || {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", python.id()));
        maps.is_ok_and(|maps| maps.contains("libpython3.1") || maps.contains("bin/python3.1"))
    });
    Ok(python)
}

#[test]
fn waits_of_one_process_have_their_cpu() {
    check("followed::cpu", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let python = sleeper()?;
        let pid = python.id().to_string();
        for engine in ["--engine=ring", "--engine=bpf"] {
            if engine.ends_with("bpf") {
                probe::bpf_stacks()?;
            }
            let mut recorder = whit();
            recorder.args(["record", engine, "--switch-events", "-e", "cpu-clock", "-p", &pid]);
            record(recorder.arg("-o").arg(&path).args(["--", "sleep", "0.5"]))?;
            let worst = text(whit().args(["switches", "--worst", "-i"]).arg(&path));
            let known = worst.lines().filter(|line| line.contains("  [0")).count();
            assert!(known > 2, "{engine}: {worst}");
            let unknown = worst.lines().filter(|line| line.contains("[???]"));
            for line in unknown {
                assert!(line.contains("blocked when recording began"), "{engine}: {line}");
            }
        }
        Ok(())
    });
}

#[test]
fn an_interpreter_that_is_followed_gives_no_advice() {
    check("followed::advice", || {
        probe::bpf_stacks()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let python = sleeper()?;
        let pid = python.id().to_string();
        let said = |engine: &str| {
            let mut recorder = whit();
            recorder.args(["record", engine, "-e", "cpu-clock", "-F", "1", "-p", &pid, "-o"]);
            let output = record(recorder.arg(&path).args(["--", "sleep", "0.3"]))?;
            Ok::<_, Skip>(stderr(&output))
        };
        let by_ring = said("--engine=ring")?;
        if !by_ring.contains(ADVICE) {
            return Err(Skip(format!("this Python is walked by no engine: {by_ring}")));
        }
        let by_bpf = said("--engine=bpf")?;
        assert!(!by_bpf.contains(ADVICE), "{by_bpf}");
        Ok(())
    });
}
