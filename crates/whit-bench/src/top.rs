//! Live pictures on a terminal: CPU time and memory of the tools that draw them.
//!
//! Each tool runs in a terminal of tmux, on an idle machine and beside a busy process on each CPU. It gets time to set
//! itself up. Then the CPU time of its processes is read twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Error;
use crate::load::Shells;
use crate::markdown::{line_to, spread, table_to};
use crate::named::show_by_name;
use crate::peer::{perf, version};
use crate::system::System;
use crate::turns::order;
use whit_measure::summary::Spread;

const MIB: f64 = (1u64 << 20) as f64;
/// Columns and lines of the terminal.
const SIZE: [&str; 2] = ["120", "40"];

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Samples a second.
    pub frequency_hz: u32,
    /// Runs of each tool and machine.
    pub rounds: usize,
    /// Length of a run.
    pub measured: Duration,
    /// The time before.
    pub warm_up: Duration,
    /// The whit to compare.
    pub whit: PathBuf,
}

/// A tool in one of its uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToolKind {
    /// `whit top`, with call chains.
    Whit,
    /// `perf top`.
    Perf,
    /// `perf top -g`, with call chains by frame pointers.
    PerfChains,
}

impl ToolKind {
    const ALL: [ToolKind; 3] = [ToolKind::Whit, ToolKind::Perf, ToolKind::PerfChains];

    fn name(self) -> &'static str {
        match self {
            ToolKind::Whit => "whit top",
            ToolKind::Perf => "perf top",
            ToolKind::PerfChains => "perf top -g",
        }
    }

    fn line(self, options: &Options) -> String {
        let rate = options.frequency_hz;
        let (program, chains) = match self {
            ToolKind::Whit => (options.whit.clone(), ""),
            ToolKind::Perf => (perf(), ""),
            ToolKind::PerfChains => (perf(), " -g"),
        };
        format!("exec '{}' top -F {rate}{chains}", program.display())
    }
}

show_by_name!(ToolKind);

/// Other work of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// Nothing of ours.
    Idle,
    /// A busy process on each CPU.
    Loaded,
}

impl Machine {
    fn name(self) -> &'static str {
        match self {
            Machine::Idle => "idle",
            Machine::Loaded => "loaded",
        }
    }
}

show_by_name!(Machine);

/// Cost of a tool in one run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Run {
    /// CPU time of all its processes, in percent of one CPU.
    pub cpu_percent: f64,
    /// Their resident memory at the end, without files.
    pub memory_bytes: u64,
}

/// All runs of a tool on a machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Other work beside it.
    pub machine: Machine,
    /// The tool that drew.
    pub tool: ToolKind,
    /// One for each round.
    pub runs: Vec<Run>,
    /// Why there are none.
    pub refused: Option<String>,
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The machine.
    pub system: System,
    /// Versions of the tools.
    pub versions: Vec<String>,
    /// Samples a second.
    pub frequency_hz: u32,
    /// Seconds of a run.
    pub measured_s: f64,
    /// One for each machine and tool.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Whether whit ran each time.
    pub fn whit_succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.tool != ToolKind::Whit || row.refused.is_none())
    }
}

/// Runs all of them in turns.
///
/// # Errors
/// tmux is missing.
pub fn compare(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Comparison, Error> {
    let tmux = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
    tmux.map_err(|source| Error::Run { program: "tmux".into(), source })?;
    let versions = [&options.whit, &perf()].map(|program| version(program).unwrap_or_else(|it| it));
    let mut rows = Vec::new();
    for machine in [Machine::Idle, Machine::Loaded] {
        let first = rows.len();
        rows.extend(ToolKind::ALL.map(|tool| Row {
            machine,
            tool,
            runs: Vec::new(),
            refused: None,
        }));
        for round in 0..options.rounds {
            for turn in order(round, ToolKind::ALL.len()) {
                let row = &mut rows[first + turn];
                say(&format!("round {} of {}: {}, {machine}", round + 1, options.rounds, row.tool));
                match run(row.tool, machine, options)? {
                    Some(run) => row.runs.push(run),
                    None => row.refused = Some("did not run to the end".to_owned()),
                }
            }
        }
    }
    Ok(Comparison {
        system: System::detect(),
        versions: versions.into(),
        frequency_hz: options.frequency_hz,
        measured_s: options.measured.as_secs_f64(),
        rows,
    })
}

/// The result as text.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines().iter().chain(&comparison.versions) {
        line_to(&mut text, &format!("- {line}"));
    }
    let (rate, length) = (comparison.frequency_hz, comparison.measured_s);
    line_to(&mut text, &format!("- {rate} Hz; {length} s a run; CPU time in percent of one CPU"));
    line_to(&mut text, "");
    let headings = ["machine", "tool", "CPU %", "memory MiB"];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(comparison.rows.iter().map(|row| {
        let mut cells = vec![row.machine.to_string(), row.tool.to_string()];
        let cpu = Spread::of(row.runs.iter().map(|run| run.cpu_percent));
        let memory = Spread::of(row.runs.iter().map(|run| run.memory_bytes as f64 / MIB));
        match (cpu, memory, &row.refused) {
            (Some(cpu), Some(memory), None) => cells.extend([spread(&cpu), spread(&memory)]),
            (_, _, why) => cells.push(why.clone().unwrap_or_else(|| "was not run".to_owned())),
        }
        cells
    }));
    table_to(&mut text, &table, 2);
    text
}

/// A terminal with one command; the server of tmux ends with this.
struct Terminal(String);

impl Terminal {
    fn start(line: &str) -> Result<Terminal, Error> {
        // A server that ends still answers for a moment, so each one has a name of its own.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let terminal = Terminal(format!("whit-bench-{}-{number}", std::process::id()));
        let [width, height] = SIZE;
        let start = ["-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "sh", "-c"];
        terminal.tmux(&[&start[..], &[line]].concat())?;
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String, Error> {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.0]).args(arguments).env_remove("TMUX").stdin(Stdio::null());
        let output = command.output();
        let output = output.map_err(|source| Error::Run { program: "tmux".into(), source })?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The process of the command; `None` when it has ended.
    fn process(&self) -> Result<Option<u32>, Error> {
        Ok(self.tmux(&["list-panes", "-F", "#{pane_pid}"])?.trim().parse().ok())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

/// `None` where the tool ended before.
fn run(tool: ToolKind, machine: Machine, options: &Options) -> Result<Option<Run>, Error> {
    let _busy = (machine == Machine::Loaded).then(Shells::busy).transpose()?;
    let terminal = Terminal::start(&tool.line(options))?;
    sleep(options.warm_up);
    let Some(process) = terminal.process()? else { return Ok(None) };
    let (begin, before) = (Instant::now(), Cost::of_tree(process));
    sleep(options.measured);
    let (elapsed, after) = (begin.elapsed(), Cost::of_tree(process));
    if terminal.process()? != Some(process) || after.cpu_ns == 0 {
        return Ok(None);
    }
    let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
    let cpu_percent = 100.0 * cpu_ns as f64 / elapsed.as_nanos() as f64;
    Ok(Some(Run { cpu_percent, memory_bytes: after.memory_bytes }))
}

/// Cost of processes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu_ns: u64,
    pub(crate) memory_bytes: u64,
}

impl Cost {
    /// A process and all below it.
    pub(crate) fn of_tree(process: u32) -> Cost {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let mut cost = Cost { cpu_ns: 0, memory_bytes: anonymous_bytes(&folder) };
        let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
        for thread in threads.map(|thread| thread.path()) {
            cost.cpu_ns += first_number(&thread.join("schedstat")).unwrap_or(0);
            let children = fs::read_to_string(thread.join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                let below = Cost::of_tree(child);
                cost.cpu_ns += below.cpu_ns;
                cost.memory_bytes += below.memory_bytes;
            }
        }
        cost
    }
}

fn first_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// Pages of files are shared with all others that map them, and go when memory is short.
pub(crate) fn anonymous_bytes(folder: &Path) -> u64 {
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_time_and_the_memory_of_its_children() {
        let own = Cost::of_tree(std::process::id());
        assert!(own.cpu_ns > 0 && own.memory_bytes > 0, "{own:?}");
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 60";
        let line = format!("sh -c '{work}' & wait");
        let mut child = Command::new("sh").args(["-c", &line]).spawn().unwrap();
        let has_time = || Cost::of_tree(child.id()).cpu_ns > 20_000_000;
        let seen = (0..1000).any(|_| has_time() || (sleep(Duration::from_millis(20)), false).1);
        let at = format!("/proc/{0}/task/{0}/children", child.id());
        let below = fs::read_to_string(at).unwrap();
        for process in below.split_whitespace() {
            let _ = whit_sys::system::terminate(process.parse().unwrap());
        }
        let _ = child.kill();
        let _ = child.wait();
        assert!(seen);
    }

    #[test]
    fn rows_have_medians_or_the_reason_why_not() {
        let run = |cpu_percent, mib: u64| Run { cpu_percent, memory_bytes: mib << 20 };
        let row = |tool, runs: &[Run], refused: Option<&str>| Row {
            machine: Machine::Idle,
            tool,
            runs: runs.to_vec(),
            refused: refused.map(str::to_owned),
        };
        let mut comparison = Comparison {
            system: System::default(),
            versions: vec!["whit 1".to_owned()],
            frequency_hz: 99,
            measured_s: 2.0,
            rows: vec![
                row(ToolKind::Whit, &[run(0.5, 40), run(0.7, 44), run(0.6, 42)], None),
                row(ToolKind::Perf, &[], Some("no right")),
            ],
        };
        let text = markdown(&comparison);
        assert!(text.contains("| 0.60 (0.50–0.70) |"), "{text}");
        assert!(text.contains("42.0 (40.0–44.0)") && text.contains("| no right"), "{text}");
        assert!(comparison.whit_succeeded());
        comparison.rows[0].refused = Some("gone".to_owned());
        assert!(!comparison.whit_succeeded());
    }
}
