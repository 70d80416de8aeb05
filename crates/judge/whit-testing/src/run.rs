//! Running whit, perf and everything else, without the user's input and configuration.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::{Skip, probe};

/// Copies a program that is to run. A copy that this process writes could be busy: a child that another test forks
/// meanwhile has it open until its exec.
///
/// # Panics
/// Where it cannot be copied.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    // A copy in its place may still run: helpers of a program end behind it.
    let copied = Command::new("cp").args(["--remove-destination", "--"]).args([from, to]).status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "copy {} to {}",
        from.display(),
        to.display()
    );
}

/// Writes a program that is to run, which everybody may do. It is written by a process of its own for the reason that
/// [`copy_program`] has.
///
/// # Panics
/// Where it cannot be written.
pub fn write_program(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    let mut install = Command::new("install");
    install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().expect("run install");
    let mut input = install.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("write the text");
    drop(input);
    assert!(install.wait().is_ok_and(|status| status.success()), "write {}", path.display());
}

/// Writes a program of lines of the shell, as [`write_program`] does.
pub fn write_script(path: impl AsRef<Path>, lines: &str) {
    write_program(path, &format!("#!/bin/sh\n{lines}\n"));
}

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// A command without input, in the C locale, and without the user's configuration.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env("PERF_CONFIG", "/dev/null").env("LC_ALL", "C");
    command.env("DEBUGINFOD_URLS", "").env_remove("WHIT_EVENT_TABLES");
    // perf sets it for the programs that it starts. A test that names a home has its cache there.
    command.env_remove("PERF_BUILDID_DIR");
    command
}

/// The whit under test: the one just built, or the one that `WHIT` names. Tests pass
/// `env!("CARGO_BIN_EXE_whit")`, which only cargo knows.
pub fn whit(built: &str) -> Command {
    let mut whit = command(std::env::var_os("WHIT").unwrap_or_else(|| built.into()));
    // Tests share the unwind tables of programs: to make them takes seconds where a whole machine is recorded.
    whit.env("XDG_CACHE_HOME", Path::new(built).with_file_name("cache-of-tests"));
    whit
}

/// A program in the folder of the whit under test. `make test` builds it before; cargo does not, for tests of another
/// package.
///
/// # Panics
/// Where it cannot be built.
pub fn sibling(built: &str, name: &str) -> PathBuf {
    let path = Path::new(built).with_file_name(name);
    if is_old(&path) {
        let mut build = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // With examples, cargo takes the features of tests: without them it would build most crates again.
        let every_program =
            ["build", "--quiet", "--workspace", "--exclude", "whit-fuzz", "--bins", "--examples"];
        succeed(build.args(every_program).current_dir(repository()));
    }
    path
}

/// Whether a program is not there, or one of its sources is newer. cargo lists them in a file of the same folder.
fn is_old(program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let sources = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = sources.split_whitespace().skip(1);
    changed(program).is_none() || sources.map(Path::new).any(|it| changed(it) > changed(program))
}

/// The installed perf, or the one that `PERF` names.
///
/// # Errors
///
/// Where there is none that runs.
pub fn perf() -> Result<Command, Skip> {
    probe::perf()?;
    Ok(command(probe::perf_program()))
}

/// A perf of a newer release than the installed one: the one that `NEWEST_PERF` names, or that `scripts/setup.sh` fetched.
///
/// # Errors
///
/// Where there is none that runs.
pub fn newest_perf() -> Result<Command, Skip> {
    probe::newest_perf()?;
    Ok(command(probe::newest_perf_program()))
}

/// Runs a command to its end.
///
/// # Panics
///
/// Where it cannot be started.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

/// Runs a command that has to succeed; gives its standard output.
///
/// # Panics
///
/// Where it does not succeed.
pub fn succeed(command: &mut Command) -> Vec<u8> {
    run(command).stdout
}

/// Runs a command that has to succeed; gives all that it printed.
///
/// # Panics
///
/// Where it does not succeed.
pub fn run(command: &mut Command) -> Output {
    let output = output(command);
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}",
        output.status,
        stderr(&output)
    );
    output
}

/// As [`succeed`], for text. Symbol names are not always UTF-8.
///
/// # Panics
///
/// Where it does not succeed.
pub fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&succeed(command)).into_owned()
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a recorder (`whit record`, `perf record`) that has to succeed on this machine.
///
/// # Errors
///
/// Where a probe of the machine says, before the recorder runs, that its command line cannot be recorded
/// here. Nothing that the recorder does or prints is a reason to skip.
///
/// # Panics
///
/// Where the recorder fails.
pub fn record(command: &mut Command) -> Result<Output, Skip> {
    needs_of(command)?;
    Ok(run(command))
}

/// Probes the machine for all that the command line of a recorder or counter takes.
///
/// # Errors
///
/// The first thing that is missing.
pub fn needs_of(command: &Command) -> Result<(), Skip> {
    needs_of_line(command.get_args())
}

/// As [`needs_of`], of arguments alone.
///
/// # Errors
///
/// The first thing that is missing.
pub fn needs_of_line(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<(), Skip> {
    needs(arguments).into_iter().try_for_each(|need| match need {
        Need::OwnEvents => probe::own_events(),
        Need::WholeCpus => probe::whole_cpus(),
        Need::Tracepoints => probe::tracepoints(),
        Need::BpfStacks => probe::bpf_stacks(),
        Need::BpfCgroups => probe::bpf_cgroups(),
    })
}

/// One thing that a command line takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    OwnEvents,
    WholeCpus,
    Tracepoints,
    BpfStacks,
    BpfCgroups,
}

/// Needs by the arguments in front of `--`.
fn needs(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vec<Need> {
    let mut needs = vec![Need::OwnEvents];
    for argument in arguments {
        let argument = argument.as_ref().to_string_lossy().into_owned();
        match argument.as_str() {
            "--" => break,
            "-a" | "-C" => needs.push(Need::WholeCpus),
            "--engine=bpf" => needs.push(Need::BpfStacks),
            "--bpf-counters=on" => needs.push(Need::BpfCgroups),
            "--wakeups" => needs.push(Need::Tracepoints),
            other if other.contains("sched:sched_") => needs.push(Need::Tracepoints),
            _ => {}
        }
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_those_of_the_options_in_front_of_the_command() {
        let line = |text: &str| needs(text.split(' ').map(str::to_owned));
        assert_eq!(line("record -e cpu-clock -- sh -a"), [Need::OwnEvents]);
        assert_eq!(line("record -a -- true"), [Need::OwnEvents, Need::WholeCpus]);
        let bpf = line("record --engine=bpf -e cpu-clock,sched:sched_switch/period=1/");
        assert_eq!(bpf, [Need::OwnEvents, Need::BpfStacks, Need::Tracepoints]);
        let stat = line("stat --bpf-counters=on -C 0");
        assert_eq!(stat, [Need::OwnEvents, Need::BpfCgroups, Need::WholeCpus]);
    }

    #[test]
    #[should_panic(expected = "not supported")]
    fn a_recorder_that_fails_is_no_skip_with_any_output() {
        let mut recorder = command("sh");
        let _ = record(recorder.args(["-c", "echo 'the PMU is not supported' >&2; exit 1"]));
        // Where this user may not record at all, `record` skips before the recorder runs.
        probe::own_events()
            .map_err(|Skip(reason)| format!("not supported here: {reason}"))
            .unwrap();
    }
}
