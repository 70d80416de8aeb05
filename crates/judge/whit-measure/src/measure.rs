//! One run of one program: wall time, CPU time, peak memory, how it ended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;
use wait4::Wait4;

use crate::process_tree;

/// How much of a failed program's output is kept.
const STDERR_TAIL_BYTES: u64 = 2000;
/// The status of a run that was ended for a reason.
pub const STOPPED: &str = "was stopped";
/// How often a running program is looked at.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Outcome {
    /// Exit code zero.
    Success,
    /// Killed because it exceeded its time limit.
    TimedOut {
        /// The limit in seconds.
        limit_s: u64,
    },
    /// Another exit code, or a signal.
    Failed {
        /// `exit code 1`, `signal 11`.
        status: String,
        /// The end of its standard error.
        stderr: String,
    },
}

/// Time and memory of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measurement {
    /// How it ended.
    pub outcome: Outcome,
    /// From before the fork to the end of the process.
    pub wall_s: f64,
    /// CPU time in user mode, of the process and the children that it waited for.
    pub user_s: f64,
    /// CPU time in kernel mode, of the same.
    pub sys_s: f64,
    /// Peak resident memory of the largest of these processes, mapped file pages included.
    pub max_rss_bytes: u64,
}

/// The end of a run's output.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Printed {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Looked at now and then while a program runs; a reason ends the run.
pub type Watch<'a> = &'a dyn Fn() -> Option<String>;

/// Runs `command` with no input and its output discarded, at most for `limit`.
///
/// The figures are those of `wait4(2)` for this child. The peak memory of a child cannot be
/// below that of this process at the time of the fork (the kernel counts the memory that the
/// child had before its exec), which is a few MiB.
///
/// # Errors
/// Only where the program cannot be started or waited for; a run that fails or is killed is an
/// [`Outcome`].
pub fn run(mut command: Command, limit: Duration) -> io::Result<Measurement> {
    command.stdout(Stdio::null());
    let mut stderr = anonymous_file()?;
    measure(command, limit, &mut stderr, &|| None)
}

/// As [`run`], with the whole output in a file.
///
/// # Errors
/// As [`run`].
pub fn run_into(mut command: Command, output: File, limit: Duration) -> io::Result<Measurement> {
    command.stdout(output);
    let mut stderr = anonymous_file()?;
    measure(command, limit, &mut stderr, &|| None)
}

/// As [`run`], and returns the output. `watch` is asked about ten times a second; where it has a
/// reason the run is ended and counts as failed with it.
pub fn run_watched(
    mut command: Command,
    limit: Duration,
    watch: Watch<'_>,
) -> io::Result<(Measurement, Printed)> {
    let (mut stdout, mut stderr) = (anonymous_file()?, anonymous_file()?);
    command.stdout(stdout.try_clone()?);
    let measurement = measure(command, limit, &mut stderr, watch)?;
    Ok((measurement, Printed { stdout: tail(&mut stdout)?, stderr: tail(&mut stderr)? }))
}

fn measure(
    mut command: Command,
    limit: Duration,
    stderr: &mut File,
    watch: Watch<'_>,
) -> io::Result<Measurement> {
    command.stdin(Stdio::null()).stderr(stderr.try_clone()?);
    let start = Instant::now();
    let mut child = command.spawn()?;
    let end = wait_for_end(&child, limit, watch)?;
    if !matches!(end, End::ByItself) {
        process_tree::kill(&mut child)?;
    }
    let wall_s = start.elapsed().as_secs_f64();
    let used = child.wait4()?;
    let outcome = match end {
        End::TimedOut => Outcome::TimedOut { limit_s: limit.as_secs() },
        End::Stopped(reason) => Outcome::Failed { status: STOPPED.into(), stderr: reason },
        End::ByItself if used.status.success() => Outcome::Success,
        End::ByItself => Outcome::Failed { status: describe(used.status), stderr: tail(stderr)? },
    };
    Ok(Measurement {
        outcome,
        wall_s,
        user_s: used.rusage.utime.as_secs_f64(),
        sys_s: used.rusage.stime.as_secs_f64(),
        max_rss_bytes: used.rusage.maxrss,
    })
}

/// Why a run is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The process has exited.
    ByItself,
    /// It exceeded the time limit, and is to be killed.
    TimedOut,
    /// The watch gave this reason to kill it.
    Stopped(String),
}

/// Waits until the child has ended, without reaping it, or there is a reason to end it.
pub fn wait_for_end(child: &Child, limit: Duration, watch: Watch<'_>) -> io::Result<End> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the child has no process id"))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(End::TimedOut);
        }
        if let Some(reason) = watch() {
            return Ok(End::Stopped(reason));
        }
        let left = Timespec::try_from(left.min(WATCH_INTERVAL)).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(End::ByItself),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A file without a name: unlike a pipe it cannot fill up and stop the program.
pub fn anonymous_file() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(File::from(rustix::fs::memfd_create("stderr", flags)?))
}

fn tail(file: &mut File) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(STDERR_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The command line as one would type it, for messages.
pub fn command_line(program: &Path, arguments: &[String]) -> String {
    let words = std::iter::once(program.display().to_string()).chain(arguments.iter().cloned());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far beyond what any of these tests takes.
    const GENEROUS: Duration = Duration::from_secs(600);

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_success_has_times_and_memory() {
        let m = run(sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"), GENEROUS).unwrap();
        assert_eq!(m.outcome, Outcome::Success);
        assert!(m.wall_s > 0.0 && m.user_s + m.sys_s > 0.0, "{m:?}");
        assert!(m.max_rss_bytes > 100_000, "{m:?}");
    }

    #[test]
    fn a_long_output_is_whole_in_its_file() {
        let mut file = anonymous_file().unwrap();
        let command = sh("head -c 100000 /dev/zero; exit 3");
        let m = run_into(command, file.try_clone().unwrap(), GENEROUS).unwrap();
        assert!(matches!(m.outcome, Outcome::Failed { .. }), "{m:?}");
        file.rewind().unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 100_000);
    }

    #[test]
    fn peak_memory_is_the_childs_own() {
        let small = run(sh("true"), GENEROUS).unwrap();
        // The kernel counts what a child has of its parent before the exec: far more than tests take.
        let fill = "head -c 512M /dev/zero | tail -c 512M >/dev/null";
        let large = run(sh(fill), GENEROUS).unwrap();
        assert!(large.max_rss_bytes > 512 << 20, "{large:?}");
        let small_again = run(sh("true"), GENEROUS).unwrap();
        assert!(small_again.max_rss_bytes < 512 << 20, "{small:?} {small_again:?}");
    }

    #[test]
    fn a_failure_has_the_exit_code_and_the_output() {
        let m = run(sh("echo no such thing >&2; exit 3"), GENEROUS).unwrap();
        let stderr = "no such thing".to_owned();
        assert_eq!(m.outcome, Outcome::Failed { status: "exit code 3".to_owned(), stderr });
        let m = run(sh("kill -9 $$"), GENEROUS).unwrap();
        assert!(matches!(m.outcome, Outcome::Failed { status, .. } if status == "signal 9"));
    }

    #[test]
    fn much_output_does_not_block_and_only_its_end_is_kept() {
        let script = "head -c 10000000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1";
        let m = run(sh(script), GENEROUS).unwrap();
        let Outcome::Failed { stderr, .. } = m.outcome else { panic!("{m:?}") };
        assert!(stderr.ends_with("xend") && stderr.len() as u64 <= STDERR_TAIL_BYTES);
    }

    #[test]
    fn a_run_beyond_its_limit_is_killed() {
        let m = run(sh("exec sleep 1000"), Duration::from_millis(1)).unwrap();
        assert_eq!(m.outcome, Outcome::TimedOut { limit_s: 0 });
    }

    #[test]
    fn printed_output_is_returned() {
        let never = || None;
        let (m, printed) = run_watched(sh("echo out; echo err >&2"), GENEROUS, &never).unwrap();
        assert_eq!(m.outcome, Outcome::Success);
        assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("out", "err"));
    }

    #[test]
    fn a_reason_ends_a_run() {
        let full = || Some("the disk is full".to_owned());
        let (m, _) = run_watched(sh("exec sleep 1000"), GENEROUS, &full).unwrap();
        let Outcome::Failed { status, stderr } = m.outcome else { panic!("{m:?}") };
        assert_eq!((status.as_str(), stderr.as_str()), (STOPPED, "the disk is full"));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(run(Command::new("/nonexistent/program"), GENEROUS).is_err());
    }
}
