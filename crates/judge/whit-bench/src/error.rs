//! Errors that keep a benchmark from running, in the same words everywhere. A peer that fails is a result, not an error.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use anyhow::anyhow;
use whit_measure::measure::{Measurement, Outcome};

pub(crate) use anyhow::Error;

/// For `map_err` on a file operation; the action is a verb: `create`, `read`.
pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl Fn(io::Error) -> Error {
    let path = path.into();
    move |source| anyhow!("cannot {action} {}: {source}", path.display())
}

/// For `map_err` on the start or the end of a program.
pub(crate) fn run(program: impl Into<PathBuf>) -> impl Fn(io::Error) -> Error {
    let program = program.into();
    move |source| anyhow!("cannot run {}: {source}", program.display())
}

/// A workload was not recorded.
pub(crate) fn recording(command: &str, outcome: impl Display, stderr: &str) -> Error {
    anyhow!("cannot record the workload: `{command}` {outcome}\n{stderr}")
}

/// A workload did not run by itself, without any recorder.
pub(crate) fn workload(command: &str, outcome: &str) -> Error {
    anyhow!(
        "the workload does not run: `{command}` {outcome}; build it anew with \
         `make -C bench/workloads`, or name another directory with --workloads"
    )
}

/// The output of a program that has to come through.
pub(crate) fn output_of(mut command: Command) -> Result<String, Error> {
    let output = command.output().map_err(run(command.get_program()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(recording(&format!("{command:?}"), output.status, &stderr))
}

/// The end of a run that did not come through.
pub(crate) fn come_through(measured: &Measurement) -> Result<(), String> {
    match &measured.outcome {
        Outcome::Success => Ok(()),
        Outcome::TimedOut { limit_s } => Err(format!("took more than {limit_s} s")),
        Outcome::Failed { status, stderr } => Err(format!("{status}: {stderr}")),
    }
}
