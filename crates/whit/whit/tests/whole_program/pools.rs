//! Threads that run for a moment and sleep for long have the samples that their CPU time is worth.
//!
//! `pool` prints the CPU time of its threads in `pool_work`: times the frequency, that is the expected number of
//! samples there. A turn of a thread is shorter than the period and comes at random, so that a tick of the clock falls
//! into it with the probability of its length by the period, independent of other turns. The variance of a sum of such
//! draws is at most its mean, as Poisson's is. Five standard deviations are exceeded in one of a million runs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::script;
use crate::support::tools::{command, perf, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run;
use whit_testing::wait::Load;

const HZ: &str = "99";
/// As many threads as a server's pool has.
const THREADS: &str = "200";
/// A turn of 60 µs comes after 40 ms: in all its turns a thread runs for less than a period.
const EVERY_US: &str = "40000";
const SECONDS: &str = "3";
const WORK: &str = "pool_work";
const DEVIATIONS: f64 = 5.0;
/// Ticks come late on a virtual machine, and then fewer of them.
const LATE: f64 = 0.1;

/// The CPU time that `pool` says it had in its work, in seconds.
fn worked(line: &str) -> f64 {
    let ns = line.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    ns.unwrap_or_else(|| panic!("{line}")) / 1e9
}

/// How many samples there are of the work, as whit and perf read the recording, is what its time is worth.
fn assert_worth(recording: &Path, worked: f64, said: &str) -> Result<(), Skip> {
    let expected = worked * HZ.parse::<f64>().expect("a number");
    let most = DEVIATIONS * expected.sqrt() + LATE * expected;
    let fields = ["script", "-F", "comm,ip,sym", "-i"];
    let count = |reader: &mut Command| {
        let samples = script::parse(&text(reader.args(fields).arg(recording)));
        samples.iter().filter(|sample| sample.passes(WORK)).count()
    };
    let (seen, by_perf) = (count(&mut whit()), count(&mut perf()?));
    assert_eq!(seen, by_perf, "{said}");
    let off = (seen as f64 - expected).abs();
    assert!(off <= most, "{seen} samples, {expected:.0} ± {most:.0} expected: {said}");
    Ok(())
}

#[test]
fn a_pool_that_exists_is_sampled_by_its_cpu_time() {
    check("pools_process", || {
        probe::bpf_stacks()?;
        let (place, program) = (tempfile::tempdir().expect("make a directory"), workload("pool")?);
        let out = place.path().join("perf.data");
        let mut pool = Command::new(program);
        pool.args(["--threads", THREADS, "--every-us", EVERY_US, "--seconds", SECONDS]);
        pool.args(["--on-signal", "1"]);
        let mut pool = pool.stdout(Stdio::piped()).spawn().expect("run pool");
        let mut lines = BufReader::new(pool.stdout.take().expect("a pipe")).lines();
        let mut line = || lines.next().expect("a line").expect("read what pool says");
        assert_eq!(line(), "ready");
        let pid = pool.id().to_string();
        // The command begins when the events are on, and is ended when the pool has.
        let begin = format!("trap 'exit 0' TERM; kill -USR1 {pid}; while :; do sleep 0.1; done");
        let mut recorder = whit();
        recorder.args(["record", "--engine=bpf", "-e", "cpu-clock", "-F", HZ, "-p", &pid, "-o"]);
        let output = run::record(recorder.arg(&out).args(["--", "sh", "-c", &begin]));
        let worked = worked(&line());
        pool.wait().expect("wait for pool");
        assert_worth(&out, worked, &run::stderr(&output?))
    });
}

/// Where clocks are of threads, such a pool has no samples, and the recorder says so. One whose threads run for long has
/// nothing said of it.
#[test]
fn without_programs_time_without_samples_is_said() {
    check("pools_ring", || {
        probe::own_events()?;
        // Users without rights record user mode alone, whose time no event counts.
        probe::whole_cpus()?;
        let (place, program) = (tempfile::tempdir().expect("make a directory"), workload("pool")?);
        let out = place.path().join("perf.data");
        let said = |work_us: &str, every_us: &str, threads: &str| {
            let mut recorder = whit();
            recorder
                .args(["record", "--engine=ring", "-e", "cpu-clock", "-F", HZ, "-o"])
                .arg(&out)
                .arg("--");
            recorder.arg(&program).args(["--threads", threads, "--seconds", SECONDS]);
            recorder.args(["--work-us", work_us, "--every-us", every_us]);
            run::record(&mut recorder).map(|output| run::stderr(&output))
        };
        let warning = "where the CPU time of those that are recorded is worth";
        let short = said("60", EVERY_US, THREADS)?;
        assert!(short.contains(warning) && short.contains("--engine=bpf"), "{short}");
        let long = said("3000000", "1000", "1")?;
        assert!(!long.contains(warning), "{long}");
        Ok(())
    });
}

/// Nobody else has samples, not even the recorder before it becomes the command.
#[test]
fn only_a_command_and_its_children_are_sampled_by_their_cpu_time() {
    check("pools_command", || {
        probe::bpf_stacks()?;
        let (place, program) = (tempfile::tempdir().expect("make a directory"), workload("pool")?);
        let out = place.path().join("perf.data");
        let busy = || Load::start(command("sh").args(["-c", "while :; do :; done"]));
        let _others = [busy(), busy()];
        let pool = program.display();
        let pool = format!("{pool} --threads {THREADS} --every-us {EVERY_US} --seconds {SECONDS}");
        let both = format!("{pool} & {pool}; wait");
        let mut recorder = whit();
        recorder.args(["record", "--engine=bpf", "-e", "cpu-clock", "-F", HZ, "-o"]).arg(&out);
        let output = run::record(recorder.args(["--", "sh", "-c", &both]))?;
        let said = run::stderr(&output);
        assert_worth(&out, run::stdout(&output).lines().map(worked).sum(), &said)?;
        let samples = text(whit().args(["script", "-F", "comm", "-i"]).arg(&out));
        let others: Vec<&str> = samples
            .lines()
            .map(str::trim)
            .filter(|comm| !["", "sh", "pool"].contains(comm))
            .collect();
        assert_eq!(others, [""; 0], "{said}");
        Ok(())
    });
}
