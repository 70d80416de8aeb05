//! The programs that are recorded: their calls, their own figures, and the time of their work on
//! this machine.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use crate::error::{self, Error};
use crate::named::named;
use whit_measure::measure::{self, Outcome, Printed, command_line};
use whit_measure::summary::Spread;

/// Tries to find the amount of work that takes as long as wanted.
const CALIBRATION_RUNS_MAX: usize = 12;
/// Length of the calibration run, as a share of the length of a measured run.
const CALIBRATION_SHARE: f64 = 0.2;
/// By how much at most the next try is longer.
const CALIBRATION_STEP_MAX: f64 = 50.0;

/// A workload of `bench/workloads`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum Workload {
    /// Deep C++ recursion without frame pointers.
    Deep,
    /// Blocked matrix product.
    Matrix,
    /// Futex ping-pong.
    Pingpong,
    /// More threads than CPUs, each in `sched_yield`.
    Yield,
    /// The same with `sleep(0)`.
    Sleep0,
    /// A build of short processes.
    Spawn,
}

impl Workload {
    /// The program's file name.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Workload::Deep => "deep",
            Workload::Matrix => "matrix",
            Workload::Pingpong => "pingpong",
            Workload::Yield | Workload::Sleep0 => "yield",
            Workload::Spawn => "spawn",
        }
    }

    /// How many threads (processes at a time) it runs on a machine of so many CPUs.
    pub(crate) fn threads(self, cpus: usize) -> usize {
        let cpus = cpus.max(1);
        match self {
            Workload::Deep | Workload::Matrix | Workload::Spawn => cpus,
            // Pairs with one running thread at a time.
            Workload::Pingpong => cpus.next_multiple_of(2),
            // A yield switches only where somebody waits for the CPU.
            Workload::Yield | Workload::Sleep0 => 2 * cpus,
        }
    }

    /// The command line without the program.
    pub(crate) fn arguments(self, threads: usize, iterations: u64) -> Vec<String> {
        let mut words = vec!["--threads".to_owned(), threads.to_string()];
        words.extend(["--iterations".to_owned(), iterations.to_string()]);
        if self == Workload::Sleep0 {
            words.extend(["--call".to_owned(), "sleep0".to_owned()]);
        }
        words
    }

    /// The first amount that calibration tries: some milliseconds anywhere.
    fn first_iterations(self) -> u64 {
        match self {
            Workload::Deep => 500,
            Workload::Matrix => 1,
            Workload::Pingpong => 500,
            Workload::Yield => 5000,
            Workload::Sleep0 => 100,
            Workload::Spawn => 5,
        }
    }
}

named!(Workload);

/// A workload's output about its run: `bench/workloads/result.h`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct WorkloadResult {
    /// Time of the main loop.
    pub(crate) seconds: f64,
    pub(crate) operations_per_s: f64,
    /// CPU time in user mode, of the process and its children.
    pub(crate) user_s: f64,
    /// CPU time in kernel mode, of the same.
    pub(crate) sys_s: f64,
}

impl WorkloadResult {
    /// From the output; `None` where there is no such line, or it lacks a field.
    pub(crate) fn parse(stdout: &str) -> Option<WorkloadResult> {
        let line = stdout.lines().rev().find_map(|line| line.strip_prefix("result "))?;
        let field = |name: &str| {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            let number = words.filter(|(key, _)| *key == name).find_map(|(_, v)| v.parse().ok());
            number.filter(|number: &f64| number.is_finite() && *number >= 0.0)
        };
        Some(WorkloadResult {
            seconds: field("seconds")?,
            operations_per_s: field("operations_per_s")?,
            user_s: field("user_s")?,
            sys_s: field("system_s")?,
        })
    }

    /// CPU time in both modes.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.user_s + self.sys_s
    }
}

/// A workload with its amount of work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// The program and its arguments.
    pub(crate) words: Vec<String>,
    /// Threads that work at the same time.
    pub(crate) threads: usize,
    /// Amount of work.
    pub(crate) iterations: u64,
}

/// A run of a workload alone, or the medians of several.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Alone {
    /// From before the fork to the end of the process.
    pub(crate) wall_s: f64,
    /// Its output.
    pub(crate) result: WorkloadResult,
}

impl Alone {
    /// The medians of several runs; `None` without any.
    pub(crate) fn median(runs: &[Alone]) -> Option<Alone> {
        let of = |field: fn(&Alone) -> f64| {
            Spread::of(runs.iter().map(field)).map(|spread| spread.median)
        };
        Some(Alone {
            wall_s: of(|run| run.wall_s)?,
            result: WorkloadResult {
                seconds: of(|run| run.result.seconds)?,
                operations_per_s: of(|run| run.result.operations_per_s)?,
                user_s: of(|run| run.result.user_s)?,
                sys_s: of(|run| run.result.sys_s)?,
            },
        })
    }
}

impl Job {
    /// Path of a workload in `directory`.
    pub(crate) fn new(
        workload: Workload,
        directory: &Path,
        threads: usize,
        iterations: u64,
    ) -> Job {
        let program = directory.join(workload.program());
        let mut words = vec![program.display().to_string()];
        words.extend(workload.arguments(threads, iterations));
        Job { words, threads, iterations }
    }

    /// Runs it without a recorder.
    pub(crate) fn run(&self, limit: Duration) -> Result<Alone, Error> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        let (run, printed) =
            measure::run_watched(command, limit, &|| None).map_err(error::run(&self.words[0]))?;
        match (run.outcome, WorkloadResult::parse(&printed.stdout)) {
            (Outcome::Success, Some(result)) => Ok(Alone { wall_s: run.wall_s, result }),
            (outcome, _) => Err(self.failure(outcome, &printed)),
        }
    }

    fn failure(&self, outcome: Outcome, printed: &Printed) -> Error {
        let outcome = match outcome {
            Outcome::Success => format!("prints no result: {}", printed.stdout),
            Outcome::TimedOut { limit_s } => format!("takes more than {limit_s} s"),
            Outcome::Failed { status, stderr } => format!("ends with {status}: {stderr}"),
        };
        let command = command_line(self.words[0].as_ref(), &self.words[1..]);
        error::workload(&command, &outcome)
    }
}

/// The job whose main loop takes about `target` here, found by trying.
pub(crate) fn calibrate(
    workload: Workload,
    directory: &Path,
    threads: usize,
    target: Duration,
    limit: Duration,
) -> Result<Job, Error> {
    let target_s = target.as_secs_f64();
    let mut job = Job::new(workload, directory, threads, workload.first_iterations());
    for _ in 0..CALIBRATION_RUNS_MAX {
        let seconds = job.run(limit)?.result.seconds;
        let factor = target_s / seconds.max(1e-6);
        let iterations = job.iterations as f64 * factor.min(CALIBRATION_STEP_MAX);
        let enough = seconds >= target_s * CALIBRATION_SHARE;
        job = Job::new(workload, directory, threads, (iterations.round() as u64).max(1));
        if enough {
            break;
        }
    }
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use whit_testing::run::write_script;

    const LINE: &str = "checksum 1\nresult workload=deep threads=2 iterations=5 operations=10 \
        seconds=0.5 operations_per_s=20.0 user_s=0.75 system_s=0.25\n";

    #[test]
    fn the_result_line_is_read() {
        let result = WorkloadResult::parse(LINE).unwrap();
        assert_eq!((result.seconds, result.operations_per_s), (0.5, 20.0));
        assert_eq!(result.cpu_s(), 1.0);
        for cut in ["", "checksum 1", "result seconds=1", &LINE.replace("0.75", "x")] {
            assert_eq!(WorkloadResult::parse(cut), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn nothing_printed_makes_the_reader_fail(text in "(result )?[ -~\n]{0,200}") {
            if let Some(result) = WorkloadResult::parse(&text) {
                prop_assert!(result.seconds >= 0.0);
            }
        }

        #[test]
        fn threads_suit_the_workload(cpus in 0usize..5000) {
            for &workload in Workload::value_variants() {
                prop_assert!(workload.threads(cpus) >= cpus.max(1));
            }
            prop_assert_eq!(Workload::Pingpong.threads(cpus) % 2, 0);
        }
    }

    #[test]
    fn one_slow_run_alone_does_not_count() {
        let run = |seconds| {
            let result = WorkloadResult { seconds, ..WorkloadResult::parse(LINE).unwrap() };
            Alone { wall_s: 2.0 * seconds, result }
        };
        let median = Alone::median(&[run(1.0), run(50.0), run(1.5)]).unwrap();
        assert_eq!((median.wall_s, median.result.seconds), (3.0, 1.5));
        assert_eq!(Alone::median(&[]), None);
    }

    #[test]
    fn calibration_finds_the_amount_for_the_time() {
        let directory = tempfile::tempdir().unwrap();
        // Claims a millisecond per iteration and takes none.
        let script = r#"awk "BEGIN { printf \"result seconds=%f operations_per_s=1 user_s=0 system_s=0\\n\", $4 / 1000 }""#;
        write_script(directory.path().join("deep"), script);
        let (target, limit) = (Duration::from_secs(100), Duration::from_secs(600));
        let job = calibrate(Workload::Deep, directory.path(), 3, target, limit).unwrap();
        assert_eq!((job.iterations, job.threads), (100_000, 3));
        assert_eq!(job.words[1..], ["--threads", "3", "--iterations", "100000"]);
    }

    #[test]
    fn a_workload_that_does_not_run_is_quoted() {
        let directory = tempfile::tempdir().unwrap();
        let job = Job::new(Workload::Deep, directory.path(), 1, 1);
        let limit = Duration::from_secs(600);
        assert!(job.run(limit).unwrap_err().to_string().contains("deep"), "it is not there");
        write_script(directory.path().join("deep"), "echo broken >&2; exit 3");
        let error = job.run(limit).unwrap_err().to_string();
        assert!(error.contains("exit code 3: broken") && error.contains("make -C"), "{error}");
        write_script(directory.path().join("deep"), "echo nothing");
        assert!(job.run(limit).unwrap_err().to_string().contains("prints no result"));
    }
}
