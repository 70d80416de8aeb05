//! A `whit watch` that runs beside the benchmark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::Settings;
use super::process::{ProcessCost, Reading};
use crate::error::{self, Error};

/// A service that does not record after this time does not begin.
const BEGIN_LIMIT: Duration = Duration::from_secs(60);
/// Counters of the status that are no losses.
const NO_LOSSES: [&str; 4] = ["windows", "window_bytes", "reloads", "wake_ups"];

/// The service with its folder.
pub(super) struct Service {
    child: Child,
    whit: PathBuf,
    folder: PathBuf,
}

/// Figures of the service and its recorder at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct State {
    pub(super) watch: Reading,
    pub(super) recorder: Reading,
    pub(super) recorder_pid: Option<u32>,
    pub(super) windows: u64,
    pub(super) window_bytes: u64,
    pub(super) kept_bytes: u64,
    /// Counters of the service that are not zero.
    pub(super) losses: Vec<(String, u64)>,
}

/// Figures of the time between two states.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Between {
    /// The service.
    pub(crate) watch: ProcessCost,
    /// Its recorder; zero where another one runs than before.
    pub(crate) recorder: ProcessCost,
    pub(crate) windows: u64,
    pub(crate) bytes: u64,
}

impl State {
    pub(super) fn since(&self, before: &State, seconds: f64) -> Between {
        let is_same = before.recorder_pid == self.recorder_pid;
        let recorder = self.recorder.since(&before.recorder, seconds);
        Between {
            watch: self.watch.since(&before.watch, seconds),
            recorder: if is_same { recorder } else { ProcessCost::default() },
            windows: self.windows - before.windows,
            bytes: self.window_bytes - before.window_bytes,
        }
    }
}

impl Service {
    /// Starts it, and waits until it records.
    pub(super) fn start(whit: &Path, folder: &Path, settings: &Settings) -> Result<Service, Error> {
        let log = fs::File::create(folder.join("log")).map_err(error::file("create", folder))?;
        let mut command = Command::new(whit);
        command.arg("watch").args(settings.arguments());
        command.arg("--socket").arg(folder.join("status"));
        command.arg("--folder").arg(folder.join("windows"));
        let child = command.stdin(Stdio::null()).stderr(log).spawn();
        let child = child.map_err(error::run(&whit))?;
        let (whit, folder) = (whit.to_owned(), folder.to_owned());
        let mut service = Service { child, whit, folder };
        let begin = Instant::now();
        while !has_begun(&service.log()) {
            let has_ended = !matches!(service.child.try_wait(), Ok(None));
            if has_ended || begin.elapsed() > BEGIN_LIMIT {
                let command = format!("{command:?}");
                return Err(error::recording(&command, "does not record", &service.log()));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(service)
    }

    /// All that it said.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// `None` where it does not answer.
    pub(super) fn state(&self) -> Option<State> {
        let mut command = Command::new(&self.whit);
        command.args(["watch", "status", "--json", "--socket"]).arg(self.folder.join("status"));
        let output = command.stderr(Stdio::null()).output().ok()?;
        let status = serde_json::from_slice(&output.stdout).ok()?;
        Some(self.read(&status))
    }

    fn read(&self, status: &Value) -> State {
        let counted = |name: &str| status["counted"][name].as_u64().unwrap_or(0);
        let recorder_pid = status["recorder_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let sinks = status["sinks"].as_array().into_iter().flatten();
        State {
            watch: Reading::of(self.child.id()),
            recorder: recorder_pid.map(Reading::of).unwrap_or_default(),
            recorder_pid,
            windows: counted("windows"),
            window_bytes: counted("window_bytes"),
            kept_bytes: sinks.filter_map(|sink| sink["detail"]["bytes"].as_u64()).sum(),
            losses: losses(status),
        }
    }

    /// Files of windows, the oldest first.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.folder.join("windows")).into_iter().flatten().flatten();
        let paths = found.map(|entry| entry.path());
        let mut files: Vec<_> =
            paths.filter(|it| it.extension() == Some("data".as_ref())).collect();
        files.sort();
        files
    }

    /// Ends it: its last window has its file then.
    pub(super) fn end(&mut self) {
        let _ = whit_sys::system::terminate(self.child.id() as i32);
        let _ = self.child.wait();
    }
}

/// Whether the service says that it records.
fn has_begun(log: &str) -> bool {
    log.lines().any(|line| line.starts_with("whit watch: recording: "))
}

/// Counters of the service and of its sinks that tell losses, where they are not zero.
fn losses(status: &Value) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = Vec::new();
    let counted = status["counted"].as_object().into_iter().flatten();
    all.extend(counted.filter_map(|(name, number)| Some((name.clone(), number.as_u64()?))));
    for sink in status["sinks"].as_array().into_iter().flatten() {
        let name = sink["name"].as_str().unwrap_or_default();
        for counter in ["failed", "dropped_by_queue"] {
            all.push((format!("{name} {counter}"), sink[counter].as_u64().unwrap_or(0)));
        }
    }
    all.retain(|(name, number)| *number > 0 && !NO_LOSSES.contains(&name.as_str()));
    all
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_records_once_it_says_so() {
        let warning = "whit watch: recorder: warning: no PMU: the recording has no cycles\n";
        assert!(!has_begun(warning));
        // The first line of `service::care` in whit-watch.
        assert!(has_begun(&format!("{warning}whit watch: recording: a window ends every 10s\n")));
    }

    #[test]
    fn losses_are_counters_that_are_not_zero() {
        let status = serde_json::json!({
            "counted": {"windows": 7, "wake_ups": 9, "gap_ms": 0, "recorder_ends": 2},
            "sinks": [{"name": "recordings", "failed": 0, "dropped_by_queue": 3, "accepted": 4}],
        });
        let expected = [("recorder_ends".to_owned(), 2), ("recordings dropped_by_queue".into(), 3)];
        assert_eq!(losses(&status), expected);
        assert_eq!(losses(&Value::Null), []);
    }
}
