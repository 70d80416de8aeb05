//! One run of one recorder with one setting.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use whit_perfdata::attr::pmu_type;
use whit_perfdata::reader::Recording;

use super::recorded::Recorded;
use super::recorder::{Recorder, ignored, refusal};
use super::workload::{Alone, Job, WorkloadResult};
use crate::disk;
use crate::error::{self, Error};
use crate::scratch::Scratch;
use whit_measure::measure::{self, Measurement, Outcome, Printed};

/// perf prints this when its recording is complete. A later failure of perf (6.1 with
/// `--affinity=node` frees memory twice) does not touch the recording.
const PERF_IS_DONE: &str = "[ perf record: Captured and wrote ";

/// The end of a run, or of all runs of a recorder with one setting.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Ended<F> {
    /// The workload ran to its end, and there is a recording.
    Measured(Box<F>),
    /// The recorder did not start the workload.
    Refused {
        /// Message of the recorder that refused.
        message: String,
    },
    /// The recorder failed for another reason.
    Failed {
        /// Description of the failure.
        reason: String,
    },
    /// It exceeded the limit and was ended.
    TimedOut {
        /// The limit in seconds.
        limit_s: u64,
    },
    /// No run was made.
    NotRun,
}

/// The end of a single run.
pub(crate) type Run = Ended<Figures>;

impl<F> Ended<F> {
    /// The figures, where there are any.
    pub(crate) fn figures(&self) -> Option<&F> {
        match self {
            Ended::Measured(figures) => Some(figures),
            _ => None,
        }
    }

    /// The same, of figures of another kind.
    pub(crate) fn without_figures<G>(&self) -> Ended<G> {
        match self {
            Ended::Refused { message } => Ended::Refused { message: message.clone() },
            Ended::Failed { reason } => Ended::Failed { reason: reason.clone() },
            Ended::TimedOut { limit_s } => Ended::TimedOut { limit_s: *limit_s },
            Ended::Measured(_) | Ended::NotRun => Ended::NotRun,
        }
    }
}

/// The reason for which there are no figures.
impl<F> Display for Ended<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Measured(_) => f.write_str("measured"),
            Ended::Refused { message } => write!(f, "refused: {message}"),
            Ended::Failed { reason } => write!(f, "failed: {reason}"),
            Ended::TimedOut { limit_s } => write!(f, "took more than {limit_s} s"),
            Ended::NotRun => f.write_str("not run"),
        }
    }
}

/// The figures of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Figures {
    /// Time of the workload's main loop over that of the same round's runs without a recorder,
    /// less one; set at the end of the round.
    pub(crate) run_overhead: f64,
    /// The same for wall time: of the recorder's whole run over the workload's alone.
    pub(crate) wall_overhead: f64,
    /// CPU time of the recorder without its target, in both modes.
    pub(crate) recorder_cpu_s: f64,
    /// CPU time of recorder and target together.
    pub(crate) measurement: Measurement,
    /// The workload's own figures.
    pub(crate) workload: WorkloadResult,
    pub(crate) recorded: Recorded,
    /// How a recorder ended that completed its recording and crashed afterwards.
    pub(crate) crash: Option<String>,
}

impl Figures {
    /// Figures of a run that went well; overheads are set at the end of its round.
    pub(crate) fn new(
        measurement: Measurement,
        workload: WorkloadResult,
        recorded: Recorded,
    ) -> Figures {
        Figures {
            run_overhead: 0.0,
            wall_overhead: 0.0,
            recorder_cpu_s: (measurement.user_s + measurement.sys_s - workload.cpu_s()).max(0.0),
            measurement,
            workload,
            recorded,
            crash: None,
        }
    }

    /// Sets the overheads: `alone` is what the workload takes without a recorder.
    pub(crate) fn set_overheads(&mut self, alone: &Alone) {
        self.run_overhead = overhead(self.workload.seconds, alone.result.seconds);
        self.wall_overhead = overhead(self.measurement.wall_s, alone.wall_s);
    }
}

/// Where and under which limits runs are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits<'a> {
    /// For the recording.
    pub(crate) scratch: &'a Scratch,
    pub(crate) limit: Duration,
}

/// Records `job` once, reads the recording and removes it.
pub(crate) fn record(
    recorder: &Recorder,
    options: &[String],
    job: &Job,
    place: RunLimits<'_>,
) -> Result<Run, Error> {
    if let Some(message) = recorder.lacks(options) {
        return Ok(Run::Refused { message });
    }
    place.scratch.clear()?;
    let output = place.scratch.path().join("recording");
    let command = recorder.command(options, &output, &job.words);
    let watch = || disk::full(place.scratch.path());
    let (measurement, printed) = measure::run_watched(command, place.limit, &watch)
        .map_err(error::run(&recorder.program))?;
    let run = judge(measurement, &printed, &output);
    place.scratch.clear()?;
    Ok(run)
}

/// Whether a recording of this event comes from the CPU's PMU.
pub(crate) fn records_hardware_event(
    recorder: &Recorder,
    event: &str,
    place: RunLimits<'_>,
) -> Result<bool, Error> {
    place.scratch.clear()?;
    let output = place.scratch.path().join("recording");
    let options = ["-e".to_owned(), event.to_owned()];
    let command = recorder.command(&options, &output, &["true".to_owned()]);
    let measurement = measure::run(command, place.limit).map_err(error::run(&recorder.program))?;
    let recorded = measurement.outcome == Outcome::Success;
    let recording = recorded.then(|| Recording::open(&output).ok()).flatten();
    let attr = recording.as_ref().and_then(|recording| Some(&recording.events.first()?.attr));
    let not_hardware = [pmu_type::SOFTWARE, pmu_type::TRACEPOINT];
    Ok(attr.is_some_and(|attr| !not_hardware.contains(&attr.pmu_type)))
}

fn judge(measurement: Measurement, printed: &Printed, output: &Path) -> Run {
    if let Outcome::TimedOut { limit_s } = measurement.outcome {
        return Run::TimedOut { limit_s };
    }
    if let Some(message) = ignored(&printed.stderr) {
        return Run::Refused { message };
    }
    let Some(workload) = WorkloadResult::parse(&printed.stdout) else {
        return without_result(measurement.outcome, printed, output);
    };
    let crash = match &measurement.outcome {
        Outcome::Failed { status, stderr } if stderr.contains(PERF_IS_DONE) => {
            Some(format!("{status}: {}", stderr.lines().next_back().unwrap_or_default()))
        }
        Outcome::Failed { status, stderr } => {
            return Run::Failed { reason: format!("{status}: {stderr}") };
        }
        _ => None,
    };
    match Recorded::read(output) {
        Err(error) => Run::Failed { reason: error.to_string() },
        Ok(recorded) => {
            let figures = Figures::new(measurement, workload, recorded);
            Run::Measured(Box::new(Figures { crash, ..figures }))
        }
    }
}

/// perf's exit code does not tell whether it refused; that nothing was recorded does.
fn without_result(outcome: Outcome, printed: &Printed, output: &Path) -> Run {
    match outcome {
        Outcome::Failed { status, stderr } if status == measure::STOPPED => {
            Run::Failed { reason: stderr }
        }
        _ if Recorded::read(output).is_ok_and(|recorded| recorded.samples > 0) => {
            let reason = format!("the workload printed no result: {}", printed.stderr);
            Run::Failed { reason }
        }
        _ => Run::Refused { message: refusal(&printed.stderr) },
    }
}

fn overhead(with: f64, without: f64) -> f64 {
    if without > 0.0 { with / without - 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::recorded::tests::{Records, with_cpu, write};
    use crate::record::recorder::RecorderKind;

    const RESULT: &str = "echo result seconds=3 operations_per_s=1 user_s=0 system_s=0";

    fn run(script: &str, limit: Duration) -> Run {
        let root = tempfile::tempdir().unwrap();
        let whit = root.path().join("whit");
        let script = format!("[ \"$1\" = --version ] && {{ echo whit 0; exit; }}\n{script}");
        whit_testing::run::write_script(&whit, &script);
        let recorder = Recorder::detect(RecorderKind::Whit, &whit).unwrap();
        let job = Job { words: vec!["none".into()], threads: 1, iterations: 1 };
        let scratch = Scratch::new(root.path()).unwrap();
        let run = record(&recorder, &[], &job, RunLimits { scratch: &scratch, limit }).unwrap();
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left");
        run
    }

    const GENEROUS: Duration = Duration::from_secs(600);

    #[test]
    fn a_recorder_that_does_not_start_its_target_refuses_with_any_exit_code() {
        for code in [0, 1, 129] {
            let run = run(&format!("echo mutually exclusive >&2; exit {code}"), GENEROUS);
            assert_eq!(run, Run::Refused { message: "mutually exclusive".into() });
        }
    }

    #[test]
    fn an_option_that_is_ignored_is_no_measurement() {
        let script = format!("{RESULT}; echo option aio is being ignored because of that >&2");
        assert!(
            matches!(run(&script, GENEROUS), Run::Refused { message } if message.contains("aio"))
        );
    }

    #[test]
    fn a_recorder_that_fails_behind_its_target_has_failed() {
        let failed = run(&format!("{RESULT}; echo disk full >&2; exit 3"), GENEROUS);
        assert_eq!(failed, Run::Failed { reason: "exit code 3: disk full".into() });
        let no_file = run(RESULT, GENEROUS);
        assert!(matches!(no_file, Run::Failed { reason } if reason.contains("cannot open")));
    }

    #[test]
    fn a_workload_that_dies_is_no_refusal() {
        let made = tempfile::NamedTempFile::new().unwrap();
        write(made.path(), &Records::two_rings().0, with_cpu(), None);
        let script = format!(
            "while [ \"$1\" != -o ]; do shift; done; cp {} \"$2\"; echo crashed >&2; exit 1",
            made.path().display()
        );
        let reason = "the workload printed no result: crashed".to_owned();
        assert_eq!(run(&script, GENEROUS), Run::Failed { reason });
    }

    #[test]
    fn a_crash_behind_a_complete_recording_is_reported_and_measured() {
        let made = tempfile::NamedTempFile::new().unwrap();
        write(made.path(), &Records::two_rings().0, with_cpu(), None);
        let script = format!(
            "while [ \"$1\" != -o ]; do shift; done; cp {} \"$2\"; {RESULT}; \
             echo '[ perf record: Captured and wrote 1 MB x ]' >&2; echo double free >&2; kill -6 $$",
            made.path().display()
        );
        let Run::Measured(mut figures) = run(&script, GENEROUS) else { panic!("not measured") };
        let result =
            WorkloadResult { seconds: 2.0, operations_per_s: 1.0, user_s: 0.0, sys_s: 0.0 };
        figures.set_overheads(&Alone { wall_s: 2.0, result });
        assert_eq!(figures.crash.as_deref(), Some("signal 6: double free"));
        assert_eq!((figures.run_overhead, figures.recorded.samples), (0.5, 6));
    }

    #[test]
    fn a_recorder_that_hangs_is_ended() {
        let run = run("sleep 1000", Duration::from_millis(1));
        assert_eq!(run, Run::TimedOut { limit_s: 0 });
    }

    #[test]
    fn overhead_is_the_additional_time() {
        assert_eq!(overhead(3.0, 2.0), 0.5);
        assert_eq!(overhead(3.0, 0.0), 0.0);
    }
}
