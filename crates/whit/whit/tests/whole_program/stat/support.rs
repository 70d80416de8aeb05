//! Runs `whit stat` and `perf stat`, and reads their output.

use std::process::{Child, Command, Output, Stdio};

use whit_testing::run;
pub(crate) use whit_testing::run::stderr as said;
pub(crate) use whit_testing::wait::{Busy, signal, wait_for_command, wait_for_events, wait_until};
pub(crate) use whit_testing::{Skip, probe, workload};

/// Runs the body of the test `name`; where it says that something is missing, that is announced.
pub(crate) fn check(name: &str, body: impl FnOnce() -> Result<(), Skip>) {
    whit_testing::check(&format!("stat::{name}"), body);
}

/// `whit stat` with these arguments.
pub(crate) fn whit(arguments: &[&str]) -> Command {
    let mut whit = run::whit(env!("CARGO_BIN_EXE_whit"));
    whit.arg("stat").args(arguments);
    whit
}

/// `perf stat` with these arguments.
pub(crate) fn perf(arguments: &[&str]) -> Result<Command, Skip> {
    let mut perf = run::perf()?;
    perf.arg("stat").args(arguments);
    Ok(perf)
}

/// Runs a command that has to succeed; gives its standard error.
pub(crate) fn text(mut command: Command) -> String {
    let output: Output = run::run(&mut command);
    said(&output)
}

/// The output of `whit stat`.
pub(crate) fn counted(arguments: &[&str]) -> String {
    text(whit(arguments))
}

/// Fields of CSV with `;` between them.
pub(crate) fn fields(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(';').map(|f| f.trim().to_owned()).collect()).collect()
}

/// Values of an event by its name, from lines with `fields` in front of the value.
pub(crate) fn values(lines: &[Vec<String>], event: &str, fields: usize) -> Vec<f64> {
    let is_of = |line: &&Vec<String>| line.get(fields + 2).is_some_and(|name| name == event);
    let value = |line: &Vec<String>| line[fields].parse().unwrap_or(0.0);
    lines.iter().filter(is_of).map(value).collect()
}

/// Starts whit with its output in pipes, and with all signals as they are by default: a shell may run the
/// tests in the background with some ignored, and that is inherited.
pub(crate) fn start(arguments: &[&str]) -> Child {
    let plain = whit(arguments);
    let mut whit = run::command("env");
    whit.arg("--default-signal").arg(plain.get_program()).args(plain.get_args());
    whit.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start whit")
}
