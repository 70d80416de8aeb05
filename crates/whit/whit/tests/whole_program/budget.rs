//! `whit record --max-overhead`: less is recorded where it would cost too much, weights stay right, and reports say so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::tools::{command, perf, text, whit, workload};
use crate::support::{Skip, check};
use whit_testing::cgroups::Limited;
use whit_testing::probe;
use whit_testing::wait::Busy;

/// The beginning of the line in reports.
const REDUCED: &str = "less was recorded, to cost no more than";
const NOTHING: &str = "nothing at all for ";

struct Recorded {
    directory: TempDir,
    said: String,
}

impl Recorded {
    fn new(options: &[&str], program: &[&str]) -> Result<Recorded, Skip> {
        let directory = tempfile::tempdir().expect("make a directory");
        let mut recorder: Command = whit();
        recorder.args(["record", "--engine=ring", "-a", "-e", "cpu-clock"]).args(options);
        recorder.arg("-o").arg(directory.path().join("perf.data")).arg("--");
        recorder.args(program);
        let output = whit_testing::run::record(&mut recorder)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Recorded { directory, said })
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("perf.data")
    }
}

/// Periods of the clock's samples.
fn periods(data: &Path) -> Vec<u64> {
    clock_periods(&text(whit().args(["script", "-F", "period,event", "-i"]).arg(data)))
}

fn clock_periods(script: &str) -> Vec<u64> {
    let clock = script.lines().filter(|line| line.contains("cpu-clock"));
    let first = |line: &str| line.split_whitespace().next()?.parse().ok();
    clock.map(|line| first(line).unwrap_or_else(|| panic!("a period: {line}"))).collect()
}

/// Periods of the clock's samples, as perf reads them.
fn periods_of_perf(data: &Path) -> Result<Vec<u64>, Skip> {
    let script = text(perf()?.args(["script", "-f", "-F", "period,event", "-i"]).arg(data));
    let clock = script.lines().filter(|line| line.contains("cpu-clock"));
    Ok(clock.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect())
}

/// The percentage behind a text.
fn share(said: &str, before: &str) -> f64 {
    let Some((_, rest)) = said.split_once(before) else { return 0.0 };
    rest.split_once('%')
        .and_then(|(percent, _)| percent.parse().ok())
        .unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn percentages_that_are_none_and_rings_that_are_overwritten_are_refused() {
    for (options, way_out) in [
        (&["--max-overhead", "0"][..], "a percentage from 0.01 to 100"),
        (&["--max-overhead", "200%"], "a percentage from 0.01 to 100"),
        (&["--max-overhead", "much"], "a percentage from 0.01 to 100"),
        (&["--max-overhead", "1", "--overwrite"], "leave one of them out"),
    ] {
        let output = whit()
            .args(["record", "--engine=ring"])
            .args(options)
            .args(["--", "true"])
            .output()
            .expect("whit");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        assert!(said.contains(way_out), "{options:?}: {said}");
    }
}

/// A period that is longer than that of 4000 Hz.
const LONGER_NS: u64 = 500_000;

/// Whether a recording, which may still be written, has samples at longer periods by now.
fn has_longer(data: &Path) -> bool {
    // At first there is no file, or none that can be read.
    let script = whit().args(["script", "-F", "period,event", "-i"]).arg(data).output();
    let script = String::from_utf8_lossy(&script.expect("run whit").stdout).into_owned();
    clock_periods(&script).iter().any(|ns| *ns >= LONGER_NS)
}

/// The line of each report, and the periods that perf reads, in the recording itself or in an export for it.
fn assert_reduction(data: &Path, for_perf: &Path, from: &str) -> Result<(), Skip> {
    for report in [&["report", "--stdio"], &["report", "--json"]] {
        let printed = text(whit().args(report).arg("-i").arg(data));
        assert!(printed.contains(&format!("{REDUCED} 0.30%")), "{from}, {report:?}: {printed}");
    }
    let ours = periods(data);
    assert!(ours.iter().any(|ns| *ns >= LONGER_NS), "{from}: {ours:?}");
    assert_eq!(periods_of_perf(for_perf)?, ours, "{from}");
    Ok(())
}

#[test]
fn streams_and_the_files_of_killed_recorders_state_what_was_left_out() {
    check("streams_and_the_files_of_killed_recorders_state_what_was_left_out", || {
        let _busy = Busy::start();
        let folder = tempfile::tempdir().expect("make a directory");
        let [piped, killed, exported] =
            ["piped", "killed", "exported"].map(|it| folder.path().join(it));
        let options = ["-F", "4000", "--max-overhead", "0.3", "-e", "cpu-clock"];
        for engine in ["--engine=ring", "--engine=bpf"] {
            let recorder = |output: &Path| {
                let mut recorder = whit();
                recorder.args(["record", "-q", "-a", engine]).args(options);
                recorder.arg("-o").arg(output).args(["--", "sleep", "120"]);
                recorder
            };
            let mut to_pipe = recorder(Path::new("-"));
            whit_testing::run::needs_of(&to_pipe)?;
            let mut child = to_pipe.stdout(Stdio::piped()).spawn().expect("start whit");
            let mut reader = command("cat");
            reader.stdin(child.stdout.take().expect("a pipe"));
            reader.stdout(std::fs::File::create(&piped).expect("make a file"));
            let mut reader = reader.spawn().expect("start cat");
            // On a busy machine the recorder may begin with a pause of some seconds.
            let is_reduced = whit_testing::wait::is_soon(|| has_longer(&piped));
            whit_testing::wait::signal(&child, "-INT");
            child.wait().expect("wait for whit");
            reader.wait().expect("wait for cat");
            assert!(is_reduced, "no longer period in the pipe: {:?}", periods(&piped));
            assert_reduction(&piped, &piped, "a pipe")?;
            let mut child = recorder(&killed).spawn().expect("start whit");
            whit_testing::wait::wait_for_command(&child, "sleep");
            let is_reduced = whit_testing::wait::is_soon(|| has_longer(&killed));
            child.kill().expect("kill whit");
            child.wait().expect("wait for whit");
            assert!(is_reduced, "no longer period: {:?}", periods(&killed));
            text(whit().args(["export", "--perf", "-i"]).arg(&killed).arg("-o").arg(&exported));
            assert_reduction(&killed, &exported, "a killed recorder")?;
            assert_reduction(&exported, &exported, "an export")?;
            for file in [&killed, &exported] {
                std::fs::remove_file(file).expect("remove a file");
            }
        }
        Ok(())
    });
}

#[test]
fn each_output_of_a_switching_recorder_states_what_was_left_out() {
    check("each_output_of_a_switching_recorder_states_what_was_left_out", || {
        let _busy = Busy::start();
        let options =
            ["--engine=ring", "-F", "4000", "--max-overhead", "0.3", "--switch-output=2s"];
        let recorded = Recorded::new(&options, &["sleep", "5.5"])?;
        let files = std::fs::read_dir(recorded.directory.path()).expect("read the folder");
        let paths = files.map(|file| file.expect("a file").path());
        let outputs: Vec<_> =
            paths.filter(|path| path.to_string_lossy().contains("perf.data")).collect();
        assert!(outputs.len() >= 2, "{outputs:?}");
        for output in &outputs {
            // One may lie in a pause, and have no sample.
            let printed = text(whit().args(["report", "--stdio", "-i"]).arg(output));
            assert!(printed.contains(&format!("{REDUCED} 0.30%")), "{output:?}: {printed}");
        }
        Ok(())
    });
}

/// By the name of a cgroup, and by the cgroup of an event.
#[test]
fn a_quota_is_the_capacity() {
    check("a_quota_is_the_capacity", || {
        probe::whole_cpus()?;
        probe::cgroup_events()?;
        let mount = probe::cgroups_v2()?;
        let name = format!("whit-quota-{}", std::process::id());
        let _limited = Limited::start(&mount, &name, 20)?;
        for options in [
            &["--engine=ring", "--cgroup", &name][..],
            &["--engine=bpf", "--cgroup", &name],
            &["--engine=ring", "-a", "-e", "cpu-clock", "-G", &name],
        ] {
            let folder = tempfile::tempdir().expect("make a directory");
            let mut recorder: Command = whit();
            recorder
                .args(["record", "--engine=ring", "-F", "4000", "--max-overhead", "0.3"])
                .args(options);
            if !options.contains(&"-a") {
                recorder.args(["-e", "cpu-clock"]);
            }
            recorder.arg("-o").arg(folder.path().join("perf.data")).args(["--", "sleep", "2"]);
            let output = whit_testing::run::record(&mut recorder)?;
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(&format!("{REDUCED} 0.30% of 0.2 CPUs")), "{options:?}: {said}");
        }
        Ok(())
    });
}

/// One test at a time: others take CPUs offline, whose clocks then end.
mod measured {
    use super::*;

    /// The clock counts all time of CPUs that are not idle, so the sum of all periods is that time, with any change.
    #[test]
    fn samples_say_the_time_that_they_represent() {
        check("samples_say_the_time_that_they_represent", || {
            let cpus = std::thread::available_parallelism().expect("CPUs").get();
            let _busy: Vec<_> = (0..cpus).map(|_| Busy::start()).collect();
            for engine in ["--engine=ring", "--engine=bpf"] {
                let options = [engine, "-F", "4000", "--max-overhead", "0.3"];
                let recorded = Recorded::new(&options, &["sleep", "4"])?;
                let said = &recorded.said;
                assert!(said.contains(REDUCED), "{engine}: {said}");
                let ours = periods(&recorded.data());
                let longest = ours.iter().max().copied().unwrap_or(0);
                assert!(longest >= 500_000, "{engine}: {longest} ns: {said}");
                assert!(
                    ours.iter().all(|ns| (ns / 250_000).is_power_of_two()),
                    "{engine}: {ours:?}"
                );
                let wanted = 4.0 * cpus as f64 * (1.0 - share(said, NOTHING) / 100.0);
                let sum = ours.iter().sum::<u64>() as f64 / 1e9;
                // A change of the distance costs half a sample of each CPU.
                let most = 0.2 + longest as f64 / 1e9 * 10.0;
                assert!(
                    (sum - wanted).abs() < most + wanted * 0.1,
                    "{engine}: {sum} of {wanted} s: {said}"
                );
                let report = text(whit().args(["report", "--stdio", "-i"]).arg(recorded.data()));
                assert!(report.contains(&format!("# Warning: {REDUCED} 0.30%")), "{report}");
                let json = text(whit().args(["report", "--json", "-i"]).arg(recorded.data()));
                let json: Value = serde_json::from_str(&json).expect("JSON");
                assert!(json["warnings"].to_string().contains(REDUCED), "{}", json["warnings"]);
                assert_eq!(periods_of_perf(&recorded.data())?, ours, "{engine}");
            }
            Ok(())
        });
    }
}

#[test]
fn a_ping_pong_that_costs_too_much_loses_its_switches_and_nothing_else() {
    check("a_ping_pong_that_costs_too_much_loses_its_switches_and_nothing_else", || {
        let program = workload("pingpong")?;
        let program = program.to_str().expect("UTF-8");
        let options = ["--engine=bpf", "--switch-events", "-F", "99", "--max-overhead", "2"];
        let pingpong = [program, "--iterations", "300000", "--threads", "4"];
        let recorded = Recorded::new(&options, &pingpong)?;
        let said = &recorded.said;
        let waits = share(said, "no waits for ")
            + share(said, "samples of waits in place of every context switch for ")
            + share(said, NOTHING);
        assert!(said.contains(REDUCED) && waits > 30.0, "{said}");
        let switches = text(whit().args(["switches", "-i"]).arg(recorded.data()));
        assert!(switches.contains(&format!("# Warning: {REDUCED} 2.00%")), "{switches}");
        // No wait lasts as long as the time in which switches were left out.
        assert!(!switches.contains("CPU times are wrong"), "{switches}");
        let ours = periods(&recorded.data());
        assert!(!ours.is_empty());
        assert_eq!(periods_of_perf(&recorded.data())?, ours);
        Ok(())
    });
}
