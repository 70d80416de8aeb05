//! Running whit and perf, and reading what they print.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) use whit_testing::Skip;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the body of the test `name`; where it says that something is missing, that is announced.
pub(crate) fn check(name: &str, body: impl FnOnce() -> Result<(), Skip>) {
    whit_testing::check(&format!("stat::{name}"), body);
}

fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env("PERF_CONFIG", "/dev/null").env("LC_ALL", "C");
    command
}

/// `whit stat` with these arguments.
pub(crate) fn whit(arguments: &[&str]) -> Command {
    let built = || env!("CARGO_BIN_EXE_whit").into();
    let mut whit = command(std::env::var_os("WHIT").unwrap_or_else(built));
    whit.arg("stat").args(arguments);
    whit
}

/// `perf stat` with these arguments.
pub(crate) fn perf(arguments: &[&str]) -> Result<Command, Skip> {
    let program = std::env::var_os("PERF").unwrap_or_else(|| "perf".into());
    match command(&program).arg("--version").output() {
        Ok(output) if output.status.success() => {}
        _ => return Err(Skip("there is no perf here".to_owned())),
    }
    let mut perf = command(program);
    perf.arg("stat").args(arguments);
    Ok(perf)
}

/// Runs a command that has to succeed; gives what it printed on standard error.
pub(crate) fn text(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?} ended with {}\n{}", output.status, said(&output));
    said(&output)
}

/// What `whit stat` prints.
pub(crate) fn counted(arguments: &[&str]) -> String {
    text(whit(arguments))
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
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

/// The workload `name` of bench/workloads, built if need be.
pub(crate) fn workload(name: &str) -> Result<PathBuf, Skip> {
    if command("cc").arg("--version").output().is_err() {
        return Err(Skip(format!("there is no cc here to build {name} with")));
    }
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let directory = PathBuf::from(repository).join("target/workloads");
    std::fs::create_dir_all(&directory).expect("make target/workloads");
    let directory = directory.canonicalize().expect("find target/workloads");
    // Tests run side by side: one make at a time.
    let mut make = command("flock");
    make.arg(directory.join(".lock")).args(["make", "-s", "-C"]);
    make.arg(format!("{repository}/bench/workloads"));
    make.arg(format!("OUT={}", directory.display())).arg(directory.join(name));
    text(make);
    Ok(directory.join(name))
}

/// Skips where this user may not count whole CPUs.
pub(crate) fn need_whole_cpus() -> Result<(), Skip> {
    let output = whit(&["-a", "-e", "dummy", "true"]).output().expect("run whit");
    match output.status.success() {
        true => Ok(()),
        false => Err(Skip(format!("whole CPUs may not be counted: {}", said(&output)))),
    }
}

/// Skips where tracepoints cannot be counted.
pub(crate) fn need_tracepoints() -> Result<(), Skip> {
    let output = whit(&["-a", "-e", "sched:sched_switch", "true"]).output().expect("run whit");
    match output.status.success() {
        true => Ok(()),
        false => Err(Skip(format!("tracepoints cannot be counted: {}", said(&output)))),
    }
}

/// A process that burns CPU until it is dropped.
pub(crate) struct Busy(Child);

impl Busy {
    pub(crate) fn start() -> Busy {
        Busy(command("sh").args(["-c", "while :; do :; done"]).spawn().expect("start a shell"))
    }

    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Waits until it has had the CPU for some time.
    pub(crate) fn wait_for_work(&self) {
        const WORK_NS: u64 = 50_000_000;
        let path = format!("/proc/{}/schedstat", self.0.id());
        let worked_ns = || {
            let text = std::fs::read_to_string(&path).expect("it runs");
            text.split(' ').next().unwrap().parse::<u64>().expect("nanoseconds")
        };
        let wanted_ns = worked_ns() + WORK_NS;
        wait_until("the busy process has worked", || worked_ns() >= wanted_ns);
    }

    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts whit with its output in pipes, and with all signals as they are by default: whoever runs
/// the tests in the background may have them ignored, and that is inherited.
pub(crate) fn start(arguments: &[&str]) -> Child {
    let plain = whit(arguments);
    let mut whit = command("env");
    whit.arg("--default-signal").arg(plain.get_program()).args(plain.get_args());
    whit.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start whit")
}

pub(crate) fn signal(process: &Child, name: &str) {
    let status = command("kill").args([name, &process.id().to_string()]).status().unwrap();
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

/// Waits until the command of a running whit has this name.
pub(crate) fn wait_for_command(whit: &Child, name: &str) {
    let children = format!("/proc/{0}/task/{0}/children", whit.id());
    wait_until("the command runs", || {
        let ids = std::fs::read_to_string(&children).unwrap_or_default();
        let comm = |id: &str| std::fs::read_to_string(format!("/proc/{id}/comm"));
        ids.split_ascii_whitespace().any(|id| comm(id).is_ok_and(|comm| comm.trim() == name))
    });
}

/// Waits until a process has open perf events.
pub(crate) fn wait_for_events(whit: &Child) {
    let directory = format!("/proc/{}/fd", whit.id());
    wait_until("events are open", || {
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let links = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.into_iter().any(|link| link.to_string_lossy().contains("perf_event"))
    });
}
