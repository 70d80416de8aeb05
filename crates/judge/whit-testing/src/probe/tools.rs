//! Programs that tests run: perf, compilers, tools.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use std::ffi::OsString;

use super::{Kept, Probed, once};
use crate::Skip;

/// The perf that tests run.
pub(crate) fn perf_program() -> OsString {
    std::env::var_os("PERF").unwrap_or_else(|| "perf".into())
}

/// A perf of a newer release.
pub(crate) fn newest_perf_program() -> OsString {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/setup/newest-perf/perf");
    std::env::var_os("NEWEST_PERF").unwrap_or_else(|| fetched.into())
}

/// Whether the installed perf runs (`PERF=program` names another one).
pub fn perf() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || runs(perf_program(), "there is no perf that runs here"))
}

/// Whether a perf of a newer release runs.
pub fn newest_perf() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || runs(newest_perf_program(), "there is no newer perf here"))
}

fn runs(perf: OsString, otherwise: &str) -> Result<(), String> {
    let shown = |Skip(reason)| format!("{otherwise}: {reason}");
    need_program(perf, &["--version"]).map_err(shown)
}

/// Whether a program is installed; that it runs is shown by `--version`.
pub fn program(name: &str) -> Probed {
    // Go knows no option of that name.
    let argument = if name == "go" { "version" } else { "--version" };
    need_program(name, &[argument])
}

/// Whether a program with these arguments ends well.
pub fn need_program(name: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Probed {
    let name = name.as_ref();
    let shown = name.to_string_lossy();
    let mut command = Command::new(name);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Skip(format!("{shown} does not run here ({}): {said}", output.status)))
        }
        Err(error) => Err(Skip(format!("there is no {shown} here: {error}"))),
    }
}

/// Whether a program that is not whit cannot do this here: gives the reason that it printed.
pub fn fails_with(command: &mut Command) -> Option<String> {
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("{command:?}: {error}")),
    }
}
