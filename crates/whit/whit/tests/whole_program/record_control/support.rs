//! Running whit and perf.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use whit_testing::run;
pub(crate) use whit_testing::run::stderr;
pub(crate) use whit_testing::wait::{WORK, signal, wait_for_command, wait_for_work, wait_until};
pub(crate) use whit_testing::{Skip, probe};

/// A directory to record in.
pub(crate) struct TestFolder {
    pub(crate) dir: tempfile::TempDir,
}

impl TestFolder {
    pub(crate) fn new() -> TestFolder {
        TestFolder { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn whit(&self, arguments: &[&str]) -> Command {
        let mut command = run::whit(env!("CARGO_BIN_EXE_whit"));
        command.args(["record", "--engine=ring"]).args(arguments).current_dir(self.dir.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.whit(arguments).output().unwrap()
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.whit(arguments).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Recordings whose name begins so, in order.
    pub(crate) fn recordings(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap());
        let named = entries.filter(|e| e.file_name().to_string_lossy().starts_with(prefix));
        let mut paths: Vec<_> = named.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
}

/// The numbers in front of " samples" in the lines after recordings.
pub(crate) fn samples(output: &Output) -> Vec<u64> {
    let text = stderr(output);
    let lines = text.lines().filter_map(|line| line.strip_prefix("[ whit record: "));
    lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Whether a test can go on; says so by its name where not.
pub(crate) fn has(test: &str, probed: Result<(), Skip>) -> bool {
    if let Err(Skip(reason)) = &probed {
        whit_testing::skip(test, reason);
    }
    probed.is_ok()
}

/// Whether perf can be run.
pub(crate) fn has_perf(test: &str) -> bool {
    has(test, probe::perf())
}

pub(crate) fn perf(arguments: &[&str], file: &Path) -> String {
    let mut perf = run::perf().expect("has_perf was asked");
    run::text(perf.args(arguments).arg("-f").arg("-i").arg(file))
}

/// The count of a record type in `perf report --stats`.
pub(crate) fn count(file: &Path, kind: &str) -> u64 {
    let stats = perf(&["report", "--stats"], file);
    let line = stats.lines().find(|line| line.trim_start().starts_with(kind));
    let number = line.and_then(|line| line.split(':').nth(1)?.split_ascii_whitespace().next());
    number.map_or(0, |number| number.parse().unwrap())
}
