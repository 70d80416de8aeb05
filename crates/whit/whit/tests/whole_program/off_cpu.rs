//! `whit record --off-cpu`: waits as samples, with the sums of the switches that were recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::tools::{perf, text, whit, workload};
use crate::support::{Skip, check, probe};

const NAME: &str = "offcpu-time";

struct Recorded {
    directory: TempDir,
    said: String,
}

impl Recorded {
    fn new(options: &[&str], program: &[&str]) -> Result<Recorded, Skip> {
        let directory = tempfile::tempdir().expect("make a directory");
        let mut recorder: Command = whit();
        recorder.args(["record", "--engine=bpf", "--off-cpu", "-e", "cpu-clock", "-F", "99"]);
        recorder.args(options).arg("-o").arg(directory.path().join("perf.data")).arg("--");
        recorder.arg(workload(program[0])?).args(&program[1..]);
        let output = whit_testing::run::record(&mut recorder)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Recorded { directory, said })
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("perf.data")
    }

    /// Sums of the sync waits that nothing makes uncertain, by thread.
    fn switches(&self) -> BTreeMap<i64, u64> {
        let json = text(whit().args(["switches", "--json", "-i"]).arg(self.data()));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let threads = json["threads"].as_array().expect("threads").iter();
        let sum = |thread: &Value| {
            let ns = thread["sums"]["sync_wait_ns"].as_u64().expect("a sum");
            (thread["tid"].as_i64().expect("a thread"), ns)
        };
        threads.map(sum).filter(|(_, ns)| *ns > 0).collect()
    }
}

/// Periods of the samples of waits, by thread.
fn samples(data: &Path) -> BTreeMap<i64, Vec<u64>> {
    let script = text(whit().args(["script", "-F", "tid,period,event", "-i"]).arg(data));
    let mut periods: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for line in script.lines().filter(|line| line.contains(NAME)) {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        periods.entry(number(0) as i64).or_default().push(number(1));
    }
    periods
}

fn sums(samples: &BTreeMap<i64, Vec<u64>>) -> BTreeMap<i64, u64> {
    samples.iter().map(|(tid, periods)| (*tid, periods.iter().sum())).collect()
}

#[test]
fn samples_of_waits_have_the_sums_of_the_switches() {
    check("samples_of_waits_have_the_sums_of_the_switches", || {
        let pingpong = ["pingpong", "--iterations", "3000", "--threads", "4"];
        for options in [&[][..], &["--no-pack"], &["-z"], &["--threads=cpu"]] {
            let recorded = Recorded::new(options, &pingpong)?;
            let samples = samples(&recorded.data());
            assert!(recorded.said.contains("samples of 'offcpu-time'"), "{}", recorded.said);
            assert!(samples.len() >= 4, "{options:?}: {samples:?}");
            assert_eq!(sums(&samples), recorded.switches(), "{options:?}");
            // Thousands of waits are a few samples.
            let most = samples.values().map(Vec::len).max();
            assert!(most < Some(500), "{options:?}: {most:?}");
        }
        Ok(())
    });
}

#[test]
fn waits_from_the_threshold_on_are_samples_of_their_own() {
    check("waits_from_the_threshold_on_are_samples_of_their_own", || {
        // Each sleep takes a millisecond and more.
        let sleeper = ["sleeper", "--milliseconds", "400", "--sleepers", "2"];
        for (threshold, are_alone) in [("1", true), ("1000", false)] {
            let recorded = Recorded::new(&["--off-cpu-thresh", threshold], &sleeper)?;
            let samples = samples(&recorded.data());
            assert_eq!(sums(&samples), recorded.switches(), "{threshold} ms");
            let most = samples.values().map(Vec::len).max().unwrap_or(0);
            assert_eq!(most > 20, are_alone, "{threshold} ms: {most} samples of a thread");
        }
        Ok(())
    });
}

#[test]
fn perf_shows_the_samples() {
    check("perf_shows_the_samples", || {
        let sleeper = ["sleeper", "--milliseconds", "200", "--sleepers", "2"];
        let recorded = Recorded::new(&["--no-pack"], &sleeper)?;
        let sum: u64 = recorded.switches().values().sum();
        let mut report = perf()?;
        report.args(["report", "--stdio", "-f", "--no-children", "-g", "caller", "-i"]);
        let shown = text(report.arg(recorded.data()));
        let of_waits = shown.split("# Samples: ").find(|part| part.contains(NAME));
        let of_waits = of_waits.unwrap_or_else(|| panic!("{shown}"));
        assert!(of_waits.contains(&format!("Event count (approx.): {sum}")), "{sum}: {of_waits}");
        // The program sleeps, and waits for its threads.
        assert!(of_waits.contains("__x64_sys_futex"), "{of_waits}");
        Ok(())
    });
}

#[test]
fn impossible_options_are_refused_with_the_way_out() {
    for (options, way_out) in [
        (&["--off-cpu", "--engine=ring"][..], "leave --engine=ring out"),
        (&["--off-cpu", "--switch-output"], "leave --switch-output out"),
        (&["--off-cpu", "-o", "-"], "name one with -o"),
        (&["--off-cpu", "-o", "/dev/null"], "name one with -o"),
        (&["--off-cpu-thresh", "5"], "--off-cpu"),
    ] {
        let output =
            whit().arg("record").args(options).args(["--", "true"]).output().expect("whit");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(way_out), "{options:?}: {said}");
    }
}

/// Nanoseconds of off-CPU time for each sample.
const PERIOD_NS: u64 = 200_000;
/// Expected samples of a thread at a call chain, below which it is left out of the comparison.
const LEAST_EXPECTED: f64 = 5.0;
/// Normal deviate with one in a million beyond it.
const DEVIATE: f64 = 4.75;

/// A thread, and the functions of its call chain in user mode, innermost first.
type Place = (i64, Vec<String>);

/// The value that a chi-squared variable of so many degrees of freedom exceeds once in a million times
/// (Wilson and Hilferty 1931).
fn chi_squared_limit(degrees: usize) -> f64 {
    let spread = 2.0 / (9.0 * degrees as f64);
    degrees as f64 * (1.0 - spread + DEVIATE * spread.sqrt()).powi(3)
}

/// How much periods stand for each place, by the samples.
fn sampled(data: &Path) -> BTreeMap<Place, f64> {
    let script = text(whit().args(["script", "-F", "tid,period,event,sym,dso,ip", "-i"]).arg(data));
    let mut periods: BTreeMap<Place, f64> = BTreeMap::new();
    for sample in script.split("\n\n").filter(|sample| sample.contains(NAME)) {
        let mut lines = sample.trim().lines();
        let head: Vec<_> = lines.next().expect("a head").split_whitespace().collect();
        let frames = lines.filter(|line| !line.contains("[kernel")).map(|line| {
            let name = line.split_whitespace().nth(1).expect("a function");
            name.split("+0x").next().unwrap_or_default().to_owned()
        });
        let place = (head[0].parse().expect("a thread"), frames.collect());
        *periods.entry(place).or_default() += head[1].parse::<f64>().expect("a period");
    }
    periods
}

/// The same, by the switches of the same recording.
fn exact(data: &Path) -> BTreeMap<Place, f64> {
    let json = text(whit().args(["switches", "--json", "-i"]).arg(data));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let function = |index: &Value| &json["functions"][index.as_u64().expect("an index") as usize];
    let mut waits: BTreeMap<Place, f64> = BTreeMap::new();
    for row in json["rows"].as_array().expect("rows") {
        let thread = &json["threads"][row["thread"].as_u64().expect("a thread") as usize];
        let frames = row["stack"].as_array().expect("a stack").iter().map(function);
        let frames = frames.filter(|frame| frame["dso"].as_str() != Some("[kernel.kallsyms]"));
        let name = |frame: &Value| {
            let name = frame["name"].as_str().unwrap_or("[unknown]");
            name.trim_end_matches(" (inlined)").to_owned()
        };
        let names = frames.map(name);
        let place = (thread["tid"].as_i64().expect("a number"), names.collect());
        let ns = row["sums"]["sync_wait_ns"].as_u64().expect("a sum") as f64;
        *waits.entry(place).or_default() += ns;
    }
    waits
}

/// Samples of waits are drawn in proportion to their durations. Samples at fixed distances vary less than
/// independent ones, so that the test errs less often than once in a million times.
#[test]
fn sampled_waits_are_in_proportion_to_the_recorded_ones() {
    check("sampled_waits_are_in_proportion_to_the_recorded_ones", || {
        probe::sched_exit()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let data = directory.path().join("perf.data");
        let mut recorder: Command = whit();
        recorder.args(["record", "--engine=bpf", "--switch-events", "-e", "cpu-clock", "-F", "99"]);
        recorder.args(["--off-cpu-period", &PERIOD_NS.to_string(), "-o"]).arg(&data);
        recorder.arg("--").arg(workload("waits")?).args(["--iterations", "4000"]);
        whit_testing::run::record(&mut recorder)?;
        let (sampled, exact) = (sampled(&data), exact(&data));
        let (mut sum, mut degrees, mut samples) = (0.0, 0, 0.0);
        for (place, ns) in &exact {
            let expected = ns / PERIOD_NS as f64;
            if expected >= LEAST_EXPECTED {
                let found = sampled.get(place).copied().unwrap_or(0.0) / PERIOD_NS as f64;
                sum += (found - expected).powi(2) / expected;
                degrees += 1;
                samples += found;
            }
        }
        assert!(degrees >= 4 && samples > 500.0, "{degrees} places, {samples} samples: {exact:?}");
        let limit = chi_squared_limit(degrees);
        assert!(
            sum < limit,
            "chi squared {sum} of {degrees} places, {limit}:\n{sampled:?}\n{exact:?}"
        );
        // Other places have next to nothing.
        let others = sampled.iter().filter(|(place, _)| !exact.contains_key(place));
        let others: f64 = others.map(|(_, ns)| ns / PERIOD_NS as f64).sum();
        assert!(
            others < 0.02 * samples,
            "{others} of {samples} samples elsewhere: {sampled:?}\n{exact:?}"
        );
        Ok(())
    });
}
