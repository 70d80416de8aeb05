//! Running whit and perf, and skipping aloud.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use whit_testing::run;
pub(crate) use whit_testing::run::{stderr, stdout};

use serde_json::Value;
pub(crate) use whit_testing::{Skip, check, probe};

/// The program under test.
pub(crate) fn whit(arguments: &[&str]) -> Command {
    let mut command = run::whit(env!("CARGO_BIN_EXE_whit"));
    command.args(arguments);
    command
}

pub(crate) fn list(arguments: &[&str]) -> Output {
    whit(&["list"]).args(arguments).output().expect("whit runs")
}

/// The events of `whit list --json`.
pub(crate) fn listed(arguments: &[&str]) -> Vec<Value> {
    let output = list(&[&["--json"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    value["events"].as_array().expect("events").clone()
}

/// All spellings of a listed event. One that several PMUs have is spelt with each of them.
pub(crate) fn spellings(event: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let texts = |key: &str| event[key].as_array().expect("a list").iter().map(text);
    let name = text(&event["name"]);
    let (_, of_pmu) = name.split_once('/').unwrap_or_default();
    let by_pmu: Vec<String> = texts("pmus").map(|pmu| format!("{pmu}/{of_pmu}")).collect();
    texts("aliases").chain(by_pmu).chain([name.clone()]).collect()
}

pub(crate) fn state(event: &Value) -> &str {
    event["openable"]["state"].as_str().expect("a state")
}

/// Runs perf and gives its output.
pub(crate) fn perf(arguments: &[&str]) -> Result<String, Skip> {
    Ok(run::text(run::perf()?.args(arguments)))
}

/// A copy of the program that any user can start, run as one without rights.
pub(crate) fn as_unprivileged(dir: &Path, arguments: &[&str]) -> Result<Output, Skip> {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;

    probe::root()?;
    let program = dir.join("whit");
    whit_testing::run::copy_program(env!("CARGO_BIN_EXE_whit"), &program);
    for path in [dir, &program] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("let others in");
    }
    let mut command = Command::new(&program);
    command.args(arguments).current_dir("/").stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
    Ok(command.output().expect("whit runs"))
}
