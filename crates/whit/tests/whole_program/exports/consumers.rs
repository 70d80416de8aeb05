//! The programs that read exports, where `scripts/setup.sh test` has installed them.

use std::path::PathBuf;
use std::process::Command;

use crate::support::tools::{command, repository};
use crate::support::{Skip, probe};

/// Where the script installs packages of npm and PyPI.
fn installed(path: &str) -> PathBuf {
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
pub(super) fn python(script: &str) -> Result<Command, Skip> {
    let python = installed("python/bin/python");
    if !python.exists() {
        return Err(Skip("the Python packages of other tools are not installed here".to_owned()));
    }
    let mut python = command(python);
    python.arg(repository().join("crates/whit/tests/whole_program/exports").join(script));
    Ok(python)
}

/// A program of npm's packages, run by their own node.
pub(super) fn node(package: &str, script: &str) -> Result<(Command, PathBuf), Skip> {
    let modules = installed("node_modules");
    let (node, folder) = (modules.join("node/bin/node"), modules.join(package));
    if !node.exists() || !folder.exists() {
        return Err(Skip(format!("npm's package {package} is not installed here")));
    }
    let mut node = command(node);
    node.arg(folder.join(script));
    Ok((node, folder))
}
