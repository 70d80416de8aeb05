//! Live pictures on a terminal: CPU time and memory of the tools that draw them.
//!
//! Each tool runs in a terminal of tmux, on an idle machine and beside a busy process on each CPU. It gets time to set
//! itself up. Then the CPU time of its processes is read twice.

use std::fmt::{self, Display, Formatter};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::args::{heading, rounds, seconds};
use crate::bench::{Bench, Figures, Say};
use crate::error::{self, Error};
use crate::installed::version;
use crate::load::Machine;
use crate::named::named;
use crate::page::{MIB, Page, spread};
use crate::peer::perf;
use crate::process::Cost;
use crate::rounds::{Column, Row, headings, interleave};
use crate::setup::Setup;

/// Columns and lines of the terminal.
const SIZE: [&str; 2] = ["120", "40"];

const EXAMPLES: &str = "\
Example:
  whit bench top --rounds 3 --seconds 20";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Samples a second
    #[arg(long = "frequency", value_name = "HZ", default_value_t = 99,
          value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = heading::COMPARED)]
    frequency_hz: u32,

    /// Runs of each tool on each machine
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = rounds(),
          help_heading = heading::RUNS)]
    rounds: usize,

    /// Seconds that each run is measured
    #[arg(long = "seconds", value_name = "SECONDS", default_value = "20",
          value_parser = seconds(1..=86_400), help_heading = heading::RUNS)]
    measured: Duration,

    /// Seconds before that, in which a tool sets itself up
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds(1..=3600),
          help_heading = heading::RUNS)]
    warm_up: Duration,

    #[command(flatten, next_help_heading = heading::SETUP)]
    setup: Setup,
}

/// A tool in one of its uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ToolKind {
    /// `whit top`, with call chains.
    #[value(name = "whit top")]
    Whit,
    /// `perf top`.
    #[value(name = "perf top")]
    Perf,
    /// `perf top -g`, with call chains by frame pointers.
    #[value(name = "perf top -g")]
    PerfChains,
}

impl ToolKind {
    fn line(self, options: &Options) -> String {
        let rate = options.frequency_hz;
        let (program, chains) = match self {
            ToolKind::Whit => (options.setup.whit.clone(), ""),
            ToolKind::Perf => (perf(), ""),
            ToolKind::PerfChains => (perf(), " -g"),
        };
        format!("exec '{}' top -F {rate}{chains}", program.display())
    }
}

named!(ToolKind);

/// Cost of a tool in one run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Run {
    /// CPU time of all its processes, in percent of one CPU.
    pub(crate) cpu_percent: f64,
    /// Their resident memory at the end, without files.
    pub(crate) memory_bytes: u64,
}

/// A tool, and other work of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) machine: Machine,
    pub(crate) tool: ToolKind,
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.tool, self.machine)
    }
}

/// The result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) versions: Vec<String>,
    pub(crate) frequency_hz: u32,
    pub(crate) measured_s: f64,
    /// One for each machine and tool.
    pub(crate) rows: Vec<Row<Case, Run>>,
}

impl Figures for Comparison {
    fn show(&self, page: &mut Page) {
        const COLUMNS: [Column<Run>; 2] = [
            ("CPU %", |run| Some(run.cpu_percent), spread),
            ("memory MiB", |run| Some(run.memory_bytes as f64 / MIB), spread),
        ];
        self.versions.iter().for_each(|version| page.fact(version));
        let (rate, length) = (self.frequency_hz, self.measured_s);
        page.fact(format_args!("{rate} Hz; {length} s a run; CPU time in percent of one CPU"));
        let rows = self.rows.iter().map(|row| {
            row.cells(vec![row.case.machine.to_string(), row.case.tool.to_string()], &COLUMNS)
        });
        page.table(headings(&["machine", "tool"], &COLUMNS), 2, rows);
    }

    fn succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.case.tool != ToolKind::Whit || row.refused.is_none())
    }
}

impl Bench for Options {
    type Figures = Comparison;

    fn run(&self, say: Say<'_>) -> Result<Comparison, Error> {
        self.setup.require(&[])?;
        let tmux = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
        tmux.map_err(error::run("tmux"))?;
        let programs = [&self.setup.whit, &perf()];
        let versions = programs.map(|program| version(program).unwrap_or_else(|it| it));
        let mut rows = Vec::new();
        for machine in [Machine::Idle, Machine::Busy] {
            let tools = ToolKind::value_variants().iter();
            let case = |&tool| Row::new(Case { machine, tool });
            let mut of_machine: Vec<Row<Case, Run>> = tools.map(case).collect();
            interleave(&mut of_machine, self.rounds, say, &mut |case| {
                let run = run(case.tool, case.machine, self)?;
                Ok(run.ok_or_else(|| "did not run to the end".to_owned()))
            })?;
            rows.extend(of_machine);
        }
        let (frequency_hz, measured_s) = (self.frequency_hz, self.measured.as_secs_f64());
        Ok(Comparison { versions: versions.into(), frequency_hz, measured_s, rows })
    }
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
        let output = output.map_err(error::run("tmux"))?;
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
    let _load = machine.start()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::page;

    #[test]
    fn rows_have_medians_or_the_reason_why_not() {
        let run = |cpu_percent, mib: u64| Run { cpu_percent, memory_bytes: mib << 20 };
        let row = |tool, runs: &[Run], refused: Option<&str>| Row {
            case: Case { machine: Machine::Idle, tool },
            runs: runs.to_vec(),
            refused: refused.map(str::to_owned),
        };
        let mut comparison = Comparison {
            versions: vec!["whit 1".to_owned()],
            frequency_hz: 99,
            measured_s: 2.0,
            rows: vec![
                row(ToolKind::Whit, &[run(0.5, 40), run(0.7, 44), run(0.6, 42)], None),
                row(ToolKind::Perf, &[], Some("no right")),
            ],
        };
        let text = page(None, &comparison);
        assert!(text.contains("| 0.60 (0.50–0.70) |"), "{text}");
        assert!(text.contains("42.0 (40.0–44.0)") && text.contains("| no right"), "{text}");
        assert!(comparison.succeeded());
        comparison.rows[0].refused = Some("gone".to_owned());
        assert!(!comparison.succeeded());
    }
}
