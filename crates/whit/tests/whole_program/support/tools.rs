//! The programs that the tests run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use super::Skip;

/// What a recorder says when it may not or cannot record here.
const REFUSALS: [&str; 5] = [
    "perf_event_paranoid",
    "Permission denied",
    "Operation not permitted",
    "No permission",
    "not supported",
];

pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Whether whit says that its BPF programs are not taken here: no right, or an old kernel. That the verifier
/// refuses them is no reason to skip anything.
pub(crate) fn lacks_bpf(said: &str) -> bool {
    assert!(!said.contains("which is a fault of whit's"), "{said}");
    said.contains("BPF program")
}

/// The whit under test.
pub(crate) fn whit() -> Command {
    let built = || env!("CARGO_BIN_EXE_whit").into();
    command(std::env::var_os("WHIT").unwrap_or_else(built))
}

/// Where tracefs is; a recorder sees it there too.
pub(crate) fn tracefs() -> Result<PathBuf, Skip> {
    let events = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];
    let found = events.map(PathBuf::from).into_iter().find(|path| path.join("sched").is_dir());
    found.ok_or_else(|| Skip("tracefs is not mounted, or not for this user".to_owned()))
}

/// The installed perf.
pub(crate) fn perf() -> Result<Command, Skip> {
    static VERSION: OnceLock<Result<(), String>> = OnceLock::new();
    let program = || std::env::var_os("PERF").unwrap_or_else(|| "perf".into());
    let works = VERSION.get_or_init(|| {
        let output = command(program()).arg("--version").output();
        let output = output.map_err(|error| format!("there is no perf here: {error}"))?;
        let works = output.status.success();
        works.then_some(()).ok_or_else(|| "perf here does not run on this kernel".to_owned())
    });
    works.clone().map_err(Skip)?;
    Ok(command(program()))
}

/// The workload `name` of bench/workloads, built if need be.
pub(crate) fn workload(name: &str) -> Result<PathBuf, Skip> {
    let compiler = match name {
        "deep-go" => "go",
        "deep-rs" => "rustc",
        "forks" | "storm" | "pingpong" | "yield" | "waits" | "callers" | "matrix" | "spawn"
        | "jit" | "corners" | "mappings" | "service" | "service-no-id" | "impostor"
        | "impostor-no-id" => "cc",
        _ => "c++",
    };
    let version = if compiler == "go" { "version" } else { "--version" };
    if command(compiler).arg(version).output().is_err() {
        return Err(Skip(format!("there is no {compiler} here to build {name} with")));
    }
    let directory = repository().join("target/workloads");
    std::fs::create_dir_all(&directory).expect("make target/workloads");
    let directory = directory.canonicalize().expect("find target/workloads");
    // Tests run side by side: one make at a time.
    let mut make = command("flock");
    make.arg(directory.join(".lock"))
        .args(["make", "-s"])
        .arg("-C")
        .arg(repository().join("bench/workloads"));
    make.arg(format!("OUT={}", directory.display())).arg(directory.join(name));
    succeed(&mut make);
    Ok(directory.join(name))
}

/// A command without input and without the user's configuration.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env("PERF_CONFIG", "/dev/null").env("DEBUGINFOD_URLS", "");
    command
}

/// Runs a command that has to succeed; gives its standard output.
pub(crate) fn succeed(command: &mut Command) -> Vec<u8> {
    let output = output(command);
    assert!(output.status.success(), "{}", describe(command, &output));
    output.stdout
}

/// As [`succeed`], for text. Symbol names are not always UTF-8.
pub(crate) fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&succeed(command)).into_owned()
}

/// Runs a recorder; that it is refused is a reason to skip, any other failure is one to fail.
pub(crate) fn record(command: &mut Command) -> Result<Vec<u8>, Skip> {
    let output = output(command);
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let refused = stderr.lines().find(|line| REFUSALS.iter().any(|refusal| line.contains(refusal)));
    match refused {
        Some(line) => Err(Skip(format!("this machine refuses to record: {}", line.trim()))),
        None => panic!("{}", describe(command, &output)),
    }
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

fn describe(command: &Command, output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{command:?} ended with {}:\n{stderr}", output.status)
}
