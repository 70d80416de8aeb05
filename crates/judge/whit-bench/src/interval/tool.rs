//! One run of a tool that counts in intervals.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use super::Target;
use crate::counting::Counting;
use crate::error::Error;
use crate::installed::Installed;
use crate::named::named;
use crate::peer::perf;

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
pub(crate) type Tool = Installed<ToolKind>;

impl ToolKind {
    pub(super) fn program(self, whit: &Path) -> PathBuf {
        if self == ToolKind::Perf { perf() } else { whit.to_owned() }
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
        let mut counting = Counting::start(&tool.program, &self.arguments(), self.output, |_| ())?;
        let used = match counting.ends_within(self.duration)? {
            true => counting.running.used()?,
            false => match counting.interrupt(self.limit)? {
                Ok(used) => used,
                Err(reason) => return Ok(Err(reason)),
            },
        };
        let wall_s = counting.begin.elapsed().as_secs_f64();
        let (intervals, counted_s) =
            printed(&std::fs::read_to_string(self.output).unwrap_or_default());
        if intervals == 0 {
            return Ok(Err(format!("printed nothing: {}", counting.refusal())));
        }
        Ok(Ok(Run {
            user_s: used.utime.as_secs_f64(),
            sys_s: used.stime.as_secs_f64(),
            wall_s,
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
        whit_testing::run::write_script(&program, script);
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
