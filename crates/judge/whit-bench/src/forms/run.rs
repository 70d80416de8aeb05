//! Runs of readers.

use std::fs;
use std::path::Path;
use std::process::Command;

use whit_measure::measure;

use crate::error::come_through;

use super::Options;
use super::built::Built;

/// Runs a reader with its output in a file, without the user's settings, and within the limit.
pub(super) fn run(
    mut command: Command,
    output: &Path,
    built: &Built,
    options: &Options,
) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    if let Some(place) = built.program.parent() {
        command.env("HOME", place).env("XDG_CACHE_HOME", place.join("cache"));
    }
    command.env("DEBUGINFOD_URLS", "").env("PERF_CONFIG", "/dev/null");
    let file =
        fs::File::create(output).map_err(|error| format!("{}: {error}", output.display()))?;
    let measured = measure::run_into(command, file, options.setup.limit);
    let measured = measured.map_err(|error| format!("cannot run {name}: {error}"))?;
    come_through(&measured).map_err(|outcome| format!("{name}: {outcome}"))
}
