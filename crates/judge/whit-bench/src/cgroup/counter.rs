//! Counters, and a check that they counted.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use whit_bpf::nothing::Nothing;

use super::groups::Groups;
use super::interruption::Interruption;
use super::program_time::Owner;
use crate::counting::Counting;
use crate::error::Error;
use crate::installed::{Absent, Installed, apart, in_words};
use crate::named::named;
use crate::peer::perf;

/// How often the file of counts is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Between two prints, in milliseconds.
const INTERVAL_MS: &str = "1000";

/// A way to count per cgroup, or a part of the cost of BPF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum CounterKind {
    /// `perf stat -G`.
    #[value(name = "perf stat -G")]
    Perf,
    /// whit with the kernel's cgroup events.
    #[value(name = "whit stat -G --bpf-counters=off")]
    WhitKernel,
    /// whit with a BPF program at each change of cgroup.
    #[value(name = "whit stat -G --bpf-counters=on")]
    WhitBpf,
    /// The events that this program reads, open and counting for each CPU, without it.
    #[value(name = "part: its events alone")]
    Events,
    /// A program at each switch of tasks that does nothing.
    #[value(name = "part: a program that does nothing")]
    Nothing,
}

impl CounterKind {
    fn options(self) -> &'static [&'static str] {
        match self {
            CounterKind::Perf | CounterKind::Events | CounterKind::Nothing => &[],
            CounterKind::WhitKernel => &["--bpf-counters=off"],
            CounterKind::WhitBpf => &["--bpf-counters=on"],
        }
    }

    fn find(self, whit: &Path) -> Result<Counter, Absent<CounterKind>> {
        let program = if self == CounterKind::Perf { perf() } else { whit.to_owned() };
        if self == CounterKind::Nothing {
            let version = "a BPF program at each switch that returns at once".to_owned();
            let failed = |error| Absent { kind: self, reason: format!("{error}") };
            Nothing::attach().map_err(failed)?;
            return Ok(Installed { kind: self, program, version });
        }
        let mut found = Installed::detect(self, program)?;
        if self == CounterKind::Events {
            found.version = format!("stat -a, {}", found.version);
        }
        Ok(found)
    }
}

named!(CounterKind);

/// A counter that is installed here.
pub(crate) type Counter = Installed<CounterKind>;

impl Counter {
    /// All that are here, and why others are not.
    pub(crate) fn detect_all(whit: &Path) -> (Vec<Counter>, Vec<String>) {
        let (here, absent) =
            apart(CounterKind::value_variants().iter().map(|kind| kind.find(whit)));
        (here, in_words(&absent))
    }
}

/// A counter with its events.
#[derive(Debug)]
pub(super) struct Command<'a> {
    pub(super) counter: &'a Counter,
    pub(super) events: &'a [String],
    pub(super) groups: &'a Groups,
    pub(super) output: &'a Path,
}

impl Command<'_> {
    /// The words after the program: the events in each child, in the parent, everywhere.
    pub(super) fn arguments(&self) -> Vec<String> {
        let events = self.events.join(",");
        let mut words = vec!["stat".to_owned()];
        words.extend(self.counter.kind.options().iter().map(|&option| option.to_owned()));
        for name in self.cgroups() {
            let names = vec![name.as_str(); self.events.len()].join(",");
            words.extend(["-e".to_owned(), events.clone(), "-G".to_owned(), names]);
        }
        words.extend(["-a", "-e", &events, "-I", INTERVAL_MS, "-x,", "-o"].map(str::to_owned));
        words.push(self.output.display().to_string());
        words
    }

    /// The names of the cgroups that it counts in.
    fn cgroups(&self) -> impl Iterator<Item = &String> {
        let all = self.groups.counting();
        all.take_while(|_| self.counter.kind != CounterKind::Events)
    }

    /// Starts it, and waits until it has counted once; the reason where it does not.
    pub(super) fn start(
        &self,
        limit: Duration,
        interruption: &Interruption,
    ) -> Result<Result<Running, String>, Error> {
        if self.counter.kind == CounterKind::Nothing {
            return Ok(match Nothing::attach() {
                Ok(program) => Ok(Running::Here(program)),
                Err(error) => Err(error.to_string()),
            });
        }
        let started = self.start_process(limit, interruption)?;
        Ok(started.map(|process| Running::Process(Box::new(process))))
    }

    fn start_process(
        &self,
        limit: Duration,
        interruption: &Interruption,
    ) -> Result<Result<Process, String>, Error> {
        let prepare = |command: &mut _| interruption.leave_out_of(command);
        let program = &self.counter.program;
        let mut running = Process {
            counting: Counting::start(program, &self.arguments(), self.output, prepare)?,
            output: self.output.to_owned(),
            cgroups: self.cgroups().cloned().collect(),
        };
        Ok(running.wait_for_counts(limit, interruption)?.map(|()| running))
    }
}

/// A counter that counts. Dropping it ends it.
#[derive(Debug)]
pub(super) enum Running {
    Process(Box<Process>),
    Here(Nothing),
}

impl Running {
    /// The counter whose program is called at switches.
    pub(super) fn owner(&self) -> Owner<'_> {
        match self {
            Running::Process(process) => Owner::Process(process.counting.running.child.id()),
            Running::Here(program) => Owner::Nothing(program),
        }
    }

    /// Ends it; the CPU time that it took as a share of the time that it ran, or why that does not
    /// count.
    pub(super) fn stop(self, limit: Duration) -> Result<Result<f64, String>, Error> {
        match self {
            Running::Process(process) => process.stop(limit),
            Running::Here(_) => Ok(Ok(0.0)),
        }
    }
}

/// A process that counts. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    counting: Counting,
    output: PathBuf,
    cgroups: Vec<String>,
}

impl Process {
    fn wait_for_counts(
        &mut self,
        limit: Duration,
        interruption: &Interruption,
    ) -> Result<Result<(), String>, Error> {
        while self.counting.begin.elapsed() < limit {
            interruption.check()?;
            if counted(&self.counts()).0 > 0 {
                return Ok(Ok(()));
            }
            if let Some(status) = self.counting.running.end()? {
                return Ok(Err(format!("{status}: {}", self.counting.refusal())));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(Err(format!("counted nothing within {} s", limit.as_secs())))
    }

    fn stop(mut self, limit: Duration) -> Result<Result<f64, String>, Error> {
        let used = match self.counting.interrupt(limit)? {
            Ok(used) => used,
            Err(reason) => return Ok(Err(reason)),
        };
        let elapsed_s = self.counting.begin.elapsed().as_secs_f64();
        let (_, seen) = counted(&self.counts());
        let missing = self.cgroups.iter().filter(|&cgroup| !seen.contains(cgroup)).count();
        if missing > 0 {
            let refusal = self.counting.refusal();
            return Ok(Err(format!("counted nothing in {missing} cgroups; {refusal}")));
        }
        Ok(Ok((used.utime + used.stime).as_secs_f64() / elapsed_s))
    }

    fn counts(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }
}

/// The number of lines with counts, and the cgroups that anything was counted in. The fields are time,
/// count, unit, event, cgroup.
fn counted(text: &str) -> (usize, HashSet<String>) {
    let mut lines = 0;
    let mut cgroups = HashSet::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [_, count, _, _, cgroup, ..] = fields[..] else { continue };
        lines += 1;
        if count.parse::<f64>().is_ok_and(|count| count > 0.0) {
            cgroups.insert(cgroup.to_owned());
        }
    }
    (lines, cgroups)
}
