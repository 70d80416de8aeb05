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

/// Whether the installed perf runs (`PERF=program` names another one).
pub fn perf() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || {
        let Skip(reason) = match need_program(perf_program(), &["--version"]) {
            Ok(()) => return Ok(()),
            Err(skip) => skip,
        };
        Err(format!("there is no perf that runs here: {reason}"))
    })
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
