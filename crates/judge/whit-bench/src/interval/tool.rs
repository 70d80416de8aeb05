//! One run of a tool that counts in intervals.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use wait4::Wait4;

use super::Target;
use crate::error::{self, Error};
use crate::named::named;
use crate::peer::{perf, version};
use crate::record::recorder::refusal;
use whit_measure::measure::{End, anonymous_file, wait_for_end};

/// A tool that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ToolKind {
    /// `perf stat`.
    #[value(name = "perf stat")]
    Perf,
    /// `whit stat`.
    #[value(name = "whit stat")]
    Whit,
}

named!(ToolKind);

/// A tool that is installed here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Tool {
    /// The program that counts.
    pub(crate) kind: ToolKind,
    pub(crate) program: PathBuf,
    /// First line of the program's `--version`.
    pub(crate) version: String,
}

impl Tool {
    /// All that are here, and why others are not.
    pub(super) fn detect_all(whit: &Path) -> (Vec<Tool>, Vec<String>) {
        let (mut here, mut absent) = (Vec::new(), Vec::new());
        for (kind, program) in [(ToolKind::Perf, perf()), (ToolKind::Whit, whit.to_owned())] {
            match version(&program) {
                Ok(version) => here.push(Tool { kind, program, version }),
                Err(reason) => absent.push(format!("{kind}: {reason}")),
            }
        }
        (here, absent)
    }
}

/// Result of a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Run {
    /// CPU time of the tool in user mode, in seconds.
    pub(crate) user_s: f64,
    /// The same in the kernel.
    pub(crate) sys_s: f64,
    /// From its start to its end.
    pub(crate) wall_s: f64,
    pub(crate) intervals: usize,
    /// When the last one ended, from the beginning of counting.
    pub(crate) counted_s: f64,
}

impl Run {
    /// CPU time as a share of a CPU.
    pub(crate) fn cpu(&self) -> f64 {
        (self.user_s + self.sys_s) / self.wall_s
    }

    /// Intervals printed in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.intervals as f64 / self.counted_s
    }

    /// CPU time for an interval, in seconds.
    pub(crate) fn cpu_of_interval_s(&self) -> f64 {
        (self.user_s + self.sys_s) / self.intervals as f64
    }
}

/// Events and target.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) target: Target,
    pub(super) pid: u32,
    pub(super) interval_ms: u64,
    pub(super) events: &'a str,
    pub(super) output: &'a Path,
    pub(super) duration: Duration,
    pub(super) limit: Duration,
}

impl Job<'_> {
    pub(super) fn arguments(&self) -> Vec<String> {
        let (interval, pid) = (self.interval_ms.to_string(), self.pid.to_string());
        let mut words = vec!["stat", "-I", &interval, "-x,", "-e", self.events];
        match self.target {
            Target::Process => words.extend(["-p", &pid]),
            Target::Machine => words.push("-a"),
        }
        let output = self.output.display().to_string();
        words.extend(["-o", &output]);
        words.into_iter().map(str::to_owned).collect()
    }

    /// Has a tool count for the duration; the reason where it does not.
    pub(super) fn run(&self, tool: &Tool) -> Result<Result<Run, String>, Error> {
        // Counts of the run before would be taken for those of this one.
        let _ = std::fs::remove_file(self.output);
        let failed = error::run(&tool.program);
        let mut stderr = anonymous_file().map_err(&failed)?;
        let mut command = Command::new(&tool.program);
        command.args(self.arguments()).env("PERF_CONFIG", "/dev/null");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(stderr.try_clone().map_err(&failed)?);
        whit_sys::reset_signal_disposition(&mut command, whit_sys::Signal::Interrupt);
        let begin = Instant::now();
        let mut child = command.spawn().map_err(&failed)?;
        if let End::TimedOut = wait_for_end(&child, self.duration, &|| None).map_err(&failed)? {
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                kill_process(pid, Signal::INT).map_err(|errno| failed(errno.into()))?;
            }
            if let End::TimedOut = wait_for_end(&child, self.limit, &|| None).map_err(&failed)? {
                // Both fail where it has ended after all.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(Err(format!("did not end within {} s", self.limit.as_secs())));
            }
        }
        let used = child.wait4().map_err(&failed)?.rusage;
        let (intervals, counted_s) =
            printed(&std::fs::read_to_string(self.output).unwrap_or_default());
        if intervals == 0 {
            let mut text = String::new();
            // An unreadable output is not shown.
            let _ = stderr.seek(SeekFrom::Start(0));
            let _ = stderr.read_to_string(&mut text);
            return Ok(Err(format!("printed nothing: {}", refusal(&text))));
        }
        Ok(Ok(Run {
            user_s: used.utime.as_secs_f64(),
            sys_s: used.stime.as_secs_f64(),
            wall_s: begin.elapsed().as_secs_f64(),
            intervals,
            counted_s,
        }))
    }
}

/// How many intervals there are in a file of counts, and the time of the last. Lines begin with it.
fn printed(text: &str) -> (usize, f64) {
    let time = |line: &str| line.split(',').next()?.trim().parse::<f64>().ok();
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    times.dedup();
    (times.len(), times.last().copied().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(target: Target, output: &Path) -> Job<'_> {
        let pid = std::process::id();
        let (duration, limit) = (Duration::from_millis(200), Duration::from_secs(60));
        Job { target, pid, interval_ms: 10, events: "cs,faults", output, duration, limit }
    }

    fn tool(script: &str, directory: &Path) -> Tool {
        let program = directory.join("tool");
        // By another process: a file that is open for writing cannot be run.
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0"; chmod 755 "$0""#;
        let mut shell = Command::new("sh");
        let written = shell.args(["-c", write]).arg(&program).arg(script).status().unwrap();
        assert!(written.success());
        Tool { kind: ToolKind::Whit, program, version: String::new() }
    }

    #[test]
    fn both_tools_get_the_same_options() {
        let words = |target| job(target, Path::new("OUT")).arguments().join(" ");
        assert_eq!(words(Target::Machine), "stat -I 10 -x, -e cs,faults -a -o OUT");
        let pid = std::process::id();
        assert_eq!(words(Target::Process), format!("stat -I 10 -x, -e cs,faults -p {pid} -o OUT"));
    }

    #[test]
    fn intervals_are_counted_by_their_times() {
        let text = "# started on Sun\n\n     0.010,5,,cs,1,100.00,,\n     0.010,6,,faults,1,100.00,,\n\
                    \x20    0.021,5,,cs,1,100.00,,\n     0.021,6,,faults,1,100.00,,\n";
        assert_eq!(printed(text), (2, 0.021));
        assert_eq!(printed("# nothing\n"), (0, 0.0));
    }

    #[test]
    fn a_run_is_ended_and_measured_and_one_that_fails_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("counts");
        let job = job(Target::Machine, &output);
        let writes =
            format!("printf '0.5,1,,cs\\n1.0,1,,cs\\n' > {}; exec sleep 1000", output.display());
        let run = job.run(&tool(&writes, directory.path())).unwrap().unwrap();
        assert_eq!((run.intervals, run.counted_s, run.rate()), (2, 1.0, 2.0));
        assert!(run.wall_s >= 0.2 && run.cpu() > 0.0 && run.cpu_of_interval_s() > 0.0, "{run:?}");
        let refused = job.run(&tool("echo no right >&2; exit 1", directory.path())).unwrap();
        assert!(refused.unwrap_err().contains("no right"));
    }
}
