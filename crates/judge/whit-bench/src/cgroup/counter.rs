//! Counters, and a check that they counted.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use wait4::Wait4;
use whit_bpf::nothing::Nothing;

use super::groups::Groups;
use super::interruption::Interruption;
use super::program_time::Owner;
use crate::error::{self, Error};
use crate::named::named;
use crate::peer::{perf, version};
use crate::record::recorder::refusal;
use whit_measure::measure::{End, anonymous_file, wait_for_end};

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
}

named!(CounterKind);

/// A counter that is installed here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Counter {
    /// The program that counts, and its method.
    pub(crate) kind: CounterKind,
    pub(crate) program: PathBuf,
    /// First line of the program's `--version`.
    pub(crate) version: String,
}

impl Counter {
    /// All that are here, and why others are not.
    pub(crate) fn detect_all(whit: &Path) -> (Vec<Counter>, Vec<String>) {
        let (mut here, mut absent) = (Vec::new(), Vec::new());
        for &kind in CounterKind::value_variants() {
            let program = if kind == CounterKind::Perf { perf() } else { whit.to_owned() };
            let version = match kind {
                CounterKind::Nothing => match Nothing::attach() {
                    Ok(_) => Ok("a BPF program at each switch that returns at once".to_owned()),
                    Err(error) => Err(error.to_string()),
                },
                CounterKind::Events => {
                    version(&program).map(|version| format!("stat -a, {version}"))
                }
                _ => version(&program),
            };
            match version {
                Ok(version) => here.push(Counter { kind, program, version }),
                Err(reason) => absent.push(format!("{kind}: {reason}")),
            }
        }
        (here, absent)
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
        // Counts of the run before would be taken for those of this one.
        let _ = std::fs::remove_file(self.output);
        let failed = error::run(&self.counter.program);
        let stderr = anonymous_file().map_err(&failed)?;
        let mut command = std::process::Command::new(&self.counter.program);
        command.args(self.arguments()).env("PERF_CONFIG", "/dev/null");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(stderr.try_clone().map_err(&failed)?);
        interruption.leave_out_of(&mut command);
        whit_sys::reset_signal_disposition(&mut command, whit_sys::Signal::Interrupt);
        let child = command.spawn().map_err(&failed)?;
        let mut running = Process {
            child,
            stderr,
            program: self.counter.program.clone(),
            output: self.output.to_owned(),
            cgroups: self.cgroups().cloned().collect(),
            begin: Instant::now(),
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
            Running::Process(process) => Owner::Process(process.child.id()),
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
    child: Child,
    stderr: File,
    program: PathBuf,
    output: PathBuf,
    cgroups: Vec<String>,
    begin: Instant,
}

impl Process {
    fn wait_for_counts(
        &mut self,
        limit: Duration,
        interruption: &Interruption,
    ) -> Result<Result<(), String>, Error> {
        while self.begin.elapsed() < limit {
            interruption.check()?;
            if counted(&self.counts()).0 > 0 {
                return Ok(Ok(()));
            }
            if let Some(status) = self.child.try_wait().map_err(self.failed())? {
                return Ok(Err(format!("{status}: {}", self.refusal())));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(Err(format!("counted nothing within {} s", limit.as_secs())))
    }

    fn stop(mut self, limit: Duration) -> Result<Result<f64, String>, Error> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::INT).map_err(|errno| self.failed()(errno.into()))?;
        }
        if !matches!(
            wait_for_end(&self.child, limit, &|| None).map_err(self.failed())?,
            End::ByItself
        ) {
            return Ok(Err(format!("did not end within {} s", limit.as_secs())));
        }
        let used = self.child.wait4().map_err(self.failed())?.rusage;
        let share = (used.utime + used.stime).as_secs_f64() / self.begin.elapsed().as_secs_f64();
        let (_, seen) = counted(&self.counts());
        let missing = self.cgroups.iter().filter(|&cgroup| !seen.contains(cgroup)).count();
        if missing > 0 {
            return Ok(Err(format!("counted nothing in {missing} cgroups; {}", self.refusal())));
        }
        Ok(Ok(share))
    }

    fn counts(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    fn refusal(&mut self) -> String {
        let mut text = String::new();
        // An unreadable output is not shown.
        let _ = self.stderr.seek(SeekFrom::Start(0));
        let _ = self.stderr.read_to_string(&mut text);
        refusal(&text)
    }

    fn failed(&self) -> impl FnOnce(std::io::Error) -> Error {
        let program = self.program.clone();
        error::run(program)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
