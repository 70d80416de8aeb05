//! The token that goes around.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::Options;
use super::groups::Groups;
use super::interruption::Interruption;
use crate::error::{self, Error};
use crate::record::workload::WorkloadResult;
use crate::running::Running;
use crate::setup::Setup;
use whit_measure::measure::anonymous_file;
use whit_measure::summary::Spread;

/// Longest part of the command line that is shown: it names every cgroup.
const SHOWN_CHARS: usize = 200;
/// The line that ends the answer to a request.
const LAST_LINE: &str = "result ";

/// How the token went around.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Hops {
    /// CPU time of a hop by the processes' own clocks.
    pub(crate) cpu_ns: f64,
    /// Share of the time in which none of them ran, though one always could.
    pub(crate) taken: f64,
    /// Response time (from passing the token on to having done the work) of half of the hops.
    pub(crate) median_ns: f64,
    /// Time of 99 responses in 100.
    pub(crate) p99_ns: f64,
}

/// `bench/workloads/token.c`, which runs in these cgroups, and is measured when asked. Dropping it kills
/// it.
#[derive(Debug)]
pub(super) struct Load {
    command: String,
    _running: Running,
    requests: ChildStdin,
    answers: ChildStdout,
    stderr: File,
    limit: Duration,
}

impl Load {
    pub(super) fn start(
        options: &Options,
        groups: &Groups,
        work_ns: u64,
        cpu: u32,
        interruption: &Interruption,
    ) -> Result<Load, Error> {
        let Options { duration, setup: Setup { workloads, limit, .. }, .. } = options;
        let program = workloads.join("token");
        let failed = error::run(&program);
        let stderr = anonymous_file().map_err(&failed)?;
        let millis = duration.as_millis().max(1).to_string();
        let (work, cpu) = (work_ns.to_string(), cpu.to_string());
        let options =
            ["--milliseconds", &millis, "--work", &work, "--cpu", &cpu].map(OsString::from);
        let mut command = Command::new(&program);
        command.args(options).args(groups.active_directories());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(stderr.try_clone().map_err(&failed)?);
        interruption.leave_out_of(&mut command);
        let mut running = Running::spawn(&mut command)?;
        let missing = || failed(io::Error::other("a pipe is missing"));
        let requests = running.child.stdin.take().ok_or_else(missing)?;
        let answers = running.child.stdout.take().ok_or_else(missing)?;
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let command = format!("{} {}", program.display(), words.join(" "));
        let command = command.chars().take(SHOWN_CHARS).collect();
        Ok(Load { command, _running: running, requests, answers, stderr, limit: *limit })
    }

    /// Asks how the token goes around now, and waits for the answer.
    pub(super) fn measure(&mut self) -> Result<Hops, Error> {
        let answered = self.ask();
        match answered.as_deref().map(Hops::parse) {
            Ok(Some(hops)) => Ok(hops),
            Ok(None) => Err(self.failure(&format!("answers {}", answered.unwrap_or_default()))),
            Err(error) => Err(self.failure(&format!("does not answer: {error}"))),
        }
    }

    fn ask(&mut self) -> io::Result<String> {
        self.requests.write_all(b"\n")?;
        let begin = Instant::now();
        let mut answer = Vec::new();
        let is_whole = |answer: &[u8]| {
            let text = String::from_utf8_lossy(answer);
            text.ends_with('\n') && text.lines().any(|line| line.starts_with(LAST_LINE))
        };
        while !is_whole(&answer) {
            let left = self.limit.saturating_sub(begin.elapsed());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            if poll(&mut [PollFd::new(&self.answers, PollFlags::IN)], Some(&left))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let mut buffer = [0; 4096];
            match self.answers.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => answer.extend(&buffer[..read]),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn failure(&mut self, what: &str) -> Error {
        let mut said = String::new();
        // An unreadable output is not shown.
        let _ = self.stderr.seek(SeekFrom::Start(0));
        let _ = self.stderr.read_to_string(&mut said);
        let outcome = format!("{what}; {}", said.trim());
        error::workload(&self.command, &outcome)
    }
}

impl Hops {
    /// From the workload's output.
    fn parse(stdout: &str) -> Option<Hops> {
        let line = stdout.lines().rev().find_map(|line| line.strip_prefix("response_ns "))?;
        let field = |name: &str| {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            words.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse::<f64>().ok())
        };
        let per_s = WorkloadResult::parse(stdout)?.operations_per_s;
        let (cpu_ns, taken) = (field("cpu")?, field("taken")?);
        // Where no hop was made there is no other figure.
        let is_sound = taken == 1.0 || (per_s > 0.0 && cpu_ns > 0.0);
        is_sound.then_some(Hops {
            cpu_ns,
            taken,
            median_ns: field("median")?,
            p99_ns: field("p99")?,
        })
    }

    /// The median of each figure.
    pub(super) fn median(windows: &[Hops]) -> Option<Hops> {
        let of = |field: fn(&Hops) -> f64| Some(Spread::of(windows.iter().map(field))?.median);
        Some(Hops {
            cpu_ns: of(|hops| hops.cpu_ns)?,
            taken: of(|hops| hops.taken)?,
            median_ns: of(|hops| hops.median_ns)?,
            p99_ns: of(|hops| hops.p99_ns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workloads_output_is_read() {
        let text = "response_ns median=4859 p99=8706 max=4009886 cpu=4700.5 taken=0.01\nresult workload=token threads=6 \
                    iterations=500 operations=100 seconds=0.5 operations_per_s=200000 user_s=0 \
                    system_s=0.4\n";
        let hops = Hops { cpu_ns: 4700.5, taken: 0.01, median_ns: 4859.0, p99_ns: 8706.0 };
        assert_eq!(Hops::parse(text), Some(hops));
        assert_eq!(Hops::parse(&text.replace("p99", "p98")), None);
        assert_eq!(Hops::parse(&text.replace("200000", "0")), None);
        assert_eq!(Hops::parse(&text.replace("cpu=4700.5", "cpu=0")), None);
        assert_eq!(Hops::parse(""), None);
        let none = "response_ns median=0 p99=0 max=0 cpu=0 taken=1\nresult workload=token threads=6 \
                    iterations=60 operations=0 seconds=0.06 operations_per_s=0 user_s=0 system_s=0\n";
        let hops = Hops { cpu_ns: 0.0, taken: 1.0, median_ns: 0.0, p99_ns: 0.0 };
        assert_eq!(Hops::parse(none), Some(hops));
    }
}
