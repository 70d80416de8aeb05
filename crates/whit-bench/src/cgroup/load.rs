//! The token that goes around.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use super::groups::Groups;
use crate::Error;
use crate::measure::{self, Outcome, Printed};
use crate::record::workload::WorkloadResult;

/// Longest part of the command line that is shown: it names every cgroup.
const SHOWN_CHARS: usize = 200;

/// How the token went around.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Hops {
    /// Time of a hop.
    pub mean_ns: f64,
    /// Response time (from passing the token on to having done the work) of half of the hops.
    pub median_ns: f64,
    /// Of 99 in 100.
    pub p99_ns: f64,
}

/// `bench/workloads/token.c`, to be run with these cgroups.
#[derive(Debug)]
pub(super) struct Load {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Load {
    pub(super) fn new(workloads: &Path, groups: &Groups, duration: Duration, work_ns: u64) -> Load {
        let millis = duration.as_millis().max(1).to_string();
        let options =
            ["--milliseconds", &millis, "--work", &work_ns.to_string()].map(OsString::from);
        let directories = groups.directories().map(PathBuf::into_os_string);
        Load {
            program: workloads.join("token"),
            arguments: options.into_iter().chain(directories).collect(),
        }
    }

    pub(super) fn run(&self, limit: Duration) -> Result<Hops, Error> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let (run, printed) = measure::run_watched(command, limit, &|| None)
            .map_err(|source| Error::Run { program: self.program.clone(), source })?;
        match (run.outcome, Hops::parse(&printed.stdout)) {
            (Outcome::Success, Some(hops)) => Ok(hops),
            (outcome, _) => Err(self.failure(outcome, &printed)),
        }
    }

    fn failure(&self, outcome: Outcome, printed: &Printed) -> Error {
        let words = self.arguments.iter().map(|word| word.to_string_lossy());
        let words = words.collect::<Vec<_>>().join(" ");
        let command: String =
            format!("{} {words}", self.program.display()).chars().take(SHOWN_CHARS).collect();
        let outcome = match outcome {
            Outcome::Success => format!("prints no result: {}", printed.stdout),
            Outcome::TimedOut { limit_s } => format!("takes more than {limit_s} s"),
            Outcome::Failed { status, stderr } => format!("ends with {status}: {stderr}"),
        };
        Error::Workload { command, outcome }
    }
}

impl Hops {
    /// From what the workload printed.
    fn parse(stdout: &str) -> Option<Hops> {
        let line = stdout.lines().rev().find_map(|line| line.strip_prefix("response_ns "))?;
        let field = |name: &str| {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            words.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse::<f64>().ok())
        };
        let per_s = WorkloadResult::parse(stdout)?.operations_per_s;
        (per_s > 0.0).then_some(())?;
        Some(Hops { mean_ns: 1e9 / per_s, median_ns: field("median")?, p99_ns: field("p99")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_workload_says_is_read() {
        let text = "response_ns median=4859 p99=8706 max=4009886\nresult workload=token threads=6 \
                    iterations=500 operations=100 seconds=0.5 operations_per_s=200000 user_s=0 \
                    system_s=0.4\n";
        let hops = Hops { mean_ns: 5000.0, median_ns: 4859.0, p99_ns: 8706.0 };
        assert_eq!(Hops::parse(text), Some(hops));
        assert_eq!(Hops::parse(&text.replace("p99", "p98")), None);
        assert_eq!(Hops::parse(&text.replace("200000", "0")), None);
        assert_eq!(Hops::parse(""), None);
    }
}
