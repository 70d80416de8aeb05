//! Running whit and perf.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory to record in.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn whit(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        command.arg("record").args(arguments).current_dir(self.dir.path()).stdin(Stdio::null());
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

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The numbers in front of " samples" in the lines after recordings.
pub(crate) fn samples(output: &Output) -> Vec<u64> {
    let text = stderr(output);
    let lines = text.lines().filter_map(|line| line.strip_prefix("[ whit record: "));
    lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

/// Whether perf can be run; says so by the test's name where not.
pub(crate) fn has_perf(test: &str) -> bool {
    let found = Command::new("perf").arg("--version").output().is_ok();
    if !found {
        whit_testing::skip(test, "perf cannot be run");
    }
    found
}

pub(crate) fn perf(arguments: &[&str], file: &Path) -> String {
    let output = Command::new("perf").args(arguments).arg("-f").arg("-i").arg(file).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The count of a record type in `perf report --stats`.
pub(crate) fn count(file: &Path, kind: &str) -> u64 {
    let stats = perf(&["report", "--stats"], file);
    let line = stats.lines().find(|line| line.trim_start().starts_with(kind));
    let number = line.and_then(|line| line.split(':').nth(1)?.split_ascii_whitespace().next());
    number.map_or(0, |number| number.parse().unwrap())
}

pub(crate) fn signal(process: &Child, name: &str) {
    let status = Command::new("kill").args([name, &process.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits until something is true.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a recorder's command runs under this name: its exec starts the events.
pub(crate) fn wait_for_command(recorder: &Child, name: &str) {
    let children = format!("/proc/{0}/task/{0}/children", recorder.id());
    wait_until("the command runs", || {
        let ids = std::fs::read_to_string(&children).unwrap_or_default();
        let comm = |id: &str| std::fs::read_to_string(format!("/proc/{id}/comm"));
        ids.split_ascii_whitespace().any(|id| comm(id).is_ok_and(|comm| comm.trim() == name))
    });
}

/// Whether this user may record whole CPUs; says so by the test's name where not.
pub(crate) fn may_record_cpus(test: &str) -> bool {
    let output = Place::new().run(&["-q", "-a", "-e", "dummy", "-o", "/dev/null", "true"]);
    if !output.status.success() {
        let said = stderr(&output);
        whit_testing::skip(test, &format!("whole CPUs may not be recorded: {said}"));
    }
    output.status.success()
}
