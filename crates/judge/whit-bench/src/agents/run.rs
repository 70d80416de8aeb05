//! One agent beside one load.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use whit_measure::measure::{End, Outcome, run as run_program, wait_for_end};
use whit_measure::process_tree::kill;

use super::binaries::{Binaries, files_of_tree};
use super::collector::Collector;
use super::cost::{Objects, cpu_s};
use super::loads::Load;
use super::pprof::{self, Stacks};
use super::tool::{Agent, CACHE, Programs};
use super::{Options, otlp};
use crate::error::{self, Error};
use crate::process::{Cost, resident_bytes};
use crate::running::{Running, last_line};
use crate::scratch::Scratch;

/// An agent sets itself up: it reads the unwind tables of running programs.
const SET_UP: Duration = Duration::from_secs(6);
/// Between two looks at an agent's memory.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// An agent that sends its samples does so each 5 s, some a fifth later, and reads them from the kernel four times a second.
const SEND_LIMIT: Duration = Duration::from_secs(15);
const READ_INTERVAL: Duration = Duration::from_millis(500);

/// An agent beside a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Run {
    /// CPU time of all its processes while the load ran, in percent of one CPU.
    pub(crate) cpu_percent: f64,
    /// CPU time from the end of the load until there was a profile with names, in seconds.
    pub(crate) end_cpu_s: f64,
    /// Time in programs of BPF, in percent of one CPU; on the account of the load.
    pub(crate) bpf_percent: Option<f64>,
    /// Largest resident memory of all its processes.
    pub(crate) resident_bytes: u64,
    /// Memory of its maps in the kernel.
    pub(crate) maps_bytes: Option<u64>,
    /// Samples, where there is a profile that can be read.
    pub(crate) samples: Option<Samples>,
    /// Samples that the agent says it lost; `None` where it does not say.
    #[serde(rename = "told_losses")]
    pub(crate) reported_losses: Option<u64>,
}

/// Samples of a profile.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Samples {
    pub(crate) all: u64,
    pub(crate) of_load: u64,
    /// CPU time of the load times the frequency.
    pub(crate) expected: f64,
    /// Those of the load with whole stacks, where the load knows them.
    pub(crate) complete: Option<u64>,
}

impl Run {
    /// Time of the agent and of its programs of BPF for each sample of the load.
    pub(super) fn ns_a_sample(&self, seconds: f64) -> Option<f64> {
        let samples = self.samples.filter(|samples| samples.of_load > 0)?;
        let percent = self.cpu_percent + self.bpf_percent?;
        Some(percent / 100.0 * seconds * 1e9 / samples.of_load as f64)
    }
}

/// Why there is no run: the agent did not get through, or the benchmark.
#[derive(Debug)]
pub(super) enum Stop {
    Agent(String),
    Benchmark(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Benchmark(error)
    }
}

fn not_run(why: impl Into<String>) -> Stop {
    Stop::Agent(why.into())
}

/// An agent beside a load.
pub(super) fn run(agent: Agent, load: Load, options: &Options) -> Result<Run, Stop> {
    let scratch = Scratch::new(&options.setup.directory)?;
    let programs = options.programs();
    let log = scratch.path().join("log");
    let cache = scratch.path().join(CACHE);
    fs::create_dir(&cache).map_err(error::file("create", &cache))?;
    let _statistics = whit_sys::bpf::enable_run_statistics();
    let objects = Objects::now();
    let collector = agent.sends().then(|| Collector::start(programs.collector, scratch.path()));
    let collector = collector.transpose()?.transpose().map_err(not_run)?;
    let receiver = collector.as_ref().map(Collector::address);
    let mut running = Running::start(agent.command(&programs, scratch.path(), receiver), &log)?;
    set_up(&mut running, agent, &log, options.setup.limit)?;
    // The load goes on until the agent has ended: names of running programs are at hand.
    let mut work = start_load(load, options)?;
    let seen = watch(running.child.id(), &work, options, objects.as_ref());
    let sent = collector.as_ref().map(|it| sent(it, load, work.child.id(), seen.end_ns));
    let spent_before_end = Cost::of_tree(running.child.id()).cpu_ns;
    let ended = end(&mut running, agent, options.setup.limit)?.saturating_sub(spent_before_end);
    let _ = kill(&mut work.child);
    work.used()?;
    let profiled = match sent {
        Some(sent) => sent.map(|stacks| (stacks, 0.0)),
        None => profile(agent, &programs, scratch.path(), options.setup.limit),
    };
    let (stacks, naming_s) = profiled.map_err(|stop| stop.with_last_line(&log))?;
    let said = fs::read_to_string(&log).unwrap_or_default();
    Ok(Run {
        cpu_percent: seen.percent(seen.cpu_ns),
        end_cpu_s: ended as f64 / 1e9 + naming_s,
        bpf_percent: seen.bpf_ns.map(|ns| seen.percent(ns)),
        resident_bytes: seen.resident_bytes,
        maps_bytes: seen.maps_bytes,
        samples: Some(judge(&stacks, load, seen.load_cpu_s * f64::from(options.frequency_hz))),
        reported_losses: agent.reported_losses(&said, &stacks.comments),
    })
}

impl Stop {
    /// The agent's own words may say why.
    fn with_last_line(self, log: &Path) -> Stop {
        match self {
            Stop::Agent(why) => not_run(format!("{}: {}", why, last_line(log))),
            stop => stop,
        }
    }
}

/// Gives an agent its time, from the moment at which it says that it samples, where it says so.
fn set_up(running: &mut Running, agent: Agent, log: &Path, limit: Duration) -> Result<(), Stop> {
    let begin = Instant::now();
    let said = |text: &str| fs::read_to_string(log).is_ok_and(|log| log.contains(text));
    while agent.ready_message().is_some_and(|text| !said(text)) && !running.has_ended()? {
        if begin.elapsed() > limit {
            let why = not_run(format!("does not sample within {} s", limit.as_secs()));
            return Err(why.with_last_line(log));
        }
        sleep(LOOK_INTERVAL);
    }
    sleep(SET_UP);
    match running.has_ended()? {
        true => Err(not_run("ends by itself").with_last_line(log)),
        false => Ok(()),
    }
}

/// The samples up to `end_ns` that an agent sends. At its end it drops samples that it has not
/// sent, so this waits.
fn sent(collector: &Collector, load: Load, work: u32, end_ns: u64) -> Result<Stacks, Stop> {
    let binaries = Binaries::new(&files_of_tree(work));
    let reaches = end_ns.saturating_add(READ_INTERVAL.as_nanos() as u64);
    // A machine that does nothing has no samples to send.
    if !collector.wait_for(reaches, SEND_LIMIT) && load != Load::Idle {
        return Err(not_run(format!("sends no report within {} s", SEND_LIMIT.as_secs())));
    }
    let read = otlp::read(&collector.taken(), end_ns, &|code| binaries.names(code));
    read.map_err(|why| not_run(format!("its profile {why}")))
}

/// The agent while the load ran.
#[derive(Debug, Default)]
struct Seen {
    elapsed_s: f64,
    cpu_ns: u64,
    bpf_ns: Option<u64>,
    resident_bytes: u64,
    maps_bytes: Option<u64>,
    load_cpu_s: f64,
    /// Since 1970.
    end_ns: u64,
}

impl Seen {
    fn percent(&self, ns: u64) -> f64 {
        100.0 * ns as f64 / 1e9 / self.elapsed_s
    }
}

fn start_load(load: Load, options: &Options) -> Result<Running, Error> {
    let mut words = load.words().iter().map(|word| match word.strip_prefix("DIR/") {
        Some(name) => options.setup.workloads.join(name).into_os_string(),
        None => (*word).into(),
    });
    let mut command = Command::new(words.next().unwrap_or_default());
    Running::silent(command.args(words))
}

/// Looks at the agent while the load runs.
fn watch(agent: u32, load: &Running, options: &Options, before: Option<&Objects>) -> Seen {
    let (begin, cpu_ns) = (Instant::now(), Cost::of_tree(agent).cpu_ns);
    let objects = Objects::now();
    let mut seen = Seen::default();
    while begin.elapsed() < options.length {
        sleep(LOOK_INTERVAL);
        seen.resident_bytes = seen.resident_bytes.max(resident_bytes(agent));
    }
    seen.elapsed_s = begin.elapsed().as_secs_f64();
    seen.cpu_ns = Cost::of_tree(agent).cpu_ns.saturating_sub(cpu_ns);
    if let (Some(first), Some(begun), Some(now)) = (before, objects, Objects::now()) {
        let ns = now.new_program_ns(first).saturating_sub(begun.new_program_ns(first));
        (seen.bpf_ns, seen.maps_bytes) = (Some(ns), Some(now.new_map_bytes(first)));
    }
    seen.load_cpu_s = cpu_s(load.child.id());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    seen.end_ns = now.as_nanos() as u64;
    seen
}

/// Gives the CPU time of its whole life, with that of the processes that it has waited for.
fn end(running: &mut Running, agent: Agent, limit: Duration) -> Result<u64, Stop> {
    let child = &running.child;
    let pid = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process(pid, agent.end_signal());
    let ended =
        wait_for_end(child, limit, &|| None).map_err(error::file("wait for", agent.to_string()));
    if ended? != End::ByItself {
        return Err(not_run(format!("does not end within {} s", limit.as_secs())));
    }
    let used = running.used()?;
    Ok((used.utime + used.stime).as_nanos() as u64)
}

/// The profile with names, and the CPU time for the names.
fn profile(
    agent: Agent,
    programs: &Programs<'_>,
    folder: &Path,
    limit: Duration,
) -> Result<(Stacks, f64), Stop> {
    let (commands, paths) = agent.profiles(programs, folder);
    let mut cpu_s = 0.0;
    for command in commands {
        let program = command.get_program().to_owned();
        let done = run_program(command, limit).map_err(error::run(program))?;
        if done.outcome != Outcome::Success {
            return Err(not_run(format!("its recording cannot be exported: {:?}", done.outcome)));
        }
        cpu_s += done.user_s + done.sys_s;
    }
    let mut all = Stacks::default();
    for path in &paths {
        let bytes = fs::read(path).map_err(|error| error.to_string());
        let more = bytes.and_then(|bytes| pprof::read(&bytes));
        all.add(more.map_err(|why| not_run(format!("its profile {why}")))?);
    }
    if paths.is_empty() {
        return Err(not_run("wrote nothing"));
    }
    Ok((all, cpu_s))
}

pub(super) fn judge(stacks: &Stacks, load: Load, expected: f64) -> Samples {
    let mut samples = Samples { all: 0, of_load: 0, expected, complete: None };
    for stack in &stacks.stacks {
        samples.all += stack.samples;
        if load.has(stack) {
            samples.of_load += stack.samples;
            if let Some(is_complete) = load.is_complete(stack) {
                *samples.complete.get_or_insert(0) += if is_complete { stack.samples } else { 0 };
            }
        }
    }
    samples
}
